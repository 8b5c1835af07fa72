from libc.stdint cimport int32_t
from libcpp cimport bool as cbool

from maskwright._engine.core cimport Core, Thread

cdef cbool thread_is_free(Core* core, const Thread& thread) noexcept nogil
