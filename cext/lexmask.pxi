# What a lexer state alone says about every token.
#
# A token is *inside* when its bytes leave the lexeme alive: allowed in any context.  A token
# that runs past the end of the lexeme is *crossing*: what remains of it (the residual) must fit
# what may follow.  Crossing tokens are found as trie nodes behind an accepting state, grouped
# by first byte, and each group is merged into one residual trie when it is first needed.
#
# Both are found by a walk of the trie along the automaton; home.pxi knows when a slice of the
# vocabulary spares most of it.  A keyset that allows other keys is nearly its base automaton: it
# refers to the base's mask and lists the trie nodes where a name has been completed (overrides).

cdef struct Crossing:
    int32_t tag        # what the lexeme accepted
    LexState* watch    # of a lexer: what the residual must not match (lexing.pxi), or NULL
    uint8_t byte       # first byte of the residual
    uint32_t node      # trie node reached by that byte

cdef struct CrossingGroup:
    # Crossings that differ in their nodes only: nodes[first:last] of the mask.
    LexState* watch
    int32_t tag
    uint8_t byte
    uint32_t first
    uint32_t last

cdef struct Override:
    uint32_t node      # trie node of the closing quote of a name
    int32_t tag        # its tag, or NO_TAG when the name is not allowed

cdef struct ResidualView:
    const Trie* trie
    uint32_t first     # nodes [first, last), the first one's own byte included
    uint32_t last
    int32_t depth      # of the parent of `first`

cdef struct Hypothesis:
    LexState* lex
    LexState* watch

cdef struct Ended:
    int32_t tag            # terminal that ends here; it is not ignored
    LexState* watch        # behind it

cdef cppclass TokenGroup:
    # Tokens that lead to the same hypotheses, none of which can be completed in every context.
    vector[Hypothesis] hypotheses
    vector[Ended] ended
    vector[int32_t] tokens

cdef cppclass Piece:
    # Of a lexer's mask: it says what a part says, but for some tokens (lexingmask.pxi).
    LexMask* part
    vector[int32_t] removed               # of those that depend on the context; sorted

cdef cppclass LexMask:
    int64_t serial                        # no other one of the index ever has it
    Tally holders                         # those of a grammar's keysets are released without the lock (core_free)
    cbool used                            # since the hand came by (evict.pxi)
    Index* index
    const Trie* trie                      # of the crossing points: the vocabulary's, or a residual trie
    LexMask* base                         # base automaton's mask, or NULL
    Bits* bits                            # inside tokens, when there are many, or NULL
    vector[int32_t] inside                # and these; of a mask with a base, what that does not have
    vector[Crossing] crossing             # while the mask is made; then
    vector[CrossingGroup] crossings       # in the order of their tags
    vector[uint32_t] nodes
    int32_t open_tag                      # crossings with this tag are left out (lexmask_open), or NO_TAG
    vector[Override] overrides
    vector[TokenGroup] groups             # tokens that stay inside if the context allows it (lexing.pxi)
    vector[Piece] pieces                  # of a lexer; what they allow in any context is in `bits`
    vector[LexMask*] shares               # what it shares with others, as far as it depends on the context; else in `bits`
    vector[int32_t] holes                 # of such: tokens of the other's piece about which it speaks; of a watch, see
                                          # lexer_watched
    Bits* depending                       # of a part: tokens of crossings and groups, else NULL
    unordered_map[int64_t, Trie*] merged  # by crossing group: residual trie
    vector[TagRun] runs                   # of a lexer: the crossings by tag
    int64_t bytes                         # of all this but the bits

cdef cppclass Run:
    # Of a lexer: what is known of the residuals of some crossing groups, whatever terminal they follow; groups with equal
    # nodes have one run (lexingmask.pxi).
    int32_t holders
    Index* index
    unordered_map[int64_t, Trie*] merged      # by position: residual trie
    unordered_map[int64_t, LexMask*] behind   # by position and state behind the first byte: what that says of the residuals
    unordered_map[int64_t, LexMask*] whole    # by start: what it says of all of them
    int64_t bytes

