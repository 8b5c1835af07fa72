# Stacks and parser states: the closure over calls and returns at one text position.
#
# A *GSS node* is a set of return addresses (dotted item, node below), interned by content, so
# equal stacks are one number however they came about.  A *parser state* is the set of (local
# state, node) pairs that wait for a lexeme.  Rules called at the same position become nodes
# together (an Earley column); a left-recursive rule's node refers to itself, and such a cycle is
# interned as a whole (columns.pyx).  A call in tail position passes the caller's return addresses on, so
# right recursion does not grow the stack.

from cython.operator cimport dereference
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.algorithm cimport sort
from libcpp.string cimport string

from maskwright._engine.containers cimport ScratchIds
from maskwright._engine.sizes cimport ALLOCATION, MAP_ENTRY, vector_bytes
from maskwright._engine.limits cimport deadline_heavy, deadline_worked
from maskwright._engine.lexemes cimport LexState, NO_TAG
from maskwright._engine.lexeme_texts cimport LEX_DEAD
from maskwright._engine.lexeme_state cimport lex_first
from maskwright._engine.longest_match cimport column_tag, lexer_begin, lexer_of, lexer_start_set
from maskwright._engine.program cimport (
    ACCEPT, Column, INDENTED_BEFORE, INDENTED_DONE, INDENTED_INSIDE, DottedItem, LOCAL_INDENTED, NO_KEY, NO_STATE,
    ParserState, Return, GssNode, UNKNOWN
)
from maskwright._engine.rules cimport parse_advance, parse_expand, parse_guard, parse_local, parse_rule_start
from maskwright._engine.columns cimport column_close, column_forget, column_push, column_resolve, node_intern

cdef enum:
    FEW_STARTS = 16        # lexemes that are told apart by a look at all of them


cdef cbool item_before(const Item& a, const Item& b) noexcept nogil:
    return a.local < b.local or (a.local == b.local and a.node < b.node)


cdef int32_t node_reserve(Program* program) noexcept nogil:
    # A node of a cycle whose content comes later.
    program.nodes.add().cyclic = True
    return <int32_t>program.nodes.size() - 1


cdef void node_append(const Program* program, int32_t node, vector[Return]& returns) noexcept nogil:
    # What a node has, behind what was there.
    cdef size_t i
    for i in range(program.nodes[node].returns.size()):
        returns.push_back(program.nodes[node].returns[i])


cdef int32_t nodes_union(Program* program, const vector[Item]& items, size_t begin, size_t end) noexcept nogil:
    # Of the nodes of some items.
    cdef vector[Return] returns
    cdef size_t i
    for i in range(begin, end):
        node_append(program, items[i].node, returns)
    return node_intern(program, returns)


cdef int32_t node_union(Program* program, int32_t a, int32_t b) noexcept nogil:
    cdef vector[Return] returns
    if a == b:
        return a
    node_append(program, a, returns)
    node_append(program, b, returns)
    return node_intern(program, returns)


# --- parser states --------------------------------------------------------------------------

cdef cbool start_listed(const ParserState* state, LexState* start, ScratchIds& many) noexcept nogil:
    # Whether a lexeme is among those waited for.  Few are looked through; beyond these, they are in `many`.
    cdef size_t i, size = state.starts.size()
    if size < FEW_STARTS:
        for i in range(size):
            if state.starts[i] == start:
                return True
        return False
    for i in range(0 if size == FEW_STARTS else size - 1, size):
        if many.find(<int64_t>state.starts[i]) < 0:
            many.insert(<int64_t>state.starts[i], 0)
    return many.find(<int64_t>start) >= 0


