# Matcher states and masks of a grammar that has a lexer (lexing.pxi).
#
# Threads carry their watch.  What terminals lead to is not joined, because how the text goes on is split depends
# on what the parser state waits for.

cdef void lexed_follow(Core* core, LexState* lex, const Thread& before, uint8_t byte,
                       vector[Thread]& out) noexcept nogil:
    # Add a thread that has just read a byte, and the one behind what it completes.
    cdef Thread thread = before
    if lex == LEX_DEAD:
        return
    thread.lex = lex
    thread.text = text_append(&core.tracker.store.texts, before.text, byte) if lex_keeps_text(lex) else 0
    if (lex.tag == NO_TAG or lex_goes_on(lex)) and (
            lex.automaton != core.program.lexer or not lexer_hopeless(lex, thread.watch)):
        out.push_back(thread)
    if lex.tag != NO_TAG:
        thread.parser = thread_goto(core, lex, thread.parser, before.text, thread.text)
        if thread.parser != NO_STATE:
            if lex.automaton == core.program.lexer:
                thread.watch = watch_join(thread.watch, lex)
            thread.lex = NULL
            thread.text = 0
            out.push_back(thread)


cdef void lexed_step(Core* core, const vector[Thread]& threads, uint8_t byte, vector[Thread]& out) noexcept nogil:
    # `threads_step` with a lexer: what terminals lead to is not joined, because what comes next is split by
    # what the parser state waits for.
    cdef ParserState* state
    cdef Thread thread
    cdef size_t i, j
    out.clear()
    for i in range(threads.size()):
        thread = threads[i]
        if not watch_step(&thread.watch, byte):
            continue
        if thread.lex != NULL:
            lexed_follow(core, lex_next(thread.lex, byte), thread, byte, out)
            continue
        state = core.program.states[thread.parser]
        if bits_has(state.first, byte):
            if state.lexer != NULL:
                lexed_follow(core, lex_next(state.lexer, byte), thread, byte, out)
            for j in range(state.starts.size()):
                lexed_follow(core, lex_next(state.starts[j], byte), thread, byte, out)
    if out.size() > 1:
        threads_normalize(out)


# --- masks ----------------------------------------------------------------------------------

cdef void lexed_add(Core* core, const vector[Thread]& threads, Mask* mask, const Thread& thread) noexcept nogil:
    # What the lexer allows in a thread without a watch.
    cdef LexMask* own = lexer_mask(thread.lex, core.program.states[thread.parser].lexer, core.index)
    if own != NULL:
        lexed_apply(core, threads, mask, own, thread.parser, NULL)


cdef void lexed_apply(Core* core, const vector[Thread]& threads, Mask* mask, LexMask* own, int32_t parser,
                      vector[int32_t]* holes) noexcept nogil:
    # Add what is said about the tokens of a trie, in one parser state, but for some (NULL: none).
    cdef vector[int32_t] kept
    cdef int32_t token
    if holes == NULL or holes.empty() or own.bits == NULL:
        mask_join_bits(core, mask, own.bits)
    else:
        mask_flatten(core, mask)
        for token in holes[0]:
            if bits_hold_token(mask.bits, token):
                kept.push_back(token)
        bits_unite(mask.bits, own.bits)
        for token in holes[0]:
            bits_remove(mask.bits, token)
        for token in kept:
            bits_add(mask.bits, token)
    lexed_add_tokens(mask, own.inside, holes)
    lexed_depending(core, threads, mask, own, parser, holes)


cdef void lexed_depending(Core* core, const vector[Thread]& threads, Mask* mask, LexMask* own, int32_t parser,
                          vector[int32_t]* holes) noexcept nogil:
    # Add what depends on the parser state.  Recursion is bounded by the longest token.
    cdef vector[int32_t] more
    cdef size_t i
    lexed_groups(core, mask, own, parser, holes)
    lexed_crossings(core, threads, mask, own, parser, holes)
    for i in range(own.pieces.size()):
        own.pieces[i].part.used = True
        if holes == NULL or holes.empty():
            lexed_depending(core, threads, mask, own.pieces[i].part, parser, &own.pieces[i].removed)
        else:
            more = own.pieces[i].removed
            more.insert(more.end(), holes.begin(), holes.end())
            sort(more.begin(), more.end())
            lexed_depending(core, threads, mask, own.pieces[i].part, parser, &more)
    for i in range(own.shares.size()):
        own.shares[i].used = True
        lexed_depending(core, threads, mask, own.shares[i], parser, holes)


