from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.vocabulary cimport Index
from maskwright._engine.program cimport NO_STATE
from maskwright._engine.core cimport Core
from maskwright._engine.set_states cimport SET_BASE, Sets

cdef enum:
    MIXED_BASE = SET_BASE + (1 << 29)

cdef void sets_free(Index* index, Sets* sets) noexcept nogil
cdef cbool sets_shortest(Core* core, Sets* sets, int32_t id, vector[uint8_t]& out) noexcept nogil
cdef int32_t state_join(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil
cdef int32_t state_read(Core* core, Sets* sets, int32_t id, int32_t token, const uint8_t* data,
                        int64_t length) noexcept nogil
cdef cbool state_covers(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil
cdef void state_classes(Core* core, Sets* sets, int32_t id, vector[int32_t]& targets) noexcept nogil
cdef int32_t state_any(Core* core, Sets* sets, int32_t id) noexcept nogil


cdef inline int32_t state_others(const Core* core, const Sets* sets, int32_t id) noexcept nogil:
    # The state of the texts that are not, or NO_STATE.
    return sets.mixed[id - MIXED_BASE] if id >= MIXED_BASE else NO_STATE if id == core.opening else id
