# What a state of a grammar's lexer says about every token (see lexmask.pxi, lexing.pxi).
#
# An ignored terminal leaves the parser where it is, so a token may run through it into the next terminal and
# still be inside: " foo" does not depend on the context either.  The mask therefore belongs to a lexer
# state and the start to which the lexer goes back.  A token leads to several *hypotheses*, one for each way in
# which it may have been split.
#
# Most of a walk is the same for many starts: once the state says nothing of keywords any more, the subtree below
# gives the same for all of them.  Large ones are kept as *parts*.
#
# What the next lexer start says of the residuals of a group is kept as well: then a mask in a new parser state only
# asks where terminals lead.
#
# A residual that makes the terminal before it longer is no crossing at all.  That is most of them, for
# terminals such as identifiers.

cdef enum:
    PART_NODES = 64        # trie nodes of a subtree that is worth keeping

cdef cppclass LexerPlace:
    vector[Hypothesis] hypotheses
    vector[Ended] ended


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
        if each.lex.tag == NO_TAG or lex_goes_on(each.lex):
            out.hypotheses.push_back(each)
        if not lexer_matched(each.lex):
            continue
        each.watch = watch_join(each.watch, each.lex)
        if each.lex.automaton.lexer.ignored[each.lex.tag]:
            each.lex = NULL
            out.hypotheses.push_back(each)
        else:
            ended.tag = each.lex.tag
            ended.watch = each.watch
            out.ended.push_back(ended)


cdef cbool lexer_any_sure(const LexerPlace& place) noexcept nogil:
    cdef size_t i
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


cdef void lexer_append(LexMask* mask, const LexMask* part, unordered_map[string, size_t]& groups) noexcept nogil:
    cdef LexerPlace place
    cdef size_t i, group
    if part.bits != NULL:
        if mask.bits == NULL:
            mask.bits = bits_new(mask.index)
        bits_unite(mask.bits, part.bits)
    mask.inside.insert(mask.inside.end(), part.inside.begin(), part.inside.end())
    mask.crossing.insert(mask.crossing.end(), part.crossing.begin(), part.crossing.end())
    for i in range(part.groups.size()):
        place.hypotheses = part.groups[i].hypotheses
        place.ended = part.groups[i].ended
        group = lexer_group(mask, groups, place)
        mask.groups[group].tokens.insert(mask.groups[group].tokens.end(), part.groups[i].tokens.begin(),
                                         part.groups[i].tokens.end())


cdef void lexer_walk_alone(LexMask* mask, LexState* start, uint32_t top) noexcept nogil:
    # Below a node of the vocabulary's trie where only `start` is left, which becomes no ignored terminal: no other
    # hypothesis ever comes up.
    cdef const Trie* trie = mask.index.trie
    cdef const TrieNode* nodes = trie.nodes.data()
    cdef vector[LexState*]* path = &mask.index.path
    cdef unordered_map[string, size_t] groups
    cdef LexerPlace place
    cdef Hypothesis alone
    cdef Ended ended
    cdef Crossing crossing
    cdef LexState* parent
    cdef LexState* state
    cdef cbool safe = start.automaton.lexer.safe
    cdef uint32_t node = top + 1, last = nodes[top].end
    cdef size_t group
    cdef int32_t t
    if path.size() <= mask.index.most_bytes:
        path.resize(mask.index.most_bytes + 1, NULL)
    path[0][nodes[top].depth] = start
    while node < last:
        if deadline_passed(&mask.index.deadline):
            return
        parent = path[0][nodes[node].depth - 1]
        state = lex_next(parent, nodes[node].byte)
        if (state == LEX_DEAD or state.tag == NO_TAG) and lexer_matched(parent):
            crossing.tag = parent.tag
            crossing.watch = parent if state != LEX_DEAD else NULL
            crossing.byte = nodes[node].byte
            crossing.node = node
            mask.crossing.push_back(crossing)
        if state == LEX_DEAD:
            node = nodes[node].end
            continue
        if nodes[node].token < nodes[node + 1].token:
            if safe and (lexer_closes(state) or (lexer_matched(state) and lexer_leaves(state))):
                for t in range(nodes[node].token, nodes[node + 1].token):
                    mask.inside.push_back(trie.tokens[t])
            else:
                place.hypotheses.clear()
                place.ended.clear()
                alone.lex = state
                alone.watch = NULL
                if state.tag == NO_TAG or lex_goes_on(state):
                    place.hypotheses.push_back(alone)
                ended.tag = state.tag
                ended.watch = watch_join(NULL, state)
                if lexer_matched(state):
                    place.ended.push_back(ended)
                group = lexer_group(mask, groups, place)
                for t in range(nodes[node].token, nodes[node + 1].token):
                    mask.groups[group].tokens.push_back(trie.tokens[t])
        path[0][nodes[node].depth] = state
        node += 1


