# Lexer states of texts: how code points are spelled as bytes (UTF-8, quoted strings).

from cython.operator cimport dereference
from libc.stdint cimport uint32_t, uint64_t
from libcpp.atomic cimport memory_order_relaxed
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from maskwright._engine.limits cimport Deadline
from maskwright._engine.lexemes cimport (
    KEYSET_STATE, KIND_KEYSET, KIND_WORDS, LazyDfa, ListedTexts, NO_CLASS, NO_TAG, SPAN_DEAD, SPAN_MIXED, SPAN_UNIFORM
)
from maskwright._engine.lazy_dfa cimport (
    DFA_DEAD, dfa_goes_on, dfa_intern, dfa_next, dfa_span, dfa_class, dfa_grew
)


# --- How code points are spelled as bytes, and the lexer states that this makes.
#
# Three spellings: UTF-8 (RFC 3629), and two of a string between quotes (RFC 8259, section 7).  "Quoted" is UTF-8 or
# any backslash escape; "printed" has the escapes that printers write: the short ones but `\/`, and `\uXXXX` for
# what is above ASCII and for a few characters of ASCII (unit_spells).  A lexer state is a DFA state and how much of the next
# character has been read.  As soon as what has been read leads to one DFA state whatever
# follows, the character is *settled*: only its length is still tracked.  That keeps the states
# few, and makes equal what behaves alike.

cdef int32_t spelling_number(str spelling) except -1:
    # Of a name of `maskwright.ir.grammar.Spelling`.
    return ("utf8", "quoted", "printed").index(spelling)


cdef int32_t hex_digit(uint8_t byte) noexcept nogil:
    if 48 <= byte <= 57:
        return byte - 48
    if 97 <= byte <= 102:
        return byte - 87
    if 65 <= byte <= 70:
        return byte - 55
    return -1


cdef int32_t short_escape(uint8_t byte) noexcept nogil:
    # The code point of `\` and this byte, or -1.
    if byte == QUOTE or byte == BACKSLASH or byte == SLASH:
        return byte
    if byte == 98:
        return 8
    if byte == 102:
        return 12
    if byte == 110:
        return 10
    if byte == 114:
        return 13
    if byte == 116:
        return 9
    return -1


cdef cbool short_spells(int32_t spelling, int32_t point) noexcept nogil:
    # Whether the short escape of a code point, one that short_escape finds, is written.
    return point != SLASH or spelling == SPELLING_QUOTED


cdef cbool unit_spells(int32_t spelling, int32_t point) noexcept nogil:
    # Whether `\uXXXX` (or two of them) is written for a code point.  Printed: a control character without a short
    # escape, `&`, `<` and `>` (escaped by Go), U+007F (by Python and jq), and all above ASCII.
    if spelling == SPELLING_QUOTED or point >= 0x7F:
        return True
    if point < 0x20:
        return not (8 <= point <= 13 and point != 11)
    return point == 38 or point == 60 or point == 62


cdef int32_t unit_span(Automaton* automaton, DfaState* dfa_state, int32_t first, int32_t last,
                       DfaState** target) noexcept nogil:
    # dfa_span of those code points first..last for which `\uXXXX` is written; mixed when it is not for some.
    cdef int32_t point
    cdef cbool every = True, some = False
    if automaton.spelling == SPELLING_QUOTED or first >= 0x80:
        return dfa_span(automaton.dfa, dfa_state, first, last, target)
    for point in range(first, 0x80 if last >= 0x80 else last + 1):
        if not unit_spells(automaton.spelling, point):
            every = False
        elif not some:
            some = dfa_next(automaton.dfa, dfa_state, automaton.dfa.ascii_class[point]) != DFA_DEAD
        if some and not every:
            return SPAN_MIXED
    if every:
        return dfa_span(automaton.dfa, dfa_state, first, last, target)
    if last >= 0x80 and dfa_span(automaton.dfa, dfa_state, 0x80, last, target) != SPAN_DEAD:
        return SPAN_MIXED
    return SPAN_DEAD


cdef cbool text_units(Automaton* automaton, DfaState* dfa_state) noexcept nogil:
    # Whether some `\uXXXX` leads on, where some escape does.
    cdef DfaState* target
    return (automaton.spelling == SPELLING_QUOTED
            or unit_span(automaton, dfa_state, 0, LAST_CODE_POINT, &target) != SPAN_DEAD)


