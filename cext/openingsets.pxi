# States of many texts where a vocabulary has an opening (opening.pxi).
#
# The opening reads tokens differently, so it is never merged with what is behind other texts: where one of several
# texts is at its very start, their state is *mixed*, the opening and the state of the others.  Both are asked, and
# their answers joined.

cdef enum:
    MIXED_BASE = SET_BASE + (1 << 29)


cdef inline cbool state_opens(const Core* core, int32_t id) noexcept nogil:
    # Whether one of the texts is at its very start.
    return id == core.opening or id >= MIXED_BASE


cdef inline int32_t state_others(const Core* core, const Sets* sets, int32_t id) noexcept nogil:
    # The state of the texts that are not, or NO_STATE.
    return sets.mixed[id - MIXED_BASE] if id >= MIXED_BASE else NO_STATE if id == core.opening else id


cdef int32_t state_mixed(Core* core, Sets* sets, int32_t others) noexcept nogil:
    # The state of a text at its very start and of others.
    if others == NO_STATE:
        return core.opening
    found = sets.mixed_ids.find(others)
    if found != sets.mixed_ids.end():
        return dereference(found).second
    sets.mixed.push_back(others)
    sets.mixed_ids[others] = MIXED_BASE + <int32_t>sets.mixed.size() - 1
    return sets.mixed_ids[others]


cdef int32_t state_join(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil:
    cdef int32_t others
    if a == NO_STATE or b == NO_STATE:
        return b if a == NO_STATE else a
    if not state_opens(core, a) and not state_opens(core, b):
        return sets_join(core, sets, a, b)
    others = sets_join(core, sets, state_others(core, sets, a), state_others(core, sets, b))
    return state_mixed(core, sets, others)


cdef int32_t state_read(Core* core, Sets* sets, int32_t id, int32_t token, const uint8_t* data,
                        int64_t length) noexcept nogil:
    # The state behind the bytes of a token (-1: behind any bytes).
    if id >= MIXED_BASE:
        return state_join(core, sets, edge_make(core, core.opening, token, data, length),
                          state_read(core, sets, state_others(core, sets, id), token, data, length))
    if id >= SET_BASE:
        return set_bytes(core, sets, id, data, length)
    return edge_make(core, id, token, data, length)


cdef cbool state_covers(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil:
    # As `sets_covers`; what only the opening of `a` covers is missed.
    cdef int32_t over = state_others(core, sets, a), under = state_others(core, sets, b)
    if a == b:
        return True
    if state_opens(core, b) and not state_opens(core, a):
        return False
    return under == NO_STATE or (over != NO_STATE and sets_covers(core, sets, over, under))


cdef void opening_classes(Core* core, Sets* sets, vector[int32_t]& targets) noexcept nogil:
    # Where each token leads at the very start.
    cdef const Opening* opening = core.index.opening
    cdef int32_t token
    cdef size_t i
    sets_classes(core, sets, core.start, core.index.trie, targets)
    for token in range(<int32_t>targets.size()):
        if opening_marks(core.index, token):
            targets[token] = NO_STATE
    sets_classes(core, sets, core.start, &opening.trie, targets)
    for i in range(opening.silent.size()):
        targets[opening.silent[i]] = opening_silent(core)


cdef void state_classes(Core* core, Sets* sets, int32_t id, vector[int32_t]& targets) noexcept nogil:
    # Where each token leads; NO_STATE when it is not allowed.
    cdef vector[int32_t] others
    cdef size_t i
    if not state_opens(core, id):
        sets_classes(core, sets, id, core.index.trie, targets)
        return
    opening_classes(core, sets, targets)
    if id == core.opening:
        return
    others.resize(targets.size(), NO_STATE)
    sets_classes(core, sets, state_others(core, sets, id), core.index.trie, others)
    for i in range(targets.size()):
        targets[i] = state_join(core, sets, targets[i], others[i])


cdef int32_t opening_any(Core* core, Sets* sets) noexcept nogil:
    # Behind any one token at the very start; UNKNOWN when time is up.
    cdef vector[int32_t] targets
    cdef vector[Part] parts
    cdef vector[Thread] threads
    cdef SetState* state
    cdef int32_t joined, previous = NO_STATE
    cdef cbool opens = False
    cdef size_t i
    targets.resize(core.index.opening.starts.size() - 1, NO_STATE)
    opening_classes(core, sets, targets)
    sort(targets.begin(), targets.end())
    for i in range(targets.size()):
        if targets[i] == previous:
            continue
        previous = targets[i]
        if previous == core.opening:
            opens = True
        elif core.program.lexer != NULL:
            threads.insert(threads.end(), core.states[previous].threads.begin(), core.states[previous].threads.end())
        else:
            state = set_of(core, sets, previous)
            parts.insert(parts.end(), state.parts.begin(), state.parts.end())
    joined = matcher_intern(core, threads) if core.program.lexer != NULL else set_intern(core, sets, parts)
    if core.index.deadline.passed:
        return UNKNOWN
    return state_mixed(core, sets, joined) if opens else joined


cdef int32_t state_any(Core* core, Sets* sets, int32_t id) noexcept nogil:
    # The state behind any one token that is text; NO_STATE when there is none, UNKNOWN when time is up.
    cdef int32_t others
    if not state_opens(core, id):
        return sets_any(core, sets, id)
    if sets.opening_any == UNKNOWN:
        sets.opening_any = opening_any(core, sets)
    if id == core.opening or sets.opening_any == UNKNOWN:
        return sets.opening_any
    others = sets_any(core, sets, state_others(core, sets, id))
    return UNKNOWN if others == UNKNOWN else state_join(core, sets, sets.opening_any, others)
