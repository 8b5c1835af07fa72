# What a state of a grammar's lexer says about every token (see lexmask.pxi, lexing.pxi).
#
# An ignored terminal leaves the parser where it is, so a token may run through it into the next terminal and
# still be inside: " foo" does not depend on the context either.  The mask therefore belongs to a lexer
# state and the start to which the lexer goes back.  A token leads to several *hypotheses*, one for each way in
# which it may have been split.  Mostly one state is left, and what it says of itself: it is *alone*.
#
# Most tokens are words, and most states, starts of the lexer among them, are alone in a *loop* after a few letters:
# the state inside a name of which no keyword can become.  What a loop says about the tokens below a node of the trie
# is a *part*, shared by all masks.  Such a mask is made of *pieces*: below a node it is as the part says, and only
# where the state differs from the loop (along the spellings of keywords) the trie is followed; what is
# found there makes *holes* in the piece.
#
# What the next lexer start says of the residuals of a group is kept as well: then a mask in a new parser state only
# asks where terminals lead.
#
# A residual that makes the terminal before it longer is no crossing at all.  That is most of them, for
# terminals such as identifiers.

cdef enum:
    LOOP_STEPS = 8         # until a state is expected in its loop

cdef cppclass LexerPlace:
    LexState* alone                # nothing but this state is left: then the lists are not filled; else NULL
    vector[Hypothesis] hypotheses
    vector[Ended] ended
    LexState* loop                 # of the piece that holds here, or NULL
    size_t piece
    int32_t top                    # depth of the node at which the piece begins
    uint32_t next                  # children that are not done: nodes [next, last), or positions
    uint32_t last                  # in `child_nodes` where some are skipped
    Skipped* skipped               # then


cdef inline cbool lexer_ignores(const LexState* state) noexcept nogil:
    return state.automaton.lexer.ignored[state.tag]


cdef void lexer_fill(LexerPlace& place) noexcept nogil:
    # Fill the lists where a state is alone.
    cdef Hypothesis each
    cdef Ended ended
    if place.alone == NULL:
        return
    place.hypotheses.clear()
    place.ended.clear()
    each.lex = place.alone
    each.watch = NULL
    if place.alone.tag == NO_TAG or lex_goes_on(place.alone):
        place.hypotheses.push_back(each)
    if lexer_matched(place.alone):
        each.watch = watch_join(NULL, place.alone)
        if lexer_ignores(place.alone):
            each.lex = NULL
            place.hypotheses.push_back(each)
        else:
            ended.tag = place.alone.tag
            ended.watch = each.watch
            place.ended.push_back(ended)


cdef void lexer_find_alone(LexerPlace& place) noexcept nogil:
    # Whether the lists are those of one state.
    cdef LexState* lex
    cdef LexState* behind = NULL
    place.alone = NULL
    if place.hypotheses.empty() or place.hypotheses[0].lex == NULL or place.hypotheses[0].watch != NULL:
        return
    lex = place.hypotheses[0].lex
    if not lexer_matched(lex):
        if place.hypotheses.size() == 1 and place.ended.empty():
            place.alone = lex
        return
    if lexer_ignores(lex):
        if (place.hypotheses.size() == 2 and place.ended.empty() and place.hypotheses[1].lex == NULL
                and place.hypotheses[1].watch == lex):
            place.alone = lex
    elif (place.hypotheses.size() == 1 and place.ended.size() == 1 and place.ended[0].tag == lex.tag
            and place.ended[0].watch == lex):
        place.alone = lex


