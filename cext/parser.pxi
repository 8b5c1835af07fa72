# Rules: what each place inside a rule waits for.
#
# A *local* state is a place inside one rule together with the rule's register (how many items,
# which members), as a number.  Expanding one says which lexemes and which rules may come next
# and whether the rule may end.  The data of stacks and parser states is declared here as well.

cdef enum:
    LOCAL_PLAIN = 0
    LOCAL_REPEATED = 1
    LOCAL_RECORD = 2
    # phases of a record
    RECORD_OPEN = 0
    RECORD_FIRST_KEY = 1
    RECORD_COLON = 2
    RECORD_VALUE = 3
    RECORD_AFTER = 4
    RECORD_NEXT_KEY = 5
    RECORD_DONE = 6
    ACCEPT = -1            # return address of the start rule: the text is complete
    NO_STATE = -1

cdef struct Call:
    int32_t rule
    int32_t back           # local state to return to

cdef struct PlainTerm:
    int32_t automaton
    int32_t target         # plain state

cdef struct Return:
    int32_t local
    int32_t node           # < 0 inside a cycle: -1 - index in the column

cdef struct Item:
    int32_t local
    int32_t node

cdef struct RuleStart:
    int32_t kind           # LOCAL_*
    int32_t index          # plain state, or definition
    int32_t nullable

cdef struct RepeatedDef:
    int32_t first
    int32_t rest
    int32_t low
    int32_t high           # -1: unbounded

cdef cppclass RecordDef:
    int32_t keys           # automaton
    int32_t count          # members that may occur; the key tag of others
    vector[int32_t] values         # rule by member
    vector[int32_t] next_required  # first required member at or after i (count: none)
    vector[int32_t] key_bytes      # by member: its quoted key
    int32_t other_key_bytes        # shortest other key; -1: not known yet
    int32_t other_value    # rule, or -1
    int32_t open
    int32_t close_empty
    int32_t colon
    int32_t comma
    int32_t close

cdef cppclass Local:
    int32_t kind
    int32_t index
    int32_t phase
    int32_t count
    cbool expanded
    cbool final
    cbool pure_final       # final, and nothing else
    vector[LexState*] terms         # start states of the lexemes waited for
    vector[Call] calls

cdef cppclass StackNode:
    vector[Return] returns

cdef cppclass ParserState:
    vector[Item] items
    cbool complete         # the start rule may end here
    vector[LexState*] starts
    uint64_t first[4]
    unordered_map[int64_t, int32_t] moves   # (automaton uid << 32 | tag) -> parser state or NO_STATE

cdef cppclass Program:
    # the grammar, as given
    vector[Automaton*] automata
    vector[vector[PlainTerm]] plain_terms
    vector[vector[Call]] plain_calls         # Call.back is a plain state here
    vector[uint8_t] plain_final
    vector[RuleStart] rules
    vector[RepeatedDef] repeated
    vector[RecordDef] records
    int32_t start_rule
    # everything reached so far
    vector[Local*] locals
    KeyIds local_ids
    vector[StackNode*] nodes
    KeyIds node_ids
    vector[ParserState*] states
    KeyIds state_ids
    unordered_map[int64_t, int32_t] unions


cdef void parse_free(Program* program) noexcept nogil:
    cdef size_t i
    for i in range(program.locals.size()):
        del program.locals[i]
    for i in range(program.nodes.size()):
        del program.nodes[i]
    for i in range(program.states.size()):
        del program.states[i]
    del program


# --- local states ---------------------------------------------------------------------------

cdef int32_t parse_local(Program* program, int32_t kind, int32_t index, int32_t phase,
                         int32_t count) noexcept nogil:
    cdef int32_t fields[4]
    cdef string key
    cdef int32_t known
    cdef Local* local
    fields[0] = kind
    fields[1] = index
    fields[2] = phase
    fields[3] = count
    key.assign(<const char*>fields, sizeof(fields))
    known = program.local_ids.find(key)
    if known >= 0:
        return known
    local = new Local()
    local.kind = kind
    local.index = index
    local.phase = phase
    local.count = count
    local.expanded = False
    program.local_ids.insert(key, <int32_t>program.locals.size())
    program.locals.push_back(local)
    return <int32_t>program.locals.size() - 1


cdef int32_t parse_rule_start(Program* program, int32_t rule) noexcept nogil:
    return parse_local(program, program.rules[rule].kind, program.rules[rule].index, 0, 0)


cdef void parse_add_term(Program* program, Local* local, int32_t automaton) noexcept nogil:
    if program.automata[automaton].start != LEX_DEAD:
        local.terms.push_back(program.automata[automaton].start)


cdef void parse_add_key(Program* program, Local* local, const RecordDef& record) noexcept nogil:
    # Any declared member from here up to the next required one; others once none is required.
    cdef int32_t required = record.next_required[local.count]
    cdef LexState* start = key_start(program.automata[record.keys], local.count, required,
                                     required == record.count and record.other_value >= 0)
    if start != LEX_DEAD:
        local.terms.push_back(start)


cdef cbool parse_more_members(const RecordDef& record, int32_t start) noexcept nogil:
    return start < record.count or record.other_value >= 0