cdef struct TagRun:
    int32_t tag
    uint32_t first         # groups [first, last)
    uint32_t last
    Run* run

cdef cppclass MaskTable:
    # Masks of counted automata that differ in their bounds only, by capped items (lexmask_key).
    unordered_map[string, LexMask*] masks


# Above this many tokens a bitset is cheaper to apply than a list.
cdef enum:
    LIST_LIMIT = 512


cdef LexMask* lexmask_new(Index* index) noexcept nogil:
    cdef LexMask* mask = new LexMask()
    index.masks_made += 1
    mask.serial = index.masks_made
    mask.holders.set(1)
    mask.used = True
    mask.index = index
    mask.trie = index.trie
    mask.base = NULL
    mask.bits = NULL
    mask.depending = NULL
    mask.open_tag = NO_TAG
    mask.bytes = 0
    return mask


cdef void lexmask_release(LexMask* mask) noexcept nogil:
    cdef pair[int64_t, Trie*] entry
    cdef size_t i
    if mask.holders.drop() > 0:
        return
    for i in range(mask.runs.size()):
        run_release(mask.runs[i].run)
    for entry in mask.merged:
        del entry.second
    if mask.base != NULL:
        lexmask_release(mask.base)
    for i in range(mask.pieces.size()):
        lexmask_release(mask.pieces[i].part)
    for i in range(mask.shares.size()):
        lexmask_release(mask.shares[i])
    bits_release(mask.index, mask.bits)
    bits_release(mask.index, mask.depending)
    mask.index.bytes.subtract(mask.bytes)
    del mask


cdef void run_release(Run* run) noexcept nogil:
    cdef pair[int64_t, Trie*] entry
    cdef pair[int64_t, LexMask*] below
    run.holders -= 1
    if run.holders > 0:
        return
    for below in run.whole:
        lexmask_release(below.second)
    for below in run.behind:
        lexmask_release(below.second)
    for entry in run.merged:
        del entry.second
    run.index.bytes.subtract(run.bytes)
    del run


cdef void masktable_clear(MaskTable* table) noexcept nogil:
    cdef pair[string, LexMask*] entry
    for entry in table.masks:
        lexmask_release(entry.second)
    table.masks.clear()


cdef cbool lexmask_crossing_before(const Crossing& a, const Crossing& b) noexcept nogil:
    if a.tag != b.tag:
        return a.tag < b.tag
    if a.byte != b.byte:
        return a.byte < b.byte
    if a.watch != b.watch:
        return <uint64_t>a.watch < <uint64_t>b.watch
    return a.node < b.node


cdef inline cbool lexmask_same_group(const Crossing& a, const Crossing& b) noexcept nogil:
    return a.tag == b.tag and a.byte == b.byte and a.watch == b.watch


cdef void lexmask_group(LexMask* mask) noexcept nogil:
    # Crossings by group.
    cdef CrossingGroup group
    cdef size_t i
    mask.crossings.clear()
    mask.nodes.clear()
    sort(mask.crossing.begin(), mask.crossing.end(), &lexmask_crossing_before)
    for i in range(mask.crossing.size()):
        if i == 0 or not lexmask_same_group(mask.crossing[i], mask.crossing[i - 1]):
            group.tag = mask.crossing[i].tag
            group.byte = mask.crossing[i].byte
            group.watch = mask.crossing[i].watch
            group.first = <uint32_t>i
            mask.crossings.push_back(group)
        mask.crossings.back().last = <uint32_t>i + 1
        mask.nodes.push_back(mask.crossing[i].node)
    mask.crossing.clear()
    mask.crossing.shrink_to_fit()
    mask.nodes.shrink_to_fit()


cdef void lexmask_finish(LexMask* mask) noexcept nogil:
    lexmask_group(mask)
    lexmask_measure(mask)


