from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.lexemes cimport LexState

cdef enum:
    NEAR_STATES = 256              # looked through before anything is estimated
    UNREACHED = 1000000000

cdef void nearest_match(LexState* start, int32_t tag, int64_t most, vector[uint8_t]& out, cbool* found) noexcept nogil
