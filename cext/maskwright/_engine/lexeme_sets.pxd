from libc.stdint cimport int32_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.vocabulary cimport Index
from maskwright._engine.lexemes cimport Automaton, LexSet, LexState

cdef LexSet* LEXSET_DEAD

cdef void lexsets_free(Automaton* automaton) noexcept nogil
cdef void numbers_normalize(vector[int32_t]& numbers) noexcept nogil
cdef LexSet* lexset_union(Automaton* automaton, vector[LexSet*]& sets) noexcept nogil
cdef LexSet* lexset_of(LexState* lex) noexcept nogil
cdef LexSet* lexset_next(LexSet* before, uint8_t byte) noexcept nogil
cdef cbool lexset_read(Index* index, LexSet* start) noexcept nogil
cdef cbool lexset_cross(Index* index, LexSet* start) noexcept nogil