cdef void lexmask_measure(LexMask* mask) noexcept nogil:
    # Turn a long list into a bitset, and count bytes.
    cdef Bits* own
    cdef int32_t t
    cdef Index* index = mask.index
    cdef size_t i, grouped = 0
    for i in range(mask.groups.size()):
        grouped += sizeof(TokenGroup) + mask.groups[i].tokens.size() * 4
    for i in range(mask.pieces.size()):
        grouped += sizeof(Piece) + mask.pieces[i].removed.size() * 4
    if mask.inside.size() > LIST_LIMIT:
        mask.bits = bits_owned(index, mask.bits)
        for t in mask.inside:
            bits_add(mask.bits, t)
        mask.inside.clear()
        mask.inside.shrink_to_fit()
    mask.bytes = ((mask.inside.size() + mask.holes.size()) * 4 + mask.crossing.size() * sizeof(Crossing)
                  + mask.crossings.size() * sizeof(CrossingGroup) + mask.nodes.size() * 4
                  + mask.overrides.size() * sizeof(Override) + grouped + sizeof(LexMask))
    index.bytes.add(mask.bytes)


cdef void lexmask_walk(LexMask* mask, LexState* start, uint32_t top) noexcept nogil:
    # The subtree below node `top`, at which the lexeme stands in `start`.
    cdef const Trie* trie = mask.index.trie
    cdef const TrieNode* nodes = trie.nodes.data()
    cdef vector[LexState*]* path = &mask.index.path
    cdef uint32_t node = top + 1, last = nodes[top].end
    cdef size_t depth
    cdef int32_t t
    cdef LexState* parent
    cdef LexState* state
    cdef Crossing crossing
    if path.size() <= <size_t>nodes[top].depth:
        path.resize(2 * <size_t>nodes[top].depth + 16, NULL)
    path[0][nodes[top].depth] = start
    while node < last:
        if deadline_passed(&mask.index.deadline):
            return
        depth = nodes[node].depth
        if depth >= path.size():
            path.resize(2 * depth, NULL)
        parent = path[0][depth - 1]
        state = lex_next(parent, nodes[node].byte)
        if parent.tag != NO_TAG and depth > 1:
            crossing.tag = parent.tag
            crossing.byte = nodes[node].byte
            crossing.node = node
            crossing.watch = NULL
            mask.crossing.push_back(crossing)
        if state == LEX_DEAD:
            node = nodes[node].end
            continue
        for t in range(nodes[node].token, nodes[node + 1].token):
            mask.inside.push_back(trie.tokens[t])
        path[0][depth] = state
        node += 1


cdef string lexmask_key(LexState* state, int32_t longest) noexcept nogil:
    # Names what a token of at most `longest` characters can tell of a state: its items, their counts
    # as distances to the bounds, which are all alike beyond the length of a token.
    cdef CodeAutomaton* codes = state.automaton.codes
    cdef vector[int32_t] out
    cdef string key
    cdef uint64_t item
    cdef int32_t count, room, missing
    cdef size_t i
    out.push_back(state.form)
    out.push_back(state.left)
    out.push_back(state.low)
    for item in state.code.items:
        count = <int32_t><uint32_t>item
        out.push_back(<int32_t>(item >> 32))
        for i in range(codes.loop_min.size()):
            room = -1
            if codes.loop_max[i] >= 0:
                room = codes.loop_max[i] - count
                if room > longest + 1:
                    room = longest + 1
            missing = codes.loop_min[i] - count
            if missing < 0:
                missing = 0
            if missing > longest + 1:
                missing = longest + 1
            out.push_back(room)
            out.push_back(missing)
    key.assign(<const char*>out.data(), out.size() * sizeof(int32_t))
    return key


cdef LexMask* lexmask_make(LexState* state, Index* index) noexcept nogil:
    cdef LexMask* mask = lexmask_new(index)
    if state.automaton.kind == KIND_TEXT:
        if not home_fill(mask, state):
            lexmask_walk(mask, state, 0)
    elif state.automaton.kind == KIND_WORDS:
        words_walk(mask, state)
    else:
        if state.base != NULL:
            mask.base = lexmask_get(state.base, index)
            if mask.base == NULL:
                return mask
            mask.base.holders.add(1)
        key_walk(mask, state)
    lexmask_finish(mask)
    return mask


