# States of many texts at once: what a text with open slots needs.
#
# What may follow one of several texts is a set of threads, like what may follow one text: stacks merge as
# Earley columns do, and the language of the union is the union of the languages.  So it is a matcher
# state like any other.  `sets_any` is the state behind all texts that are one token longer, which is all
# that an open slot means; a canvas is read left to right in polynomial time, whatever the grammar.
#
# Stacks are merged deeper than a text needs it: return addresses to one place become one, with the union of
# what is below (`stack_merge`).  Otherwise a set of all depths would list them all.
#
# One thing is forgotten: which key it was, in records whose keys must not come twice (UNKNOWN_TEXT,
# ANY_KEY).  There, and only there, the state of many texts allows more than one of them does.
#
# With a lexer, what may follow is split by what a parser state waits for: threads stay apart then, and the whole
# trie is walked.  Without one, stacks are merged, and:
#
# For one lexer state, a walk of the token trie finds the states in which tokens leave the lexeme, and the
# trie nodes where they run past its end.  From there the threads are followed byte by byte.

cdef enum:
    MERGE_DEPTH = 500      # levels of stacks
    UNDER_WAY = -5

cdef struct SpanExit:
    LexState* lex      # the lexeme has ended here
    uint8_t byte       # and the token goes on with this byte
    uint32_t node      # the trie node behind it

cdef cppclass Span:
    # What tokens do to a lexer state.
    vector[LexState*] inside       # where they leave it, each once
    vector[SpanExit] crossing         # sorted by (lex, byte)

cdef cppclass Sets:
    unordered_map[int64_t, unordered_map[int32_t, vector[Thread]]] after  # by LexState* and parser state
    unordered_map[int64_t, vector[Thread]] walked                         # by parser state and trie node
    vector[int32_t] any                                                   # by matcher state; UNKNOWN
    unordered_map[int64_t, int32_t] joined                                # by two matcher states
    unordered_map[string, int32_t] merged                                 # by stack nodes; UNDER_WAY
    unordered_map[int32_t, vector[int32_t]] parts                         # of merged nodes: what they stand for
    unordered_map[int64_t, int32_t] parsers                               # by two parser states
    vector[vector[Thread]] stack                                          # scratch of walks, by depth
    vector[LexState*] path


cdef int64_t span_size(const Span* span) noexcept nogil:
    return <int64_t>(sizeof(Span) + span.inside.size() * sizeof(LexState*) + span.crossing.size() * sizeof(SpanExit))


cdef void span_free(Index* index, LexState* state) noexcept nogil:
    if state.span != NULL:
        index.bytes -= span_size(state.span)
        del state.span
        state.span = NULL


cdef cbool exit_before(const SpanExit& a, const SpanExit& b) noexcept nogil:
    if a.lex != b.lex:
        return <uint64_t>a.lex < <uint64_t>b.lex
    return a.byte < b.byte or (a.byte == b.byte and a.node < b.node)


cdef cbool thread_before_in_set(const Thread& a, const Thread& b) noexcept nogil:
    if a.lex != b.lex:
        return <uint64_t>a.lex < <uint64_t>b.lex
    return a.text < b.text or (a.text == b.text and a.parser < b.parser)


cdef void stack_expand(Sets* sets, int32_t node, vector[int32_t]& out) noexcept nogil:
    # The nodes that a merged node stands for.
    found = sets.parts.find(node)
    if found == sets.parts.end():
        out.push_back(node)
    else:
        out.insert(out.end(), dereference(found).second.begin(), dereference(found).second.end())


cdef void numbers_normalize(vector[int32_t]& numbers) noexcept nogil:
    # Sorted, each once.
    cdef size_t i, j = 0
    sort(numbers.begin(), numbers.end())
    for i in range(numbers.size()):
        if j == 0 or numbers[i] != numbers[j - 1]:
            numbers[j] = numbers[i]
            j += 1
    numbers.resize(j)


