from libc.stdint cimport int32_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from maskwright._engine.lexemes cimport LexState
from maskwright._engine.program cimport Program
from maskwright._engine.core cimport Core, Thread

cdef enum:
    TOKEN_MARK = 0xFF
    TOKEN_SPELLED = 5
    FEW_TOKENS = 64                # are added to a mask one by one

cdef void threads_normalize(vector[Thread]& threads) noexcept nogil
cdef cbool threads_complete(const Core* core, const vector[Thread]& threads) noexcept nogil
cdef string thread_quoted(const Core* core, int32_t memory) noexcept nogil
cdef int32_t thread_used_key(Core* core, LexState* lex, int32_t before, int32_t memory) noexcept nogil
cdef int32_t thread_goto(Core* core, LexState* lex, int32_t parser, int32_t before, int32_t memory) noexcept nogil
cdef int32_t thread_step(Core* core, const Thread& thread, uint8_t byte, int32_t joined,
                         vector[Thread]& out) noexcept nogil
cdef void tokens_spell(int32_t token, vector[uint8_t]& out) noexcept nogil
cdef void threads_step_token(Core* core, const vector[Thread]& threads, int32_t token,
                             vector[Thread]& out) noexcept nogil
cdef cbool state_waits_for(Core* core, int32_t id, int32_t token) noexcept nogil
cdef int32_t state_goto_token(Program* program, int32_t id, int32_t token) noexcept nogil
cdef void tokens_different(const vector[LexState*]& waiting, vector[int32_t]& out) noexcept nogil
cdef cbool tokens_alike(const vector[LexState*]& waiting, int32_t a, int32_t b) noexcept nogil
cdef void threads_behind_boundaries(Core* core, const vector[Thread]& threads, vector[Thread]& out) noexcept nogil
cdef void lexed_step(Core* core, const vector[Thread]& threads, uint8_t byte, vector[Thread]& out) noexcept nogil
cdef string thread_key(const Thread& thread) noexcept nogil
cdef void core_learn(Core* core, const Thread& thread, int32_t alive) noexcept nogil
