# What a state of a grammar's lexer says about every token (see lexmask.pxi, lexing.pxi).
#
# An ignored terminal leaves the parser where it is, so a token may run through it into the next terminal and
# still be inside: " foo" does not depend on the context either.  The mask therefore belongs to a lexer
# state and the start to which the lexer goes back.  A token leads to several *hypotheses*, one for each way in
# which it may have been split.
#
# A residual that makes the terminal before it longer is no crossing at all.  That is most of them, for
# terminals such as identifiers.

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


cdef void lexer_add_group(LexMask* mask, unordered_map[string, size_t]& known, const LexerPlace& place,
                          uint32_t node) noexcept nogil:
    # The tokens at a node, if the context allows any of the hypotheses.
    cdef const Trie* trie = mask.index.trie
    cdef TokenGroup made
    cdef string key
    cdef size_t group
    cdef int32_t t
    cdef size_t i
    key.assign(<const char*>place.hypotheses.data(), place.hypotheses.size() * sizeof(Hypothesis))
    for i in range(place.ended.size()):
        key.append(<const char*>&place.ended[i].watch, sizeof(LexState*))
        key.append(<const char*>&place.ended[i].tag, sizeof(int32_t))
    found = known.find(key)
    if found != known.end():
        group = dereference(found).second
    else:
        group = known[key] = mask.groups.size()
        made.hypotheses = place.hypotheses
        made.ended = place.ended
        mask.groups.push_back(made)
    for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
        mask.groups[group].tokens.push_back(trie.tokens[t])


cdef void lexer_walk(LexMask* mask, LexState* lex, LexState* start) noexcept nogil:
    cdef const Trie* trie = mask.index.trie
    cdef const TrieNode* nodes = trie.nodes.data()
    cdef Lexer* lexer = start.automaton.lexer
    cdef unordered_map[string, size_t] groups
    cdef vector[LexerPlace]* path = &lexer.path
    cdef LexerPlace* place
    cdef LexerPlace* before
    cdef Hypothesis first
    cdef Crossing crossing
    cdef LexState* watch
    cdef uint32_t node = 1, last = nodes[0].end
    cdef size_t i
    cdef int32_t t
    if path.size() <= mask.index.most_bytes:
        path.resize(mask.index.most_bytes + 1)
    first.lex = lex
    first.watch = NULL
    path[0][0].hypotheses.assign(1, first)
    path[0][0].ended.clear()
    while node < last:
        if deadline_passed(&mask.index.deadline):
            return
        before = &path[0][nodes[node].depth - 1]
        place = &path[0][nodes[node].depth]
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
                lexer_add_group(mask, groups, place[0], node)
        node += 1


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
    mask = lexmask_new(index)
    lexer_walk(mask, lex, start)
    lexmask_finish(mask)
    if index.deadline.passed:
        lexmask_release(mask)
        return NULL
    lexer.masks[key] = mask
    return mask