cdef cbool text_escapes(Automaton* automaton, DfaState* dfa_state) noexcept nogil:
    # Whether some escape leads on.
    cdef int32_t byte, point
    if automaton.spelling == SPELLING_QUOTED:
        return dfa_goes_on(automaton.dfa, dfa_state)
    for byte in range(QUOTE, 117):
        point = short_escape(<uint8_t>byte)
        if (point >= 0 and short_spells(automaton.spelling, point)
                and dfa_next(automaton.dfa, dfa_state, automaton.dfa.ascii_class[point]) != DFA_DEAD):
            return True
    return text_units(automaton, dfa_state)


cdef LexState* text_state(Automaton* automaton, DfaState* dfa_state, int32_t form, int32_t left,
                          int32_t low) noexcept nogil:
    cdef int64_t key
    cdef int32_t known
    cdef LexState* state
    if dfa_state == DFA_DEAD:
        return LEX_DEAD
    if form == FORM_TEXT:
        if dfa_state.text != NULL:
            return dfa_state.text
    else:
        key = (((<int64_t>dfa_state.id * 16 + form) * 8 + left) << 21) | low
        known = automaton.partial.find(&key, sizeof(key))
        if known >= 0:
            return automaton.states[known]
    state = lex_new_state(automaton)
    state.dfa_state = dfa_state
    state.form = form
    state.left = left
    state.low = low
    state.next = automaton.next_rows.zeros(automaton.class_byte.size())
    dfa_grew(automaton.dfa, sizeof(LexState) + automaton.class_byte.size() * sizeof(void*))
    if form == FORM_TEXT:
        dfa_state.text = state
    else:
        automaton.partial.insert(&key, sizeof(key), state.id)
    if form == FORM_CLOSED or (form == FORM_TEXT and automaton.spelling == SPELLING_UTF8):
        state.tag = dfa_state.tag
    state.kills = dfa_state.tag != NO_TAG and form in (FORM_TEXT, FORM_UTF8_SETTLED)
    return state


cdef void text_begin(Automaton* automaton) noexcept nogil:
    # Its first state.
    cdef LazyDfa* dfa = automaton.dfa
    cdef vector[uint64_t] items
    items.push_back((<uint64_t>dfa.first) << 32)
    dfa.start = dfa_intern(dfa, items)
    automaton.start = text_state(automaton, dfa.start, FORM_TEXT if automaton.spelling == SPELLING_UTF8 else FORM_OUTSIDE, 0, 0)


cdef LexState* text_settle(Automaton* automaton, DfaState* dfa_state, int32_t form, int32_t left,
                           int32_t low, int32_t first, int32_t last) noexcept nogil:
    # Part of a character has been read; code points first..last are still possible.
    cdef DfaState* target
    cdef int32_t span
    if form == FORM_UNIT:
        span = unit_span(automaton, dfa_state, first, last, &target)
    else:
        span = dfa_span(automaton.dfa, dfa_state, first, last, &target)
    if span == SPAN_DEAD:
        return LEX_DEAD
    if span == SPAN_UNIFORM:
        return text_state(automaton, target, form + 1, left, 0)
    return text_state(automaton, dfa_state, form, left, low)


cdef LexState* text_after(Automaton* automaton, DfaState* dfa_state, int32_t point) noexcept nogil:
    # Behind a whole character.
    return text_state(automaton, dfa_next(automaton.dfa, dfa_state, dfa_class(automaton.dfa, point)),
                      FORM_TEXT, 0, 0)


cdef LexState* text_utf8(Automaton* automaton, DfaState* dfa_state, int32_t left, int32_t low) noexcept nogil:
    # `left` continuation bytes are missing.  What is no text (overlong, above U+10FFFF) makes a span
    # exact; surrogates are in no class.
    cdef int32_t first = utf8_first(low, left), last = utf8_last(low, left)
    cdef DfaState* target
    cdef LexState* state
    cdef int32_t span
    if first != low or last == LAST_CODE_POINT:
        span = dfa_span(automaton.dfa, dfa_state, first, last, &target)
        if span == SPAN_DEAD:
            return LEX_DEAD
        state = text_state(automaton, dfa_state, FORM_UTF8, left, low)
        state.kills = span == SPAN_UNIFORM and target.tag != NO_TAG
        return state
    return text_settle(automaton, dfa_state, FORM_UTF8, left, low, first, last)