cdef void parse_expand_record(Program* program, Local* local) noexcept nogil:
    cdef RecordDef* record = &program.records[local.index]
    cdef Call call
    cdef int32_t i = local.count
    if local.phase == RECORD_OPEN:
        parse_add_term(program, local, record.open)
    elif local.phase == RECORD_FIRST_KEY:
        parse_add_key(program, local, record[0])
        if record.next_required[0] == record.count:
            parse_add_term(program, local, record.close_empty)
    elif local.phase == RECORD_COLON:
        parse_add_term(program, local, record.colon)
    elif local.phase == RECORD_VALUE:
        call.rule = record.other_value if i == record.count else record.values[i]
        call.back = parse_local(program, LOCAL_RECORD, local.index, RECORD_AFTER,
                                i if i == record.count else i + 1)
        local.calls.push_back(call)
    elif local.phase == RECORD_NEXT_KEY:
        parse_add_key(program, local, record[0])
    elif local.phase == RECORD_AFTER:
        if parse_more_members(record[0], i):
            parse_add_term(program, local, record.comma)
        if record.next_required[i] == record.count:
            parse_add_term(program, local, record.close)
    else:
        local.final = True


cdef void parse_expand_repeated(Program* program, Local* local) noexcept nogil:
    cdef RepeatedDef repeated = program.repeated[local.index]
    cdef Call call
    cdef int32_t saturation
    local.final = local.count >= repeated.low
    if repeated.high < 0 or local.count < repeated.high:
        saturation = repeated.high
        if saturation < 0:
            saturation = repeated.low if repeated.low > 1 else 1
        call.rule = repeated.first if local.count == 0 else repeated.rest
        call.back = parse_local(program, LOCAL_REPEATED, local.index, 0,
                                local.count + 1 if local.count < saturation else saturation)
        local.calls.push_back(call)


cdef void parse_expand_plain(Program* program, Local* local) noexcept nogil:
    cdef size_t i
    cdef Call call
    for i in range(program.plain_terms[local.index].size()):
        parse_add_term(program, local, program.plain_terms[local.index][i].automaton)
    for i in range(program.plain_calls[local.index].size()):
        call.rule = program.plain_calls[local.index][i].rule
        call.back = parse_local(program, LOCAL_PLAIN, program.plain_calls[local.index][i].back, 0, 0)
        local.calls.push_back(call)
    local.final = program.plain_final[local.index] != 0


cdef Local* parse_expand(Program* program, int32_t id) noexcept nogil:
    cdef Local* local = program.locals[id]
    if not local.expanded:
        local.expanded = True
        local.final = False
        if local.kind == LOCAL_PLAIN:
            parse_expand_plain(program, local)
        elif local.kind == LOCAL_REPEATED:
            parse_expand_repeated(program, local)
        else:
            parse_expand_record(program, local)
        local.pure_final = local.final and local.terms.empty() and local.calls.empty()
    return local


cdef int32_t parse_record_phase_after(Program* program, const Local* local, const Automaton* automaton,
                                      int32_t tag, int32_t* count) noexcept nogil:
    # The phase behind a lexeme, or NO_STATE when the record does not wait for it.
    cdef RecordDef* record = &program.records[local.index]
    cdef int32_t required = record.next_required[local.count]
    count[0] = local.count
    if local.phase == RECORD_OPEN:
        return RECORD_FIRST_KEY if automaton == program.automata[record.open] else NO_STATE
    if local.phase == RECORD_COLON:
        return RECORD_VALUE if automaton == program.automata[record.colon] else NO_STATE
    if local.phase == RECORD_AFTER:
        if automaton == program.automata[record.close] and required == record.count:
            return RECORD_DONE
        if automaton == program.automata[record.comma] and parse_more_members(record[0], local.count):
            return RECORD_NEXT_KEY
        return NO_STATE
    if automaton == program.automata[record.keys]:
        count[0] = tag
        if tag == record.count:
            return RECORD_COLON if required == record.count and record.other_value >= 0 else NO_STATE
        return RECORD_COLON if local.count <= tag <= required else NO_STATE
    if (local.phase == RECORD_FIRST_KEY and required == record.count
            and automaton == program.automata[record.close_empty]):
        return RECORD_DONE
    return NO_STATE


cdef void parse_advance(Program* program, int32_t id, const Automaton* automaton, int32_t tag,
                        vector[int32_t]& out) noexcept nogil:
    # The local states behind a lexeme.
    cdef Local* local = program.locals[id]
    cdef size_t i
    cdef int32_t phase, count
    if local.kind == LOCAL_PLAIN:
        for i in range(program.plain_terms[local.index].size()):
            if program.automata[program.plain_terms[local.index][i].automaton] == automaton:
                out.push_back(parse_local(program, LOCAL_PLAIN,
                                          program.plain_terms[local.index][i].target, 0, 0))
    elif local.kind == LOCAL_RECORD:
        phase = parse_record_phase_after(program, local, automaton, tag, &count)
        if phase != NO_STATE:
            out.push_back(parse_local(program, LOCAL_RECORD, local.index, phase, count))
