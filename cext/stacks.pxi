# Stacks and parser states: the closure over calls and returns at one text position.
#
# A *stack node* is a set of return addresses (local state, node below), interned by content, so
# equal stacks are one number however they came about.  A *parser state* is the set of (local
# state, node) pairs that wait for a lexeme.  Rules called at the same position become nodes
# together (an Earley column); a left-recursive rule's node refers to itself, and such a cycle is
# interned as a whole (columns.pxi).  A call in tail position passes the caller's return addresses on, so
# right recursion does not grow the stack.

cdef cbool return_before(const Return& a, const Return& b) noexcept nogil:
    return a.local < b.local or (a.local == b.local and a.node < b.node)


cdef cbool item_before(const Item& a, const Item& b) noexcept nogil:
    return a.local < b.local or (a.local == b.local and a.node < b.node)


cdef void returns_normalize(vector[Return]& returns) noexcept nogil:
    # Sorted, each once.
    cdef size_t i, j = 0
    sort(returns.begin(), returns.end(), &return_before)
    for i in range(returns.size()):
        if j == 0 or returns[i].local != returns[j - 1].local or returns[i].node != returns[j - 1].node:
            returns[j] = returns[i]
            j += 1
    returns.resize(j)


cdef int32_t node_intern(Program* program, vector[Return]& returns) noexcept nogil:
    cdef int32_t known
    cdef StackNode* node
    cdef Return back
    returns_normalize(returns)
    known = program.node_ids.find(returns.data(), returns.size() * sizeof(Return))
    if known >= 0:
        return known
    program.node_ids.insert(returns.data(), returns.size() * sizeof(Return), <int32_t>program.nodes.size())
    node = program.nodes.add()
    node.returns.assign(returns)
    node.indent = returns_indent(program, returns)
    for back in returns:
        node.cyclic = node.cyclic or (back.local != ACCEPT and program.nodes[back.node].cyclic)
    program.held += vector_bytes(node.returns.bytes(), 1)
    return <int32_t>program.nodes.size() - 1


cdef int32_t node_reserve(Program* program) noexcept nogil:
    # A node of a cycle whose content comes later.
    program.nodes.add().cyclic = True
    return <int32_t>program.nodes.size() - 1


cdef int32_t nodes_union(Program* program, const vector[Item]& items, size_t begin, size_t end) noexcept nogil:
    # Of the nodes of some items.
    cdef vector[Return] returns
    cdef size_t i, j
    for i in range(begin, end):
        for j in range(program.nodes[items[i].node].returns.size()):
            returns.push_back(program.nodes[items[i].node].returns[j])
    return node_intern(program, returns)


cdef int32_t node_union(Program* program, int32_t a, int32_t b) noexcept nogil:
    cdef vector[Return] returns
    cdef size_t i
    if a == b:
        return a
    for i in range(program.nodes[a].returns.size()):
        returns.push_back(program.nodes[a].returns[i])
    for i in range(program.nodes[b].returns.size()):
        returns.push_back(program.nodes[b].returns[i])
    return node_intern(program, returns)


# --- parser states --------------------------------------------------------------------------

cdef void state_finish(ParserState* state, Program* program) noexcept nogil:
    # The lexemes waited for, each once, and the bytes that they can begin with.
    cdef size_t i, j, k
    cdef Local* local
    cdef cbool known
    cdef const uint64_t* first
    cdef vector[uint64_t] terminals
    cdef int32_t guard
    for i in range(state.items.size()):
        local = parse_expand(program, state.items[i].local)
        if program.nodes[state.items[i].node].indent > state.indent:
            state.indent = program.nodes[state.items[i].node].indent
        guard = parse_guard(program, state.items[i].local)
        if guard:
            known = False
            for k in range(state.guards.size()):
                known = known or state.guards[k] == guard
            if not known:
                state.guards.push_back(guard)
        for j in range(local.terms.size()):
            known = False
            for k in range(state.starts.size()):
                known = known or state.starts[k] == local.terms[j]
            if not known:
                state.starts.push_back(local.terms[j])
                first = lex_first(local.terms[j])
                for k in range(4):
                    state.first[k] |= first[k]
        for j in range(local.tokens.size()):
            known = False
            for k in range(state.tokens.size()):
                known = known or state.tokens[k] == local.tokens[j]
            if not known:
                state.tokens.push_back(local.tokens[j])
        if terminals.size() < local.terminal_set.size():
            terminals.resize(local.terminal_set.size(), 0)
        for k in range(local.terminal_set.size()):
            terminals[k] |= local.terminal_set[k]
    state.lexer = NULL
    if program.lexer != NULL and (state.starts.empty() or not terminals.empty()):
        state.lexer = lexer_start_set(program.lexer, terminals)
        if state.lexer == LEX_DEAD:
            state.lexer = NULL
        else:
            # What begins any of the terminals, without a look at the start itself.
            for i in range(64 * terminals.size()):
                if (terminals[i >> 6] >> (i & 63)) & 1:
                    first = lex_first(program.terminal_starts[i])
                    for k in range(4):
                        state.first[k] |= first[k]


