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
    SHARE_LEAST = 64       # trie nodes below which sharing does not pay
    LOOP_STEPS = 8         # until a state is expected in its loop

cdef cppclass LexerPlace:
    LexState* alone                # nothing but this state is left: then the lists are not filled; else NULL
    vector[Hypothesis] hypotheses
    vector[Ended] ended
    LexState* shadow               # where the part of the piece stands that holds here, or NULL
    size_t piece
    cbool outer                    # the piece is that of a mask that this one is shared by
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
    if (place.alone.tag == NO_TAG or lex_goes_on(place.alone)) and not lexer_never(place.alone):
        place.hypotheses.push_back(each)
    if lexer_matched(place.alone):
        each.watch = watch_join(NULL, place.alone)
        if lexer_ignores(place.alone) and not place.alone.automaton.lexer.stops:
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
    if lexer_ignores(lex) and not lex.automaton.lexer.stops:
        if (place.hypotheses.size() == 2 and place.ended.empty() and place.hypotheses[1].lex == NULL
                and place.hypotheses[1].watch == lex):
            place.alone = lex
    elif (place.hypotheses.size() == 1 and place.ended.size() == 1 and place.ended[0].tag == lex.tag
            and place.ended[0].watch == lex):
        place.alone = lex


cdef void lexer_step(LexState* start, const LexerPlace& before, uint8_t byte, LexerPlace& out) noexcept nogil:
    # Over one byte, all in one parser state.  `lex` NULL: the lexer is at `start`.
    cdef Lexer* lexer = start.automaton.lexer
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
        if lexer_ignores(each.lex) and not lexer.stops:
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


cdef void lexer_name(const LexerPlace& place, string& key) noexcept nogil:
    # Add what the lists hold to a key.
    cdef size_t i
    key.append(<const char*>place.hypotheses.data(), place.hypotheses.size() * sizeof(Hypothesis))
    for i in range(place.ended.size()):
        key.append(<const char*>&place.ended[i].watch, sizeof(LexState*))
        key.append(<const char*>&place.ended[i].tag, sizeof(int32_t))


cdef size_t lexer_group(LexMask* mask, unordered_map[string, size_t]& known, const LexerPlace& place) noexcept nogil:
    # The group of tokens that the context allows if it allows any of the hypotheses.
    cdef TokenGroup made
    cdef string key
    lexer_name(place, key)
    found = known.find(key)
    if found != known.end():
        return dereference(found).second
    known[key] = mask.groups.size()
    made.hypotheses = place.hypotheses
    made.ended = place.ended
    mask.groups.push_back(made)
    return mask.groups.size() - 1


# --- pieces ---------------------------------------------------------------------------------

cdef inline cbool lexer_piece_pays(const Index* index, uint32_t node) noexcept nogil:
    return 4 * (<int64_t>index.trie.nodes[node].end - node) >= index.home_least


cdef void lexer_begin_piece(LexMask* mask, LexState* start, uint32_t node, LexerPlace* place) noexcept nogil:
    # Where a piece pays, let it hold below a node.
    cdef LexState* loop
    cdef LexMask* part
    cdef Piece made
    if not lexer_piece_pays(mask.index, node):
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
    place.shadow = loop
    place.outer = False
    place.piece = mask.pieces.size()
    place.top = mask.index.trie.nodes[node].depth
    part.holders.add(1)
    made.part = part
    mask.pieces.push_back(made)


cdef inline void lexer_cut_token(LexMask* mask, Piece* piece, int32_t token) noexcept nogil:
    bits_remove(mask.bits, token)
    if bits_hold_token(piece.part.depending, token):
        piece.removed.push_back(token)


