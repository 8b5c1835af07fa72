from libc.stdint cimport int32_t
from libcpp cimport bool as cbool

from maskwright._engine.core cimport Core, Thread
from maskwright._engine.program cimport DottedItem

cdef enum:
    A_TERMINAL = 0         # of the lexer
    A_BOUNDARY = 1

cdef cbool local_leads_to(Core* core, int32_t what, const DottedItem* local) noexcept nogil
cdef cbool thread_meets_boundary(Core* core, const Thread& thread) noexcept nogil
