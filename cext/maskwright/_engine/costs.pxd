from libc.stdint cimport int32_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.lexemes cimport LexState
from maskwright._engine.program cimport Costs, Program
from maskwright._engine.core cimport Core, Thread

cdef void lex_shortest(LexState* start, int32_t tag, vector[uint8_t]& out, cbool* found) noexcept nogil
cdef int32_t cost_lexeme(Costs* costs, LexState* start) noexcept nogil
cdef int32_t cost_plain(Program* program, Costs* costs, int32_t state) noexcept nogil
cdef int32_t cost_node(Program* program, Costs* costs, int32_t start) noexcept nogil
cdef int32_t cost_parser(Program* program, Costs* costs, int32_t id) noexcept nogil
cdef void costs_prepare(Core* core) noexcept nogil
cdef void shortest_try_lexeme(Core* core, Costs* costs, LexState* lex, int32_t parser, int32_t text,
                              int32_t* best, int32_t* best_after,
                              vector[uint8_t]& best_path) noexcept nogil
cdef int32_t shortest_byte(Core* core, const Thread& thread) noexcept nogil
