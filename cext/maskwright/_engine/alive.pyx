# With a lexer: which threads can be completed, and how.
#
# A thread may be dead though the grammar could go on: every way to write what comes next might make the terminal
# before it longer, or something else.  It is alive when a completion is found, best first: by the bytes read and
# what the grammar alone says is still missing (completion.pyx).  With a safe lexer the search ends as soon as what
# has begun can be left, mostly at once.  Answers are kept: all threads on the way to a completion are alive, and
# where nothing is found all that were looked at are dead.

from cython.operator cimport dereference
from libc.stdint cimport int64_t, uint64_t
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map

from maskwright._engine.containers cimport priority_queue
from maskwright._engine.sizes cimport bits_has
from maskwright._engine.turns cimport turn_late
from maskwright._engine.lexemes cimport Hypothesis, LexState
from maskwright._engine.lexeme_texts cimport FORM_UTF8_SETTLED, LEX_DEAD
from maskwright._engine.lexeme_state cimport lex_first, lex_next
from maskwright._engine.shortest_match cimport UNREACHED
from maskwright._engine.longest_match cimport Lexer, lexer_is_sure, lexer_matched, lexer_of, lookahead_passes_terminal
from maskwright._engine.longest_match_walks cimport lexer_ignores
from maskwright._engine.program cimport (
    ACCEPT, cost_add, Costs, Item, LOCAL_PLAIN, NO_KEY, NO_STATE, ParserState, Program, Return
)
from maskwright._engine.stacks cimport lex_in_newline, state_deep, state_from_kernel, state_goto, state_opens_line
from maskwright._engine.tracked cimport is_tracked
from maskwright._engine.values cimport UNKNOWN_TEXT
from maskwright._engine.core cimport thread_at
from maskwright._engine.threads cimport (
    core_learn, lexed_step, state_goto_token, thread_key, thread_step, threads_behind_boundaries, threads_step_token,
    TOKEN_SPELLED, tokens_different,
    tokens_spell
)
from maskwright._engine.costs cimport (
    cost_lexeme, cost_node, cost_parser, cost_plain, costs_prepare, shortest_try_lexeme
)
from maskwright._engine.rest_facts cimport local_is_lexed
from maskwright._engine.distinct cimport distinct_clean
from maskwright._engine.clash_free cimport thread_is_free

cdef enum:
    HASTE = 32             # bytes read that a missing byte weighs, where any completion will do

cdef struct SearchNode:
    Thread thread
    int32_t before         # index of the node before, or -1
    int32_t cost           # bytes so far
    uint8_t byte
    int32_t token          # that was read in place of a byte, or -1


# --- lexemes that no lexer reads
#
# What is embedded in a grammar with a lexer may be read without one, so that within it a completion always leads on, as in any
# grammar without a lexer.  Where that is all that is left of a rule, and of those that called it up to one where terminals come again,
# a thread can be completed if one can that stands there.

cdef cbool node_is_sure(Core* core, int32_t start) noexcept nogil:
    # Whether a thread behind a rule that was called from a GSS node can be completed, as far as a look tells: whichever way it returns.
    cdef Program* program = core.program
    cdef vector[int32_t] work
    cdef vector[Item] kernel
    cdef unordered_map[int32_t, char] seen
    cdef Item item
    cdef Return back
    cdef size_t head = 0
    cdef int32_t id, parser, known = core.facts.embedded.find(&start, sizeof(start))
    cdef cbool sure = True
    if known >= 0 or core.facts.looks_behind:
        return known == 1
    core.facts.looks_behind = True
    work.push_back(start)
    seen[start] = 1
    while sure and head < work.size():
        id = work[head]
        head += 1
        known = core.facts.embedded.find(&id, sizeof(id))
        if known >= 0:
            sure = known == 1
            continue
        if program.nodes[id].cyclic:
            sure = False
            break
        for back in program.nodes[id].returns:
            if back.local == ACCEPT:
                continue
            if not local_is_lexed(core, program.locals[back.local]):
                if seen.count(back.node) == 0:
                    seen[back.node] = 1
                    work.push_back(back.node)
                continue
            item.local = back.local
            item.node = back.node
            kernel.assign(1, item)
            parser = state_from_kernel(program, kernel)
            if parser == NO_STATE or not thread_alive(core, thread_at(parser, NULL)):
                sure = False
                break
    core.facts.looks_behind = False
    if core.index.deadline.passed:
        return False
    if not sure:
        work.assign(1, start)
    for id in work:
        if core.facts.embedded.find(&id, sizeof(id)) < 0:
            core.facts.embedded.insert(&id, sizeof(id), sure)
    return sure