cdef int32_t state_intern(Program* program, vector[Item]& items, cbool complete) noexcept nogil:
    # Items of the same local state are merged: their stacks become one set.
    cdef vector[Item] merged
    cdef Item last
    cdef size_t i, behind
    cdef int32_t known
    cdef ParserState* state
    sort(items.begin(), items.end(), &item_before)
    i = 0
    while i < items.size():
        behind = i + 1
        while behind < items.size() and items[behind].local == items[i].local:
            behind += 1
        merged.push_back(items[i])
        if items[behind - 1].node != items[i].node:
            merged.back().node = nodes_union(program, items, i, behind)
        i = behind
    last.local = ACCEPT
    last.node = complete
    merged.push_back(last)
    known = program.state_ids.find(merged.data(), merged.size() * sizeof(Item))
    if known >= 0:
        return known
    program.state_ids.insert(merged.data(), merged.size() * sizeof(Item), <int32_t>program.states.size())
    merged.pop_back()
    state = program.states.add()
    state.items.assign(merged)
    state.complete = complete
    state_finish(state, program)
    program.held += (vector_bytes(state.items.bytes(), 1) + vector_bytes(state.starts.bytes(), 1)
                     + vector_bytes(state.tokens.capacity(), sizeof(void*))
                     + vector_bytes(state.guards.capacity(), sizeof(int32_t)))
    return <int32_t>program.states.size() - 1


cdef int32_t state_from_kernel(Program* program, vector[Item]& kernel) noexcept nogil:
    # What waits for a lexeme behind some items, which are sorted here.
    cdef int32_t known
    sort(kernel.begin(), kernel.end(), &item_before)
    # Kept one higher: NO_STATE is -1.
    known = program.kernel_ids.find(kernel.data(), kernel.size() * sizeof(Item)) - 1
    if known < NO_STATE:
        known = state_close(program, kernel)
        if program.index.deadline.passed:
            return known
        program.kernel_ids.insert(kernel.data(), kernel.size() * sizeof(Item), known + 1)
    return known


cdef int32_t state_close(Program* program, const vector[Item]& kernel) noexcept nogil:
    # NO_STATE also when time is up: whoever keeps an answer looks at the deadline first.
    cdef Column* column = program.column
    cdef vector[Item] items
    cdef Item item
    cdef size_t i
    if program_bytes(program) > program.most_bytes:
        deadline_heavy(&program.index.deadline, program_bytes(program))
    column.rules.clear()
    column.index.clear()
    column.resolved.clear()
    column.kept.clear()
    column.seen.clear()
    column.work.clear()
    column.called = 0
    column.complete = False
    for i in range(kernel.size()):
        column_push(column, kernel[i].local, kernel[i].node)
    column_close(program, column)
    if column.kept.empty() and not column.complete:
        return NO_STATE
    column_resolve(program, column)
    if program.index.deadline.passed:
        column_forget(column)
        return NO_STATE
    for i in range(column.kept.size()):
        item.local = column.kept[i].local
        item.node = column.kept[i].node
        if item.node < 0:
            item.node = column.resolved[-1 - item.node]
        items.push_back(item)
    return state_intern(program, items, column.complete)


cdef int32_t state_behind(Program* program, int32_t node) noexcept nogil:
    # Where a rule has returned to a stack node, or NO_STATE.
    cdef vector[Item] kernel, items
    cdef Item item
    cdef Return back
    cdef cbool complete = False
    cdef int32_t id = NO_STATE
    for back in program.nodes[node].returns:
        if back.local == ACCEPT:
            complete = True
            continue
        item.local = back.local
        item.node = back.node
        kernel.push_back(item)
    if not kernel.empty():
        id = state_from_kernel(program, kernel)
    if complete:
        if id != NO_STATE:
            items = program.states[id].items.copied()
        id = state_intern(program, items, True)
    return id