cdef LexMask* lexer_part(LexState* start, const LexerPlace& place, uint32_t node, cbool whole,
                         Index* index) noexcept nogil:
    # The subtree below a node, if what it gives depends on a lexer state alone and it is worth keeping; NULL
    # otherwise.
    cdef Lexer* lexer = start.automaton.lexer
    cdef LexState* lex
    cdef LexMask* part
    cdef int64_t key
    if not whole or index.trie.nodes[node].end - node < PART_NODES or place.hypotheses.size() != 1:
        return NULL
    lex = place.hypotheses[0].lex
    if lex == NULL or place.hypotheses[0].watch != NULL or place.ended.size() > 1:
        return NULL
    if not place.ended.empty() and (place.ended[0].tag != lex.tag or place.ended[0].watch != lex):
        return NULL
    if lexer_skips(lex):
        return NULL
    key = (<int64_t>lex.id << 32) | node
    found = lexer.parts.find(key)
    if found != lexer.parts.end():
        dereference(found).second.used = True
        return dereference(found).second
    part = lexmask_new(index)
    lexer_walk_alone(part, lex, node)
    if index.deadline.passed:
        lexmask_release(part)
        return NULL
    lexmask_measure(part)
    lexer.parts[key] = part
    return part


cdef void lexer_walk(LexMask* mask, LexState* start, uint32_t node, uint32_t last) noexcept nogil:
    # Nodes of the mask's trie, in subtrees below one whose place is known.
    cdef const Trie* trie = mask.trie
    cdef const TrieNode* nodes = trie.nodes.data()
    cdef Lexer* lexer = start.automaton.lexer
    cdef unordered_map[string, size_t] groups
    cdef LexerPlace* place
    cdef LexerPlace* before
    cdef Crossing crossing
    cdef LexState* watch
    cdef LexMask* part
    cdef size_t i
    cdef int32_t t
    while node < last:
        if deadline_passed(&mask.index.deadline):
            return
        before = &lexer.path[nodes[node].depth - 1]
        place = &lexer.path[nodes[node].depth]
        for i in range(before.ended.size()):
            watch = before.ended[i].watch
            if watch_step(&watch, nodes[node].byte):
                crossing.tag = before.ended[i].tag
                crossing.watch = before.ended[i].watch if watch != NULL else NULL
                crossing.byte = nodes[node].byte
                crossing.node = node
                mask.crossing.push_back(crossing)
        lexer_step(start, before[0], nodes[node].byte, place[0])
        if place.hypotheses.empty() and place.ended.empty():
            node = nodes[node].end
            continue
        if nodes[node].token < nodes[node + 1].token:
            if lexer.safe and lexer_any_sure(place[0]):
                for t in range(nodes[node].token, nodes[node + 1].token):
                    mask.inside.push_back(trie.tokens[t])
            else:
                i = lexer_group(mask, groups, place[0])
                for t in range(nodes[node].token, nodes[node + 1].token):
                    mask.groups[i].tokens.push_back(trie.tokens[t])
        part = lexer_part(start, place[0], node, trie == mask.index.trie, mask.index)
        if part != NULL:
            lexer_append(mask, part, groups)
            node = nodes[node].end
        else:
            node += 1


cdef void lexer_stand(Lexer* lexer, const Index* index, size_t depth, LexState* lex, LexState* watch) noexcept nogil:
    # Where a walk begins.
    cdef Hypothesis first
    if lexer.path.size() <= index.most_bytes:
        lexer.path.resize(index.most_bytes + 1)
    first.lex = lex
    first.watch = watch
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
    lexer_walk(below, start, view.first, view.last)
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
    lexer_walk(mask, start, 1, index.trie.nodes[0].end)
    lexmask_finish(mask)
    if index.deadline.passed:
        lexmask_release(mask)
        return NULL
    lexer.masks[key] = mask
    return mask
