# How threads read a byte.

from cython.operator cimport dereference
from libc.stdint cimport uint64_t
from libcpp.algorithm cimport sort
from libcpp.unordered_map cimport unordered_map

from maskwright._engine.containers cimport ScratchIds
from maskwright._engine.sizes cimport bits_has
from maskwright._engine.limits cimport deadline_worked
from maskwright._engine.lexemes cimport Automaton, NO_TAG
from maskwright._engine.lexeme_texts cimport LEX_DEAD
from maskwright._engine.keyset cimport key_text
from maskwright._engine.lexeme_state cimport lex_goes_on, lex_keeps_text, lex_next
from maskwright._engine.longest_match cimport lexer_hopeless, lookahead_join, lookahead_step
from maskwright._engine.program cimport ANY_KEY, NO_KEY, NO_STATE, ParserState, Program
from maskwright._engine.stacks cimport state_behind_boundaries, state_goto, state_goto_guarded, state_union
from maskwright._engine.tracked cimport is_tracked, MEMORY_WRONG, tracked_state
from maskwright._engine.values cimport text_append, text_bytes, UNKNOWN_TEXT
from maskwright._engine.tracker cimport tracker_open, tracker_quoted, tracker_read
from maskwright._engine.core cimport thread_at


cdef string thread_quoted(const Core* core, int32_t memory) noexcept nogil:
    # What has been read of a quoted key.
    return tracker_quoted(&core.tracker, memory) if is_tracked(memory) else text_bytes(&core.tracker.store.texts, memory)


cdef int32_t thread_used_key(Core* core, LexState* lex, int32_t before, int32_t memory) noexcept nogil:
    # Which key that must not come again `lex` accepts; `before`: the memory before the last byte.
    if not lex_keeps_text(lex):
        return NO_KEY
    if is_tracked(before):
        return lex.automaton.keyset.used.name(text_bytes(&core.tracker.store.texts, core.tracker.states[tracked_state(before)].text))
    if memory == UNKNOWN_TEXT:
        return ANY_KEY
    return lex.automaton.keyset.used.name(key_text(text_bytes(&core.tracker.store.texts, memory)))


cdef int32_t thread_goto(Core* core, LexState* lex, int32_t parser, int32_t before, int32_t memory) noexcept nogil:
    # The parser state behind a lexeme that `lex` accepts.
    return state_goto(core.program, parser, lex.automaton, lex.tag, thread_used_key(core, lex, before, memory))


cdef int32_t thread_leave(Core* core, const Thread& thread, int32_t before, int32_t joined,
                          vector[Thread]& out) noexcept nogil:
    # Go on behind a lexeme that thread.lex accepts: `joined` with the parser state where nothing is
    # tracked, and more threads where something is.
    cdef Thread behind = thread_at(thread_goto(core, thread.lex, thread.parser, before, thread.memory), NULL)
    cdef int32_t guard
    if behind.parser != NO_STATE:
        if is_tracked(thread.memory):
            behind.memory = thread.memory
            out.push_back(behind)
        else:
            joined = state_union(core.program, joined, behind.parser)
    for guard in core.program.states[thread.parser].guards:
        if core.tracker.guards[guard - 1].closed:
            continue
        behind.parser = state_goto_guarded(core.program, thread.parser, thread.lex.automaton, thread.lex.tag, guard)
        if behind.parser != NO_STATE:
            behind.memory = tracker_open(&core.tracker, thread.memory, guard)
            out.push_back(behind)
    return joined


cdef inline int32_t thread_follow(Core* core, LexState* lex, int32_t parser, int32_t memory, uint8_t byte,
                                  int32_t joined, vector[Thread]& out) noexcept nogil:
    # Add a thread that has just read a byte; join what it completes.
    cdef Thread thread
    if lex == LEX_DEAD:
        return joined
    thread.memory = 0
    if is_tracked(memory):
        thread.memory = tracker_read(&core.tracker, memory, byte)
        if thread.memory == MEMORY_WRONG:
            return joined
    elif lex_keeps_text(lex):
        thread.memory = UNKNOWN_TEXT if core.scratch.walks else text_append(&core.tracker.store.texts, memory, byte)
    thread.lex = lex
    thread.lookahead = NULL
    thread.parser = parser
    if lex.tag == NO_TAG or lex_goes_on(lex):
        out.push_back(thread)
    if lex.tag != NO_TAG:
        return thread_leave(core, thread, memory, joined, out)
    return joined


