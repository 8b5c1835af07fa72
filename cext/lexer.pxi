# Lexemes as automata over bytes, determinised while they are used.
#
# Two kinds share one state type.  An NFA automaton's state is a sorted set of items
# (NFA state, count of the loop that it is in).  A keyset's state is a position among sorted
# names, the progress of a backslash escape, and the state of the automaton for any other key.
# Every state reached is alive: the NFA is trimmed, and a keyset asks before it goes on.

cdef enum:
    NO_TAG = -1
    KIND_NFA = 0
    KIND_KEYSET = 1
    # where a keyset state stands
    KEY_START = 0      # before the opening quote
    KEY_BODY = 1       # inside, possibly on the way to a name
    KEY_OTHER = 2      # inside, on the way to no name
    KEY_CLOSED = 3
    QUOTE = 34
    BACKSLASH = 92
    EPSILON_PLAIN = 0
    EPSILON_ENTER = 1
    EPSILON_LEAVE = 2

cdef struct NfaEdge:
    uint8_t low
    uint8_t high
    int32_t target

cdef struct NfaEpsilon:
    int32_t target
    int32_t op
    int32_t loop

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

cdef cppclass LexState:
    Automaton* automaton
    int32_t id
    int32_t tag                    # what is accepted here, or NO_TAG
    vector[uint64_t] items         # NFA: state << 32 | count
    vector[LexState*] next         # NFA: by byte class; NULL = not computed
    KeyPosition key
    LexState* base                 # keyset: state of the automaton for other keys, or NULL
    cbool has_first
    uint64_t first[4]              # bytes that lead on
    uint64_t forced_first[4]       # the same without respellings of the same text
    LexState* free                 # the same without counts, in the free automaton; or NULL
    LexMask* mask
    cbool borrowed_mask            # the mask belongs to a CountedMask
    CountedMask* counted           # of a free automaton's state

cdef cppclass Automaton:
    int32_t kind
    int32_t uid                    # distinct within an engine
    int64_t* largest               # the engine's: most states of any of its automata
    vector[LexState*] states
    unordered_map[string, int32_t] interned
    LexState* start
    # NFA
    vector[vector[NfaEdge]] edges
    vector[vector[NfaEpsilon]] epsilons
    vector[int32_t] loop_min
    vector[int32_t] loop_max
    vector[int32_t] accept
    vector[uint8_t] byte_class
    vector[uint8_t] class_byte
    vector[int32_t] in_loop        # by NFA state: index of its counted loop + 1, or 0
    Automaton* free                # the same NFA with the bounds of its loops taken off, or NULL
    cbool is_free
    # keyset
    vector[string] names           # canonical spelling inside the quotes, sorted
    vector[int32_t] tags           # tag of each sorted name; NO_TAG: may not occur
    int32_t other_tag
    Automaton* base


cdef LexState LEX_DEAD_STATE
cdef LexState* LEX_DEAD = &LEX_DEAD_STATE


cdef void lex_free(Automaton* automaton) noexcept nogil:
    cdef size_t i
    for i in range(automaton.states.size()):
        if automaton.states[i].mask != NULL and not automaton.states[i].borrowed_mask:
            lexmask_free(automaton.states[i].mask)
        if automaton.states[i].counted != NULL:
            counted_free(automaton.states[i].counted)
        del automaton.states[i]
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
    state.base = NULL
    state.has_first = False
    state.free = NULL
    state.mask = NULL
    state.borrowed_mask = False
    state.counted = NULL
    automaton.states.push_back(state)
    # Limits are checked by the caller once it is done: half-computed results are never kept.
    if <int64_t>automaton.states.size() > automaton.largest[0]:
        automaton.largest[0] = <int64_t>automaton.states.size()
    return state


# --- NFA automata ---------------------------------------------------------------------------