cdef int32_t stack_merge(Core* core, Sets* sets, vector[int32_t]& nodes, int32_t depth) noexcept nogil:
    # The union of stacks as one whose return addresses differ, down to the bottom: a subset construction,
    # with stack nodes as states.  `nodes` stand for themselves; they are sorted here.
    cdef Program* program = core.program
    cdef vector[Return] returns, merged
    cdef vector[int32_t] below
    cdef Return back
    cdef string key
    cdef size_t i = 0
    cdef int32_t id, count
    numbers_normalize(nodes)
    if nodes.size() == 1:
        return nodes[0]
    key.assign(<const char*>nodes.data(), nodes.size() * sizeof(int32_t))
    found = sets.merged.find(key)
    if found != sets.merged.end() and dereference(found).second != UNDER_WAY:
        return dereference(found).second
    if found != sets.merged.end():
        # A cycle (left recursion): the node comes first, what it holds later.
        id = <int32_t>program.nodes.size()
        program.nodes.push_back(new StackNode())
        sets.merged[key] = id
        sets.parts[id] = nodes
        return id
    for id in nodes:
        returns.insert(returns.end(), program.nodes[id].returns.begin(), program.nodes[id].returns.end())
    returns_normalize(returns)
    if depth == MERGE_DEPTH or deadline_passed(&core.index.deadline):
        return node_intern(program, returns)
    sets.merged[key] = UNDER_WAY
    while i < returns.size():
        back = returns[i]
        below.clear()
        while i < returns.size() and returns[i].local == back.local:
            stack_expand(sets, returns[i].node, below)
            i += 1
        if back.local != ACCEPT:
            back.node = stack_merge(core, sets, below, depth + 1)
        merged.push_back(back)
    id = sets.merged[key]
    if id != UNDER_WAY:
        program.nodes[id].returns = merged
        return id
    count = <int32_t>program.nodes.size()
    id = node_intern(program, merged)
    sets.merged[key] = id
    if id == count:
        sets.parts[id] = nodes
    return id


