# Locks, time limits, the pool of threads, and the one that frees what nobody uses any more.
#
# One lock per vocabulary guards everything that grows: shared to read what is there, exclusive to
# add to it or to evict.  Nobody waits for it while holding the interpreter's own lock: whoever holds it may wait for
# the interpreter, to ask whether the user has interrupted what is under way.
# Freeing a grammar touches only what is its own, besides counts that are atomic: that needs no lock.

cdef extern from "<shared_mutex>" namespace "std" nogil:
    cdef cppclass shared_mutex:
        void lock()
        cbool try_lock()
        void unlock()
        void lock_shared()
        cbool try_lock_shared()
        void unlock_shared()

cdef extern from "pool.hpp" namespace "maskwright" nogil:
    double seconds_now()
    void lock_anew(shared_mutex&)
    ctypedef void (*PoolTask "maskwright::Pool::Task")(void*, size_t) noexcept
    cdef cppclass Pool:
        void run(PoolTask task, void* context, size_t items, size_t threads)
        void run_or_alone(PoolTask task, void* context, size_t items, size_t threads)
        @staticmethod
        Pool& instance()

cdef extern from "reaper.hpp" namespace "maskwright" nogil:
    cdef cppclass Tally:
        void set(int64_t to)
        void add(int64_t more)
        void subtract(int64_t less)
        int64_t value()
        int64_t drop()
    ctypedef void (*FreeTask "maskwright::Reaper::Free")(void*) noexcept
    cdef cppclass Reaper:
        void take(const void* owner, void* thing, FreeTask free)
        void finish(const void* owner)
        @staticmethod
        void breathe()
        @staticmethod
        Reaper& instance()

cdef extern from "stop.hpp" namespace "maskwright" nogil:
    cdef cppclass StopFlag:
        void set()
        cbool is_set()
    const StopFlag* watch_flag(const StopFlag*)
    cbool told_to_stop()

cdef extern from "Python.h":
    int PyOS_InterruptOccurred()
    unsigned long PyThread_get_thread_ident() nogil

from _signal import SIGINT, default_int_handler, getsignal
from threading import main_thread

cdef unsigned long _main_thread = main_thread().ident


cdef cbool interrupt_came() noexcept with gil:
    # Whether there was a Ctrl-C that ends what is under way.  It is taken back from Python: the operation raises the error
    # itself.  Other handlers are Python code, which must not run while the vocabulary's lock is held: they do when the operation
    # is over.  For the same reason nothing is called here but functions of C.
    return getsignal(SIGINT) is default_int_handler and PyOS_InterruptOccurred() != 0


cdef enum:
    DEADLINE_STEPS = 4096          # trie nodes between two looks at the clock

cdef int64_t NO_LIMIT = <int64_t>1 << 62
cdef double INTERRUPT_SECONDS = 0.05    # between two questions whether there was a Ctrl-C

cdef cppclass Deadline:
    double at                      # seconds_now(); 0: none
    double ask_at                  # when to ask for an interrupt; 0: never
    int32_t steps
    cbool passed                   # the operation must end, for want of time, room or memory, or
    cbool interrupted              # because the user has interrupted it, or another thread has (Stop)
    int64_t most_states            # of an automaton, in this operation
    int64_t crowded                # how many states one has that has more; 0: none
    int64_t most_bytes             # of the states of an automaton, in this operation
    int64_t heavy                  # what those of one take that have more; 0: none
    cbool swollen                  # an automaton has more than half of what it may have
    int64_t searched               # threads looked at to prove that others can be completed (alive.pxi)


cdef void deadline_begin(Deadline* deadline, double seconds, int64_t most_states, int64_t most_bytes) noexcept nogil:
    # For an operation of so many seconds (0: no limit).
    cdef double now = seconds_now()
    deadline.steps = 0
    deadline.passed = False
    deadline.interrupted = False
    deadline.swollen = False
    deadline.searched = deadline.crowded = deadline.heavy = 0
    deadline.most_states = most_states
    deadline.most_bytes = most_bytes
    deadline.at = now + seconds if seconds > 0 else 0
    deadline.ask_at = now + INTERRUPT_SECONDS if PyThread_get_thread_ident() == _main_thread else 0


cdef void deadline_end(Deadline* deadline) noexcept nogil:
    deadline.at = deadline.ask_at = 0
    deadline.passed = False
    deadline.most_states = deadline.most_bytes = NO_LIMIT


cdef cbool deadline_look(Deadline* deadline) noexcept nogil:
    cdef double now = seconds_now()
    if told_to_stop():
        deadline.passed = deadline.interrupted = True
    elif deadline.at > 0 and now > deadline.at:
        deadline.passed = True
    elif deadline.ask_at > 0 and now > deadline.ask_at and not deadline.interrupted:
        deadline.ask_at = now + INTERRUPT_SECONDS
        if interrupt_came():
            deadline.passed = deadline.interrupted = True
    return deadline.passed


cdef inline cbool deadline_passed(Deadline* deadline) noexcept nogil:
    # To be asked in every loop over trie nodes; true from the first time that it is late.
    deadline.steps += 1
    if deadline.steps >= DEADLINE_STEPS:
        deadline.steps = 0
        deadline_look(deadline)
    return deadline.passed


cdef void deadline_heavy(Deadline* deadline, int64_t bytes) noexcept nogil:
    # The operation must end, because so many bytes are more than it may have.
    deadline.heavy = bytes
    deadline.passed = True


cdef inline void deadline_worked(Deadline* deadline, size_t steps) noexcept nogil:
    # Something took as long as so many trie nodes: the clock is asked the sooner.
    if deadline.steps < DEADLINE_STEPS:
        deadline.steps += <int32_t>min(steps, <size_t>DEADLINE_STEPS)
