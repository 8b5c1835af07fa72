# Locks, time limits, the pool of threads, and the one that frees what nobody uses any more.
#
# One lock per vocabulary guards everything that grows: shared to read what is there, exclusive to add to it or to evict (lock.hpp).
# Who computes for long lets others in between (turns.pyx).  Nobody waits for it while holding the interpreter's own lock: whoever
# holds it may wait for the interpreter, to ask whether the user has interrupted what is under way.
# Freeing a grammar touches only what is its own, besides counts that are atomic: that needs no lock.

from _signal import SIGINT, default_int_handler, getsignal
from threading import main_thread

from maskwright._engine.containers cimport seconds_now

cdef extern from "pool.hpp" namespace "maskwright" nogil:
    cdef cppclass Pool:
        void run(PoolTask task, void* context, size_t items, size_t threads)
        void run_or_alone(PoolTask task, void* context, size_t items, size_t threads)
        @staticmethod
        Pool& instance()

cdef extern from "deferred_free.hpp" namespace "maskwright" nogil:
    cdef cppclass DeferredFree:
        void take(const void* owner, void* thing, FreeTask free)
        void finish(const void* owner)
        @staticmethod
        void breathe()
        @staticmethod
        DeferredFree& instance()

cdef extern from "stop.hpp" namespace "maskwright" nogil:
    const StopFlag* watch_flag(const StopFlag*)
    cbool told_to_stop()

cdef extern from "Python.h":
    int PyOS_InterruptOccurred()
    unsigned long PyThread_get_thread_ident() nogil

cdef unsigned long _main_thread = main_thread().ident


cdef void main_thread_is_this() noexcept:
    # In a child process, the thread that forked.
    global _main_thread
    _main_thread = PyThread_get_thread_ident()


cdef cbool interrupt_came() noexcept with gil:
    # Whether there was a Ctrl-C that ends what is under way.  It is taken back from Python: the operation raises the error
    # itself.  Other handlers are Python code, which must not run while the vocabulary's lock is held: they do when the operation
    # is over.  For the same reason nothing is called here but functions of C.
    return getsignal(SIGINT) is default_int_handler and PyOS_InterruptOccurred() != 0


NO_LIMIT = <int64_t>1 << 62

cdef double INTERRUPT_SECONDS = 0.05    # between two questions whether there was a Ctrl-C
TURN_SECONDS = 0.0005    # longer than it takes to change, and short: a batch may need a turn for each of its rows


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
    deadline.away = NULL
    deadline.turn_began = now
    deadline.turns_took = 0
    deadline.at = now + seconds if seconds > 0 else 0
    deadline.ask_at = now + INTERRUPT_SECONDS if PyThread_get_thread_ident() == _main_thread else 0


cdef void deadline_end(Deadline* deadline) noexcept nogil:
    deadline.at = deadline.ask_at = 0
    deadline.passed = False
    deadline.away = NULL
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


cdef void deadline_heavy(Deadline* deadline, int64_t bytes) noexcept nogil:
    # The operation must end, because so many bytes are more than it may have.
    deadline.heavy = bytes
    deadline.passed = True


# --- one of each in a process ---------------------------------------------------------------
# An object of a header is one for each extension module: so nobody else asks for these.  They are made now, so that no fork can
# come while another thread makes them.
Pool.instance()

DeferredFree.instance()


cdef void pool_run(PoolTask task, void* context, size_t items, size_t threads) noexcept nogil:
    Pool.instance().run(task, context, items, threads)


cdef void pool_run_or_alone(PoolTask task, void* context, size_t items, size_t threads) noexcept nogil:
    Pool.instance().run_or_alone(task, context, items, threads)


cdef void deferred_free_take(const void* owner, void* thing, FreeTask free) noexcept nogil:
    DeferredFree.instance().take(owner, thing, free)


cdef void deferred_free_finish(const void* owner) noexcept nogil:
    DeferredFree.instance().finish(owner)


cdef void deferred_free_breathe() noexcept nogil:
    DeferredFree.breathe()


cdef const StopFlag* stop_watch(const StopFlag* flag) noexcept nogil:
    # The flag that this thread watches from now on (NULL: none); the one before.
    return watch_flag(flag)
