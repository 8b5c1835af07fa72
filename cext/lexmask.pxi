# What a lexer state alone says about every token.
#
# A token is *inside* when its bytes leave the lexeme alive: allowed in any context.  A token
# that runs past the end of the lexeme is *crossing*: what remains of it (the residual) must fit
# what may follow.  Crossing tokens are found as trie nodes behind an accepting state, grouped
# by first byte, and each group is merged into one residual trie when it is first needed.
#
# A keyset that allows other keys is nearly its base automaton: it refers to the base's mask and
# lists the trie nodes where a name has been completed (overrides).

cdef struct Crossing:
    int32_t tag        # what the lexeme accepted
    uint8_t byte       # first byte of the residual
    uint32_t node      # trie node reached by that byte

cdef struct Override:
    uint32_t node      # trie node of the closing quote of a name
    int32_t tag        # its tag, or NO_TAG when the name is not allowed

cdef struct ResidualView:
    const Trie* trie
    uint32_t first     # nodes [first, last), the first one's own byte included
    uint32_t last
    int32_t depth      # of the parent of `first`

cdef cppclass LexMask:
    LexMask* ref                          # base automaton's mask, or NULL
    vector[uint32_t] bits                 # inside tokens as a bitset, when there are many
    vector[int32_t] inside                # or as a list
    vector[Crossing] crossing             # sorted by (tag, byte)
    vector[Override] overrides
    unordered_map[int64_t, Trie*] merged  # (tag << 8 | byte) -> residual trie


# Above this many tokens a bitset is cheaper to apply than a list.
cdef enum:
    LIST_LIMIT = 512


cdef void lexmask_free(LexMask* mask) noexcept nogil:
    cdef pair[int64_t, Trie*] entry
    for entry in mask.merged:
        del entry.second
    del mask


cdef cbool lexmask_crossing_before(const Crossing& a, const Crossing& b) noexcept nogil:
    if a.tag != b.tag:
        return a.tag < b.tag
    if a.byte != b.byte:
        return a.byte < b.byte
    return a.node < b.node


cdef void lexmask_finish(LexMask* mask, vector[int32_t]& inside, size_t words) noexcept nogil:
    cdef int32_t t
    sort(mask.crossing.begin(), mask.crossing.end(), &lexmask_crossing_before)
    if inside.size() > LIST_LIMIT:
        mask.bits.resize(words, 0)
        for t in inside:
            mask.bits[t >> 5] |= (<uint32_t>1) << (t & 31)
    else:
        mask.inside.swap(inside)


cdef void lexmask_walk(LexMask* mask, LexState* start, const Trie* trie, size_t words) noexcept nogil:
    # The hot loop of a new lexer state: up to every node of the trie.
    cdef const TrieNode* nodes = trie.nodes.data()
    cdef vector[LexState*] path
    cdef vector[int32_t] inside
    cdef uint32_t node = 1, last = nodes[0].end
    cdef size_t depth
    cdef int32_t t
    cdef LexState* parent
    cdef LexState* state
    cdef Crossing crossing
    path.resize(64, NULL)
    path[0] = start
    while node < last:
        depth = nodes[node].depth
        if depth >= path.size():
            path.resize(2 * depth, NULL)
        parent = path[depth - 1]
        state = lex_next(parent, nodes[node].byte)
        if parent.tag != NO_TAG and depth > 1:
            crossing.tag = parent.tag
            crossing.byte = nodes[node].byte
            crossing.node = node
            mask.crossing.push_back(crossing)
        if state == LEX_DEAD:
            node = nodes[node].end
            continue
        for t in range(nodes[node].token, nodes[node + 1].token):
            inside.push_back(trie.tokens[t])
        path[depth] = state
        node += 1
    lexmask_finish(mask, inside, words)


cdef void lexmask_walk_names(LexMask* mask, LexState* start, const Trie* trie) noexcept nogil:
    # Only where a name is still possible; elsewhere the base automaton's mask holds.
    cdef vector[LexState*] path
    cdef uint32_t node = 1, last = trie.nodes[0].end
    cdef int32_t depth
    cdef LexState* parent
    cdef LexState* state
    cdef Override override
    path.push_back(start)
    while node < last:
        depth = trie.nodes[node].depth
        path.resize(<size_t>depth)
        parent = path[depth - 1]
        state = lex_next(parent, trie.nodes[node].byte)
        if state != LEX_DEAD and state.key.where in (KEY_START, KEY_BODY):
            path.push_back(state)
            node += 1
            continue
        override.node = node
        if state != LEX_DEAD and state.key.where == KEY_CLOSED:
            override.tag = state.tag
            mask.overrides.push_back(override)
        elif state == LEX_DEAD and trie.nodes[node].byte == QUOTE and parent.key.where == KEY_BODY \
                and parent.key.escape == 0 and lex_next(parent.base, QUOTE) != LEX_DEAD:
            override.tag = NO_TAG
            mask.overrides.push_back(override)
        node = trie.nodes[node].end


cdef LexMask* lexmask_get(LexState* state, const Trie* trie, size_t words) noexcept nogil:
    if state.mask != NULL:
        return state.mask
    cdef LexMask* mask = counted_mask(state, trie, words)
    if mask != NULL:
        state.mask = mask
        state.borrowed_mask = True
        return mask
    mask = new LexMask()
    mask.ref = NULL
    if state.base != NULL:
        mask.ref = lexmask_get(state.base, trie, words)
        if state.key.where != KEY_OTHER:
            lexmask_walk_names(mask, state, trie)
    else:
        lexmask_walk(mask, state, trie, words)
    state.mask = mask
    return mask


cdef ResidualView lexmask_residual(LexMask* mask, size_t first, size_t last,
                                   const Trie* trie) noexcept nogil:
    # The residuals of crossings [first, last), which share tag and byte.
    cdef ResidualView view
    cdef vector[uint32_t] group
    cdef Trie* merged
    cdef int64_t key
    cdef size_t i
    if last - first == 1:
        view.trie = trie
        view.first = mask.crossing[first].node
        view.last = trie.nodes[view.first].end
        view.depth = trie.nodes[view.first].depth - 1
        return view
    key = (<int64_t>mask.crossing[first].tag << 8) | mask.crossing[first].byte
    found = mask.merged.find(key)
    if found != mask.merged.end():
        merged = dereference(found).second
    else:
        for i in range(first, last):
            group.push_back(mask.crossing[i].node)
        merged = new Trie()
        trie_merge(trie, merged, group)
        mask.merged[key] = merged
    view.trie = merged
    view.first = 1
    view.last = merged.nodes[0].end
    view.depth = 0
    return view