cdef int32_t thread_step(Core* core, const Thread& thread, uint8_t byte, int32_t joined,
                         vector[Thread]& out) noexcept nogil:
    # The same from a thread before a byte.
    cdef ParserState* state
    cdef size_t i
    if thread.lex != NULL:
        return thread_follow(core, lex_next(thread.lex, byte), thread.parser, thread.memory, byte, joined, out)
    state = core.program.states[thread.parser]
    if bits_has(state.first, byte):
        for i in range(state.starts.size()):
            joined = thread_follow(core, lex_next(state.starts[i], byte), thread.parser, thread.memory, byte, joined, out)
    return joined


# --- Tokens that stand for themselves: read by their id and not by their bytes.
#
# A set of them is an automaton that reads no byte, so that nothing that walks bytes ever sees it; a parser state
# lists those that it waits for apart from lexemes.  Such a token may come wherever a thread stands between lexemes:
# it ends the one before, whatever that could have become, since no lexeme spans a token that is no text.
# In a completion it is spelled TOKEN_MARK and its id, four bytes: the mark is no byte of UTF-8.

cdef inline cbool tokens_have(const Automaton* tokens, int32_t token) noexcept nogil:
    return (tokens.token_set.row[<size_t>token >> 5] >> (token & 31)) & 1


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
    cdef vector[Thread] before = threads
    threads_behind_boundaries(core, threads, before)
    for i in range(before.size()):
        if before[i].lex != NULL or core.program.states[before[i].parser].tokens.empty():
            continue
        thread = thread_at(state_goto_token(core.program, before[i].parser, token), NULL)
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
        if out[i].lex == NULL and out[i].memory == 0:
            out[i].parser = state_union(core.program, out[i].parser, joined)
            return
    out.push_back(thread_at(joined, NULL))


cdef cbool state_waits_for(Core* core, int32_t id, int32_t token) noexcept nogil:
    # Whether a token may come as itself.
    cdef size_t i, j
    cdef const ParserState* state
    cdef vector[Thread] threads = core.states[id].threads
    threads_behind_boundaries(core, core.states[id].threads, threads)
    for i in range(threads.size()):
        if threads[i].lex != NULL:
            continue
        state = core.program.states[threads[i].parser]
        for j in range(state.tokens.size()):
            if tokens_have(state.tokens[j].automaton, token):
                return True
    return False


cdef cbool tokens_alike(const vector[LexState*]& waiting, int32_t a, int32_t b) noexcept nogil:
    # Whether two tokens are in the same of the sets waited for: then they lead alike.
    cdef size_t i
    for i in range(waiting.size()):
        if tokens_have(waiting[i].automaton, a) != tokens_have(waiting[i].automaton, b):
            return False
    return True


cdef void tokens_different(const vector[LexState*]& waiting, vector[int32_t]& out) noexcept nogil:
    # A token for each combination of the sets waited for: those of one combination all lead to the same.
    cdef unordered_map[string, char] seen
    cdef string combination
    cdef int32_t token, before
    cdef size_t i, j
    if waiting.size() == 1:
        out.push_back(waiting[0].automaton.token_set.ids[0])
        return
    for i in range(waiting.size()):
        before = waiting[i].automaton.token_set.ids[0]
        for token in waiting[i].automaton.token_set.ids:
            # A set may be nearly all of a vocabulary.
            if token != before and tokens_alike(waiting, token, before):
                continue
            before = token
            combination.clear()
            for j in range(waiting.size()):
                combination.push_back(tokens_have(waiting[j].automaton, token))
            if seen.count(combination) == 0:
                seen[combination] = 1
                out.push_back(token)


cdef cbool thread_before(const Thread& a, const Thread& b) noexcept nogil:
    if a.lex != b.lex:
        return <uint64_t>a.lex < <uint64_t>b.lex
    if a.parser != b.parser:
        return a.parser < b.parser
    if a.memory != b.memory:
        return a.memory < b.memory
    return <uint64_t>a.lookahead < <uint64_t>b.lookahead


cdef inline cbool thread_same(const Thread& a, const Thread& b) noexcept nogil:
    return a.lex == b.lex and a.parser == b.parser and a.memory == b.memory and a.lookahead == b.lookahead


cdef void threads_normalize(vector[Thread]& threads) noexcept nogil:
    # Sorted, each once.
    cdef size_t i, j = 0
    sort(threads.begin(), threads.end(), &thread_before)
    for i in range(threads.size()):
        if j == 0 or not thread_same(threads[i], threads[j - 1]):
            threads[j] = threads[i]
            j += 1
    threads.resize(j)