cdef int32_t state_start(Program* program, int32_t rule) noexcept nogil:
    # Before a text that must match the rule.
    cdef vector[Item] kernel
    cdef vector[Return] returns
    cdef Return accept
    cdef Item item
    accept.local = ACCEPT
    accept.node = 0
    returns.push_back(accept)
    item.local = parse_rule_start(program, rule)
    item.node = node_intern(program, returns)
    kernel.push_back(item)
    return state_first_line(program, state_from_kernel(program, kernel))


cdef int32_t state_goto(Program* program, int32_t id, const Automaton* automaton, int32_t tag,
                        int32_t key) noexcept nogil:
    # The parser state behind a lexeme, or NO_STATE.  `key`: which other key it was, if that matters.
    # Arrays of different items that begin with it are left to state_goto_guarded.
    cdef ParserState* state = program.states[id]
    cdef int64_t move = (<int64_t>automaton.uid << 32) | <uint32_t>tag
    cdef string keyed
    cdef int32_t target, column = -1
    if automaton.lexer != NULL:
        if automaton.lexer.ignored[tag]:
            return id
        column = newline_column(automaton.lexer, tag)
    if key == NO_KEY:
        target = state.moves.find(move)
        if target != UNKNOWN:
            return target
    else:
        keyed.assign(<const char*>&move, sizeof(move))
        keyed.append(<const char*>&key, sizeof(key))
        target = state.keyed_moves.find(keyed)
        if target >= 0:
            # Kept one higher: NO_STATE is -1.
            return target - 1
    target = state_advance(program, state, automaton, tag if column < 0 else automaton.lexer.newline, key, 0)
    if column >= 0:
        target = state_line(program, target, column)
    if program.index.deadline.passed:
        return target
    if key == NO_KEY:
        program.held -= <int64_t>state.moves.bytes()
        state.moves.insert(move, target)
        program.held += <int64_t>state.moves.bytes()
    else:
        state_keep_move(program, state, keyed, target)
    return target


cdef void state_keep_move(Program* program, ParserState* state, const string& move, int32_t target) noexcept nogil:
    program.held -= <int64_t>state.keyed_moves.bytes()
    state.keyed_moves.insert(move, target + 1)
    program.held += <int64_t>state.keyed_moves.bytes()


cdef int32_t state_goto_guarded(Program* program, int32_t id, const Automaton* automaton, int32_t tag,
                                int32_t guard) noexcept nogil:
    # The same in those arrays of different items that have this guard.
    cdef ParserState* state = program.states[id]
    cdef int32_t fields[3]
    cdef string move
    cdef int32_t target
    fields[0] = automaton.uid
    fields[1] = tag
    fields[2] = guard
    move.assign(<const char*>fields, sizeof(fields))
    # A letter longer than the names of keyed moves.
    move.push_back(71)
    target = state.keyed_moves.find(move)
    if target >= 0:
        return target - 1
    target = state_advance(program, state, automaton, tag, NO_KEY, guard)
    if not program.index.deadline.passed:
        state_keep_move(program, state, move, target)
    return target


cdef int32_t state_advance(Program* program, const ParserState* state, const Automaton* automaton, int32_t tag,
                           int32_t key, int32_t guard) noexcept nogil:
    cdef vector[Item]* kernel = &program.column.kernel
    cdef vector[int32_t]* locals = &program.column.locals
    cdef Item item
    cdef size_t i, j
    kernel.clear()
    for i in range(state.items.size()):
        if not state.guards.empty() and parse_guard(program, state.items[i].local) != guard:
            continue
        locals.clear()
        parse_advance(program, state.items[i].local, automaton, tag, key, locals[0])
        for j in range(locals.size()):
            item.local = locals[0][j]
            item.node = state.items[i].node
            kernel.push_back(item)
    return state_from_kernel(program, kernel[0]) if not kernel.empty() else NO_STATE


cdef int32_t state_union(Program* program, int32_t a, int32_t b) noexcept nogil:
    cdef int64_t key
    cdef vector[Item] items
    cdef size_t i
    cdef int32_t union_id
    if a == b or b == NO_STATE:
        return a
    if a == NO_STATE:
        return b
    if a > b:
        a, b = b, a
    key = (<int64_t>a << 32) | b
    found = program.unions.find(key)
    if found != program.unions.end():
        return dereference(found).second
    for i in range(program.states[a].items.size()):
        items.push_back(program.states[a].items[i])
    for i in range(program.states[b].items.size()):
        items.push_back(program.states[b].items[i])
    union_id = state_intern(program, items,
                            program.states[a].complete or program.states[b].complete)
    program.unions[key] = union_id
    return union_id