cdef cbool thread_is_embedded(Core* core, LexState* lex, int32_t parser) noexcept nogil:
    # Whether a thread without a lookahead, in a lexeme or before one (NULL), is surely completed because no lexer reads what it waits for.
    cdef ParserState* state = core.program.states[parser]
    cdef Item item
    if state_deep(core.program, parser) or (lex != NULL and lex.automaton == core.program.lexer) or (
            lex == NULL and (state.lexer != NULL or state.starts.empty())):
        return False
    for item in state.items:
        if local_is_lexed(core, core.program.locals[item.local]) or not node_is_sure(core, item.node):
            return False
    return not state.items.empty()


cdef cbool thread_leaves(Core* core, const Thread& thread) noexcept nogil:
    # With a safe lexer, whether the lexeme under way can be left in any context, or in front of something that is waited for here.
    cdef Hypothesis each
    cdef ParserState* state
    cdef Lexer* lexer = lexer_of(core.program.lexer)
    cdef int32_t terminal, behind = thread.parser
    cdef size_t i, j
    if (state_deep(core.program, thread.parser)
            or (thread.lookahead != NULL and not core.program.states[thread.parser].starts.empty())):
        return False
    if thread.lex != NULL and thread.lex.automaton != core.program.lexer:
        return thread.lookahead == NULL
    each.lex = thread.lex
    each.lookahead = thread.lookahead
    if lexer_is_sure(each):
        return True
    if thread.lex != NULL:
        if thread.lookahead != NULL:
            return False
        if lex_in_newline(thread.lex) and state_opens_line(core.program, thread.parser):
            return True
        if not lexer_matched(thread.lex) or not (lexer_ignores(thread.lex) or thread.memory == 0):
            return False
        # A lexeme that may end here, in front of something that is waited for behind it: a line end or a comment, say.
        each.lookahead = thread.lex
        behind = state_goto(core.program, behind, core.program.lexer, thread.lex.tag, NO_KEY)
        if behind == NO_STATE:
            return False
    state = core.program.states[behind]
    for i in range(state.items.size()):
        for j in range(core.program.locals[state.items[i].local].terminals.size()):
            terminal = core.program.locals[state.items[i].local].terminals[j]
            if not (lexer.ignored[terminal] or lexer.samples.unread[terminal]) and (
                    each.lookahead == NULL or lookahead_passes_terminal(each.lookahead, terminal)):
                return True
    return False


cdef cbool thread_sure(Core* core, const Thread& thread) noexcept nogil:
    # Whether a look at the thread tells that it can be completed, itself or behind a boundary that it is at.
    cdef vector[Thread] before, behind
    cdef size_t i
    if thread_sure_before(core, thread):
        return True
    if thread.lex != NULL or core.program.states[thread.parser].boundaries.empty():
        return False
    before.push_back(thread)
    threads_behind_boundaries(core, before, behind)
    for i in range(behind.size()):
        if thread_sure_before(core, behind[i]):
            return True
    return False


cdef cbool thread_sure_before(Core* core, const Thread& thread) noexcept nogil:
    # The same but for boundaries.
    cdef cbool safe = lexer_of(core.program.lexer).samples.safe
    if thread.lex == NULL and core.program.states[thread.parser].complete:
        return True
    if not safe and thread.lookahead == NULL and thread_is_embedded(core, thread.lex, thread.parser):
        return True
    return (safe and thread_leaves(core, thread)) or thread_is_free(core, thread)


cdef cbool thread_stuck(Core* core, const Thread& thread) noexcept nogil:
    # Whether a look tells that ignored text cannot be left: it takes whatever might come behind it (a comment that
    # lasts to the end of the line, where no line ends).
    cdef ParserState* state = core.program.states[thread.parser]
    cdef LexState* after
    cdef uint8_t byte
    if thread.lex == NULL or thread.lex.automaton != core.program.lexer or not state.starts.empty() or state.complete:
        return False
    if not (lexer_matched(thread.lex) and lexer_ignores(thread.lex)) or not (state.tokens.empty() and state.boundaries.empty()):
        return False
    for byte in thread.lex.automaton.class_byte:
        after = lex_next(thread.lex, byte)
        if after == LEX_DEAD:
            if state.lexer != NULL and lex_next(state.lexer, byte) != LEX_DEAD:
                return False
        elif after != thread.lex and not (after.form == FORM_UTF8_SETTLED and after.dfa_state == thread.lex.dfa_state):
            return False
    return True


