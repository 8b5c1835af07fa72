from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t
from libcpp cimport bool as cbool

from maskwright._engine.vocabulary cimport Bits, Index
from maskwright._engine.lexemes cimport Automaton
from maskwright._engine.core cimport Core, Outcome

cdef cbool* core_away(Core* core) noexcept nogil
cdef void core_lock(Core* core) noexcept nogil
cdef void core_enter(Core* core) noexcept nogil
cdef void core_enter_turns(Core* core) noexcept nogil
cdef Outcome core_outcome(Core* core) noexcept nogil
cdef void core_close(Core* core) noexcept nogil
cdef Outcome core_leave(Core* core) noexcept nogil
cdef void evict(Index* index) noexcept nogil
cdef int64_t core_bytes(const Core* core) noexcept nogil
cdef cbool lexeme_is_swollen(const Automaton* automaton, int64_t most_states, int64_t most_bytes) noexcept nogil
cdef void core_meet_others(Core* core) noexcept nogil
cdef void core_settle(Core* core, int64_t before) noexcept nogil
cdef Core* core_new(Index* index) except NULL
cdef Outcome core_open(Core* core, const Core* before) noexcept nogil
cdef cbool fill_known(Core* core, int32_t id, uint32_t* row) noexcept nogil
cdef Outcome fill_new(Core* core, int32_t id, uint32_t* row) noexcept nogil
cdef Bits* bits_of_state(Core* core, int32_t id) noexcept nogil
cdef int32_t edge_known(Core* core, int32_t state, int32_t token) noexcept nogil
cdef Outcome edge_new(Core* core, int32_t state, int32_t token, const uint8_t* data, int64_t length,
                      int32_t* target) noexcept nogil
cdef int32_t edge_make(Core* core, int32_t state, int32_t token, const uint8_t* data, int64_t length) noexcept nogil
cdef int check_outcome(Outcome outcome, const Core* core) except -1