cdef int32_t parser_merge(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil:
    # The union of two parser states.
    cdef Program* program = core.program
    cdef vector[Item] items, merged
    cdef vector[int32_t] nodes
    cdef Item item
    cdef int64_t key
    cdef size_t i = 0
    cdef int32_t id
    if a == b:
        return a
    if a > b:
        a, b = b, a
    key = (<int64_t>a << 32) | b
    found = sets.parsers.find(key)
    if found != sets.parsers.end():
        return dereference(found).second
    items = program.states[a].items
    items.insert(items.end(), program.states[b].items.begin(), program.states[b].items.end())
    sort(items.begin(), items.end(), &item_before)
    while i < items.size():
        item = items[i]
        nodes.clear()
        while i < items.size() and items[i].local == item.local:
            stack_expand(sets, items[i].node, nodes)
            i += 1
        item.node = stack_merge(core, sets, nodes, 0)
        merged.push_back(item)
    id = state_intern(program, merged, program.states[a].complete or program.states[b].complete)
    sets.parsers[key] = id
    return id


cdef void sets_compact(Core* core, Sets* sets, vector[Thread]& threads) noexcept nogil:
    # Threads in the same place of a lexeme become one.
    cdef size_t i, j = 0
    if core.program.lexer != NULL:
        threads_normalize(threads)
        return
    sort(threads.begin(), threads.end(), &thread_before_in_set)
    for i in range(threads.size()):
        if j > 0 and threads[j - 1].lex == threads[i].lex and threads[j - 1].text == threads[i].text:
            threads[j - 1].parser = parser_merge(core, sets, threads[j - 1].parser, threads[i].parser)
        else:
            threads[j] = threads[i]
            j += 1
    threads.resize(j)


cdef int32_t sets_intern(Core* core, Sets* sets, vector[Thread]& threads) noexcept nogil:
    sets_compact(core, sets, threads)
    return matcher_intern(core, threads)


cdef Span* span_get(Core* core, Sets* sets, LexState* start) noexcept nogil:
    # NULL when time is up.
    cdef const Trie* trie = core.index.trie
    cdef const TrieNode* nodes = trie.nodes.data()
    cdef uint32_t node = 1, last = nodes[0].end
    cdef size_t depth
    cdef LexState* state
    cdef LexState* previous = NULL
    cdef Span* span
    cdef SpanExit ended
    cdef unordered_map[int64_t, char] seen
    if start.span != NULL:
        return start.span
    span = new Span()
    sets.path[0] = start
    while node < last:
        if deadline_passed(&core.index.deadline):
            del span
            return NULL
        depth = nodes[node].depth
        ended.lex = sets.path[depth - 1]
        if ended.lex.tag != NO_TAG and depth > 1:
            ended.byte = nodes[node].byte
            ended.node = node
            span.crossing.push_back(ended)
        state = lex_next(ended.lex, nodes[node].byte)
        if state == LEX_DEAD:
            node = nodes[node].end
            continue
        if state != previous and nodes[node].token < nodes[node + 1].token:
            previous = state
            if seen.count(<int64_t>state) == 0:
                seen[<int64_t>state] = 1
                span.inside.push_back(state)
        sets.path[depth] = state
        node += 1
    sort(span.crossing.begin(), span.crossing.end(), &exit_before)
    core.index.bytes += span_size(span)
    start.span = span
    return span


cdef int32_t sets_follow(Core* core, LexState* lex, int32_t parser, int32_t joined,
                         vector[Thread]& out) noexcept nogil:
    # A thread whose token leaves it at `lex`; `joined` with what that completes.
    cdef Thread thread
    if lex.tag == NO_TAG or lex_goes_on(lex):
        thread.lex = lex
        thread.parser = parser
        thread.text = UNKNOWN_TEXT if lex_keeps_text(lex) else 0
        thread.watch = NULL
        out.push_back(thread)
    if lex.tag != NO_TAG:
        return state_union(core.program, joined, thread_goto(core, lex, parser, UNKNOWN_TEXT, UNKNOWN_TEXT))
    return joined


cdef void sets_join_parser(int32_t parser, vector[Thread]& out) noexcept nogil:
    if parser != NO_STATE:
        out.push_back(thread_at(parser, NULL))


cdef cbool sets_step(Core* core, Sets* sets, uint32_t node, int32_t base) noexcept nogil:
    # One byte of a walk of the trie: fill the level of `node`; False when nothing is left there.
    cdef size_t depth = <size_t>(core.index.trie.nodes[node].depth - base)
    cdef size_t i
    threads_step(core, sets.stack[depth - 1], core.index.trie.nodes[node].byte, sets.stack[depth])
    for i in range(sets.stack[depth].size()):
        if sets.stack[depth][i].text > 0:
            sets.stack[depth][i].text = UNKNOWN_TEXT
    return not sets.stack[depth].empty()


cdef void sets_enter(Sets* sets, int32_t parser) noexcept nogil:
    sets.stack[0].clear()
    sets_join_parser(parser, sets.stack[0])


cdef void sets_walk(Core* core, Sets* sets, int32_t parser, uint32_t top, vector[Thread]& out) noexcept nogil:
    # Add the threads behind all tokens at `top` and below, whose byte `parser` accepts.
    cdef const TrieNode* nodes = core.index.trie.nodes.data()
    cdef uint32_t node = top
    cdef int32_t base = nodes[top].depth - 1
    cdef int64_t key = (<int64_t>parser << 32) | top
    cdef vector[Thread] ends
    cdef vector[Thread]* here
    found = sets.walked.find(key)
    if found != sets.walked.end():
        here = &dereference(found).second
        out.insert(out.end(), here.begin(), here.end())
        return
    sets_enter(sets, parser)
    while node < nodes[top].end:
        if deadline_passed(&core.index.deadline):
            return
        if not sets_step(core, sets, node, base):
            node = nodes[node].end
            continue
        if nodes[node].token < nodes[node + 1].token:
            here = &sets.stack[nodes[node].depth - base]
            ends.insert(ends.end(), here.begin(), here.end())
        node += 1
    sets_compact(core, sets, ends)
    out.insert(out.end(), ends.begin(), ends.end())
    sets.walked[key].swap(ends)


cdef vector[Thread]* sets_after(Core* core, Sets* sets, LexState* lex, int32_t parser) noexcept nogil:
    # The threads behind all tokens from one thread; NULL when time is up.
    cdef vector[Thread] out
    cdef Span* span = span_get(core, sets, lex)
    cdef LexState* state
    cdef LexState* ended = NULL
    cdef int32_t joined = NO_STATE, after = NO_STATE
    cdef size_t i
    cdef vector[Thread]* known
    if span == NULL:
        return NULL
    found = sets.after[<int64_t>lex].find(parser)
    if found != sets.after[<int64_t>lex].end():
        return &dereference(found).second
    for state in span.inside:
        joined = sets_follow(core, state, parser, joined, out)
    sets_join_parser(joined, out)
    for i in range(span.crossing.size()):
        if span.crossing[i].lex != ended:
            ended = span.crossing[i].lex
            after = thread_goto(core, ended, parser, UNKNOWN_TEXT, UNKNOWN_TEXT)
        if after != NO_STATE and bits_has(core.program.states[after].first, span.crossing[i].byte):
            sets_walk(core, sets, after, span.crossing[i].node, out)
    if core.index.deadline.passed:
        return NULL
    sets_compact(core, sets, out)
    known = &sets.after[<int64_t>lex][parser]
    known.swap(out)
    return known


cdef cbool sets_walk_level(Core* core, Sets* sets, uint32_t node) noexcept nogil:
    # One level of a walk of the whole trie from level 0.
    cdef size_t i, depth = core.index.trie.nodes[node].depth
    threads_step(core, sets.stack[depth - 1], core.index.trie.nodes[node].byte, sets.stack[depth])
    for i in range(sets.stack[depth].size()):
        if sets.stack[depth][i].text > 0:
            sets.stack[depth][i].text = UNKNOWN_TEXT
    return not sets.stack[depth].empty()


cdef void sets_walk_lexed(Core* core, Sets* sets, const vector[Thread]& threads, vector[int32_t]* targets,
                          vector[Thread]& out) noexcept nogil:
    # The threads behind all tokens, of a grammar that has a lexer; with `targets`, the states by token instead.
    cdef const Trie* trie = core.index.trie
    cdef uint32_t node = 1
    cdef int32_t t, id
    cdef vector[Thread] here
    cdef size_t limit = 4096
    sets.stack[0] = threads
    while node < trie.nodes[0].end:
        if deadline_passed(&core.index.deadline):
            return
        if not sets_walk_level(core, sets, node):
            node = trie.nodes[node].end
            continue
        if trie.nodes[node].token < trie.nodes[node + 1].token:
            here = sets.stack[trie.nodes[node].depth]
            if targets == NULL:
                out.insert(out.end(), here.begin(), here.end())
                if out.size() > limit:
                    threads_normalize(out)
                    limit = 2 * out.size() + 4096
            else:
                id = sets_intern(core, sets, here)
                for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
                    targets[0][trie.tokens[t]] = id
        node += 1


cdef int32_t sets_any(Core* core, Sets* sets, int32_t id) noexcept nogil:
    # The state behind any one token that is text; NO_STATE when there is none, UNKNOWN when time is up.
    cdef vector[Thread] out
    cdef vector[Thread]* after
    cdef ParserState* parser
    cdef Thread thread
    cdef size_t i
    if sets.any.size() <= <size_t>id:
        sets.any.resize(core.states.size() + 1, UNKNOWN)
    if sets.any[id] != UNKNOWN:
        return sets.any[id]
    if core.program.lexer != NULL:
        sets_walk_lexed(core, sets, core.states[id].threads, NULL, out)
        if core.index.deadline.passed:
            return UNKNOWN
        sets.any[id] = sets_intern(core, sets, out)
        return sets.any[id]
    for thread in core.states[id].threads:
        if thread.lex != NULL:
            after = sets_after(core, sets, thread.lex, thread.parser)
            if after == NULL:
                return UNKNOWN
            out.insert(out.end(), after.begin(), after.end())
            continue
        parser = core.program.states[thread.parser]
        for i in range(parser.starts.size()):
            after = sets_after(core, sets, parser.starts[i], thread.parser)
            if after == NULL:
                return UNKNOWN
            out.insert(out.end(), after.begin(), after.end())
    sets.any[id] = sets_intern(core, sets, out)
    return sets.any[id]


cdef int32_t sets_join(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil:
    # The state of the texts of both.
    cdef vector[Thread] threads
    cdef int64_t key
    cdef int32_t id
    if a == b or b == NO_STATE:
        return a
    if a == NO_STATE:
        return b
    if a > b:
        a, b = b, a
    key = (<int64_t>a << 32) | b
    found = sets.joined.find(key)
    if found != sets.joined.end():
        return dereference(found).second
    threads = core.states[a].threads
    threads.insert(threads.end(), core.states[b].threads.begin(), core.states[b].threads.end())
    id = sets_intern(core, sets, threads)
    sets.joined[key] = id
    return id


cdef cbool sets_covers(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil:
    # Whether everything that may follow `b` may follow `a`, as far as equal threads show it.
    cdef Thread one, other
    cdef cbool found
    if a == b:
        return True
    for one in core.states[b].threads:
        found = False
        for other in core.states[a].threads:
            if (other.lex == one.lex and other.watch == one.watch
                    and (other.text == one.text or other.text == UNKNOWN_TEXT)
                    and (other.parser == one.parser or (core.program.lexer == NULL and parser_merge(
                        core, sets, other.parser, one.parser) == other.parser))):
                found = True
                break
        if not found:
            return False
    return True


# --- tokens by where they lead --------------------------------------------------------------

cdef void class_put(Core* core, Sets* sets, uint32_t node, int32_t id, vector[int32_t]& targets) noexcept nogil:
    # The tokens that end at a trie node lead to `id`, and to where they are known to lead.
    cdef const Trie* trie = core.index.trie
    cdef int32_t t, token
    for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
        token = trie.tokens[t]
        targets[token] = sets_join(core, sets, targets[token], id)


cdef void class_put_inside(Core* core, Sets* sets, LexState* start, int32_t parser,
                           vector[int32_t]& targets) noexcept nogil:
    cdef const TrieNode* nodes = core.index.trie.nodes.data()
    cdef uint32_t node = 1
    cdef size_t depth
    cdef int32_t id = NO_STATE
    cdef LexState* state
    cdef LexState* previous = NULL
    cdef vector[Thread] threads
    cdef unordered_map[int64_t, int32_t] known
    sets.path[0] = start
    while node < nodes[0].end:
        if deadline_passed(&core.index.deadline):
            return
        depth = nodes[node].depth
        state = lex_next(sets.path[depth - 1], nodes[node].byte)
        if state == LEX_DEAD:
            node = nodes[node].end
            continue
        if nodes[node].token < nodes[node + 1].token:
            if state != previous:
                previous = state
                found = known.find(<int64_t>state)
                if found != known.end():
                    id = dereference(found).second
                else:
                    threads.clear()
                    sets_join_parser(sets_follow(core, state, parser, NO_STATE, threads), threads)
                    id = sets_intern(core, sets, threads)
                    known[<int64_t>state] = id
            class_put(core, sets, node, id, targets)
        sets.path[depth] = state
        node += 1


cdef void class_put_walk(Core* core, Sets* sets, int32_t parser, uint32_t top,
                         vector[int32_t]& targets) noexcept nogil:
    cdef const TrieNode* nodes = core.index.trie.nodes.data()
    cdef uint32_t node = top
    cdef int32_t base = nodes[top].depth - 1
    cdef vector[Thread] threads
    sets_enter(sets, parser)
    while node < nodes[top].end:
        if deadline_passed(&core.index.deadline):
            return
        if not sets_step(core, sets, node, base):
            node = nodes[node].end
            continue
        if nodes[node].token < nodes[node + 1].token:
            threads = sets.stack[nodes[node].depth - base]
            class_put(core, sets, node, sets_intern(core, sets, threads), targets)
        node += 1


cdef void class_put_thread(Core* core, Sets* sets, LexState* lex, int32_t parser,
                           vector[int32_t]& targets) noexcept nogil:
    cdef Span* span = span_get(core, sets, lex)
    cdef LexState* ended = NULL
    cdef int32_t after = NO_STATE
    cdef size_t i
    if span == NULL:
        return
    class_put_inside(core, sets, lex, parser, targets)
    for i in range(span.crossing.size()):
        if span.crossing[i].lex != ended:
            ended = span.crossing[i].lex
            after = thread_goto(core, ended, parser, UNKNOWN_TEXT, UNKNOWN_TEXT)
        if after != NO_STATE and bits_has(core.program.states[after].first, span.crossing[i].byte):
            class_put_walk(core, sets, after, span.crossing[i].node, targets)


cdef void sets_classes(Core* core, Sets* sets, int32_t id, vector[int32_t]& targets) noexcept nogil:
    # Where each token leads, by token; NO_STATE when it is not allowed.
    cdef ParserState* parser
    cdef Thread thread
    cdef size_t i
    cdef vector[Thread] unused
    if core.program.lexer != NULL:
        sets_walk_lexed(core, sets, core.states[id].threads, &targets, unused)
        return
    for thread in core.states[id].threads:
        if thread.lex != NULL:
            class_put_thread(core, sets, thread.lex, thread.parser, targets)
            continue
        parser = core.program.states[thread.parser]
        for i in range(parser.starts.size()):
            class_put_thread(core, sets, parser.starts[i], thread.parser, targets)
