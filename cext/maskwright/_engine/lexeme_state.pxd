from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.lexemes cimport Automaton, KIND_KEYSET, KIND_TEXT, LexState
from maskwright._engine.lexeme_texts cimport text_step

cdef struct WordPlace:
    uint32_t node      # of the vocabulary's trie
    int32_t first      # texts [first, last) agree with the bytes on the way there
    int32_t last
    int32_t depth      # of the texts

cdef LexState* lex_next_key(LexState* state, uint8_t byte) noexcept nogil
cdef void lex_fill_first(LexState* state) noexcept nogil
cdef cbool lex_goes_on(LexState* state) noexcept nogil
cdef int32_t words_behind(const Automaton* words, int32_t first, int32_t last, int64_t depth, uint8_t byte) noexcept nogil
cdef void lexeme_again(Automaton* fresh, const Automaton* other, Automaton* base) noexcept nogil
cdef void words_begin(Automaton* words) noexcept nogil
cdef LexState* words_moved(Automaton* words, const LexState* state) noexcept nogil
cdef void words_shortest(const LexState* start, int32_t tag, vector[uint8_t]& out, cbool* found) noexcept nogil
cdef void words_tags(const LexState* start, vector[int32_t]& tags) noexcept nogil


cdef inline LexState* lex_next(LexState* state, uint8_t byte) noexcept nogil:
    return text_step(state, byte) if state.automaton.kind == KIND_TEXT else lex_next_key(state, byte)


cdef inline const uint64_t* lex_first(LexState* state) noexcept nogil:
    if not state.has_first:
        lex_fill_first(state)
    return state.first


cdef inline int64_t word_length(const Automaton* words, int32_t i) noexcept nogil:
    return words.texts.starts[i + 1] - words.texts.starts[i]


cdef inline uint8_t word_byte(const Automaton* words, int32_t i, int64_t depth) noexcept nogil:
    return words.texts.data[words.texts.starts[i] + depth]


cdef inline int32_t word_tag(const Automaton* words, int32_t i) noexcept nogil:
    return words.texts.tags[i] if not words.texts.tags.empty() else 0


cdef inline WordPlace words_place(const LexState* state) noexcept nogil:
    cdef WordPlace place
    place.node = 0
    place.first = state.key.first
    place.last = state.key.last
    place.depth = state.key.depth
    return place


cdef inline cbool lex_keeps_text(const LexState* lex) noexcept nogil:
    return lex.automaton.kind == KIND_KEYSET and lex.automaton.keyset.used != NULL and lex.key.other == 1
