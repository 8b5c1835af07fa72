# The same for grammars that have a lexer (lexing.pxi).
#
# What may follow is split there by what a parser state waits for, so parser states are not merged and the states of many
# texts are matcher states like those of one.  What is behind all tokens is the union of what is behind them
# from each thread, and is kept by thread.

cdef void lexed_forget_keys(vector[Thread]& threads) noexcept nogil:
    cdef size_t i
    for i in range(threads.size()):
        if threads[i].text > 0:
            threads[i].text = UNKNOWN_TEXT


cdef cbool lexed_walk_level(Core* core, Sets* sets, const Trie* trie, uint32_t node) noexcept nogil:
    # One level of a walk of a trie from level 0; False when nothing is left there.
    cdef size_t depth = trie.nodes[node].depth
    threads_step(core, sets.levels[depth - 1], trie.nodes[node].byte, sets.levels[depth])
    lexed_forget_keys(sets.levels[depth])
    return not sets.levels[depth].empty()


cdef vector[Thread]* lexed_after(Core* core, Sets* sets, const Thread& thread) noexcept nogil:
    # The threads behind all tokens; NULL when time is up.
    cdef const Trie* trie = core.index.trie
    cdef uint32_t node = 1
    cdef vector[Thread] out
    cdef vector[Thread]* here
    cdef size_t limit = 256
    cdef string key
    cdef int32_t known
    key.append(<const char*>&thread.lex, sizeof(LexState*))
    key.append(<const char*>&thread.watch, sizeof(LexState*))
    key.append(<const char*>&thread.parser, sizeof(int32_t))
    key.append(<const char*>&thread.text, sizeof(int32_t))
    known = sets.after.find(key)
    if known >= 0:
        return &sets.threads[known]
    sets.levels[0].assign(1, thread)
    while node < trie.nodes[0].end:
        if sets_stop(core, sets):
            return NULL
        if not lexed_walk_level(core, sets, trie, node):
            node = trie.nodes[node].end
            continue
        if trie.nodes[node].token < trie.nodes[node + 1].token:
            here = &sets.levels[trie.nodes[node].depth]
            out.insert(out.end(), here.begin(), here.end())
            if out.size() > limit:
                threads_normalize(out)
                limit = 2 * out.size() + 256
        node += 1
    threads_keep_alive(core, out)
    if core.index.deadline.passed:
        return NULL
    threads_normalize(out)
    sets.after.insert(key, <int32_t>sets.threads.size())
    sets.threads.push_back(out)
    sets.held += vector_bytes(out.size(), sizeof(Thread))
    return &sets.threads.back()


cdef int32_t lexed_any(Core* core, Sets* sets, int32_t id) noexcept nogil:
    # As `sets_any`.
    cdef vector[Thread] out
    cdef vector[Thread]* after
    cdef Thread thread
    cdef int32_t target
    found = sets.any.find(id)
    if found != sets.any.end():
        return dereference(found).second
    for thread in core.states[id].threads:
        after = lexed_after(core, sets, thread)
        if after == NULL:
            return UNKNOWN
        out.insert(out.end(), after.begin(), after.end())
    target = matcher_intern(core, out)
    sets.any[id] = target
    return target


cdef int32_t lexed_join(Core* core, int32_t a, int32_t b) noexcept nogil:
    cdef vector[Thread] threads = core.states[a].threads
    threads.insert(threads.end(), core.states[b].threads.begin(), core.states[b].threads.end())
    return matcher_intern(core, threads)


cdef cbool lexed_covers(const Core* core, int32_t a, int32_t b) noexcept nogil:
    # As `sets_covers`, by equal threads.
    cdef const vector[Thread]* over = &core.states[a].threads
    cdef const vector[Thread]* under = &core.states[b].threads
    cdef size_t i, j
    for i in range(under.size()):
        for j in range(over.size()):
            if (over[0][j].lex == under[0][i].lex and over[0][j].watch == under[0][i].watch
                    and over[0][j].parser == under[0][i].parser
                    and (over[0][j].text == under[0][i].text or over[0][j].text == UNKNOWN_TEXT)):
                break
        else:
            return False
    return True


cdef void lexed_classes(Core* core, Sets* sets, int32_t id, const Trie* trie, vector[int32_t]& targets) noexcept nogil:
    # As `sets_classes`.
    cdef uint32_t node = 1
    cdef vector[Thread] here
    cdef int32_t t, target
    sets.levels[0] = core.states[id].threads
    while node < trie.nodes[0].end:
        if sets_stop(core, sets):
            return
        if not lexed_walk_level(core, sets, trie, node):
            node = trie.nodes[node].end
            continue
        if trie.nodes[node].token < trie.nodes[node + 1].token:
            here = sets.levels[trie.nodes[node].depth]
            target = matcher_intern(core, here)
            for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
                targets[trie.tokens[t]] = target
        node += 1
