# Lexer states: where a lexeme stands after some bytes.
#
# Two kinds share one state type.  Of a text automaton, a state is a DFA state and the progress of
# a character's spelling (lazy_dfa.pyx, lexeme_texts.pyx).  Of a keyset, it is a position among sorted
# names, the progress of an escape, and the state of the automaton for any other key (keyset.pyx).
# Every state reached is alive.

from libc.string cimport memcpy, memset
from libcpp.unordered_map cimport unordered_map

from maskwright._engine.sizes cimport bits_set
from maskwright._engine.lexemes cimport (
    KEY_BODY, KEY_CLOSED, KEY_OTHER, KEY_STEPS, KeyPlace, KeyStep, KIND_TEXT, KIND_WORDS, NO_TAG
)
from maskwright._engine.lazy_dfa cimport dfa_copy
from maskwright._engine.lexeme_texts cimport BACKSLASH, FORM_CLOSED, LEX_DEAD, text_begin
from maskwright._engine.keyset cimport key_fill_first, key_intern, key_needs_escape, key_next, key_start


cdef LexState* lex_next_key(LexState* state, uint8_t byte) noexcept nogil:
    # Of a keyset, or of words.
    cdef KeyStep step
    for step in state.steps:
        if step.byte == byte:
            return step.target
    step.byte = byte
    step.target = key_next(state, byte) if state.automaton.kind == KIND_KEYSET else words_next(state, byte)
    if step.target != LEX_DEAD and state.key.where != KEY_OTHER and state.steps.size() < KEY_STEPS:
        state.steps.push_back(step)
    return step.target


cdef void lex_fill_first(LexState* state) noexcept nogil:
    # Which bytes lead on.
    cdef int32_t byte
    memset(state.first, 0, 32)
    if state.automaton.kind == KIND_WORDS:
        words_fill_first(state)
    elif state.automaton.kind == KIND_KEYSET:
        key_fill_first(state)
    else:
        for byte in range(256):
            if lex_next(state, <uint8_t>byte) != LEX_DEAD:
                bits_set(state.first, <uint8_t>byte)
    memcpy(state.forced_first, state.first, 32)
    if (state.automaton.kind == KIND_KEYSET and state.key.where == KEY_BODY and state.key.escape == 0
            and state.key.other == 0):
        if not key_needs_escape(state.automaton, &state.key):
            state.forced_first[BACKSLASH >> 6] &= ~((<uint64_t>1) << (BACKSLASH & 63))
    state.has_first = True


cdef cbool lex_goes_on(LexState* state) noexcept nogil:
    # Whether any byte leads on (an accepting state with nothing behind it does not).
    cdef const uint64_t* first
    cdef uint64_t item
    if state.automaton.lexer != NULL:
        for item in state.dfa_state.items:
            if not state.automaton.dfa.edges[<int32_t>(item >> 32)].empty():
                return True
        return False
    if state.automaton.kind == KIND_TEXT:
        if state.form == FORM_CLOSED:
            return False
    elif state.key.where == KEY_CLOSED:
        return False
    first = lex_first(state)
    return (first[0] | first[1] | first[2] | first[3]) != 0


# --- Sets of many texts as one lexeme.
#
# The texts are sorted and packed; nothing else is built.  A state is a range of texts that agree with what was read, and
# a byte narrows the range by binary search, so a million texts cost their bytes.  Masks follow ranges through the
# trie without making states of them.

cdef int32_t words_behind(const Automaton* words, int32_t first, int32_t last, int64_t depth, uint8_t byte) noexcept nogil:
    # The first of texts [first, last), which go on at `depth`, with a byte above `byte` there; galloping, because ranges of
    # one byte are mostly much smaller than what is left.
    cdef int32_t low = first, step = 1, middle
    while low + step < last and word_byte(words, low + step, depth) <= byte:
        low += step
        step *= 2
    last = low + step if low + step < last else last
    while low < last:
        middle = low + (last - low) // 2
        if word_byte(words, middle, depth) <= byte:
            low = middle + 1
        else:
            last = middle
    return low


