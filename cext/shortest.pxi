# Forced bytes and shortest completions, spelled out byte by byte, always along a cheapest continuation (costs.pxi).

cdef enum:
    FORCED_LIMIT = 65536           # bytes reported by one call
    COMPLETION_LIMIT = 1 << 24


cdef void shortest_try(Core* core, Costs* costs, LexState* lex, int32_t parser, int32_t text, int32_t tag,
                       vector[uint8_t]& path, int32_t* best, int32_t* best_after,
                       vector[uint8_t]& best_path) noexcept nogil:
    # Keep `path`, which matches `lex` with `tag`, when it leads to a cheaper completion.
    cdef int32_t after, guard, key = NO_KEY
    cdef string quoted
    if lex_keeps_text(lex) and tag >= lex.automaton.other_tag:
        if text != UNKNOWN_TEXT:
            quoted = thread_quoted(core, text)
        quoted.append(<const char*>path.data(), path.size())
        key = ANY_KEY if text == UNKNOWN_TEXT else lex.automaton.used.name(key_text(quoted))
    shortest_keep(core, costs, state_goto(core.program, parser, lex.automaton, tag, key), path, best, best_after, best_path)
    for guard in core.program.states[parser].guards:
        after = state_goto_guarded(core.program, parser, lex.automaton, tag, guard)
        shortest_keep(core, costs, after, path, best, best_after, best_path)


cdef void shortest_keep(Core* core, Costs* costs, int32_t after, vector[uint8_t]& path, int32_t* best,
                        int32_t* best_after, vector[uint8_t]& best_path) noexcept nogil:
    cdef int32_t cost
    if after == NO_STATE:
        return
    cost = cost_add(<int64_t>path.size(), cost_parser(core.program, costs, after))
    if cost < best[0]:
        best[0] = cost
        best_after[0] = after
        best_path = path


cdef void shortest_try_lexeme(Core* core, Costs* costs, LexState* lex, int32_t parser, int32_t text,
                              int32_t* best, int32_t* best_after,
                              vector[uint8_t]& best_path) noexcept nogil:
    cdef vector[uint8_t] path
    cdef Automaton* keys = lex.automaton
    cdef vector[int32_t] tags
    cdef cbool found = False
    cdef int32_t i
    if keys.kind != KIND_KEYSET:
        if keys.kind == KIND_WORDS:
            words_tags(lex, tags)
        else:
            for i in range(keys.kinds):
                tags.push_back(i)
        for i in tags:
            path.clear()
            lex_shortest(lex, i, path, &found)
            if found:
                shortest_try(core, costs, lex, parser, text, i, path, best, best_after, best_path)
        return
    if lex.key.where in (KEY_START, KEY_BODY):
        for i in range(lex.key.first, lex.key.last):
            if deadline_look(&core.index.deadline):
                return
            if key_allows(keys, &lex.key, keys.tags[i]) and key_rest(lex, i, path):
                shortest_try(core, costs, lex, parser, text, keys.tags[i], path, best, best_after, best_path)
    if lex.key.other == 1:
        for i in range(keys.other_tag, keys.other_tag + keys.kinds):
            path.clear()
            lex_shortest(lex, i, path, &found)
            if found:
                shortest_try(core, costs, lex, parser, text, i, path, best, best_after, best_path)


cdef cbool key_rest(LexState* lex, int32_t index, vector[uint8_t]& path) noexcept nogil:
    # The bytes from a keyset state to the end of one of its names; False when an escape is under
    # way that spells another character.
    cdef const string* name = &lex.automaton.names[index]
    cdef string rest
    cdef size_t j, at = <size_t>lex.key.depth
    cdef int32_t c
    path.clear()
    if lex.key.where == KEY_START:
        path.push_back(QUOTE)
    if lex.key.escape != 0:
        if at >= name.size():
            return False
        c = key_code_point(name[0], at)
        if not key_escape_fits(lex.automaton.spelling, c, lex.key.escape, lex.key.value):
            return False
        rest = key_escape_rest(c, lex.key.escape)
        path.insert(path.end(), rest.begin(), rest.end())
        at += key_spelling(c).size()
    for j in range(at, name.size()):
        path.push_back(<uint8_t>name[0][j])
    path.push_back(QUOTE)
    return True


cdef cbool shortest_bytes(Core* core, int32_t id, vector[uint8_t]& out) noexcept nogil:
    # Append the shortest completion (among arrays of different items, a short one); False when there is
    # none (the engine never lets that happen).
    if core.states[id].accepting:
        return True
    if core.program.lexer != NULL:
        return core_search(core, core.states[id].threads, True, out)
    if not core.tracker.guards.empty():
        return distinct_completion(core, id, out)
    return shortest_plain(core, core.states[id].threads, out)