cdef void lexer_cut(LexMask* mask, const LexerPlace* place, uint32_t node, uint32_t last) noexcept nogil:
    # A hole: the tokens of nodes [node, last).
    cdef const Trie* trie = mask.index.trie
    cdef int32_t t
    for t in range(trie.nodes[node].token, trie.nodes[last].token):
        if place.outer:
            mask.holes.push_back(trie.tokens[t])
        else:
            lexer_cut_token(mask, &mask.pieces[place.piece], trie.tokens[t])


# --- the walk -------------------------------------------------------------------------------

cdef cbool lexer_skips_byte(LexState* state, LexState* shadow, uint8_t byte) noexcept nogil:
    # Whether a byte says the same behind a state as behind that of a part (NULL: nothing).
    cdef LexState* after = lex_next(state, byte)
    cdef cbool crosses = lexer_crosses(state, after)
    if shadow == NULL:
        return after == LEX_DEAD and not crosses
    return after == lex_next(shadow, byte) and crosses == lexer_crosses(shadow, after) and (
        not crosses or (after == LEX_DEAD and state.tag == shadow.tag))


cdef inline cbool lexer_same(Skipped* skipped, LexState* state, uint8_t byte) noexcept nogil:
    if not bits_has(skipped.known, byte):
        bits_set(skipped.known, byte)
        if lexer_skips_byte(state, skipped.shadow, byte):
            bits_set(skipped.same, byte)
    return bits_has(skipped.same, byte)


cdef void lexer_descend(LexMask* mask, LexerPlace* place, uint32_t node) noexcept nogil:
    # Go on with the children of a node.
    cdef LexState* state = place.alone
    place.skipped = NULL
    place.next = node + 1
    place.last = mask.trie.nodes[node].end
    if (state == NULL or mask.trie != mask.index.trie
            or (place.shadow != NULL and place.top == mask.trie.nodes[node].depth)):
        return
    if state.skipped == NULL:
        state.skipped = new Skipped()
        memset(state.skipped.known, 0, 32)
        memset(state.skipped.same, 0, 32)
        state.skipped.shadow = place.shadow
    elif state.skipped.shadow != place.shadow:
        memset(state.skipped.known, 0, 32)
        memset(state.skipped.same, 0, 32)
        state.skipped.shadow = place.shadow
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
        # Another place may have had its own shadow in between.
        if place.skipped.shadow != place.shadow or not lexer_same(
                place.skipped, place.alone, mask.index.child_bytes[place.next - 1]):
            return mask.index.child_nodes[place.next - 1]
    return 0


cdef void lexer_walk(LexMask* mask, LexState* start, uint32_t node, uint32_t last, cbool pieces,
                     unordered_map[string, size_t]& groups) noexcept nogil:
    # Nodes of the mask's trie, in subtrees below one whose place is known.
    cdef const TrieNode* nodes = mask.trie.nodes.data()
    cdef Lexer* lexer = start.automaton.lexer
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
            if pieces and lexer.path[depth].shadow == NULL and lexer.safe:
                lexer_begin_piece(mask, start, node, &lexer.path[depth])
            if pieces and nodes[node].end - node > SHARE_LEAST and lexer_begins(lexer.path[depth]):
                lexer_spread(mask, start, node)
                depth -= 1
            else:
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
    if state != NULL and not (lexer_crosses(state, lex_next(state, byte)) and lexer_ignores(state) and not lexer.stops):
        place.alone = lex_next(state, byte)
        if lexer_crosses(state, place.alone):
            crossing.tag = state.tag
            crossing.watch = state if place.alone != LEX_DEAD else NULL
            mask.crossing.push_back(crossing)
        empty = place.alone == LEX_DEAD or lexer_never(place.alone)
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
    place.shadow = NULL
    if before.shadow != NULL:
        state = lex_next(before.shadow, byte)
        ends = nodes[node].depth - 1 > before.top and lexer_crosses(before.shadow, state)
        if empty or ends:
            if state != LEX_DEAD or ends:
                lexer_cut(mask, before, node, nodes[node].end)
        elif state == place.alone and crossings == mask.crossing.size():
            return False
        elif state != LEX_DEAD:
            # The piece goes on.
            place.shadow = state
            place.piece = before.piece
            place.outer = before.outer
            place.top = before.top
    if empty:
        return False
    if nodes[node].token < nodes[node + 1].token:
        if lexer.safe and lexer_any_sure(place[0]):
            if place.shadow == NULL or not lexer_alone_is_sure(place.shadow):
                for t in range(nodes[node].token, nodes[node + 1].token):
                    mask.inside.push_back(trie.tokens[t])
        else:
            if place.shadow != NULL:
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
    lexer.path[depth].shadow = NULL
    lexer.path[depth].outer = False
    lexer.path[depth].hypotheses.assign(1, first)
    lexer.path[depth].ended.clear()


