# What a matcher waits for, in terms of the grammar: for messages, not for masks.
#
# A *place* is (kind, index) of a local state; `rule_places` says which rule it is in.

cdef void explain_threads(Core* core, int32_t id, vector[int32_t]& out) noexcept nogil:
    # By thread: parser state, whether a lexeme has begun.
    cdef size_t i
    core.index.lock.lock_shared()
    for i in range(core.states[id].threads.size()):
        out.push_back(core.states[id].threads[i].parser)
        out.push_back(core.states[id].threads[i].lex != NULL)
    core.index.lock.unlock_shared()


cdef void explain_items(Core* core, int32_t parser, vector[int32_t]& out) noexcept nogil:
    # By item: kind, index, stack node, whether it waits for a lexeme that is no terminal, how many terminals, these.
    cdef Program* program = core.program
    cdef ParserState* state
    cdef Local* local
    cdef size_t i, j
    core.index.lock.lock_shared()
    state = program.states[parser]
    for i in range(state.items.size()):
        local = program.locals[state.items[i].local]
        out.push_back(local.kind)
        out.push_back(local.index)
        out.push_back(state.items[i].node)
        out.push_back(not local.terms.empty())
        out.push_back(<int32_t>local.terminals.size())
        for j in range(local.terminals.size()):
            out.push_back(local.terminals[j])
    core.index.lock.unlock_shared()


cdef void explain_returns(Core* core, int32_t node, vector[int32_t]& out) noexcept nogil:
    # By return address: kind, index, stack node; all of them ACCEPT for the end of the text.
    cdef Program* program = core.program
    cdef Local* local
    cdef size_t i
    core.index.lock.lock_shared()
    for i in range(program.nodes[node].returns.size()):
        if program.nodes[node].returns[i].local == ACCEPT:
            out.insert(out.end(), 3, <int32_t>ACCEPT)
            continue
        local = program.locals[program.nodes[node].returns[i].local]
        out.push_back(local.kind)
        out.push_back(local.index)
        out.push_back(program.nodes[node].returns[i].node)
    core.index.lock.unlock_shared()


cdef dict rule_places(Program* program):
    # The rule of each place that one rule alone has.
    cdef size_t rule, i
    cdef int32_t at
    cdef vector[int32_t] work
    cdef unordered_map[int32_t, char] seen
    places = {}
    for rule in range(program.rules.size()):
        if program.rules[rule].kind != LOCAL_PLAIN:
            places[program.rules[rule].kind, program.rules[rule].index] = rule
            continue
        seen.clear()
        work.push_back(program.rules[rule].index)
        while not work.empty():
            at = work.back()
            work.pop_back()
            if seen.count(at):
                continue
            seen[at] = 1
            places.setdefault((LOCAL_PLAIN, at), rule)
            for i in range(program.plain_terms[at].size()):
                work.push_back(program.plain_terms[at][i].target)
            for i in range(program.plain_calls[at].size()):
                work.push_back(program.plain_calls[at][i].back)
    return places