cdef int32_t shortest_byte(Core* core, const Thread& thread) noexcept nogil:
    # The next byte of the shortest completion as if items might repeat; -1 where a lexeme may end here.
    cdef vector[uint8_t] path
    cdef int32_t best = UNREACHED, after = NO_STATE
    cdef const ParserState* state = core.program.states[thread.parser]
    cdef size_t i
    costs_prepare(core)
    if core.index.deadline.passed:
        return -1
    if thread.lex != NULL:
        shortest_try_lexeme(core, core.costs, thread.lex, thread.parser, thread.text, &best, &after, path)
    else:
        for i in range(state.starts.size()):
            shortest_try_lexeme(core, core.costs, state.starts[i], thread.parser, 0, &best, &after, path)
    return -1 if path.empty() else path[0]


cdef cbool shortest_plain(Core* core, const vector[Thread]& threads, vector[uint8_t]& out) noexcept nogil:
    # The shortest completion as if items might repeat.
    cdef Thread thread
    cdef Costs* costs = core.costs
    cdef vector[uint8_t] path
    cdef int32_t best = UNREACHED, after = NO_STATE
    cdef size_t i, j
    cdef ParserState* state
    costs_prepare(core)
    if core.index.deadline.passed:
        return False
    for i in range(threads.size()):
        thread = threads[i]
        state = core.program.states[thread.parser]
        if thread.lex != NULL:
            shortest_try_lexeme(core, costs, thread.lex, thread.parser, thread.text, &best, &after, path)
        elif state.complete:
            return True
        else:
            for j in range(state.starts.size()):
                shortest_try_lexeme(core, costs, state.starts[j], thread.parser, 0, &best, &after, path)
            for j in range(state.tokens.size()):
                shortest_try_lexeme(core, costs, state.tokens[j], thread.parser, 0, &best, &after, path)
    while after != NO_STATE and out.size() < COMPLETION_LIMIT and not deadline_look(&core.index.deadline):
        out.insert(out.end(), path.begin(), path.end())
        state = core.program.states[after]
        if state.complete:
            return True
        best = UNREACHED
        thread.parser = after
        after = NO_STATE
        path.clear()
        for j in range(state.starts.size()):
            shortest_try_lexeme(core, costs, state.starts[j], thread.parser, 0, &best, &after, path)
        for j in range(state.tokens.size()):
            shortest_try_lexeme(core, costs, state.tokens[j], thread.parser, 0, &best, &after, path)
    return False


cdef cbool lexed_forced(Core* core, const vector[Thread]& threads, vector[Thread]& out,
                        vector[uint8_t]& path) noexcept nogil:
    # Follow the one byte that can be read; False when there are several.
    cdef vector[Thread] after
    cdef uint64_t first[4]
    cdef size_t i, j
    cdef int32_t byte, found = -1
    memset(first, 0, 32)
    for i in range(threads.size()):
        if threads[i].lex != NULL:
            lex_first(threads[i].lex)
        for j in range(4):
            first[j] |= (threads[i].lex.forced_first[j] if threads[i].lex != NULL
                         else core.program.states[threads[i].parser].first[j])
    for byte in range(256):
        if not bits_has(first, <uint8_t>byte):
            continue
        threads_step(core, threads, <uint8_t>byte, after)
        if not threads_alive(core, after):
            continue
        if found >= 0 or core.index.deadline.passed:
            return False
        found = byte
        out.swap(after)
    if found >= 0:
        threads_keep_alive(core, out)
        threads_normalize(out)
        path.push_back(<uint8_t>found)
    return found >= 0


cdef cbool threads_open(const Core* core, const vector[Thread]& threads) noexcept nogil:
    # Whether something else than a byte may come: the end, or a token that stands for itself.
    cdef size_t i
    for i in range(threads.size()):
        if threads[i].lex == NULL and not core.program.states[threads[i].parser].tokens.empty():
            return True
    return threads_complete(core, threads)


cdef void forced_bytes(Core* core, int32_t id, vector[uint8_t]& out) noexcept nogil:
    # Bytes that every completion begins with, up to escaped spellings of the same keys.
    cdef vector[Thread] threads = core.states[id].threads
    cdef vector[Thread] after
    cdef uint64_t first[4]
    cdef size_t i, j
    cdef int32_t byte, found
    cdef ParserState* state
    while core.program.lexer != NULL and out.size() < FORCED_LIMIT and not deadline_passed(&core.index.deadline):
        if threads_open(core, threads) or not lexed_forced(core, threads, after, out):
            return
        threads.swap(after)
    while out.size() < FORCED_LIMIT and not deadline_passed(&core.index.deadline):
        memset(first, 0, 32)
        for i in range(threads.size()):
            if threads[i].lex != NULL:
                lex_first(threads[i].lex)
                for j in range(4):
                    first[j] |= threads[i].lex.forced_first[j]
            else:
                state = core.program.states[threads[i].parser]
                if state.complete or not state.tokens.empty():
                    return
                for j in range(4):
                    first[j] |= state.first[j]
        found = -1
        for byte in range(256):
            if bits_has(first, <uint8_t>byte):
                if found >= 0:
                    return
                found = byte
        if found < 0:
            return
        threads_step(core, threads, <uint8_t>found, after)
        if after.empty():
            return
        out.push_back(<uint8_t>found)
        threads.swap(after)