cdef void lexer_step(LexState* start, const LexerPlace& before, uint8_t byte, LexerPlace& out) noexcept nogil:
    # Over one byte, all in one parser state.  `lex` NULL: the lexer is at `start`.
    cdef Hypothesis each
    cdef Ended ended
    cdef size_t i
    out.hypotheses.clear()
    out.ended.clear()
    for i in range(before.hypotheses.size()):
        each = before.hypotheses[i]
        if not watch_step(&each.watch, byte):
            continue
        each.lex = lex_next(start if each.lex == NULL else each.lex, byte)
        if each.lex == LEX_DEAD:
            continue
        if (each.lex.tag == NO_TAG or lex_goes_on(each.lex)) and not lexer_hopeless(each.lex, each.watch):
            out.hypotheses.push_back(each)
        if not lexer_matched(each.lex):
            continue
        each.watch = watch_join(each.watch, each.lex)
        if lexer_ignores(each.lex):
            each.lex = NULL
            out.hypotheses.push_back(each)
        else:
            ended.tag = each.lex.tag
            ended.watch = each.watch
            out.ended.push_back(ended)
    lexer_find_alone(out)


cdef inline cbool lexer_alone_is_sure(LexState* state) noexcept nogil:
    return lexer_closes(state) or (lexer_matched(state) and lexer_leaves(state))


cdef cbool lexer_any_sure(const LexerPlace& place) noexcept nogil:
    cdef size_t i
    if place.alone != NULL:
        return lexer_alone_is_sure(place.alone)
    for i in range(place.hypotheses.size()):
        if lexer_is_sure(place.hypotheses[i]):
            return True
    for i in range(place.ended.size()):
        if place.ended[i].watch == NULL or lexer_leaves(place.ended[i].watch):
            return True
    return False


cdef size_t lexer_group(LexMask* mask, unordered_map[string, size_t]& known, const LexerPlace& place) noexcept nogil:
    # The group of tokens that the context allows if it allows any of the hypotheses.
    cdef TokenGroup made
    cdef string key
    cdef size_t i
    key.assign(<const char*>place.hypotheses.data(), place.hypotheses.size() * sizeof(Hypothesis))
    for i in range(place.ended.size()):
        key.append(<const char*>&place.ended[i].watch, sizeof(LexState*))
        key.append(<const char*>&place.ended[i].tag, sizeof(int32_t))
    found = known.find(key)
    if found != known.end():
        return dereference(found).second
    known[key] = mask.groups.size()
    made.hypotheses = place.hypotheses
    made.ended = place.ended
    mask.groups.push_back(made)
    return mask.groups.size() - 1


# --- pieces ---------------------------------------------------------------------------------

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
    return lexer_matched(state) and (after == LEX_DEAD or not watch_kills(after))


cdef void lexer_walk_loop(LexMask* part, LexState* loop, uint32_t top) noexcept nogil:
    # The nodes below one at which the lexer is in a loop.  Every state is alone, because also what comes behind an
    # ignored terminal is taken as a crossing here: so the part does not depend on the start.
    cdef const Trie* trie = part.index.trie
    cdef const TrieNode* nodes = trie.nodes.data()
    cdef vector[LexState*]* path = &part.index.path
    cdef unordered_map[string, size_t] groups
    cdef LexerPlace place
    cdef Crossing crossing
    cdef LexState* parent
    cdef LexState* state
    cdef uint32_t node = top + 1, last = nodes[top].end
    cdef size_t group
    cdef int32_t t
    if path.size() <= part.index.most_bytes:
        path.resize(part.index.most_bytes + 1, NULL)
    path[0][nodes[top].depth] = loop
    while node < last:
        if deadline_passed(&part.index.deadline):
            return
        parent = path[0][nodes[node].depth - 1]
        state = lex_next(parent, nodes[node].byte)
        if nodes[node].depth - 1 > nodes[top].depth and lexer_crosses(parent, state):
            crossing.tag = parent.tag
            crossing.watch = parent if state != LEX_DEAD else NULL
            crossing.byte = nodes[node].byte
            crossing.node = node
            part.crossing.push_back(crossing)
        if state == LEX_DEAD:
            node = nodes[node].end
            continue
        if nodes[node].token < nodes[node + 1].token:
            if lexer_alone_is_sure(state):
                for t in range(nodes[node].token, nodes[node + 1].token):
                    bits_add(part.bits, trie.tokens[t])
            else:
                place.alone = state
                lexer_fill(place)
                group = lexer_group(part, groups, place)
                for t in range(nodes[node].token, nodes[node + 1].token):
                    part.groups[group].tokens.push_back(trie.tokens[t])
        path[0][nodes[node].depth] = state
        node += 1


