from libcpp cimport bool as cbool

from maskwright._engine.limits cimport deadline_look
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
