from libcpp cimport bool as cbool

from maskwright._engine.limits cimport deadline_due, deadline_look
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


cdef inline cbool* turns_pause(Index* index, cbool borrowed) noexcept nogil:
    # Nobody has a turn while something is `borrowed` that others may change, until `deadline.away` is what this returns.
    cdef cbool* away = index.deadline.away
    if borrowed:
        index.deadline.away = NULL
    return away


cdef inline cbool turn_passed(Index* index) noexcept nogil:
    # As `deadline_passed`, for loops over trie nodes.
    return turn_late(index) if deadline_due(&index.deadline) else index.deadline.passed