# --- what starts share ----------------------------------------------------------------------

cdef cbool lexer_begins(const LexerPlace& place) noexcept nogil:
    # Whether the lexer may be at its start.
    cdef size_t i
    if place.alone != NULL:
        return lexer_matched(place.alone) and lexer_ignores(place.alone)
    for i in range(place.hypotheses.size()):
        if place.hypotheses[i].lex == NULL:
            return True
    return False


cdef cbool lexer_comes_back(const LexerPlace& place) noexcept nogil:
    # Whether it may be there again.
    cdef size_t i
    if place.alone != NULL:
        return lexer_skips(place.alone)
    for i in range(place.hypotheses.size()):
        if place.hypotheses[i].lex == NULL or lexer_skips(place.hypotheses[i].lex):
            return True
    return False


cdef void lexer_spread(LexMask* mask, LexState* start, uint32_t node) noexcept nogil:
    # What is below a node at which the lexer may be at its start: child by child, shared by all starts that the first
    # byte leads to one place.
    cdef const TrieNode* nodes = mask.index.trie.nodes.data()
    cdef Lexer* lexer = start.automaton.lexer
    cdef LexerPlace* here = &lexer.path[nodes[node].depth]
    cdef LexerPlace behind
    cdef LexState* shadow
    cdef LexMask* share
    cdef unordered_map[string, size_t] groups
    cdef uint32_t child = node + 1
    cdef cbool ends
    while child < nodes[node].end and not mask.index.deadline.passed:
        lexer_fill(here[0])
        lexer_step(start, here[0], nodes[child].byte, behind)
        shadow = LEX_DEAD
        ends = False
        if here.shadow != NULL:
            shadow = lex_next(here.shadow, nodes[child].byte)
            ends = nodes[node].depth > here.top and lexer_crosses(here.shadow, shadow)
        if not here.ended.empty() or lexer_comes_back(behind):
            lexer_walk(mask, start, child, nodes[child].end, True, groups)
        elif ends or shadow != behind.alone or shadow == LEX_DEAD:
            if ends or shadow != LEX_DEAD or not (behind.hypotheses.empty() and behind.ended.empty()):
                share = lexer_share(mask, start, child, behind)
                if share != NULL:
                    lexer_take(mask, here, share)
        child = nodes[child].end


cdef LexMask* lexer_share(LexMask* mask, LexState* start, uint32_t node, const LexerPlace& place) noexcept nogil:
    # What is said about the tokens of a node where the lexer is at a place; NULL when time is up.
    cdef const TrieNode* nodes = mask.index.trie.nodes.data()
    cdef Lexer* lexer = start.automaton.lexer
    cdef LexerPlace* before = &lexer.path[nodes[node].depth - 1]
    cdef LexMask* share
    cdef unordered_map[string, size_t] groups
    cdef string key
    cdef cbool below = before.shadow != NULL and nodes[node].depth - 1 > before.top, outer = before.outer
    key.assign(<const char*>&node, sizeof(node))
    key.append(<const char*>&before.shadow, sizeof(LexState*))
    key.push_back(below)
    lexer_name(place, key)
    found = lexer.shares.masks.find(key)
    if found != lexer.shares.masks.end():
        dereference(found).second.used = True
        return dereference(found).second
    share = lexmask_new(mask.index)
    before.outer = True
    lexer_walk(share, start, node, nodes[node].end, True, groups)
    lexer.path[nodes[node].depth - 1].outer = outer
    lexer_finish(share, lexer)
    if mask.index.deadline.passed:
        lexmask_release(share)
        return NULL
    lexer.shares.masks[key] = share
    return share


