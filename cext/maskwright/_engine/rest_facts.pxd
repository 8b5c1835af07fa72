from libc.stdint cimport int32_t, uint64_t
from libcpp cimport bool as cbool

from maskwright._engine.core cimport Core, Thread
from maskwright._engine.program cimport DottedItem, Program

cdef enum:
    MANY_BOUNDARIES = 62   # of which the others have the bit of the last one

cdef uint64_t term_fact(const Program* program, int32_t automaton) noexcept nogil
cdef cbool local_is_lexed(Core* core, const DottedItem* local) noexcept nogil
cdef uint64_t thread_boundaries(Core* core, const Thread& thread) noexcept nogil
