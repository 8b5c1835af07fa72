from libc.stdint cimport int32_t
from libcpp cimport bool as cbool

from maskwright._engine.core cimport Core, Mask, Thread

cdef cbool distinct_fillable(Core* core, int32_t rule, int32_t guard) noexcept nogil
cdef void distinct_mask(Core* core, Mask* mask, const Thread& thread, cbool begun, cbool alone) noexcept nogil