cdef void state_finish(ParserState* state, Program* program) noexcept nogil:
    # The lexemes waited for, each once, and the bytes that they can begin with.
    cdef size_t i, j, k
    cdef DottedItem* local
    cdef cbool known
    cdef ScratchIds many, guards
    cdef const uint64_t* first
    cdef vector[uint64_t] terminals
    cdef int32_t guard
    for i in range(state.items.size()):
        local = parse_expand(program, state.items[i].local)
        state.may_run_out = state.may_run_out or local.may_run_out
        if program.nodes[state.items[i].node].indent > state.indent:
            state.indent = program.nodes[state.items[i].node].indent
        guard = parse_guard(program, state.items[i].local)
        if guard and guards.find(guard) < 0:
            guards.insert(guard, 0)
            state.guards.push_back(guard)
        for j in range(local.terms.size()):
            if not start_listed(state, local.terms[j], many):
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
        for j in range(local.boundaries.size()):
            known = False
            for k in range(state.boundaries.size()):
                known = known or state.boundaries[k] == local.boundaries[j]
            if not known:
                state.boundaries.push_back(local.boundaries[j])
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
    # Items of the same dotted item are merged: their stacks become one set.
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
    state.plain = NO_STATE
    state.complete = complete
    state_finish(state, program)
    deadline_worked(&program.index.deadline, state.items.size() + state.starts.size())
    program.held += (vector_bytes(state.items.bytes(), 1) + vector_bytes(state.starts.bytes(), 1)
                     + vector_bytes(state.tokens.capacity() + state.boundaries.capacity(), sizeof(void*))
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
    # Where a rule has returned to a GSS node, or NO_STATE.
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


cdef const vector[int32_t]* state_behind_boundaries(Program* program, int32_t id) noexcept nogil:
    # The parser states directly behind the boundaries that are waited for.
    cdef ParserState* state = program.states[id]
    cdef vector[int32_t] found
    cdef LexState* boundary
    cdef int32_t target
    if state.has_behind:
        return &state.behind
    for boundary in state.boundaries:
        target = state_goto(program, id, boundary.automaton, 0, NO_KEY)
        if target != NO_STATE:
            found.push_back(target)
    if not program.index.deadline.passed:
        state.behind.swap(found)
        state.has_behind = True
        program.held += vector_bytes(state.behind.capacity(), sizeof(int32_t))
    return &state.behind


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
        if lexer_of(automaton).ignored[tag]:
            return id
        column = newline_column(lexer_of(automaton), tag)
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
    target = state_advance(program, state, automaton, tag if column < 0 else lexer_of(automaton).newline, key, 0)
    if column >= 0:
        target = state_line(program, target, column)
    elif automaton.opens_line or (automaton.lexer != NULL and tag == lexer_of(automaton).quote):
        target = state_first_line(program, target)
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


# --- Indentation: blocks whose lines begin in one column (maskwright.ir.grammar.Indented).
#
# A newline's match goes on over the blanks behind it, and its tag says how many they are.  The column of a block
# is part of its return address, so the stack knows all open blocks.  Behind a newline it is settled
# at once, by the column, what the line can be: the next one of the innermost block, the first one of a new block
# further in, or the next one of a block around, where all blocks that are further in end.

cdef int32_t newline_column(const Lexer* lexer, int32_t tag) noexcept nogil:
    # The column of the line behind a newline, or -1 when the tag is that of something else.
    if lexer.newline < 0 or tag == NO_TAG:
        return -1
    if tag == lexer.newline:
        return 0
    return tag - <int32_t>lexer.first.size() if tag > <int32_t>lexer.first.size() else -1


cdef int32_t state_line(Program* program, int32_t id, int32_t column) noexcept nogil:
    # Of the state behind a newline: what can stand in this column, or NO_STATE.
    cdef vector[Item] kept, kernel
    cdef ParserState* state
    cdef DottedItem* local
    cdef Item item
    cdef size_t i
    cdef cbool complete = False
    cdef int32_t end, terminal
    if id != NO_STATE and column > 0:
        # At the end of the text, and before the quote or the boundary that ends it, blanks do not matter.
        end = state_line(program, id, 0)
        complete = end != NO_STATE and program.states[end].complete
        if end != NO_STATE and (lexer_of(program.lexer).quote >= 0 or program.has_boundaries):
            for i in range(program.states[end].items.size()):
                if not program.locals[program.states[end].items[i].local].boundaries.empty():
                    kept.push_back(program.states[end].items[i])
                for terminal in program.locals[program.states[end].items[i].local].terminals:
                    if terminal == lexer_of(program.lexer).quote:
                        kept.push_back(program.states[end].items[i])
    while id != NO_STATE:
        state = program.states[id]
        if column == 0:
            complete = complete or state.complete
        kernel.clear()
        for i in range(state.items.size()):
            item = state.items[i]
            local = program.locals[item.local]
            if local.kind != LOCAL_INDENTED:
                if program.nodes[item.node].indent == column:
                    kept.push_back(item)
            elif local.phase == INDENTED_BEFORE:
                if program.nodes[item.node].indent < column:
                    item.local = parse_local(program, LOCAL_INDENTED, local.index, INDENTED_INSIDE, column)
                    kernel.push_back(item)
            elif column < local.count:
                item.local = parse_local(program, LOCAL_INDENTED, local.index, INDENTED_DONE, 0)
                kernel.push_back(item)
        id = NO_STATE if kernel.empty() else state_from_kernel(program, kernel)
    if kept.empty() and not complete:
        return NO_STATE
    return state_intern(program, kept, complete)


cdef int32_t state_first_line(Program* program, int32_t id) noexcept nogil:
    # The same state where a text of lines begins: nothing ignored stands in front, since a line begins there.
    cdef ParserState* before
    cdef ParserState* state
    cdef vector[int32_t] terminals
    cdef int32_t terminal, known
    cdef size_t i
    if id == NO_STATE or program.lexer == NULL or lexer_of(program.lexer).newline < 0:
        return id
    for known in program.first_lines:
        if program.states[known].plain == id:
            return known
    before = program.states[id]
    state = program.states.add()
    state.items = before.items
    state.complete = before.complete
    state.plain = id
    state.indent = before.indent
    for i in range(state.items.size()):
        for terminal in program.locals[state.items[i].local].terminals:
            if not lexer_of(program.lexer).ignored[terminal]:
                terminals.push_back(terminal)
    state.starts = before.starts
    state.tokens = before.tokens
    state.boundaries = before.boundaries
    memcpy(state.first, before.first, 32)
    state.lexer = lexer_begin(program.lexer, terminals)
    if state.lexer == LEX_DEAD:
        state.lexer = NULL
    program.first_lines.push_back(<int32_t>program.states.size() - 1)
    return program.first_lines.back()


cdef cbool state_deep(const Program* program, int32_t id) noexcept nogil:
    # Whether no block further in is possible: then what the grammar wants may not be.
    return (lexer_of(program.lexer).newline >= 0
            and program.states[id].indent + 1 >= lexer_of(program.lexer).columns)


cdef cbool state_opens_line(Program* program, int32_t id) noexcept nogil:
    # Whether a newline can come next, whatever its column was so far.
    cdef ParserState* state = program.states[id]
    cdef Lexer* lexer = lexer_of(program.lexer)
    cdef int32_t column, i
    if state.opens == 0:
        if program.index.deadline.passed:
            return False
        state.opens = 2
        for i in range(-2, state.indent):
            column = state.indent + 2 + i if i < 0 else i
            if column < lexer.columns and state_goto(program, id, program.lexer, column_tag(lexer, column), NO_KEY) != NO_STATE:
                program.states[id].opens = 1
                break
        if program.index.deadline.passed:
            program.states[id].opens = 0
    return program.states[id].opens == 1


cdef cbool lex_in_newline(const LexState* state) noexcept nogil:
    # Whether this may become a newline, in any column.
    cdef const Lexer* lexer = lexer_of(state.automaton)
    cdef size_t i
    if lexer == NULL or lexer.newline < 0:
        return False
    for i in range(state.dfa_state.items.size()):
        if lexer.lines[<size_t>(state.dfa_state.items[i] >> 32)]:
            return True
    return False


cdef int64_t program_bytes(const Program* program) noexcept nogil:
    # Of everything reached so far.
    return (program.held
            + <int64_t>(program.node_ids.bytes() + program.cycle_ids.bytes() + program.state_ids.bytes()
                        + program.kernel_ids.bytes() + program.dotted_ids.bytes() + program.key_sets.bytes())
            + <int64_t>(program.nodes.size() * sizeof(GssNode) + program.states.size() * sizeof(ParserState)
                        + program.locals.size() * (sizeof(DottedItem) + ALLOCATION)
                        + program.unions.size() * MAP_ENTRY))


cdef void terminals_begin(Program* program) noexcept nogil:
    cdef vector[int32_t] one
    cdef size_t i
    for i in range(lexer_of(program.lexer).first.size()):
        one.assign(1, <int32_t>i)
        program.terminal_starts.push_back(lexer_begin(program.lexer, one))
