from libcpp cimport bool as cbool

from maskwright._engine.limits cimport DEADLINE_STEPS, deadline_look, deadline_passed
from maskwright._engine.vocabulary cimport Index

cdef void turns_begin(Index* index, cbool* away) noexcept nogil
cdef void turn_over(Index* index) noexcept nogil


cdef inline cbool turn_late(Index* index) noexcept nogil:
    # `deadline_look`, where all tables are whole and nothing that is borrowed may change: others may have their turn here.
    if deadline_look(&index.deadline):
        return True
    if index.deadline.away != NULL and index.lock.is_wanted():
        turn_over(index)
    return False


cdef inline void turn_offer(Index* index) noexcept nogil:
    # A place for a turn in what mostly is too short for one: without a look at the clock.
    if index.deadline.away != NULL and index.lock.is_wanted() and not index.deadline.passed:
        turn_over(index)


cdef inline cbool turn_passed(Index* index) noexcept nogil:
    # The same as `deadline_passed`: for loops over trie nodes.
    if index.deadline.steps + 1 >= DEADLINE_STEPS:
        index.deadline.steps = 0
        return turn_late(index)
    return deadline_passed(&index.deadline)
