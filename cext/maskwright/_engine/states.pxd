from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.vocabulary cimport Bits
from maskwright._engine.lexemes cimport LexMask, LexState, ResidualView, TokenGroup
from maskwright._engine.core cimport Core, Mask, Thread

cdef int32_t matcher_intern(Core* core, vector[Thread]& threads) noexcept nogil
cdef int32_t threads_intern(Core* core, vector[Thread]& threads) noexcept nogil
cdef int32_t matcher_start(Core* core) noexcept nogil
cdef void edge_add(Core* core, int32_t id, int32_t token, int32_t target) noexcept nogil
cdef int32_t matcher_step_bytes(Core* core, int32_t id, const uint8_t* data, int64_t length) noexcept nogil
cdef int64_t matcher_read(Core* core, int32_t id, const uint8_t* data, int64_t length) noexcept nogil
cdef cbool threads_pending(Core* core, const vector[Thread]& threads) noexcept nogil
cdef void mask_walk(Core* core, const vector[Thread]& threads, const ResidualView& view,
                    const vector[Thread]& start, vector[int32_t]& added) noexcept nogil
cdef void mask_behind(Core* core, LexState* lex, int32_t tag, int32_t parser, int32_t key, vector[Thread]& out,
                      uint64_t* first) noexcept nogil
cdef cbool mask_open(Core* core, LexMask* mask, LexState* lex, int32_t parser) noexcept nogil
cdef void mask_free(Core* core, Mask* mask) noexcept nogil
cdef int64_t mask_size(const Mask* mask) noexcept nogil
cdef void add_outside(vector[int32_t]& tokens, vector[int32_t]& holes, vector[int32_t]& out) noexcept nogil
cdef void mask_flatten(Core* core, Mask* mask) noexcept nogil
cdef void mask_join_bits(Core* core, Mask* mask, Bits* bits) noexcept nogil
cdef void mask_write(const Core* core, Mask* mask, uint32_t* row) noexcept nogil
cdef int32_t matcher_step_token(Core* core, int32_t id, int32_t token, cbool text, const uint8_t* data,
                                int64_t length) noexcept nogil
cdef void mask_add_tokens(Core* core, const vector[Thread]& threads, Mask* mask) noexcept nogil
cdef int32_t lexed_group_known(Core* core, const TokenGroup* group, int32_t parser, vector[Thread]& possible) noexcept nogil
cdef int32_t frame_bottom(Core* core) noexcept nogil
cdef int32_t frame_state(Core* core, int32_t local) noexcept nogil