cdef LexMask* lexer_part(LexState* loop, uint32_t node, Index* index) noexcept nogil:
    # What a loop says about the tokens below a node; NULL when time is up.
    cdef Lexer* lexer = loop.automaton.lexer
    cdef LexMask* part
    cdef size_t i
    cdef int32_t t
    cdef int64_t key = (<int64_t>loop.id << 32) | node
    found = lexer.parts.find(key)
    if found != lexer.parts.end():
        dereference(found).second.used = True
        return dereference(found).second
    part = lexmask_new(index)
    part.bits = bits_new(index)
    lexer_walk_loop(part, loop, node)
    part.depending = bits_new(index)
    for i in range(part.crossing.size()):
        for t in range(index.trie.nodes[part.crossing[i].node].token,
                       index.trie.nodes[index.trie.nodes[part.crossing[i].node].end].token):
            bits_add(part.depending, index.trie.tokens[t])
    for i in range(part.groups.size()):
        for t in part.groups[i].tokens:
            bits_add(part.depending, t)
    lexmask_finish(part)
    if index.deadline.passed:
        lexmask_release(part)
        return NULL
    lexer.parts[key] = part
    return part


cdef void lexer_begin_piece(LexMask* mask, LexState* start, uint32_t node, LexerPlace* place) noexcept nogil:
    # Where a piece pays, let it hold below a node.
    cdef LexState* loop
    cdef LexMask* part
    cdef Piece made
    if 4 * (<int64_t>mask.index.trie.nodes[node].end - node) < mask.index.home_least:
        return
    loop = lexer_loop(start, place[0], mask.index)
    if loop == NULL:
        return
    part = lexer_part(loop, node, mask.index)
    if part == NULL:
        return
    if mask.bits == NULL:
        mask.bits = bits_new(mask.index)
    bits_unite(mask.bits, part.bits)
    place.loop = loop
    place.piece = mask.pieces.size()
    place.top = mask.index.trie.nodes[node].depth
    part.holders += 1
    made.part = part
    mask.pieces.push_back(made)


cdef void lexer_cut(LexMask* mask, const LexerPlace* place, uint32_t node, uint32_t last) noexcept nogil:
    # A hole: the tokens of nodes [node, last).
    cdef const Trie* trie = mask.index.trie
    cdef Piece* piece = &mask.pieces[place.piece]
    cdef int32_t t, token
    for t in range(trie.nodes[node].token, trie.nodes[last].token):
        token = trie.tokens[t]
        bits_remove(mask.bits, token)
        if bits_hold_token(piece.part.depending, token):
            piece.removed.push_back(token)


# --- the walk -------------------------------------------------------------------------------

cdef cbool lexer_skips_byte(LexState* state, LexState* loop, uint8_t byte) noexcept nogil:
    # Whether a byte says the same behind a state as behind a loop (NULL: nothing).
    cdef LexState* after = lex_next(state, byte)
    cdef cbool crosses = lexer_crosses(state, after)
    if loop == NULL:
        return after == LEX_DEAD and not crosses
    return after == lex_next(loop, byte) and crosses == lexer_crosses(loop, after) and (
        not crosses or (after == LEX_DEAD and state.tag == loop.tag))


cdef inline cbool lexer_same(Skipped* skipped, LexState* state, uint8_t byte) noexcept nogil:
    if not bits_has(skipped.known, byte):
        bits_set(skipped.known, byte)
        if lexer_skips_byte(state, skipped.loop, byte):
            bits_set(skipped.same, byte)
    return bits_has(skipped.same, byte)


