# Locks, time limits, the pool of threads, and the one that frees what nobody uses any more.
#
# One lock per vocabulary guards everything that grows: shared to read what is there, exclusive to
# add to it or to evict.  Whoever holds it needs no interpreter, so waiting for it cannot deadlock;
# but nobody waits for it while holding the interpreter's own lock, except to free an object.
# Freeing a grammar touches only what is its own, besides counts that are atomic: that needs no lock.

cdef extern from "<shared_mutex>" namespace "std" nogil:
    cdef cppclass shared_mutex:
        void lock()
        void unlock()
        void lock_shared()
        cbool try_lock_shared()
        void unlock_shared()

cdef extern from "pool.hpp" namespace "maskwright" nogil:
    double seconds_now()
    ctypedef void (*PoolTask "maskwright::Pool::Task")(void*, size_t) noexcept
    cdef cppclass Pool:
        void run(PoolTask task, void* context, size_t items, size_t threads)
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

cdef enum:
    MANY_STATES = 1 << 30          # more than any automaton has
    DEADLINE_STEPS = 4096          # trie nodes between two looks at the clock

cdef cppclass Deadline:
    double at                      # seconds_now(); 0: none
    int32_t steps
    cbool passed                   # the operation must end, for want of time or room
    int64_t most_states            # of an automaton, in this operation
    int64_t crowded                # how many states one has that has more; 0: none
    int64_t searched               # threads looked at to prove that others can be completed (alive.pxi)


cdef cbool deadline_look(Deadline* deadline) noexcept nogil:
    if deadline.at > 0 and seconds_now() > deadline.at:
        deadline.passed = True
    return deadline.passed


cdef inline cbool deadline_passed(Deadline* deadline) noexcept nogil:
    # To be asked in every loop over trie nodes; true from the first time that it is late.
    deadline.steps += 1
    if deadline.steps >= DEADLINE_STEPS:
        deadline.steps = 0
        deadline_look(deadline)
    return deadline.passed
