from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool
from libcpp.atomic cimport atomic, memory_order_relaxed

from maskwright._engine.containers cimport StopFlag

ctypedef void (*PoolTask)(void*, size_t) noexcept nogil
ctypedef void (*FreeTask)(void*) noexcept nogil

cdef enum:
    DEADLINE_STEPS = 4096          # trie nodes between two looks at the clock

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
    atomic[int64_t] grown          # bytes of automata and their states that were made, ever; atomic, as not all who write hold the lock
    int64_t searched               # threads looked at to prove that others can be completed (alive.pyx)
    double turn_began              # seconds_now(), of an operation that lets others in (turns.pyx)
    double turns_took              # seconds, of its turns before this one
    cbool* away                    # whether the operation has let others in; NULL: it lets nobody in

cdef int64_t NO_LIMIT
cdef double TURN_SECONDS             # of an operation that lets others in

cdef void main_thread_is_this() noexcept
cdef void deadline_begin(Deadline* deadline, double seconds, int64_t most_states, int64_t most_bytes) noexcept nogil
cdef void deadline_end(Deadline* deadline) noexcept nogil
cdef cbool deadline_look(Deadline* deadline) noexcept nogil
cdef void deadline_heavy(Deadline* deadline, int64_t bytes) noexcept nogil
cdef void pool_run(PoolTask task, void* context, size_t items, size_t threads) noexcept nogil
cdef void pool_run_or_alone(PoolTask task, void* context, size_t items, size_t threads) noexcept nogil
cdef void deferred_free_take(const void* owner, void* thing, FreeTask free) noexcept nogil
cdef void deferred_free_finish(const void* owner) noexcept nogil
cdef void deferred_free_breathe() noexcept nogil
cdef const StopFlag* stop_watch(const StopFlag* flag) noexcept nogil


cdef inline cbool deadline_due(Deadline* deadline) noexcept nogil:
    # One step more; whether it is time for a look at the clock.
    deadline.steps += 1
    if deadline.steps < DEADLINE_STEPS:
        return False
    deadline.steps = 0
    return True


cdef inline cbool deadline_passed(Deadline* deadline) noexcept nogil:
    # To be asked in every loop over trie nodes; true from the first time that it is late.
    return deadline_look(deadline) if deadline_due(deadline) else deadline.passed


cdef inline void deadline_worked(Deadline* deadline, size_t steps) noexcept nogil:
    # Something took as long as so many trie nodes: the clock is asked the sooner.
    if deadline.steps < DEADLINE_STEPS:
        deadline.steps += <int32_t>min(steps, <size_t>DEADLINE_STEPS)