cdef void lexer_descend(LexMask* mask, LexerPlace* place, uint32_t node) noexcept nogil:
    # Go on with the children of a node.
    cdef LexState* state = place.alone
    place.skipped = NULL
    place.next = node + 1
    place.last = mask.trie.nodes[node].end
    if (state == NULL or mask.trie != mask.index.trie
            or (place.loop != NULL and place.top == mask.trie.nodes[node].depth)):
        return
    if state.skipped == NULL:
        state.skipped = new Skipped()
        memset(state.skipped.known, 0, 32)
        memset(state.skipped.same, 0, 32)
        state.skipped.loop = place.loop
    elif state.skipped.loop != place.loop:
        memset(state.skipped.known, 0, 32)
        memset(state.skipped.same, 0, 32)
        state.skipped.loop = place.loop
    place.skipped = state.skipped
    place.next = mask.index.child_first[node]
    place.last = mask.index.child_first[node + 1]


cdef uint32_t lexer_next_child(const LexMask* mask, LexerPlace* place) noexcept nogil:
    # The next child that has to be looked at, or 0.
    cdef uint32_t node
    if place.skipped == NULL:
        node = place.next
        if node >= place.last:
            return 0
        place.next = mask.trie.nodes[node].end
        return node
    while place.next < place.last:
        place.next += 1
        # Another place may have had its own loop in between.
        if place.skipped.loop != place.loop or not lexer_same(
                place.skipped, place.alone, mask.index.child_bytes[place.next - 1]):
            return mask.index.child_nodes[place.next - 1]
    return 0


cdef void lexer_walk(LexMask* mask, LexState* start, uint32_t node, uint32_t last, cbool pieces) noexcept nogil:
    # Nodes of the mask's trie, in subtrees below one whose place is known.
    cdef const TrieNode* nodes = mask.trie.nodes.data()
    cdef Lexer* lexer = start.automaton.lexer
    cdef unordered_map[string, size_t] groups
    cdef int32_t top = nodes[node].depth - 1, depth = top
    if node >= last:
        return
    lexer.path[top].skipped = NULL
    lexer.path[top].next = node
    lexer.path[top].last = last
    while not deadline_passed(&mask.index.deadline):
        node = lexer_next_child(mask, &lexer.path[depth])
        if node == 0:
            if depth == top:
                return
            depth -= 1
        elif lexer_visit(mask, start, node, groups):
            depth += 1
            if pieces and lexer.path[depth].loop == NULL and lexer.safe:
                lexer_begin_piece(mask, start, node, &lexer.path[depth])
            lexer_descend(mask, &lexer.path[depth], node)


cdef cbool lexer_visit(LexMask* mask, LexState* start, uint32_t node, unordered_map[string, size_t]& groups) noexcept nogil:
    # One node; whether to go on below it.
    cdef const Trie* trie = mask.trie
    cdef const TrieNode* nodes = trie.nodes.data()
    cdef Lexer* lexer = start.automaton.lexer
    cdef LexerPlace* before = &lexer.path[nodes[node].depth - 1]
    cdef LexerPlace* place = &lexer.path[nodes[node].depth]
    cdef LexState* state = before.alone
    cdef Crossing crossing
    cdef uint8_t byte = nodes[node].byte
    cdef size_t i, crossings = mask.crossing.size()
    cdef int32_t t
    cdef cbool empty, ends
    crossing.byte = byte
    crossing.node = node
    if state != NULL and not (lexer_crosses(state, lex_next(state, byte)) and lexer_ignores(state)):
        place.alone = lex_next(state, byte)
        if lexer_crosses(state, place.alone):
            crossing.tag = state.tag
            crossing.watch = state if place.alone != LEX_DEAD else NULL
            mask.crossing.push_back(crossing)
        empty = place.alone == LEX_DEAD
    else:
        lexer_fill(before[0])
        for i in range(before.ended.size()):
            state = before.ended[i].watch
            if watch_step(&state, byte):
                crossing.tag = before.ended[i].tag
                crossing.watch = before.ended[i].watch if state != NULL else NULL
                mask.crossing.push_back(crossing)
        lexer_step(start, before[0], byte, place[0])
        empty = place.hypotheses.empty() and place.ended.empty()
    place.loop = NULL
    if before.loop != NULL:
        state = lex_next(before.loop, byte)
        ends = nodes[node].depth - 1 > before.top and lexer_crosses(before.loop, state)
        if not empty and state == before.loop:
            # The piece goes on.
            place.loop = before.loop
            place.piece = before.piece
            place.top = before.top
        elif state == place.alone and not empty and not ends and crossings == mask.crossing.size():
            return False
        elif state != LEX_DEAD or ends:
            lexer_cut(mask, before, node, nodes[node].end)
    if empty:
        return False
    if nodes[node].token < nodes[node + 1].token:
        if lexer.safe and lexer_any_sure(place[0]):
            if place.loop == NULL:
                for t in range(nodes[node].token, nodes[node + 1].token):
                    mask.inside.push_back(trie.tokens[t])
        else:
            if place.loop != NULL:
                lexer_cut(mask, place, node, node + 1)
            lexer_fill(place[0])
            i = lexer_group(mask, groups, place[0])
            for t in range(nodes[node].token, nodes[node + 1].token):
                mask.groups[i].tokens.push_back(trie.tokens[t])
    return True


