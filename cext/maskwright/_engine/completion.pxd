from libc.stdint cimport int32_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.core cimport Core, Thread

cdef enum:
    FORCED_LIMIT = 65536           # bytes reported by one call
    COMPLETION_LIMIT = 1 << 24

cdef cbool shortest_bytes(Core* core, int32_t id, vector[uint8_t]& out) noexcept nogil
cdef cbool shortest_plain(Core* core, const vector[Thread]& threads, vector[uint8_t]& out) noexcept nogil
cdef void forced_bytes(Core* core, int32_t id, vector[uint8_t]& out) noexcept nogil