cdef LexState* text_lead(Automaton* automaton, DfaState* dfa_state, uint8_t byte) noexcept nogil:
    if 0xC2 <= byte <= 0xDF:
        return text_utf8(automaton, dfa_state, 1, (byte & 31) << 6)
    if 0xE0 <= byte <= 0xEF:
        return text_utf8(automaton, dfa_state, 2, (byte & 15) << 12)
    if 0xF0 <= byte <= 0xF4:
        return text_utf8(automaton, dfa_state, 3, (byte & 7) << 18)
    return LEX_DEAD


cdef LexState* text_continue(LexState* state, uint8_t byte) noexcept nogil:
    # A continuation byte of UTF-8.
    cdef int32_t left = state.left - 1
    cdef int32_t low = state.low | ((byte & 63) << (6 * left))
    if byte & 0xC0 != 0x80:
        return LEX_DEAD
    if state.form == FORM_UTF8_SETTLED:
        return text_state(state.automaton, state.dfa_state, FORM_UTF8_SETTLED if left else FORM_TEXT, left, 0)
    if state.low == 0 and low < (0x800 if left == 1 else 0x10000):
        return LEX_DEAD
    if low > LAST_CODE_POINT:
        return LEX_DEAD
    if left == 0:
        return text_after(state.automaton, state.dfa_state, low)
    return text_utf8(state.automaton, state.dfa_state, left, low)


cdef LexState* text_unit(LexState* state, int32_t digit) noexcept nogil:
    # A digit of the first (or only) `\uXXXX`.
    cdef Automaton* automaton = state.automaton
    cdef LazyDfa* dfa = automaton.dfa
    cdef DfaState* target
    cdef int32_t left = state.left - 1, low, last, astral
    if state.form == FORM_UNIT_SETTLED:
        return text_state(automaton, state.dfa_state, FORM_UNIT_SETTLED if left else FORM_TEXT, left, 0)
    low = state.low | (digit << (4 * left))
    last = low + (1 << (4 * left)) - 1
    if last < 0xD800 or low > 0xDFFF:
        if left == 0:
            return text_after(automaton, state.dfa_state, low) if unit_spells(automaton.spelling, low) else LEX_DEAD
        return text_settle(automaton, state.dfa_state, FORM_UNIT, left, low, low, last)
    # Surrogates: the code points above U+FFFF that the high ones lead to.
    if low >= 0xDC00:
        return LEX_DEAD
    if left == 0:
        astral = 0x10000 + ((low - 0xD800) << 10)
        return text_settle(automaton, state.dfa_state, FORM_PAIR, 2, astral, astral, astral + 1023)
    low = low if low > 0xD800 else 0xD800
    last = last if last < 0xDBFF else 0xDBFF
    astral = 0x10000 + ((low - 0xD800) << 10)
    if dfa_span(dfa, state.dfa_state, astral, 0x10000 + ((last - 0xD800) << 10) + 1023, &target) == SPAN_DEAD:
        if (state.low | (digit << (4 * left))) >= 0xD800:
            return LEX_DEAD
        # The digit D leaves U+D000 to U+D7FF.
        if dfa_span(dfa, state.dfa_state, 0xD000, 0xD7FF, &target) == SPAN_DEAD:
            return LEX_DEAD
    return text_state(automaton, state.dfa_state, FORM_UNIT, left, state.low | (digit << (4 * left)))


cdef LexState* text_low(LexState* state, int32_t digit) noexcept nogil:
    # A digit of a low surrogate, DC00 to DFFF.
    cdef Automaton* automaton = state.automaton
    cdef int32_t left = state.left - 1, low = state.low
    if (left == 3 and digit != 13) or (left == 2 and digit < 12):
        return LEX_DEAD
    if state.form == FORM_LOW_SETTLED:
        return text_state(automaton, state.dfa_state, FORM_LOW_SETTLED if left else FORM_TEXT, left, 0)
    if left == 3:
        return text_state(automaton, state.dfa_state, FORM_LOW, 3, low)
    low |= ((digit - 12) if left == 2 else digit) << (4 * left)
    if left == 0:
        return text_after(automaton, state.dfa_state, low)
    return text_settle(automaton, state.dfa_state, FORM_LOW, left, low, low, low + (1 << (4 * left)) - 1)


