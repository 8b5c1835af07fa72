# Masks of lexer states inside a counted repetition, whatever the count.
#
# `"(any character){m,n}"` has a lexer state for every count, but what a token does does not depend
# on it: the token begins so many further repetitions, or leaves the loop after so many, and the
# bounds only say whether that many are allowed.  So the trie is walked once per state of the
# *free* automaton (the same NFA with the bounds taken off), every token is noted with its number
# of repetitions, and the mask of a count is a selection.
#
# This needs the loop to be unambiguous: a byte either continues a repetition, begins one, or
# leaves the loop for good.  Where it is not, `valid` is false and masks are walked count by count.
#
# x is the ordinal of the repetition that a state is in (or could begin); a token's `extra` is the
# ordinal of its last repetition minus x, so -1 means that it begins none.

cdef enum:
    STEP_DEAD = 0
    STEP_CONTINUE = 1
    STEP_BEGIN = 2
    STEP_LEAVE = 3
    STEP_AMBIGUOUS = 4
    FRESH = 1              # low half of a free automaton's item: reached by beginning a repetition

cdef struct CountedToken:
    int32_t token
    int32_t extra

cdef struct CountedCrossing:
    Crossing crossing
    int32_t extra

cdef cppclass CountedMask:
    cbool valid
    int32_t most                           # greatest `extra`
    vector[CountedToken] staying           # in the loop at their end
    vector[CountedToken] leaving           # out of it, still inside the lexeme
    vector[CountedCrossing] crossing
    unordered_map[int64_t, LexMask*] masks # (room << 32 | missing) -> selection

cdef struct CountedStep:
    int32_t kind
    LexState* target


cdef void counted_free(CountedMask* counted) noexcept nogil:
    cdef pair[int64_t, LexMask*] entry
    for entry in counted.masks:
        lexmask_free(entry.second)
    del counted


cdef int32_t counted_loop(const LexState* state, int32_t* ordinal) noexcept nogil:
    # The loop (its index + 1) that all loop items of a state are in, with one count; else 0.
    cdef size_t i
    cdef int32_t loop = 0, q, count
    for i in range(state.items.size()):
        q = <int32_t>(state.items[i] >> 32)
        count = <int32_t><uint32_t>state.items[i]
        if state.automaton.in_loop[q] == 0:
            continue
        if loop != 0 and (state.automaton.in_loop[q] != loop or count != ordinal[0]):
            return 0
        loop = state.automaton.in_loop[q]
        ordinal[0] = count
    return loop


cdef CountedStep counted_step(LexState* state, int32_t loop, uint8_t byte) noexcept nogil:
    # One byte in the free automaton, and what it does to the loop.
    cdef Automaton* automaton = state.automaton
    cdef CountedStep step
    cdef size_t i, j
    cdef int32_t q, kind
    step.kind = STEP_DEAD
    step.target = lex_next_items(state, byte)
    if step.target == LEX_DEAD:
        return step
    for i in range(state.items.size()):
        q = <int32_t>(state.items[i] >> 32)
        for j in range(automaton.edges[q].size()):
            if not automaton.edges[q][j].low <= byte <= automaton.edges[q][j].high:
                continue
            if automaton.in_loop[q] == 0:
                kind = STEP_LEAVE
            elif automaton.in_loop[q] != loop:
                kind = STEP_AMBIGUOUS
            else:
                kind = STEP_BEGIN if <uint32_t>state.items[i] == FRESH else STEP_CONTINUE
            if step.kind != STEP_DEAD and step.kind != kind:
                kind = STEP_AMBIGUOUS
            step.kind = kind
    if step.kind == STEP_LEAVE:
        for i in range(step.target.items.size()):
            if automaton.in_loop[<int32_t>(step.target.items[i] >> 32)] != 0:
                step.kind = STEP_AMBIGUOUS
    return step


cdef void counted_note_crossing(CountedMask* counted, int32_t tag, uint32_t node, uint8_t byte,
                                int32_t extra) noexcept nogil:
    cdef CountedCrossing entry
    entry.crossing.tag = tag
    entry.crossing.node = node
    entry.crossing.byte = byte
    entry.extra = extra
    if extra > counted.most:
        counted.most = extra
    counted.crossing.push_back(entry)


