# What a lexer in a loop says about the tokens below a node of the trie (lexingmask.pxi).
#
# A loop is a state that the commonest byte leads back to: inside a name that no keyword can become, a string, a comment.  A
# part belongs to a loop and a node, whatever start the lexer goes back to.  Strings and comments are at home in nearly
# all characters (home.pxi): then the part is a slice of the vocabulary, and only what leaves it is walked.

cdef LexState* lexer_loop(LexState* start, LexerPlace& place, const Index* index) noexcept nogil:
    # The loop into which the commonest byte leads, or NULL.
    cdef LexerPlace behind
    cdef LexState* state
    cdef LexState* after
    cdef int32_t steps
    lexer_fill(place)
    lexer_step(start, place, index.commonest, behind)
    state = behind.alone
    for steps in range(LOOP_STEPS if state != NULL else 0):
        after = lex_next(state, index.commonest)
        if after == LEX_DEAD:
            return NULL
        if after == state:
            return state
        state = after
    return NULL


cdef inline cbool lexer_crosses(const LexState* state, const LexState* after) noexcept nogil:
    # Whether the terminal that ends in `state` may be over at a byte that leads to `after`.
    return lexer_matched(state) and (after == LEX_DEAD or not after.kills)


cdef void lexer_walk_loop(LexMask* part, LexState* before, uint32_t node, uint32_t last, int32_t floor,
                          unordered_map[string, size_t]& groups) noexcept nogil:
    # Nodes [node, last), subtrees below one at which the lexer stands in `before`.  Every state is alone, because also what
    # comes behind an ignored terminal is taken as a crossing here: so the part does not depend on the start.  What ends
    # at the depth `floor` is not the part's business.
    cdef const TrieNode* nodes = part.trie.nodes.data()
    cdef vector[LexState*]* path = &part.index.path
    cdef Crossing crossing
    cdef LexState* parent
    cdef LexState* state
    if node >= last:
        return
    if path.size() <= part.index.most_bytes:
        path.resize(part.index.most_bytes + 1, NULL)
    path[0][nodes[node].depth - 1] = before
    while node < last:
        if deadline_passed(&part.index.deadline):
            return
        parent = path[0][nodes[node].depth - 1]
        state = lex_next(parent, nodes[node].byte)
        if nodes[node].depth - 1 > floor and lexer_crosses(parent, state):
            crossing.tag = parent.tag
            crossing.watch = parent if state != LEX_DEAD else NULL
            crossing.byte = nodes[node].byte
            crossing.node = node
            part.crossing.push_back(crossing)
        if state == LEX_DEAD or lexer_never(state):
            node = nodes[node].end
            continue
        lexer_tell(part, state, node, groups)
        path[0][nodes[node].depth] = state
        node += 1


cdef inline void lexer_tell(LexMask* part, LexState* state, uint32_t node, unordered_map[string, size_t]& groups) noexcept nogil:
    # What a state that is alone says of the tokens that end at a node.
    cdef const Trie* trie = part.trie
    cdef int32_t t
    if trie.nodes[node].token == trie.nodes[node + 1].token or lexer_never(state):
        return
    if not (state.automaton.lexer.safe and lexer_alone_is_sure(state)):
        lexer_tell_group(part, state, node, groups)
        return
    for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
        if part.bits == NULL:
            part.inside.push_back(trie.tokens[t])
        else:
            bits_add(part.bits, trie.tokens[t])


cdef void lexer_tell_group(LexMask* part, LexState* state, uint32_t node, unordered_map[string, size_t]& groups) noexcept nogil:
    cdef const Trie* trie = part.trie
    cdef LexerPlace place
    cdef size_t group
    cdef int32_t t
    place.alone = state
    lexer_fill(place)
    group = lexer_group(part, groups, place)
    for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
        part.groups[group].tokens.push_back(trie.tokens[t])


cdef cbool lexer_fill_home(LexMask* part, LexState* loop) noexcept nogil:
    # The part of all tokens, from a slice; False when the loop is not at home in all characters but some of ASCII.
    cdef Index* index = part.index
    cdef const TrieNode* nodes = index.trie.nodes.data()
    cdef Home home
    cdef Slice* slice
    cdef vector[CodeRange] points
    cdef unordered_map[string, size_t] groups
    cdef const vector[Exit]* exits
    cdef size_t i
    cdef CodeAutomaton* codes = loop.automaton.codes
    cdef int32_t point, next = 128, exit = 0
    if loop.form != FORM_TEXT or not lexer_alone_is_sure(loop):
        return False
    home.classes.assign(<size_t>(codes.classes >> 6) + 1, 0)
    for point in range(codes.classes):
        if code_next(codes, loop.code, point) == loop.code:
            set_add(home.classes, point)
    home_points(loop.automaton, home.classes, points)
    for point in range(128):
        if not points_hold(points, point, point):
            exit += index_count(index, point, point)
    if index.home_least > 0 and <int64_t>exit * EXIT_COST > <int64_t>index.trie.nodes[0].end - exit:
        return False
    for i in range(points.size()):
        if points[i].high >= next:
            if index_count(index, next, points[i].low - 1) > 0:
                return False
            next = points[i].high + 1
    if next <= LAST_CODE_POINT and index_count(index, next, LAST_CODE_POINT) > 0:
        return False
    slice = index_slice(index, points)
    part.bits.words = slice.bits.words
    for point in range(128):
        if points_hold(points, point, point):
            continue
        exits = slice_exits(index, slice, point, 0)
        for i in range(exits.size()):
            lexer_walk_loop(part, loop, exits[0][i].node, nodes[exits[0][i].node].end, 0, groups)
    for i in range(index.parts.size()):
        if slice_left_inside(index, slice, index.parts[i], 0):
            lexer_end_inside(part, loop, index.parts[i].node, groups)
    return True


cdef void lexer_end_inside(LexMask* part, LexState* loop, uint32_t node,
                           unordered_map[string, size_t]& groups) noexcept nogil:
    cdef LexState* state = home_enter(loop, index_text(part.index, node), part.index.trie.nodes[node].depth)
    if state != LEX_DEAD:
        lexer_tell(part, state, node, groups)


cdef LexMask* lexer_part(LexState* loop, uint32_t node, Index* index) noexcept nogil:
    # What a loop says about the tokens below a node; NULL when time is up.
    cdef Lexer* lexer = loop.automaton.lexer
    cdef LexMask* part
    cdef unordered_map[string, size_t] groups
    cdef size_t i
    cdef int32_t t
    cdef int64_t key = (<int64_t>loop.id << 32) | node
    found = lexer.parts.find(key)
    if found != lexer.parts.end():
        dereference(found).second.used = True
        return dereference(found).second
    part = lexmask_new(index)
    part.bits = bits_new(index)
    if node > 0 or not lexer_fill_home(part, loop):
        lexer_walk_loop(part, loop, node + 1, index.trie.nodes[node].end, index.trie.nodes[node].depth, groups)
    part.depending = bits_new(index)
    for i in range(part.crossing.size()):
        for t in range(index.trie.nodes[part.crossing[i].node].token,
                       index.trie.nodes[index.trie.nodes[part.crossing[i].node].end].token):
            bits_add(part.depending, index.trie.tokens[t])
    for i in range(part.groups.size()):
        for t in part.groups[i].tokens:
            bits_add(part.depending, t)
    lexer_finish(part, lexer)
    if index.deadline.passed:
        lexmask_release(part)
        return NULL
    lexer.parts[key] = part
    return part
