# Tokens that stand for themselves: read by their id and not by their bytes.
#
# A set of them is an automaton that reads no byte, so that nothing that walks bytes ever sees it; a parser state
# lists those that it waits for apart from lexemes.  Such a token may come wherever a thread stands between lexemes:
# it ends the one before, whatever that could have become, since no lexeme spans a token that is no text.
# In a completion it is spelled TOKEN_MARK and its id, four bytes: the mark is no byte of UTF-8.

cdef enum:
    TOKEN_MARK = 0xFF
    TOKEN_SPELLED = 5
    FEW_TOKENS = 64                # are added to a mask one by one


cdef inline cbool tokens_have(const Automaton* tokens, int32_t token) noexcept nogil:
    return (tokens.token_words[<size_t>token >> 5] >> (token & 31)) & 1


cdef void tokens_spell(int32_t token, vector[uint8_t]& out) noexcept nogil:
    cdef int32_t shift
    out.push_back(TOKEN_MARK)
    for shift in range(24, -1, -8):
        out.push_back(<uint8_t>(token >> shift))


cdef int32_t state_goto_token(Program* program, int32_t id, int32_t token) noexcept nogil:
    # The parser state behind a token, or NO_STATE.
    cdef int32_t joined = NO_STATE
    cdef size_t i
    cdef vector[LexState*] waiting = program.states[id].tokens
    for i in range(waiting.size()):
        if tokens_have(waiting[i].automaton, token):
            joined = state_union(program, joined, state_goto(program, id, waiting[i].automaton, 0, NO_KEY))
    return joined


cdef void threads_step_token(Core* core, const vector[Thread]& threads, int32_t token,
                             vector[Thread]& out) noexcept nogil:
    # Add the threads behind a token that stands for itself; `out` has those behind its bytes.
    cdef size_t i
    cdef Thread thread
    cdef int32_t joined = NO_STATE
    for i in range(threads.size()):
        if threads[i].lex != NULL or core.program.states[threads[i].parser].tokens.empty():
            continue
        thread = thread_at(state_goto_token(core.program, threads[i].parser, token), NULL)
        if thread.parser == NO_STATE:
            continue
        if core.program.lexer == NULL:
            joined = state_union(core.program, joined, thread.parser)
        else:
            # What comes next is split by what the parser state waits for.
            out.push_back(thread)
    if joined == NO_STATE:
        return
    for i in range(out.size()):
        if out[i].lex == NULL and out[i].text == 0:
            out[i].parser = state_union(core.program, out[i].parser, joined)
            return
    out.push_back(thread_at(joined, NULL))


cdef int32_t matcher_step_token(Core* core, int32_t id, int32_t token, cbool text, const uint8_t* data,
                                int64_t length) noexcept nogil:
    # The state behind a token, of which `data` are the bytes if it is text, or NO_STATE.
    cdef vector[Thread] before = core.states[id].threads
    cdef vector[Thread] threads, after
    cdef int64_t i
    if text:
        threads = before
    for i in range(length):
        threads_step(core, threads, data[i], after)
        threads.swap(after)
        if threads.empty():
            break
    threads_step_token(core, before, token, threads)
    return matcher_intern(core, threads) if not threads.empty() else NO_STATE


cdef cbool state_waits_for(const Core* core, int32_t id, int32_t token) noexcept nogil:
    # Whether a token may come as itself.
    cdef size_t i, j
    cdef const ParserState* state
    for i in range(core.states[id].threads.size()):
        if core.states[id].threads[i].lex != NULL:
            continue
        state = core.program.states[core.states[id].threads[i].parser]
        for j in range(state.tokens.size()):
            if tokens_have(state.tokens[j].automaton, token):
                return True
    return False


cdef void tokens_different(const vector[LexState*]& waiting, vector[int32_t]& out) noexcept nogil:
    # A token for each combination of the sets waited for: those of one combination all lead to the same.
    cdef unordered_map[string, char] seen
    cdef string combination
    cdef int32_t token
    cdef size_t i, j
    if waiting.size() == 1:
        out.push_back(waiting[0].automaton.token_ids[0])
        return
    for i in range(waiting.size()):
        for token in waiting[i].automaton.token_ids:
            combination.clear()
            for j in range(waiting.size()):
                combination.push_back(tokens_have(waiting[j].automaton, token))
            if seen.count(combination) == 0:
                seen[combination] = 1
                out.push_back(token)


cdef void mask_add_tokens(Core* core, const vector[Thread]& threads, Mask* mask) noexcept nogil:
    # What a finished mask lacks of tokens that stand for themselves.
    cdef size_t i, j, k
    cdef const Automaton* tokens
    cdef const ParserState* state
    for i in range(threads.size()):
        if threads[i].lex != NULL:
            continue
        state = core.program.states[threads[i].parser]
        for j in range(state.tokens.size()):
            tokens = state.tokens[j].automaton
            if tokens.token_ids.size() <= FEW_TOKENS:
                mask.added.insert(mask.added.end(), tokens.token_ids.begin(), tokens.token_ids.end())
                continue
            mask_flatten(core, mask)
            for k in range(tokens.token_words.size()):
                mask.bits.words[k] |= tokens.token_words[k]