cdef void search_bytes(Core* core, const Thread& thread, vector[uint8_t]& out) noexcept nogil:
    # Bytes that a thread can read, of those that are all alike one only.
    cdef LexState* lex = thread.lex
    cdef const uint64_t* first
    cdef int32_t byte
    out.clear()
    if lex == NULL and not core.program.states[thread.parser].boundaries.empty():
        for byte in range(256):
            out.push_back(<uint8_t>byte)
        return
    if lex == NULL and core.program.states[thread.parser].starts.empty():
        lex = core.program.states[thread.parser].lexer
        if lex == NULL:
            return
    if lex != NULL and lex.automaton == core.program.lexer:
        out = lex.automaton.class_byte
        return
    if lex == NULL:
        first = core.program.states[thread.parser].first
    else:
        first = lex_first(lex)
    for byte in range(256):
        if bits_has(first, <uint8_t>byte):
            out.push_back(<uint8_t>byte)


# --- ignored text that no terminal ends
#
# A search may find nothing but ignored text, in one parser state: a line end behind the parameters of a JavaScript function, where only
# `=>` may come, and never behind a line end.  Then nothing but what this state waits for matters, and not its stack.  So the answer is
# kept for all parser states that wait for the same.

cdef struct ShutIn:
    LexState* lex
    LexState* lookahead
    LexState* start            # what is waited for


cdef cbool shut_in_key(const Core* core, const Thread& thread, ShutIn* key) noexcept nogil:
    # False: more than terminals may come.
    cdef const ParserState* state = core.program.states[thread.parser]
    key.lex = thread.lex
    key.lookahead = thread.lookahead
    key.start = <LexState*>state.lexer
    return (state.lexer != NULL and not state.complete and state.starts.empty() and state.tokens.empty() and thread.memory == 0
            and state.boundaries.empty() and lexer_of(core.program.lexer).newline < 0)


cdef cbool thread_shut_in(Core* core, const Thread& thread) noexcept nogil:
    cdef ShutIn key
    return shut_in_key(core, thread, &key) and core.facts.shut_in.find(&key, sizeof(key)) >= 0


cdef void core_learn_shut_in(Core* core, unordered_map[string, int32_t]& seen) noexcept nogil:
    # Of a search that found nothing, and skipped nothing but what is shut in.  `seen`: the threads that it came to, those included that
    # the grammar alone cannot end.
    cdef pair[string, int32_t] each
    cdef Thread thread
    cdef ShutIn key
    cdef int32_t parser = NO_STATE
    for each in seen:
        thread = dereference(<const Thread*>each.first.data())
        if parser == NO_STATE:
            parser = thread.parser
        if thread.parser != parser or not shut_in_key(core, thread, &key):
            return
        # Where a terminal leads is a question of the rules.
        if thread.lex != NULL and lexer_matched(thread.lex) and not lexer_ignores(thread.lex):
            return
    # What the grammar cannot end was not looked at.
    if parser == NO_STATE or cost_behind(core, parser) >= UNREACHED or cost_parser(core.program, core.costs, parser) >= UNREACHED:
        return
    for each in seen:
        shut_in_key(core, dereference(<const Thread*>each.first.data()), &key)
        if core.facts.shut_in.find(&key, sizeof(key)) < 0:
            core.facts.shut_in.insert(&key, sizeof(key), 1)


