# How threads read a byte.

cdef inline cbool lex_keeps_text(const LexState* lex) noexcept nogil:
    return lex.automaton.kind == KIND_KEYSET and lex.automaton.used != NULL and lex.key.other == 1


cdef string thread_quoted(const Core* core, int32_t text) noexcept nogil:
    # What has been read of a quoted key.
    return tracker_quoted(&core.tracker, text) if text < 0 else text_bytes(&core.tracker.store.texts, text)


cdef int32_t thread_used_key(Core* core, LexState* lex, int32_t before, int32_t text) noexcept nogil:
    # Which key that must not come again `lex` accepts; `before`: the text before the last byte.
    if not lex_keeps_text(lex):
        return NO_KEY
    if before < 0:
        return lex.automaton.used.name(text_bytes(&core.tracker.store.texts, core.tracker.states[-1 - before].text))
    if text == UNKNOWN_TEXT:
        return ANY_KEY
    return lex.automaton.used.name(key_text(text_bytes(&core.tracker.store.texts, text)))


cdef int32_t thread_goto(Core* core, LexState* lex, int32_t parser, int32_t before, int32_t text) noexcept nogil:
    # The parser state behind a lexeme that `lex` accepts.
    return state_goto(core.program, parser, lex.automaton, lex.tag, thread_used_key(core, lex, before, text))


cdef int32_t thread_leave(Core* core, const Thread& thread, int32_t before, int32_t joined,
                          vector[Thread]& out) noexcept nogil:
    # Go on behind a lexeme that thread.lex accepts: `joined` with the parser state where nothing is
    # tracked, and more threads where something is.
    cdef Thread behind = thread_at(thread_goto(core, thread.lex, thread.parser, before, thread.text), NULL)
    cdef int32_t guard
    if behind.parser != NO_STATE:
        if thread.text < 0:
            behind.text = thread.text
            out.push_back(behind)
        else:
            joined = state_union(core.program, joined, behind.parser)
    for guard in core.program.states[thread.parser].guards:
        if core.tracker.guards[guard - 1].closed:
            continue
        behind.parser = state_goto_guarded(core.program, thread.parser, thread.lex.automaton, thread.lex.tag, guard)
        if behind.parser != NO_STATE:
            behind.text = tracker_open(&core.tracker, thread.text, guard)
            out.push_back(behind)
    return joined


cdef inline int32_t thread_follow(Core* core, LexState* lex, int32_t parser, int32_t text, uint8_t byte,
                                  int32_t joined, vector[Thread]& out) noexcept nogil:
    # Add a thread that has just read a byte; join what it completes.
    cdef Thread thread
    if lex == LEX_DEAD:
        return joined
    thread.text = 0
    if text < 0:
        thread.text = tracker_read(&core.tracker, text, byte)
        if thread.text == TEXT_WRONG:
            return joined
    elif lex_keeps_text(lex):
        thread.text = UNKNOWN_TEXT if core.walks else text_append(&core.tracker.store.texts, text, byte)
    thread.lex = lex
    thread.watch = NULL
    thread.parser = parser
    if lex.tag == NO_TAG or lex_goes_on(lex):
        out.push_back(thread)
    if lex.tag != NO_TAG:
        return thread_leave(core, thread, text, joined, out)
    return joined


cdef int32_t thread_step(Core* core, const Thread& thread, uint8_t byte, int32_t joined,
                         vector[Thread]& out) noexcept nogil:
    # The same from a thread before a byte.
    cdef ParserState* state
    cdef size_t i
    if thread.lex != NULL:
        return thread_follow(core, lex_next(thread.lex, byte), thread.parser, thread.text, byte, joined, out)
    state = core.program.states[thread.parser]
    if bits_has(state.first, byte):
        for i in range(state.starts.size()):
            joined = thread_follow(core, lex_next(state.starts[i], byte), thread.parser, thread.text, byte, joined, out)
    return joined


cdef void threads_step(Core* core, const vector[Thread]& threads, uint8_t byte,
                       vector[Thread]& out) noexcept nogil:
    # All threads over one byte; no threads are left when the byte is not allowed.
    cdef size_t i
    cdef int32_t joined = NO_STATE
    if core.program.lexer != NULL:
        lexed_step(core, threads, byte, out)
        return
    out.clear()
    for i in range(threads.size()):
        joined = thread_step(core, threads[i], byte, joined, out)
    for i in range(out.size()):
        if out[i].text < 0:
            distinct_clean(core, out)
            break
    if joined != NO_STATE:
        out.push_back(thread_at(joined, NULL))