cdef int32_t lexed_group_known(Core* core, const TokenGroup* group, int32_t parser, vector[Thread]& possible) noexcept nogil:
    # Whether tokens that lead to some hypotheses are allowed in a parser state: 1, 0, or -1 when that takes a search from
    # `possible`.
    cdef Thread each
    cdef int32_t known
    cdef size_t i
    for i in range(group.hypotheses.size()):
        each = thread_at(parser, group.hypotheses[i].watch)
        each.lex = group.hypotheses[i].lex
        known = thread_known(core, each)
        if known == 1:
            return 1
        if known < 0:
            possible.push_back(each)
    for i in range(group.ended.size()):
        each = thread_at(state_goto(core.program, parser, core.program.lexer, group.ended[i].tag, NO_KEY),
                         group.ended[i].watch)
        if each.parser == NO_STATE:
            continue
        known = thread_known(core, each)
        if known == 1:
            return 1
        if known < 0:
            possible.push_back(each)
    return 0 if possible.empty() else -1


cdef void lexed_add_tokens(Mask* mask, vector[int32_t]& tokens, vector[int32_t]* holes) noexcept nogil:
    cdef int32_t token
    if holes == NULL or holes.empty():
        mask.added.insert(mask.added.end(), tokens.begin(), tokens.end())
        return
    for token in tokens:
        if not binary_search(holes.begin(), holes.end(), token):
            mask.added.push_back(token)


cdef void lexed_cut_holes(OpenGroup* group, vector[int32_t]* holes) noexcept nogil:
    cdef vector[int32_t] kept
    cdef int32_t token
    for token in group.tokens:
        if not binary_search(holes.begin(), holes.end(), token):
            kept.push_back(token)
    group.tokens.swap(kept)


cdef void lexed_settle(Core* core, Mask* mask) noexcept nogil:
    # Search for the open groups of a mask, unless all their tokens are allowed anyway.
    cdef size_t i, j
    if core.open.empty():
        return
    mask_flatten(core, mask)
    for i in range(core.open.size()):
        for j in range(core.open[i].tokens.size()):
            if not bits_hold_token(mask.bits, core.open[i].tokens[j]):
                if threads_alive(core, core.open[i].threads):
                    lexed_add_tokens(mask, core.open[i].tokens, NULL)
                break
    core.open.clear()


cdef void lexed_groups(Core* core, Mask* mask, LexMask* own, int32_t parser, vector[int32_t]* holes) noexcept nogil:
    # Tokens that end inside a lexeme, if the context allows that.
    cdef vector[Thread] possible
    cdef int32_t allowed
    cdef size_t i
    for i in range(own.groups.size()):
        possible.clear()
        allowed = lexed_group_known(core, &own.groups[i], parser, possible)
        if allowed == 1:
            lexed_add_tokens(mask, own.groups[i].tokens, holes)
        elif allowed < 0:
            core.open.resize(core.open.size() + 1)
            core.open.back().threads = possible
            core.open.back().tokens = own.groups[i].tokens
            if holes != NULL:
                lexed_cut_holes(&core.open.back(), holes)


cdef void lexed_crossings(Core* core, const vector[Thread]& threads, Mask* mask, LexMask* own, int32_t parser,
                          vector[int32_t]* holes) noexcept nogil:
    # Tokens that run past the end of a lexeme.
    cdef Automaton* lexer = core.program.lexer
    cdef ParserState* state
    cdef LexMask* below
    cdef vector[Thread] behind
    cdef vector[int32_t] found
    cdef size_t i, j
    cdef int32_t after
    for i in range(own.runs.size()):
        if core.index.deadline.passed:
            return
        after = parser
        if not lexer.lexer.ignored[own.runs[i].tag]:
            after = state_goto(core.program, parser, lexer, own.runs[i].tag, NO_KEY)
        if after == NO_STATE:
            continue
        state = core.program.states[after]
        if state.lexer != NULL and state.starts.empty() and not state_deep(core.program, after):
            below = lexer_behind(own, i, state.lexer)
            if below != NULL:
                lexed_apply(core, threads, mask, below, after, holes)
            continue
        for j in range(own.runs[i].first, own.runs[i].last):
            if bits_has(state.first, own.crossings[j].byte):
                behind.assign(1, thread_at(after, own.crossings[j].watch))
                found.clear()
                mask_walk(core, threads, lexmask_residual(own, j), behind, found)
                lexed_add_tokens(mask, found, holes)