cdef cbool core_search(Core* core, const vector[Thread]& start, cbool whole, vector[uint8_t]& out) noexcept nogil:
    # Find a completion of any of some threads: `whole`, the shortest one, which is appended to `out`; else the
    # beginning of some that proves that there is one.
    cdef vector[SearchNode] nodes
    cdef unordered_map[string, int32_t] best
    cdef priority_queue[pair[int64_t, int32_t]] queue
    cdef vector[uint8_t] choices, reversed_path, token
    cdef SearchNode node, fresh
    cdef string key
    cdef size_t i, j
    # The grammar alone does not know of blanks that the lexer needs.  So all texts that are shorter by these would be looked at first,
    # where the shortest one is asked for; else what is nearer to its end goes first.
    cdef int32_t at, known, haste = 1 if whole else HASTE
    cdef cbool found = False, shut_in = not whole
    costs_prepare(core)
    fresh.before = -1
    fresh.cost = 0
    fresh.byte = 0
    fresh.token = -1
    at = core_enqueue(core, nodes, fresh, start, best, queue, haste)
    found = at >= 0
    while not queue.empty() and not found:
        at = queue.top().second
        queue.pop()
        node = nodes[at]
        key = thread_key(node.thread)
        if best.count(key) and best[key] < node.cost:
            continue
        if whole:
            found = node.thread.lex == NULL and core.program.states[node.thread.parser].complete
        else:
            known = core.facts.alive.find(key)
            if known == 0:
                shut_in = shut_in and thread_shut_in(core, node.thread)
                continue
        if found:
            break
        core.index.deadline.searched += 1
        if core.index.deadline.searched > core.limits.max_search:
            core.index.deadline.passed = True
        if turn_late(core.index):
            return False
        search_bytes(core, node.thread, choices)
        known = core_expand(core, nodes, at, choices, best, queue, haste)
        if known >= 0:
            at = known
            found = True
    if not found and core.index.deadline.passed:
        # A search inside this one was ended.
        return False
    if not whole:
        if found:
            i = <size_t>at
            while nodes[i].before >= 0:
                core_learn(core, nodes[i].thread, 1)
                i = <size_t>nodes[i].before
            core_learn(core, nodes[i].thread, 1)
        else:
            for i in range(start.size()):
                core_learn(core, start[i], 0)
            for i in range(nodes.size()):
                core_learn(core, nodes[i].thread, 0)
            if shut_in:
                core_learn_shut_in(core, best)
    elif found:
        while nodes[at].before >= 0:
            if nodes[at].token >= 0:
                token.clear()
                tokens_spell(nodes[at].token, token)
                reversed_path.insert(reversed_path.end(), token.rbegin(), token.rend())
            else:
                reversed_path.push_back(nodes[at].byte)
            at = nodes[at].before
        for j in range(reversed_path.size(), 0, -1):
            out.push_back(reversed_path[j - 1])
    return found


cdef int32_t core_expand(Core* core, vector[SearchNode]& nodes, int32_t at, const vector[uint8_t]& choices,
                         unordered_map[string, int32_t]& best,
                         priority_queue[pair[int64_t, int32_t]]& queue, int32_t haste) noexcept nogil:
    # Find what is next to a node.  Where any completion will do, the first node of which a look tells that there is one; else -1.
    cdef vector[Thread] before, after, begun
    cdef vector[int32_t] tokens
    cdef SearchNode fresh
    cdef size_t i
    cdef int32_t found
    before.push_back(nodes[at].thread)
    fresh.before = at
    fresh.cost = nodes[at].cost + 1
    fresh.token = -1
    for i in range(choices.size()):
        fresh.byte = choices[i]
        threads_step(core, before, choices[i], after)
        found = core_enqueue(core, nodes, fresh, after, best, queue, haste)
        if found >= 0:
            return found
    begun = before
    threads_behind_boundaries(core, before, begun)
    for i in range(begun.size()):
        if begun[i].lex == NULL and not core.program.states[begun[i].parser].tokens.empty():
            tokens_different(core.program.states[begun[i].parser].tokens, tokens)
    fresh.cost = nodes[at].cost + TOKEN_SPELLED
    for i in range(tokens.size()):
        fresh.token = tokens[i]
        after.clear()
        threads_step_token(core, before, fresh.token, after)
        found = core_enqueue(core, nodes, fresh, after, best, queue, haste)
        if found >= 0:
            return found
    return -1


cdef int32_t core_enqueue(Core* core, vector[SearchNode]& nodes, SearchNode fresh, const vector[Thread]& after,
                          unordered_map[string, int32_t]& best,
                          priority_queue[pair[int64_t, int32_t]]& queue, int32_t haste) noexcept nogil:
    # Add nodes.  Where any completion will do, the first of which a look tells that there is one; else -1.
    cdef string key
    cdef size_t i
    cdef int32_t rest
    for i in range(after.size()):
        fresh.thread = after[i]
        key = thread_key(after[i])
        if best.count(key) and best[key] <= fresh.cost:
            continue
        best[key] = fresh.cost
        rest = cost_thread(core, after[i])
        if rest < UNREACHED:
            queue.push(pair[int64_t, int32_t](-(<int64_t>fresh.cost + <int64_t>rest * haste), <int32_t>nodes.size()))
            nodes.push_back(fresh)
            if haste == HASTE and (core.facts.alive.find(key) == 1 or thread_sure(core, after[i])):
                return <int32_t>nodes.size() - 1
    return -1


