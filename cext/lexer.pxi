# Lexer states: where a lexeme stands after some bytes.
#
# Two kinds share one state type.  Of a text automaton, a state is a code state and the progress of
# a character's spelling (codes.pxi, spelling.pxi).  Of a keyset, it is a position among sorted
# names, the progress of an escape, and the state of the automaton for any other key (keyset.pxi).
# Every state reached is alive.

cdef enum:
    KIND_TEXT = 0
    KIND_KEYSET = 1
    KIND_WORDS = 2     # many texts (words.pxi)
    KIND_TOKENS = 3    # tokens that stand for themselves (tokens.pxi): no byte is ever read
    # where a keyset state stands
    KEY_START = 0      # before the opening quote
    KEY_BODY = 1       # inside, possibly on the way to a name
    KEY_OTHER = 2      # inside, on the way to no name
    KEY_CLOSED = 3
    KEY_STEPS = 8      # remembered by a state: they are searched one by one
    KEYSET_STATE = 720 # bytes of one, with what finds it

cdef struct KeyPosition:
    int32_t where      # KEY_*
    int32_t first      # the names that agree so far are sorted names [first, last)
    int32_t last
    int32_t depth      # bytes of the name matched
    int32_t escape     # bytes of an escape read so far (0: none)
    uint32_t value     # its hex digits so far; of a surrogate pair, both halves
    int32_t low        # tags in low..high are allowed
    int32_t high
    int32_t other      # 1: other keys are allowed
    int32_t used       # of other keys that must not come again, those that agree so far: a place in a set of texts
    int32_t used_at    # (textsets.hpp), and
    int32_t used_left  # how many they are; 0: none, and so are the other two
    int32_t pending    # 1: another key came before, but it is not known which (mask_walk)
    int32_t filter     # which tags of low..high, an index into the automaton's `filters`; 0: all

cdef struct KeyPlace:
    # What a keyset state is interned by; no padding.
    KeyPosition at
    LexState* base

cdef struct KeyStep:
    LexState* target
    uint8_t byte

cdef cppclass Skipped:
    # Bytes that say the same behind a state as behind that of a part, or nothing (lexingmask.pxi).
    uint64_t known[4]
    uint64_t same[4]
    LexState* shadow

cdef cppclass LexState:
    Automaton* automaton
    int32_t id
    int32_t tag                    # what is accepted here, or NO_TAG
    # text
    CodeState* code                # before the character under way, or behind it once it is settled
    int32_t form                   # FORM_*
    int32_t left
    int32_t low
    vector[LexState*] next         # by byte class; NULL = not computed
    # keyset
    KeyPosition key
    LexState* base                 # state of the automaton for other keys, or NULL
    vector[KeyStep] steps          # some that lead on
    char alive                     # with other keys that are used: 0 not known, 1 it can be completed, 2 not
    char leaves                    # of a lexer (lexer_leaves): 0 not known, 1 yes, 2 no
    char closes                    # the same (lexer_closes)
    char harmless                  # the same (watch_is_harmless)
    char hopeless                  # the same (lexer_hopeless)
    cbool kills                    # the same: a longer match ends here, or will, whichever character this becomes
    Skipped* skipped               # the same, or NULL
    # both
    cbool has_first
    uint64_t first[4]              # bytes that lead on
    uint64_t forced_first[4]       # the same without respellings of the same text
    LexMask* mask

cdef cppclass Automaton:
    int32_t kind
    int32_t uid                    # distinct within an engine
    Index* index
    vector[LexState*] states
    LexState* start
    int32_t spelling               # SPELLING_*; of a keyset, that of its names and of `base`
    # text
    CodeAutomaton* codes
    vector[uint8_t] byte_class
    vector[uint8_t] class_byte     # one byte of each class
    unordered_map[int64_t, LexState*] partial
    MaskTable* counted             # masks of states that differ in their counts only, or NULL
    Lexer* lexer                   # all terminals of a grammar that has a lexer; else NULL
    vector[int32_t] class_mass     # by class of code points; empty: not counted
    # sets of states (lexsets.pxi)
    vector[LexSet*] sets
    int64_t set_bytes              # of these, and of what finds them
    KeyIds set_ids
    KeyIds set_unions              # by the numbers of several sets
    vector[LexSet*] singles        # by lexer state; NULL: not made yet
    vector[vector[int32_t]] splits # by lexer state: members that stand for it (lexset_split); empty: not made yet
    vector[Best] bests             # scratch of lexset_reduce
    vector[int64_t] marks          # scratch of unions, by state
    int64_t mark
    # keyset
    KeyIds interned
    vector[string] names           # canonical spelling inside the quotes, sorted
    vector[int32_t] tags           # tag of each sorted name; NO_TAG: may not occur
    int32_t other_tag              # plus the tag of `base`: those of other keys
    int32_t kinds                  # how many tags `base` has; of a text automaton, its own
    vector[vector[char]] filters   # by tag; the first one is not used
    KeyIds filter_ids
    Automaton* base
    cbool is_base                  # of another one
    cbool unique                   # other keys must not repeat; then programs have copies (keyset_of), in which
    TextSets* used                 # sets of keys are those of the program; else NULL
    int32_t place                  # of a copy, by program
    int64_t* held                  # where the bytes of its states are counted
    # words; `tags` are those of the texts (empty: all 0)
    vector[uint8_t] word_data      # all texts, sorted, one after another
    vector[int64_t] word_starts
    # tokens
    vector[int32_t] token_ids      # sorted
    vector[uint32_t] token_words   # the same as a row of a mask