cdef void lexed_add_all(Core* core, const vector[Thread]& threads, Mask* mask) noexcept nogil:
    # Every token on its own, along the trie: what may be dead in a context that its lexeme does not know.
    cdef const Trie* trie = core.index.trie
    cdef uint32_t node = 1
    cdef size_t depth
    cdef int32_t t
    core.stack[0] = threads
    while node < trie.nodes[0].end:
        if deadline_passed(&core.index.deadline):
            return
        depth = trie.nodes[node].depth
        threads_step(core, core.stack[depth - 1], trie.nodes[node].byte, core.stack[depth])
        if core.stack[depth].empty():
            node = trie.nodes[node].end
            continue
        if trie.nodes[node].token < trie.nodes[node + 1].token and threads_alive(core, core.stack[depth]):
            for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
                mask.added.push_back(trie.tokens[t])
        node += 1


cdef void lexed_unwatched(Core* core, const vector[Thread]& threads, Mask* mask, const Thread& thread,
                          cbool alone) noexcept nogil:
    # What a thread without a watch allows.
    cdef ParserState* state = core.program.states[thread.parser]
    cdef Program* program = core.program
    cdef vector[Thread] own
    cdef size_t i
    cdef cbool lexing = thread.lex == NULL or thread.lex.automaton == program.lexer
    # What is said of ignored text holds before terminals only, and what is said of other lexemes only where the
    # lexer is safe.
    if state_deep(program, thread.parser) or (lexing and state.lexer != NULL and not state.starts.empty()) or (
            not program.lexer.lexer.safe and not (lexing and state.starts.empty())):
        own.push_back(thread)
        lexed_add_all(core, own, mask)
        return
    if thread.lex != NULL and thread.lex.automaton != program.lexer:
        mask_join_thread(core, threads, mask, thread.lex, thread.parser, alone)
        return
    if thread.lex != NULL or state.lexer != NULL:
        lexed_add(core, threads, mask, thread)
        lexed_settle(core, mask)
    for i in range(state.starts.size() if thread.lex == NULL else 0):
        mask_join_thread(core, threads, mask, state.starts[i], thread.parser,
                         alone and state.lexer == NULL and state.starts.size() == 1)


cdef cbool token_allowed(Core* core, const Thread& thread, int32_t token) noexcept nogil:
    cdef vector[Thread] before, after
    cdef const uint8_t* data = core.index.token_data + core.index.token_starts[token]
    cdef int64_t i, length = core.index.token_starts[token + 1] - core.index.token_starts[token]
    before.push_back(thread)
    for i in range(length):
        threads_step(core, before, data[i], after)
        before.swap(after)
    return threads_alive(core, before)


cdef void lexed_filter(Core* core, Bits* bits, const Thread& thread) noexcept nogil:
    # Of the tokens in `bits`, which the thread would allow without its watch, remove those that it does not.
    cdef LexMask* watched = lexer_watched(thread.watch, core.index)
    cdef int32_t token
    cdef size_t i
    if watched == NULL:
        return
    for i in range(bits.words.size()):
        bits.words[i] &= ~watched.bits.words[i]
    for token in watched.holes:
        if bits_hold_token(bits, token) and not token_allowed(core, thread, token):
            bits_remove(bits, token)


cdef cbool bits_within(const Bits* some, const Bits* others) noexcept nogil:
    cdef size_t i
    for i in range(some.words.size()):
        if some.words[i] & ~others.words[i]:
            return False
    return True


cdef void mask_lexed(Core* core, const vector[Thread]& threads, Mask* mask) noexcept nogil:
    cdef Thread thread
    cdef Mask part
    cdef size_t i, watched = 0
    core.open.clear()
    for i in range(threads.size()):
        if threads[i].watch == NULL:
            lexed_unwatched(core, threads, mask, threads[i], threads.size() == 1)
        else:
            watched += 1
    for i in range(threads.size() if watched > 0 else 0):
        if threads[i].watch == NULL or core.index.deadline.passed:
            continue
        # Mostly others allow all that this one does.
        thread = threads[i]
        thread.watch = NULL
        part.bits = NULL
        lexed_unwatched(core, threads, &part, thread, False)
        mask_flatten(core, &part)
        mask_flatten(core, mask)
        if not bits_within(part.bits, mask.bits):
            lexed_filter(core, part.bits, threads[i])
            mask_join_bits(core, mask, part.bits)
        bits_release(core.index, part.bits)
    if mask.added.size() > core.words:
        mask_flatten(core, mask)