cdef int32_t thread_known(Core* core, const Thread& thread) noexcept nogil:
    # Whether it can be completed, as far as that is known without a search: 1, 0, or -1.
    cdef int32_t known
    if thread_sure(core, thread):
        return 1
    known = core.facts.alive.find(&thread, sizeof(Thread))
    if known < 0 and (thread_stuck(core, thread) or thread_shut_in(core, thread)):
        core_learn(core, thread, 0)
        known = 0
    return known


cdef cbool thread_alive(Core* core, const Thread& thread) noexcept nogil:
    cdef vector[Thread] start
    cdef vector[uint8_t] path
    cdef int32_t known = thread_known(core, thread)
    if known >= 0:
        return known == 1
    start.push_back(thread)
    return core_search(core, start, False, path)


cdef cbool threads_alive(Core* core, const vector[Thread]& threads) noexcept nogil:
    # Whether any can be completed.
    cdef size_t i
    if core.program.lexer == NULL:
        return not threads.empty()
    for i in range(threads.size()):
        if thread_alive(core, threads[i]):
            return True
    return False


cdef void threads_keep_alive(Core* core, vector[Thread]& threads) noexcept nogil:
    cdef size_t i, j = 0
    for i in range(threads.size()):
        if thread_alive(core, threads[i]):
            threads[j] = threads[i]
            j += 1
    threads.resize(j)


cdef void tokens_without_end(Core* core, int32_t parser, vector[int32_t]& out) noexcept nogil:
    # Of the tokens that a parser state waits for, those behind which no text ends, because of the lexer; one for all that lead alike.
    cdef vector[int32_t] ways
    cdef int32_t token
    tokens_different(core.program.states[parser].tokens, ways)
    for token in ways:
        if not thread_alive(core, thread_at(state_goto_token(core.program, parser, token), NULL)):
            out.push_back(token)


# --- how much is missing at least ----------------------------------------------------------------

cdef int32_t cost_behind(Core* core, int32_t id) noexcept nogil:
    # Bytes at least behind the lexeme under way, which began in parser state `id`.
    cdef Program* program = core.program
    cdef Costs* costs = core.costs
    cdef ParserState* state = program.states[id]
    cdef int32_t best = UNREACHED, cost, node
    cdef size_t i, j
    cdef Item item
    known = costs.behind.find(id)
    if known != costs.behind.end():
        return dereference(known).second
    if state.lexer != NULL and not lexer_of(program.lexer).ignored_ones.empty():
        best = cost_parser(program, costs, id)
    for i in range(state.items.size()):
        item = state.items[i]
        node = cost_node(program, costs, item.node)
        if program.locals[item.local].kind != LOCAL_PLAIN:
            best = 0
            break
        for j in range(program.plain_terms[program.locals[item.local].index].size()):
            cost = cost_add(node, cost_plain(program, costs,
                                             program.plain_terms[program.locals[item.local].index][j].target))
            if cost < best:
                best = cost
    if not core.index.deadline.passed:
        costs.behind[id] = best
    return best


cdef int32_t cost_embedded(Core* core, LexState* lex, int32_t parser) noexcept nogil:
    # The same from a lexeme that no lexer reads: it is known what is behind each way to end it.
    cdef Costs* costs = core.costs
    cdef vector[uint8_t] path
    cdef int64_t place[2]
    cdef int32_t best = UNREACHED, after = NO_STATE
    cdef int32_t known
    place[0] = <int64_t>lex
    place[1] = parser
    known = costs.embedded.find(&place, sizeof(place))
    if known < 0:
        shortest_try_lexeme(core, costs, lex, parser, UNKNOWN_TEXT, &best, &after, path)
        known = best
        if not core.index.deadline.passed:
            costs.embedded.insert(&place, sizeof(place), known)
    return known


cdef int32_t cost_thread(Core* core, const Thread& thread) noexcept nogil:
    # Bytes at least to a complete text.
    if thread.lex == NULL:
        return cost_parser(core.program, core.costs, thread.parser)
    if thread.lex.automaton != core.program.lexer:
        return cost_embedded(core, thread.lex, thread.parser)
    return cost_add(cost_lexeme(core.costs, thread.lex), cost_behind(core, thread.parser))


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
        if is_tracked(out[i].memory):
            distinct_clean(core, out)
            break
    if joined != NO_STATE:
        out.push_back(thread_at(joined, NULL))