cdef void counted_walk(CountedMask* counted, LexState* start, int32_t loop,
                       const Trie* trie) noexcept nogil:
    cdef vector[LexState*] path
    cdef vector[int32_t] extras        # by depth
    cdef vector[cbool] left            # by depth: out of the loop
    cdef unordered_map[int64_t, CountedStep] steps
    cdef uint32_t node = 1, last = trie.nodes[0].end
    cdef int32_t depth, t
    cdef int64_t key
    cdef uint8_t byte
    cdef cbool is_out
    cdef CountedToken entry
    cdef CountedStep step
    cdef size_t i
    counted.valid = True
    counted.most = -1
    path.push_back(start)
    left.push_back(False)
    # A state that could begin a repetition has begun none yet.
    extras.push_back(0)
    for i in range(start.items.size()):
        if <uint32_t>start.items[i] == FRESH:
            extras[0] = -1
    while node < last:
        depth = trie.nodes[node].depth
        byte = trie.nodes[node].byte
        path.resize(<size_t>depth)
        extras.resize(<size_t>depth)
        left.resize(<size_t>depth)
        if path[depth - 1].tag != NO_TAG and depth > 1:
            counted_note_crossing(counted, path[depth - 1].tag, node, byte, extras[depth - 1])
        if left[depth - 1]:
            step.kind = STEP_CONTINUE
            step.target = lex_next_items(path[depth - 1], byte)
        else:
            key = (<int64_t>path[depth - 1].id << 8) | start.automaton.byte_class[byte]
            found = steps.find(key)
            if found == steps.end():
                step = counted_step(path[depth - 1], loop, byte)
                steps[key] = step
            else:
                step = dereference(found).second
        if step.target == LEX_DEAD:
            node = trie.nodes[node].end
            continue
        if step.kind == STEP_AMBIGUOUS:
            counted.valid = False
            return
        path.push_back(step.target)
        is_out = left[depth - 1] or step.kind == STEP_LEAVE
        entry.extra = extras[depth - 1]
        if step.kind == STEP_BEGIN:
            entry.extra += 1
        left.push_back(is_out)
        extras.push_back(entry.extra)
        for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
            entry.token = trie.tokens[t]
            if entry.extra > counted.most:
                counted.most = entry.extra
            if is_out:
                counted.leaving.push_back(entry)
            else:
                counted.staying.push_back(entry)
        node += 1


cdef LexMask* counted_select(CountedMask* counted, int32_t room, int32_t missing,
                             size_t words) noexcept nogil:
    # Tokens that begin at most `room` more repetitions and leave after at least `missing` more.
    cdef LexMask* mask = new LexMask()
    cdef CountedToken entry
    cdef CountedCrossing crossing
    cdef vector[int32_t] inside
    cdef int32_t t
    mask.ref = NULL
    for entry in counted.staying:
        if entry.extra <= room:
            inside.push_back(entry.token)
    for entry in counted.leaving:
        if missing <= entry.extra <= room:
            inside.push_back(entry.token)
    for crossing in counted.crossing:
        if missing <= crossing.extra <= room:
            mask.crossing.push_back(crossing.crossing)
    lexmask_finish(mask, inside, words)
    return mask


cdef LexMask* counted_mask(LexState* state, const Trie* trie, size_t words) noexcept nogil:
    # The mask of a state inside a counted loop; NULL when it has to be walked.
    cdef int32_t ordinal = 0, loop, room, missing
    cdef int64_t key
    cdef CountedMask* counted
    cdef Automaton* automaton = state.automaton
    if state.free == NULL:
        return NULL
    loop = counted_loop(state, &ordinal)
    if loop == 0:
        return NULL
    counted = state.free.counted
    if counted == NULL:
        counted = new CountedMask()
        state.free.counted = counted
        counted_walk(counted, state.free, loop, trie)
    if not counted.valid:
        return NULL
    # Beyond what any token does, all bounds are alike.
    room = counted.most
    if automaton.loop_max[loop - 1] >= 0 and automaton.loop_max[loop - 1] - ordinal < room:
        room = automaton.loop_max[loop - 1] - ordinal
    missing = automaton.loop_min[loop - 1] - ordinal
    if missing < -1:
        missing = -1
    if missing > counted.most + 1:
        missing = counted.most + 1
    key = (<int64_t>room << 32) | <uint32_t>missing
    found = counted.masks.find(key)
    if found == counted.masks.end():
        counted.masks[key] = counted_select(counted, room, missing, words)
    return counted.masks[key]