cdef LexState* text_pair(LexState* state, uint8_t byte) noexcept nogil:
    # The `\u` between two surrogates.
    cdef cbool settled = state.form == FORM_PAIR_SETTLED
    if byte != (BACKSLASH if state.left == 2 else 117):
        return LEX_DEAD
    if state.left == 2:
        return text_state(state.automaton, state.dfa_state, state.form, 1, state.low)
    return text_state(state.automaton, state.dfa_state, FORM_LOW_SETTLED if settled else FORM_LOW, 4, state.low)


cdef LexState* text_escape(LexState* state, uint8_t byte) noexcept nogil:
    cdef Automaton* automaton = state.automaton
    cdef int32_t point
    if byte == 117:
        return text_state(automaton, state.dfa_state, FORM_UNIT, 4, 0) if text_units(automaton, state.dfa_state) else LEX_DEAD
    point = short_escape(byte)
    if point < 0 or not short_spells(automaton.spelling, point):
        return LEX_DEAD
    return text_after(automaton, state.dfa_state, point)


cdef LexState* text_byte(LexState* state, uint8_t byte) noexcept nogil:
    # The first byte of a character, or the closing quote.
    cdef Automaton* automaton = state.automaton
    if automaton.spelling != SPELLING_UTF8:
        if byte == QUOTE:
            if state.dfa_state.tag == NO_TAG:
                return LEX_DEAD
            return text_state(automaton, state.dfa_state, FORM_CLOSED, 0, 0)
        if byte == BACKSLASH:
            if not text_escapes(automaton, state.dfa_state):
                return LEX_DEAD
            return text_state(automaton, state.dfa_state, FORM_ESCAPE, 0, 0)
        if byte < 0x20:
            return LEX_DEAD
    if byte < 0x80:
        return text_after(automaton, state.dfa_state, byte)
    return text_lead(automaton, state.dfa_state, byte)


cdef LexState* text_next(LexState* state, uint8_t byte) noexcept nogil:
    cdef int32_t cls = state.automaton.byte_class[byte]
    cdef int32_t digit
    cdef LexState* target = LEX_DEAD
    if state.form == FORM_TEXT:
        target = text_byte(state, byte)
    elif state.form == FORM_OUTSIDE:
        if byte == QUOTE:
            target = text_state(state.automaton, state.dfa_state, FORM_TEXT, 0, 0)
    elif state.form == FORM_ESCAPE:
        target = text_escape(state, byte)
    elif state.form == FORM_UTF8 or state.form == FORM_UTF8_SETTLED:
        target = text_continue(state, byte)
    elif state.form == FORM_PAIR or state.form == FORM_PAIR_SETTLED:
        target = text_pair(state, byte)
    elif state.form != FORM_CLOSED:
        digit = hex_digit(byte)
        if digit >= 0:
            if state.form == FORM_UNIT or state.form == FORM_UNIT_SETTLED:
                target = text_unit(state, digit)
            else:
                target = text_low(state, digit)
    state.next[cls] = target
    return target


# --- byte classes ---------------------------------------------------------------------------

cdef int32_t byte_role(uint8_t byte, int32_t spelling, cbool coarse) noexcept nogil:
    # Bytes of different roles are told apart by some form.  Coarse: no two characters above ASCII are
    # told apart, so that only the structure of UTF-8 counts.
    if byte >= 0x80:
        if not coarse:
            return byte
        if byte < 0x90:
            return 0x80
        if byte < 0xA0:
            return 0x90
        if byte < 0xC0:
            return 0xA0
        if byte < 0xC2 or byte > 0xF4:
            return 0xC0
        if byte < 0xE0:
            return 0xC2
        if byte in (0xE0, 0xED, 0xF0, 0xF4):
            return byte
        return 0xE1 if byte < 0xF0 else 0xF1
    if spelling == SPELLING_UTF8:
        return 0
    if hex_digit(byte) >= 0 or short_escape(byte) >= 0 or byte == 117:
        return byte
    return 1 if byte < 0x20 else 0


