from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool

from maskwright._engine.vocabulary cimport Index, LAST_CODE_POINT
from maskwright._engine.lexemes cimport Automaton, DfaState, LexState

cdef enum:
    SPELLING_UTF8 = 0
    SPELLING_QUOTED = 1
    SPELLING_PRINTED = 2
    # forms: what has been read of the next character
    FORM_OUTSIDE = 0           # quoted: nothing, not even the opening quote
    FORM_TEXT = 1              # nothing
    FORM_CLOSED = 2            # quoted: the closing quote
    FORM_ESCAPE = 3            # `\`
    FORM_UTF8 = 4              # `left` continuation bytes are missing; `low`: least code point
    FORM_UTF8_SETTLED = 5
    FORM_UNIT = 6              # `left` digits of `\uXXXX` are missing; `low`: least code unit
    FORM_UNIT_SETTLED = 7
    FORM_PAIR = 8              # a high surrogate; `left` bytes of the second `\u` are missing
    FORM_PAIR_SETTLED = 9
    FORM_LOW = 10              # `left` digits of the low surrogate are missing; `low`: least code point
    FORM_LOW_SETTLED = 11
    QUOTE = 34
    SLASH = 47
    BACKSLASH = 92

cdef LexState* LEX_DEAD

cdef Automaton* automaton_new(Index* index, int32_t kind, const Automaton* texts) noexcept nogil
cdef LexState* lex_new_state(Automaton* automaton) noexcept nogil
cdef void automaton_grew(Automaton* automaton) noexcept nogil
cdef int64_t lex_size(const Automaton* automaton) noexcept nogil
cdef LexState* text_next(LexState* state, uint8_t byte) noexcept nogil
cdef int32_t spelling_number(str spelling) except -1
cdef int32_t hex_digit(uint8_t byte) noexcept nogil
cdef int32_t short_escape(uint8_t byte) noexcept nogil
cdef cbool short_spells(int32_t spelling, int32_t point) noexcept nogil
cdef cbool unit_spells(int32_t spelling, int32_t point) noexcept nogil
cdef LexState* text_state(Automaton* automaton, DfaState* dfa_state, int32_t form, int32_t left,
                          int32_t low) noexcept nogil
cdef void text_begin(Automaton* automaton) noexcept nogil
cdef LexState* text_after(Automaton* automaton, DfaState* dfa_state, int32_t point) noexcept nogil
cdef void text_byte_classes(Automaton* automaton) noexcept nogil


cdef inline LexState* text_step(LexState* state, uint8_t byte) noexcept nogil:
    # Of a text automaton.
    cdef LexState* known = state.next[state.automaton.byte_class[byte]]
    return known if known != NULL else text_next(state, byte)


cdef inline int32_t utf8_first(int32_t low, int32_t left) noexcept nogil:
    # The least code point of which `left` continuation bytes are missing, and which is not overlong.
    return low if low != 0 else 0x800 if left == 2 else 0x10000


cdef inline int32_t utf8_last(int32_t low, int32_t left) noexcept nogil:
    cdef int32_t last = low + (1 << (6 * left)) - 1
    return last if last < LAST_CODE_POINT else LAST_CODE_POINT