cdef void lexer_stand(Lexer* lexer, const Index* index, size_t depth, LexState* lex, LexState* watch) noexcept nogil:
    # Where a walk begins.
    cdef Hypothesis first
    if lexer.path.size() <= index.most_bytes:
        lexer.path.resize(index.most_bytes + 1)
    first.lex = lex
    first.watch = watch
    lexer.path[depth].alone = NULL
    lexer.path[depth].loop = NULL
    lexer.path[depth].hypotheses.assign(1, first)
    lexer.path[depth].ended.clear()


cdef LexMask* lexer_behind(LexMask* mask, size_t group, LexState* start) noexcept nogil:
    # What a lexer at `start` says of the residuals of a group of crossings.  NULL when time is up.
    cdef LexMask* below
    cdef ResidualView view
    cdef int64_t key = (<int64_t>group << 32) | start.id
    found = mask.behind.find(key)
    if found != mask.behind.end():
        return dereference(found).second
    view = lexmask_residual(mask, group)
    lexer_stand(start.automaton.lexer, mask.index, <size_t>view.depth, NULL, mask.crossings[group].watch)
    below = lexmask_new(mask.index)
    below.trie = view.trie
    lexer_walk(below, start, view.first, view.last, False)
    lexmask_finish(below)
    if mask.index.deadline.passed:
        lexmask_release(below)
        return NULL
    mask.behind[key] = below
    return below


cdef LexMask* lexer_mask(LexState* lex, LexState* start, Index* index) noexcept nogil:
    # Of a lexer in state `lex` (NULL: at `start`), where `start` is what the parser state waits for.  NULL
    # when time is up.
    cdef Lexer* lexer = start.automaton.lexer
    cdef LexMask* mask
    cdef size_t i
    cdef int64_t key = start.id
    if lex != NULL:
        key = (<int64_t>lex.id + 1) << 32
        if lexer_skips(lex):
            key |= start.id + 1
    found = lexer.masks.find(key)
    if found != lexer.masks.end():
        dereference(found).second.used = True
        return dereference(found).second
    lexer_stand(lexer, index, 0, lex, NULL)
    mask = lexmask_new(index)
    if lexer.safe:
        lexer_begin_piece(mask, start, 0, &lexer.path[0])
    lexer_walk(mask, start, 1, index.trie.nodes[0].end, True)
    for i in range(mask.pieces.size()):
        sort(mask.pieces[i].removed.begin(), mask.pieces[i].removed.end())
    lexmask_finish(mask)
    if index.deadline.passed:
        lexmask_release(mask)
        return NULL
    lexer.masks[key] = mask
    return mask