cdef void lex_close(Automaton* automaton, vector[uint64_t]& items) noexcept nogil:
    # Epsilon closure; keeps the items that have byte edges or accept, sorted, once each.
    cdef unordered_map[uint64_t, char] seen
    cdef vector[uint64_t] work, kept
    cdef size_t i
    cdef uint64_t item
    cdef int32_t state, count, loop, low, high
    for i in range(items.size()):
        if seen.count(items[i]) == 0:
            seen[items[i]] = 1
            work.push_back(items[i])
    while not work.empty():
        item = work.back()
        work.pop_back()
        state = <int32_t>(item >> 32)
        count = <int32_t><uint32_t>item
        if not automaton.edges[state].empty() or automaton.accept[state] != NO_TAG:
            kept.push_back(item)
        for i in range(automaton.epsilons[state].size()):
            loop = automaton.epsilons[state][i].loop
            item = (<uint64_t>automaton.epsilons[state][i].target) << 32
            if automaton.epsilons[state][i].op == EPSILON_PLAIN:
                item |= <uint64_t>count
            elif automaton.is_free:
                item |= <uint64_t>(automaton.epsilons[state][i].op == EPSILON_ENTER)
            else:
                low = automaton.loop_min[loop]
                high = automaton.loop_max[loop]
                if automaton.epsilons[state][i].op == EPSILON_ENTER:
                    if high < 0:
                        item |= <uint64_t>(count + 1 if count < low else low)
                    elif count < high:
                        item |= <uint64_t>(count + 1)
                    else:
                        continue
                elif count < low:
                    continue
            if seen.count(item) == 0:
                seen[item] = 1
                work.push_back(item)
    sort(kept.begin(), kept.end())
    items.swap(kept)


cdef LexState* lex_intern_items(Automaton* automaton, vector[uint64_t]& items, LexState* free) noexcept nogil:
    cdef string key
    cdef LexState* state
    cdef size_t i
    cdef int32_t tag
    lex_close(automaton, items)
    if items.empty():
        return LEX_DEAD
    key.assign(<const char*>items.data(), items.size() * sizeof(uint64_t))
    key.append(<const char*>&free, sizeof(free))
    found = automaton.interned.find(key)
    if found != automaton.interned.end():
        return automaton.states[dereference(found).second]
    state = lex_new_state(automaton)
    automaton.interned[key] = state.id
    for i in range(items.size()):
        tag = automaton.accept[<int32_t>(items[i] >> 32)]
        if tag != NO_TAG and (state.tag == NO_TAG or tag < state.tag):
            state.tag = tag
    state.items.swap(items)
    state.free = free
    state.next.resize(automaton.class_byte.size(), NULL)
    return state


cdef LexState* lex_next_items(LexState* state, uint8_t byte) noexcept nogil:
    cdef Automaton* automaton = state.automaton
    cdef int32_t cls = automaton.byte_class[byte]
    cdef LexState* target = state.next[cls]
    if target != NULL:
        return target
    cdef vector[uint64_t] items
    cdef LexState* free = NULL
    cdef size_t i, j
    cdef int32_t q
    for i in range(state.items.size()):
        q = <int32_t>(state.items[i] >> 32)
        for j in range(automaton.edges[q].size()):
            if automaton.edges[q][j].low <= byte <= automaton.edges[q][j].high:
                items.push_back(((<uint64_t>automaton.edges[q][j].target) << 32)
                                | (0 if automaton.is_free else <uint32_t>state.items[i]))
    target = LEX_DEAD
    if not items.empty():
        if state.free != NULL:
            free = lex_next_items(state.free, byte)
        target = lex_intern_items(automaton, items, free)
    state.next[cls] = target
    return target


# --- both kinds -----------------------------------------------------------------------------

cdef inline LexState* lex_next(LexState* state, uint8_t byte) noexcept nogil:
    cdef LexState* known
    if state.automaton.kind == KIND_NFA:
        known = state.next[state.automaton.byte_class[byte]]
        return known if known != NULL else lex_next_items(state, byte)
    return key_next(state, byte)


cdef void lex_fill_first(LexState* state) noexcept nogil:
    # Which bytes lead on.
    cdef int32_t byte
    memset(state.first, 0, 32)
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
    cdef const uint64_t* first = lex_first(state)
    return (first[0] | first[1] | first[2] | first[3]) != 0