cdef cbool words_narrow(const Automaton* words, WordPlace* at, uint8_t byte) noexcept nogil:
    # From the texts that agree so far to those with `byte` next; False when there are none.
    cdef int32_t low = at.first, high = at.last, middle
    # A text that ends here sorts first.
    if low < high and word_length(words, low) == at.depth:
        low += 1
    while low < high:
        middle = low + (high - low) // 2
        if word_byte(words, middle, at.depth) < byte:
            low = middle + 1
        else:
            high = middle
    if low == at.last or word_byte(words, low, at.depth) != byte:
        return False
    at.first = low
    at.last = words_behind(words, low, at.last, at.depth, byte)
    at.depth += 1
    return True


cdef LexState* words_state(Automaton* words, const WordPlace* place) noexcept nogil:
    cdef KeyPlace key
    cdef LexState* state
    memset(&key, 0, sizeof(key))
    key.at.first = place.first
    key.at.last = place.last
    key.at.depth = place.depth
    state = key_intern(words, key)
    if word_length(words, key.at.first) == key.at.depth:
        state.tag = word_tag(words, key.at.first)
    return state


cdef void words_begin(Automaton* words) noexcept nogil:
    # When it has its texts.
    cdef WordPlace place
    place.first = place.depth = 0
    place.last = <int32_t>words.texts.starts.size() - 1
    if place.last > 0:
        words.start = words_state(words, &place)


cdef void lexeme_again(Automaton* fresh, const Automaton* other, Automaton* base) noexcept nogil:
    # A lexeme as others have it, without the states that texts have reached; other keys are those of `base`.
    fresh.spelling = other.spelling
    fresh.kinds = other.kinds
    if fresh.kind == KIND_TEXT:
        fresh.counted = other.counted
        fresh.byte_class = other.byte_class
        fresh.class_byte = other.class_byte
        fresh.class_mass = other.class_mass
        fresh.dfa = dfa_copy(other.dfa)
        if other.lexer == NULL:
            text_begin(fresh)
        return
    if fresh.kind == KIND_WORDS:
        words_begin(fresh)
        return
    fresh.keyset.other_tag = other.keyset.other_tag
    fresh.keyset.base = base
    fresh.keyset.unique = other.keyset.unique
    fresh.start = key_start(fresh, 0, <int32_t>0x7FFFFFFF, fresh.keyset.base != NULL, NULL, 0, False)


cdef LexState* words_moved(Automaton* words, const LexState* state) noexcept nogil:
    # The state of another automaton for the same texts.
    cdef WordPlace place = words_place(state)
    return words_state(words, &place)


cdef LexState* words_next(LexState* state, uint8_t byte) noexcept nogil:
    cdef WordPlace place = words_place(state)
    if not words_narrow(state.automaton, &place, byte):
        return LEX_DEAD
    return words_state(state.automaton, &place)


cdef void words_fill_first(LexState* state) noexcept nogil:
    # Which bytes lead on.
    cdef const Automaton* words = state.automaton
    cdef int32_t i = state.key.first
    cdef uint8_t byte
    if word_length(words, i) == state.key.depth:
        i += 1
    while i < state.key.last:
        byte = word_byte(words, i, state.key.depth)
        bits_set(state.first, byte)
        i = words_behind(words, i, state.key.last, state.key.depth, byte)


cdef void words_shortest(const LexState* start, int32_t tag, vector[uint8_t]& out, cbool* found) noexcept nogil:
    # The rest of the shortest text that is not at its end (NO_TAG: of any tag); `out` is appended to.
    cdef const Automaton* words = start.automaton
    cdef int32_t i, best = -1
    cdef int64_t depth = start.key.depth
    found[0] = False
    for i in range(start.key.first, start.key.last):
        if word_length(words, i) == depth or (tag != NO_TAG and word_tag(words, i) != tag):
            continue
        if best < 0 or word_length(words, i) < word_length(words, best):
            best = i
    if best >= 0:
        found[0] = True
        out.insert(out.end(), words.texts.data.begin() + words.texts.starts[best] + depth,
                   words.texts.data.begin() + words.texts.starts[best + 1])


cdef void words_tags(const LexState* start, vector[int32_t]& tags) noexcept nogil:
    # The tags of the texts that are left, each once.
    cdef const Automaton* words = start.automaton
    cdef unordered_map[int32_t, char] seen
    cdef int32_t i
    if words.texts.tags.empty():
        tags.push_back(0)
        return
    for i in range(start.key.first, start.key.last):
        if seen.count(words.texts.tags[i]) == 0:
            seen[words.texts.tags[i]] = 1
            tags.push_back(words.texts.tags[i])