cdef void text_byte_classes(Automaton* automaton) noexcept nogil:
    cdef LazyDfa* dfa = automaton.dfa
    cdef unordered_map[int64_t, int32_t] known
    cdef cbool coarse = True
    cdef int32_t byte, cls = NO_CLASS
    cdef int64_t name
    cdef size_t i
    for i in range(dfa.range_low.size()):
        # Surrogates are in no class whatever the sets are.
        if (dfa.range_low[i] == 0xD800 and i + 1 < dfa.range_low.size()
                and dfa.range_low[i + 1] == 0xE000):
            continue
        if i > 0 and dfa.range_class[i] != cls:
            coarse = False
        cls = dfa.range_class[i]
    automaton.byte_class.resize(256)
    for byte in range(256):
        name = <int64_t>byte_role(<uint8_t>byte, automaton.spelling, coarse) << 32
        if byte < 128:
            name |= <uint32_t>dfa.ascii_class[byte]
        found = known.find(name)
        if found == known.end():
            known[name] = <int32_t>automaton.class_byte.size()
            automaton.byte_class[byte] = <uint8_t>automaton.class_byte.size()
            automaton.class_byte.push_back(<uint8_t>byte)
        else:
            automaton.byte_class[byte] = <uint8_t>dereference(found).second


cdef LexState LEX_DEAD_STATE

LEX_DEAD = &LEX_DEAD_STATE


cdef Automaton* automaton_new(Index* index, int32_t kind, const Automaton* texts) noexcept nogil:
    # `texts`: it shares those of this one, or NULL.
    cdef Automaton* automaton = new Automaton()
    automaton.sets.mark = 0
    automaton.sets.bytes = 0
    automaton.kind = kind
    automaton.index = index
    automaton.keyset.base = NULL
    automaton.keyset.unique = False
    automaton.keyset.used = NULL
    automaton.keyset.held = NULL
    automaton.dfa = NULL
    automaton.counted = NULL
    automaton.opens_line = False
    automaton.lexer = NULL
    automaton.start = LEX_DEAD
    automaton.texts = NULL
    if texts != NULL:
        automaton.texts_owner = texts.texts_owner
        automaton.texts = texts.texts
    elif kind == KIND_WORDS or kind == KIND_KEYSET:
        automaton.texts = new ListedTexts()
        automaton.texts_owner.reset(automaton.texts)
    return automaton


cdef LexState* lex_new_state(Automaton* automaton) noexcept nogil:
    cdef int32_t id = <int32_t>automaton.states.size()
    cdef LexState* state = automaton.states.add()
    state.automaton = automaton
    state.id = id
    state.tag = NO_TAG
    state.dfa_state = NULL
    state.base = NULL
    state.skipped = NULL
    state.has_first = False
    state.alive = 0
    state.leaves = 0
    state.closes = 0
    state.hopeless = 0
    state.kills = False
    state.mask = NULL
    if automaton.keyset.held != NULL:
        automaton.keyset.held[0] += KEYSET_STATE
    automaton_grew(automaton)
    return state


cdef void automaton_grew(Automaton* automaton) noexcept nogil:
    # Too many states end an operation like too little time: nothing half-computed is kept.
    cdef int64_t count = lex_size(automaton)
    cdef Deadline* deadline = &automaton.index.deadline
    if count > automaton.index.cache.largest.load(memory_order_relaxed):
        automaton.index.cache.largest.store(count, memory_order_relaxed)
    if count > deadline.most_states // 2:
        deadline.swollen = True
    if count > deadline.most_states:
        deadline.crowded = count
        deadline.passed = True


cdef int64_t lex_size(const Automaton* automaton) noexcept nogil:
    # What `max_lexer_states` bounds.
    cdef size_t states = automaton.states.size()
    if automaton.dfa != NULL and automaton.dfa.states.size() > states:
        states = automaton.dfa.states.size()
    if automaton.sets.all.size() > states:
        states = automaton.sets.all.size()
    return <int64_t>states