cdef LexMask* lexmask_get(LexState* state, Index* index) noexcept nogil:
    # NULL when time is up: an unfinished mask is never kept.
    cdef MaskTable* table = state.automaton.counted if state.automaton.kind == KIND_TEXT else NULL
    cdef LexMask* mask = state.mask
    cdef string key
    if mask != NULL:
        mask.used = True
        return mask
    if table != NULL:
        key = lexmask_key(state, index.longest)
        found = table.masks.find(key)
        if found != table.masks.end():
            state.mask = dereference(found).second
            state.mask.holders.add(1)
            return state.mask
    mask = lexmask_make(state, index)
    if index.deadline.passed:
        lexmask_release(mask)
        return NULL
    state.mask = mask
    if table != NULL:
        table.masks[key] = mask
        mask.holders.add(1)
    return mask


cdef void lexmask_forget_crossing(LexMask* mask, int32_t tag) noexcept nogil:
    # Leave out the crossings with a tag.
    cdef size_t i, kept = 0
    for i in range(mask.crossing.size()):
        if mask.crossing[i].tag != tag:
            mask.crossing[kept] = mask.crossing[i]
            kept += 1
    mask.crossing.resize(kept)
    mask.crossing.shrink_to_fit()


cdef void lexmask_ungroup(LexMask* mask) noexcept nogil:
    # Back to single crossings.
    cdef CrossingGroup group
    cdef Crossing crossing
    cdef uint32_t i
    for group in mask.crossings:
        crossing.tag = group.tag
        crossing.byte = group.byte
        crossing.watch = group.watch
        for i in range(group.first, group.last):
            crossing.node = mask.nodes[i]
            mask.crossing.push_back(crossing)
    mask.crossings.clear()
    mask.nodes.clear()


cdef cbool lexmask_open(LexMask* mask, LexState* state) noexcept nogil:
    # Add the crossings that were left out, now that something can follow them; False when time is up.
    cdef LexMask* walked = lexmask_new(mask.index)
    cdef size_t i
    cdef pair[int64_t, Trie*] entry
    lexmask_walk(walked, state, 0)
    if not mask.index.deadline.passed:
        lexmask_ungroup(mask)
        for i in range(walked.crossing.size()):
            if walked.crossing[i].tag == mask.open_tag:
                mask.crossing.push_back(walked.crossing[i])
        mask.open_tag = NO_TAG
        mask.index.bytes.subtract(mask.bytes)
        for entry in mask.merged:
            del entry.second
        mask.merged.clear()
        lexmask_finish(mask)
    lexmask_release(walked)
    return not mask.index.deadline.passed


cdef ResidualView lexmask_residual(LexMask* mask, size_t number) noexcept nogil:
    # The residuals of a group of crossings.
    return lexmask_view(mask, number, mask.merged, <int64_t>number, &mask.bytes)


cdef ResidualView lexmask_view(const LexMask* mask, size_t number, unordered_map[int64_t, Trie*]& known, int64_t key,
                               int64_t* bytes) noexcept nogil:
    # The same; merged residuals are kept in `known`.
    cdef const Trie* trie = mask.trie
    cdef CrossingGroup group = mask.crossings[number]
    cdef ResidualView view
    cdef vector[uint32_t] nodes
    cdef Trie* merged
    cdef int64_t size
    if group.last - group.first == 1:
        view.trie = trie
        view.first = mask.nodes[group.first]
        view.last = trie.nodes[view.first].end
        view.depth = trie.nodes[view.first].depth - 1
        return view
    found = known.find(key)
    if found != known.end():
        merged = dereference(found).second
    else:
        nodes.assign(mask.nodes.begin() + group.first, mask.nodes.begin() + group.last)
        merged = new Trie()
        trie_merge(trie, merged, nodes)
        known[key] = merged
        size = trie_size(merged)
        bytes[0] += size
        mask.index.bytes.add(size)
    view.trie = merged
    view.first = 1
    view.last = merged.nodes[0].end
    view.depth = 0
    return view