cdef LexState LEX_DEAD_STATE
cdef LexState* LEX_DEAD = &LEX_DEAD_STATE


cdef Automaton* automaton_new(Index* index, int32_t kind) noexcept nogil:
    cdef Automaton* automaton = new Automaton()
    automaton.mark = 0
    automaton.set_bytes = 0
    automaton.kind = kind
    automaton.index = index
    automaton.base = NULL
    automaton.is_base = False
    automaton.unique = False
    automaton.used = NULL
    automaton.held = NULL
    automaton.codes = NULL
    automaton.counted = NULL
    automaton.lexer = NULL
    automaton.start = LEX_DEAD
    return automaton


cdef void lex_forget_masks(Automaton* automaton) noexcept nogil:
    cdef size_t i
    for i in range(automaton.states.size()):
        if automaton.states[i].mask != NULL:
            lexmask_release(automaton.states[i].mask)
            automaton.states[i].mask = NULL
    if automaton.lexer != NULL:
        lexer_forget_masks(automaton.lexer, True)


cdef void lex_free(Automaton* automaton) noexcept nogil:
    cdef size_t i
    lex_forget_masks(automaton)
    lexsets_free(automaton)
    for i in range(automaton.states.size()):
        if automaton.states[i].skipped != NULL:
            del automaton.states[i].skipped
        del automaton.states[i]
    if automaton.codes != NULL:
        codes_free(automaton.codes)
    if automaton.lexer != NULL:
        del automaton.lexer
    del automaton


cdef inline void bits_set(uint64_t* bits, uint8_t byte) noexcept nogil:
    bits[byte >> 6] |= (<uint64_t>1) << (byte & 63)


cdef inline cbool bits_has(const uint64_t* bits, uint8_t byte) noexcept nogil:
    return (bits[byte >> 6] >> (byte & 63)) & 1


cdef LexState* lex_new_state(Automaton* automaton) noexcept nogil:
    cdef LexState* state = new LexState()
    state.automaton = automaton
    state.id = <int32_t>automaton.states.size()
    state.tag = NO_TAG
    state.code = NULL
    state.base = NULL
    state.skipped = NULL
    state.has_first = False
    state.alive = 0
    state.leaves = 0
    state.closes = 0
    state.harmless = 0
    state.hopeless = 0
    state.kills = False
    state.mask = NULL
    automaton.states.push_back(state)
    if automaton.held != NULL:
        automaton.held[0] += KEYSET_STATE
    automaton_grew(automaton)
    return state


cdef inline void automaton_grew(Automaton* automaton) noexcept nogil:
    # Too many states end an operation like too little time: nothing half-computed is kept.
    cdef int64_t count = lex_size(automaton)
    cdef Deadline* deadline = &automaton.index.deadline
    if count > automaton.index.largest:
        automaton.index.largest = count
    if count > deadline.most_states // 2:
        deadline.swollen = True
    if count > deadline.most_states:
        deadline.crowded = count
        deadline.passed = True


cdef int64_t lex_size(const Automaton* automaton) noexcept nogil:
    # What `max_lexer_states` bounds.
    cdef size_t states = automaton.states.size()
    if automaton.codes != NULL and automaton.codes.states.size() > states:
        states = automaton.codes.states.size()
    if automaton.sets.size() > states:
        states = automaton.sets.size()
    return <int64_t>states


cdef inline LexState* lex_next(LexState* state, uint8_t byte) noexcept nogil:
    cdef LexState* known
    cdef KeyStep step
    if state.automaton.kind == KIND_TEXT:
        known = state.next[state.automaton.byte_class[byte]]
        return known if known != NULL else text_next(state, byte)
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


cdef inline const uint64_t* lex_first(LexState* state) noexcept nogil:
    if not state.has_first:
        lex_fill_first(state)
    return state.first


cdef inline cbool lex_goes_on(LexState* state) noexcept nogil:
    # Whether any byte leads on (an accepting state with nothing behind it does not).
    cdef const uint64_t* first
    cdef uint64_t item
    if state.automaton.lexer != NULL:
        for item in state.code.items:
            if not state.automaton.codes.edges[<int32_t>(item >> 32)].empty():
                return True
        return False
    if state.automaton.kind == KIND_TEXT:
        if state.form == FORM_CLOSED:
            return False
    elif state.key.where == KEY_CLOSED:
        return False
    first = lex_first(state)
    return (first[0] | first[1] | first[2] | first[3]) != 0
