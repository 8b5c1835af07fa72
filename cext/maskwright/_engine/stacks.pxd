from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.lexemes cimport Automaton, LexState
from maskwright._engine.longest_match cimport Lexer
from maskwright._engine.program cimport Item, Program

cdef cbool item_before(const Item& a, const Item& b) noexcept nogil
cdef int32_t node_reserve(Program* program) noexcept nogil
cdef int32_t node_union(Program* program, int32_t a, int32_t b) noexcept nogil
cdef int32_t state_intern(Program* program, vector[Item]& items, cbool complete) noexcept nogil
cdef int32_t state_from_kernel(Program* program, vector[Item]& kernel) noexcept nogil
cdef int32_t state_behind(Program* program, int32_t node) noexcept nogil
cdef const vector[int32_t]* state_behind_boundaries(Program* program, int32_t id) noexcept nogil
cdef int32_t state_start(Program* program, int32_t rule) noexcept nogil
cdef int32_t state_goto(Program* program, int32_t id, const Automaton* automaton, int32_t tag,
                        int32_t key) noexcept nogil
cdef int32_t state_goto_guarded(Program* program, int32_t id, const Automaton* automaton, int32_t tag,
                                int32_t guard) noexcept nogil
cdef int32_t state_union(Program* program, int32_t a, int32_t b) noexcept nogil
cdef int32_t newline_column(const Lexer* lexer, int32_t tag) noexcept nogil
cdef int32_t state_first_line(Program* program, int32_t id) noexcept nogil
cdef cbool state_deep(const Program* program, int32_t id) noexcept nogil
cdef cbool state_opens_line(Program* program, int32_t id) noexcept nogil
cdef cbool lex_in_newline(const LexState* state) noexcept nogil
cdef int64_t program_bytes(const Program* program) noexcept nogil
cdef void terminals_begin(Program* program) noexcept nogil
