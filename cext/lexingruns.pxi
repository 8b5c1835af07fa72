# What is behind the crossings of a lexer's mask (lexingmask.pxi).
#
# The crossings of one tag are a *run*.  What a start of the lexer says of the residuals depends on the trie nodes (and on
# what the terminal before must not become), and neither on the tag nor on the mask: masks with the same crossings
# share a run.  So what may stand behind an operator is found once for each start, whatever name the operator stands behind.

cdef void lexer_run(LexMask* mask, Lexer* lexer) noexcept nogil:
    # Name the crossings of each tag.
    cdef string key
    cdef TagRun made
    cdef Run* run
    cdef CrossingGroup* group
    cdef uint32_t at = 0, i, count = <uint32_t>mask.crossings.size()
    while at < count:
        made.tag = mask.crossings[at].tag
        made.first = at
        key.clear()
        while at < count and mask.crossings[at].tag == made.tag:
            group = &mask.crossings[at]
            i = group.last - group.first
            key.append(<const char*>&group.watch, sizeof(LexState*))
            key.append(<const char*>&i, sizeof(i))
            key.append(<const char*>&mask.nodes[group.first], i * sizeof(uint32_t))
            at += 1
        made.last = at
        run = NULL
        found = lexer.runs.find(key)
        # Nodes of a residual trie say nothing to others.
        if mask.trie == mask.index.trie and found != lexer.runs.end():
            run = dereference(found).second
        else:
            run = new Run()
            run.holders = 0
            run.index = mask.index
            run.bytes = sizeof(Run)
            if mask.trie == mask.index.trie:
                run.holders = 1
                run.bytes += <int64_t>key.size()
                lexer.runs[key] = run
            mask.index.bytes.add(run.bytes)
        run.holders += 1
        made.run = run
        mask.runs.push_back(made)


cdef LexMask* lexer_behind(LexMask* mask, size_t number, LexState* start) noexcept nogil:
    # What a lexer at `start` says of the residuals of a run.  NULL when time is up.
    cdef Run* run = mask.runs[number].run
    cdef Lexer* lexer = start.automaton.lexer
    cdef LexMask* whole
    cdef LexMask* below
    cdef unordered_map[string, size_t] groups
    cdef uint32_t i, node
    found = run.whole.find(start.id)
    if found != run.whole.end():
        return dereference(found).second
    whole = lexmask_new(mask.index)
    for i in range(mask.runs[number].first, mask.runs[number].last):
        if lex_next(start, mask.crossings[i].byte) == LEX_DEAD:
            continue
        node = mask.nodes[mask.crossings[i].first]
        if (mask.trie == mask.index.trie and mask.crossings[i].last - mask.crossings[i].first == 1
                and mask.trie.nodes[node].end - node <= SHARE_LEAST):
            lexer_behind_node(whole, node, mask.crossings[i].watch, start, groups)
            continue
        below = lexer_behind_group(mask, run, i, i - mask.runs[number].first, start)
        if below == NULL:
            break
        if below.bits != NULL:
            if whole.bits == NULL:
                whole.bits = bits_new(mask.index)
            bits_unite(whole.bits, below.bits)
        whole.inside.insert(whole.inside.end(), below.inside.begin(), below.inside.end())
        lexer_share_depending(whole, below)
    lexer_finish(whole, lexer)
    if mask.index.deadline.passed:
        lexmask_release(whole)
        return NULL
    run.whole[start.id] = whole
    return whole


cdef void lexer_behind_node(LexMask* out, uint32_t node, LexState* watch, LexState* start,
                            unordered_map[string, size_t]& groups) noexcept nogil:
    # Add what is said of a node of the mask's trie and of those below, where the lexer is at `start` above it.  The end of an
    # ignored terminal is a crossing here.
    cdef Lexer* lexer = start.automaton.lexer
    cdef LexerPlace place
    cdef int32_t depth = out.trie.nodes[node].depth - 1
    lexer_stand(lexer, out.index, <size_t>depth, NULL, watch)
    lexer.stops = True
    lexer_step(start, lexer.path[depth], out.trie.nodes[node].byte, place)
    if place.alone != NULL:
        lexer_tell(out, place.alone, node, groups)
        lexer_walk_loop(out, place.alone, node + 1, out.trie.nodes[node].end, depth, groups)
    else:
        lexer_walk(out, start, node, out.trie.nodes[node].end, False, groups)
    lexer.stops = False


cdef LexMask* lexer_behind_group(LexMask* mask, Run* run, uint32_t group, uint32_t position, LexState* start) noexcept nogil:
    # The same of one group.  Residuals begin with the same byte, so starts that the byte leads to one state say the same.
    cdef Lexer* lexer = start.automaton.lexer
    cdef LexMask* below
    cdef CrossingGroup* crossing = &mask.crossings[group]
    cdef LexerPlace place
    cdef ResidualView view
    cdef unordered_map[string, size_t] groups
    cdef int64_t key = (<int64_t>position << 32) | lex_next(start, crossing.byte).id
    found = run.behind.find(key)
    if found != run.behind.end():
        return dereference(found).second
    view = lexmask_view(mask, group, run.merged, position, &run.bytes)
    if lexer.safe and view.trie == mask.index.trie and lexer_piece_pays(mask.index, view.first):
        lexer_stand(lexer, mask.index, <size_t>view.depth, NULL, crossing.watch)
        lexer_step(start, lexer.path[view.depth], crossing.byte, place)
        if not lexer_comes_back(place):
            below = lexer_share(mask, start, view.first, place)
            if below != NULL:
                below.holders.add(1)
                run.behind[key] = below
            return below
    below = lexmask_new(mask.index)
    below.trie = view.trie
    lexer_behind_node(below, view.first, crossing.watch, start, groups)
    lexer_finish(below, lexer)
    if mask.index.deadline.passed:
        lexmask_release(below)
        return NULL
    run.behind[key] = below
    return below


cdef void lexer_forget_runs(Lexer* lexer) noexcept nogil:
    # Those that no mask has; then those that only what was kept by them had.
    cdef vector[string] gone
    cdef pair[string, Run*] entry
    cdef size_t i
    cdef cbool more = True
    while more:
        gone.clear()
        for entry in lexer.runs:
            if entry.second.holders == 1:
                gone.push_back(entry.first)
        for i in range(gone.size()):
            run_release(lexer.runs[gone[i]])
            lexer.runs.erase(gone[i])
        more = not gone.empty()