cdef cbool threads_complete(const Core* core, const vector[Thread]& threads) noexcept nogil:
    # Whether the text is complete.  Threads before a lexeme come first.
    cdef size_t i
    for i in range(threads.size()):
        if threads[i].lex != NULL:
            return False
        if core.program.states[threads[i].parser].complete:
            return True
    return False


cdef void lexed_follow(Core* core, LexState* lex, const Thread& before, uint8_t byte,
                       vector[Thread]& out) noexcept nogil:
    # Add a thread that has just read a byte, and the one behind what it completes.
    cdef Thread thread = before
    if lex == LEX_DEAD:
        return
    thread.lex = lex
    thread.memory = text_append(&core.tracker.store.texts, before.memory, byte) if lex_keeps_text(lex) else 0
    if (lex.tag == NO_TAG or lex_goes_on(lex)) and (
            lex.automaton != core.program.lexer or not lexer_hopeless(lex, thread.lookahead)):
        out.push_back(thread)
    if lex.tag != NO_TAG:
        thread.parser = thread_goto(core, lex, thread.parser, before.memory, thread.memory)
        if thread.parser != NO_STATE:
            if lex.automaton == core.program.lexer:
                thread.lookahead = lookahead_join(thread.lookahead, lex)
            thread.lex = NULL
            thread.memory = 0
            out.push_back(thread)


cdef inline void lexed_open(Core* core, const Thread& thread, uint8_t byte, vector[Thread]& out) noexcept nogil:
    # From a thread before a lexeme.
    cdef ParserState* state = core.program.states[thread.parser]
    cdef size_t i
    if bits_has(state.first, byte):
        if state.lexer != NULL:
            lexed_follow(core, lex_next(state.lexer, byte), thread, byte, out)
        for i in range(state.starts.size()):
            lexed_follow(core, lex_next(state.starts[i], byte), thread, byte, out)


cdef void threads_behind_boundaries(Core* core, const vector[Thread]& threads, vector[Thread]& out) noexcept nogil:
    # Add the threads behind boundaries that some are at, and behind those that come next to them, each once.  A longest match does not look
    # behind a boundary, so they have no lookahead.
    cdef const vector[int32_t]* behind
    cdef vector[int32_t] work
    cdef ScratchIds seen
    cdef size_t i, head = 0
    for i in range(threads.size()):
        if threads[i].lex == NULL and not core.program.states[threads[i].parser].boundaries.empty():
            work.push_back(threads[i].parser)
    while head < work.size() and not core.index.deadline.passed:
        behind = state_behind_boundaries(core.program, work[head])
        head += 1
        for i in range(behind.size()):
            if seen.find(dereference(behind)[i]) < 0:
                seen.insert(dereference(behind)[i], 0)
                out.push_back(thread_at(dereference(behind)[i], NULL))
                if not core.program.states[dereference(behind)[i]].boundaries.empty():
                    work.push_back(dereference(behind)[i])
    deadline_worked(&core.index.deadline, head)


cdef void lexed_step(Core* core, const vector[Thread]& threads, uint8_t byte, vector[Thread]& out) noexcept nogil:
    # `threads_step` with a lexer: what terminals lead to is not joined, because what comes next is split by
    # what the parser state waits for.
    cdef Thread thread
    cdef vector[Thread] begun
    cdef size_t i
    out.clear()
    if core.program.has_boundaries:
        threads_behind_boundaries(core, threads, begun)
        for thread in begun:
            lexed_open(core, thread, byte, out)
    for i in range(threads.size()):
        thread = threads[i]
        if not lookahead_step(&thread.lookahead, byte):
            continue
        if thread.lex != NULL:
            lexed_follow(core, lex_next(thread.lex, byte), thread, byte, out)
            continue
        lexed_open(core, thread, byte, out)
    if out.size() > 1:
        threads_normalize(out)


cdef string thread_key(const Thread& thread) noexcept nogil:
    # The bytes of a thread, which has no padding.
    cdef string key
    key.assign(<const char*>&thread, sizeof(Thread))
    return key


cdef void core_learn(Core* core, const Thread& thread, int32_t alive) noexcept nogil:
    if core.facts.alive.find(&thread, sizeof(Thread)) < 0:
        core.facts.alive.insert(&thread, sizeof(Thread), alive)
