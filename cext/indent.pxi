# Indentation: blocks whose lines begin in one column (maskwright.ir.grammar.Indented).
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


cdef int32_t returns_indent(const Program* program, const vector[Return]& returns) noexcept nogil:
    # The column of the innermost open block.
    cdef int32_t indent = 0, other
    cdef const Local* local
    cdef size_t i
    for i in range(returns.size()):
        if returns[i].local == ACCEPT:
            continue
        local = program.locals[returns[i].local]
        other = local.count if local.kind == LOCAL_INDENTED else program.nodes[returns[i].node].indent
        if other > indent:
            indent = other
    return indent


cdef void parse_expand_indented(Program* program, Local* local) noexcept nogil:
    cdef Call call
    if local.phase == INDENTED_INSIDE:
        call.rule = program.indented[local.index]
        call.back = parse_local(program, LOCAL_INDENTED, local.index, INDENTED_AFTER, local.count)
        local.calls.push_back(call)
    local.final = local.phase == INDENTED_DONE
    local.waits_for_line = local.phase == INDENTED_BEFORE or local.phase == INDENTED_AFTER


cdef int32_t state_line(Program* program, int32_t id, int32_t column) noexcept nogil:
    # Of the state behind a newline: what can stand in this column, or NO_STATE.
    cdef vector[Item] kept, kernel
    cdef ParserState* state
    cdef Local* local
    cdef Item item
    cdef size_t i
    cdef cbool complete = False
    cdef int32_t end
    if id != NO_STATE and column > 0:
        # At the end of the text, blanks do not matter.
        end = state_line(program, id, 0)
        complete = end != NO_STATE and program.states[end].complete
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
    # The same state where the text begins: nothing ignored stands in front, since a line begins there.
    cdef ParserState* before
    cdef ParserState* state
    cdef vector[int32_t] terminals
    cdef size_t i
    if id == NO_STATE or program.lexer == NULL or program.lexer.lexer.newline < 0:
        return id
    before = program.states[id]
    state = program.states.add()
    state.items = before.items
    state.complete = before.complete
    state.indent = before.indent
    for i in range(state.items.size()):
        terminals.insert(terminals.end(), program.locals[state.items[i].local].terminals.begin(),
                         program.locals[state.items[i].local].terminals.end())
    state.starts = before.starts
    state.tokens = before.tokens
    memcpy(state.first, before.first, 32)
    state.lexer = lexer_begin(program.lexer, terminals)
    if state.lexer == LEX_DEAD:
        state.lexer = NULL
    program.first_line = <int32_t>program.states.size() - 1
    return program.first_line


cdef cbool state_deep(const Program* program, int32_t id) noexcept nogil:
    # Whether no block further in is possible: then what the grammar wants may not be.
    return (program.lexer.lexer.newline >= 0
            and program.states[id].indent + 1 >= program.lexer.lexer.columns)


cdef cbool state_opens_line(Program* program, int32_t id) noexcept nogil:
    # Whether a newline can come next, whatever its column was so far.
    cdef ParserState* state = program.states[id]
    cdef Lexer* lexer = program.lexer.lexer
    cdef int32_t column, i
    if state.opens == 0:
        if program.index.deadline.passed:
            return False
        state.opens = 2
        for i in range(-2, state.indent):
            column = state.indent + 2 + i if i < 0 else i
            if column < lexer.columns and state_goto(program, id, program.lexer,
                                                     lexer.newline if column == 0 else <int32_t>lexer.first.size() + column,
                                                     NO_KEY) != NO_STATE:
                program.states[id].opens = 1
                break
        if program.index.deadline.passed:
            program.states[id].opens = 0
    return program.states[id].opens == 1


cdef cbool lex_in_newline(const LexState* state) noexcept nogil:
    # Whether this may become a newline, in any column.
    cdef const Lexer* lexer = state.automaton.lexer
    cdef size_t i
    if lexer == NULL or not lexer.restarts:
        return False
    for i in range(state.code.items.size()):
        if lexer.lines[<size_t>(state.code.items[i] >> 32)]:
            return True
    return False