cdef void lexer_take(LexMask* mask, const LexerPlace* place, LexMask* share) noexcept nogil:
    # Add what is shared.
    cdef int32_t token
    if mask.bits == NULL:
        mask.bits = bits_new(mask.index)
    for token in share.holes:
        if place.outer:
            mask.holes.push_back(token)
        else:
            lexer_cut_token(mask, &mask.pieces[place.piece], token)
    if share.bits != NULL:
        bits_unite(mask.bits, share.bits)
    for token in share.inside:
        bits_add(mask.bits, token)
    lexer_share_depending(mask, share)


cdef void lexer_share_depending(LexMask* mask, LexMask* share) noexcept nogil:
    # Refer to what depends on the context.
    if not (share.crossings.empty() and share.groups.empty() and share.pieces.empty() and share.shares.empty()):
        share.holders.add(1)
        mask.shares.push_back(share)


cdef void lexer_finish(LexMask* mask, Lexer* lexer) noexcept nogil:
    cdef size_t i
    for i in range(mask.pieces.size()):
        sort(mask.pieces[i].removed.begin(), mask.pieces[i].removed.end())
    lexmask_finish(mask)
    lexer_run(mask, lexer)


cdef LexMask* lexer_mask(LexState* lex, LexState* start, Index* index) noexcept nogil:
    # Of a lexer in state `lex` (NULL: at `start`), where `start` is what the parser state waits for.  NULL
    # when time is up.
    cdef Lexer* lexer = start.automaton.lexer
    cdef LexMask* mask
    cdef unordered_map[string, size_t] groups
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
    if lex == NULL:
        lexer_spread(mask, start, 0)
    else:
        lexer_walk(mask, start, 1, index.trie.nodes[0].end, True, groups)
    lexer_finish(mask, lexer)
    if index.deadline.passed:
        lexmask_release(mask)
        return NULL
    lexer.masks[key] = mask
    return mask


# --- watches --------------------------------------------------------------------------------

cdef LexMask* lexer_watched(LexState* watch, Index* index) noexcept nogil:
    # In `bits`, the tokens that a watch does not let pass; in `holes`, those at whose end it still watches.  NULL when time
    # is up.
    cdef Lexer* lexer = watch.automaton.lexer
    cdef const Trie* trie = index.trie
    cdef const TrieNode* nodes = trie.nodes.data()
    cdef vector[LexState*] path
    cdef LexMask* mask
    cdef LexState* state
    cdef uint32_t node = 1
    cdef int32_t t
    found = lexer.watched.find(watch.id)
    if found != lexer.watched.end():
        dereference(found).second.used = True
        return dereference(found).second
    mask = lexmask_new(index)
    mask.bits = bits_new(index)
    path.push_back(watch)
    while node < nodes[0].end and not deadline_passed(&index.deadline):
        path.resize(<size_t>nodes[node].depth)
        state = path.back()
        if not watch_step(&state, nodes[node].byte):
            for t in range(nodes[node].token, nodes[nodes[node].end].token):
                bits_add(mask.bits, trie.tokens[t])
        elif state != NULL:
            for t in range(nodes[node].token, nodes[node + 1].token):
                mask.holes.push_back(trie.tokens[t])
            path.push_back(state)
            node += 1
            continue
        node = nodes[node].end
    lexmask_finish(mask)
    if index.deadline.passed:
        lexmask_release(mask)
        return NULL
    lexer.watched[watch.id] = mask
    return mask
