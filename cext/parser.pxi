# Rules: what each place inside a rule waits for.
#
# A *local* state is a place inside one rule together with the rule's register (how many items,
# which members), as a number.  Expanding one says which lexemes and which rules may come next
# and whether the rule may end.  The data of stacks and parser states is declared here as well.

cdef enum:
    LOCAL_PLAIN = 0
    LOCAL_REPEATED = 1
    LOCAL_RECORD = 2
    LOCAL_INDENTED = 3
    # phases of an indented block
    INDENTED_BEFORE = 0
    INDENTED_INSIDE = 1            # `count` is its column, here and behind
    INDENTED_AFTER = 2
    INDENTED_DONE = 3
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
    NO_KEY = -1            # the lexeme is no other key, or keys may repeat
    ANY_KEY = -2           # it is, but not known
    KEY_ENTRY = 64         # bytes of an entry of KeyIds, its key apart

cdef struct Call:
    int32_t rule
    int32_t back           # local state to return to

cdef struct PlainTerm:
    int32_t automaton      # negative: -1 - terminal of the lexer
    int32_t target         # plain state
    int32_t tag            # that the automaton must accept with; NO_TAG: any

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

cdef struct RecordValue:
    int32_t rule
    uint32_t goals         # that such a value reaches

cdef struct RecordRegister:
    int32_t position       # the next member; between a key and its value, that member
    int32_t members        # so far, as far as it matters
    uint32_t missing       # goals
    int32_t used           # other keys that came before: a set of the program's `key_sets`
    int32_t pending        # 1: and one that is not known
    int32_t taken          # in any order: set of members that came before

cdef cppclass RecordDef:
    # Members are numbered in their order; other members follow, a number for each kind.
    vector[int32_t] keys           # automaton, by set of sorts of other members that are allowed
    vector[int32_t] sorts          # by other kind: those that may reach the same goals are of one sort
    int32_t count                  # members that may occur
    Rows[RecordValue] values       # by member
    vector[uint32_t] absent        # by member: goals that are reached without it
    vector[int32_t] next_required  # first required member at or after i (count: none)
    vector[int32_t] required_from  # how many are required from i on
    vector[int32_t] key_bytes      # by member: its quoted key
    vector[int32_t] other_key_bytes    # shortest key of each other kind; empty: not known yet
    int32_t least                  # members
    int32_t most                   # -1: any number
    uint32_t goals
    cbool simple                   # nothing is counted: a register is a position as long as no key is used
    cbool ordered                  # members come in their order; others behind them
    cbool bare                     # keys only: a list of different strings
    cbool unique                   # other keys must not repeat
    vector[vector[char]] taken     # sets of members, by number; the first one is empty
    KeyIds taken_ids
    Steady[RecordRegister] registers
    KeyIds register_ids
    unordered_map[int32_t, char] alive     # by register
    int64_t* held                  # where the bytes of registers and sets of members are counted
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
    Few[LexState*] terms          # start states of the lexemes waited for
    vector[LexState*] tokens        # the same of tokens that stand for themselves
    vector[int32_t] terminals       # of the lexer
    vector[uint64_t] terminal_set   # these as bits
    cbool waits_for_line            # what comes next depends on the column of the next line (indent.pxi)
    Few[Call] calls

cdef cppclass StackNode:
    Few[Return] returns
    int32_t indent         # column of the innermost open block
    cbool cyclic           # a cycle (left recursion) can be reached

cdef cppclass ParserState:
    Few[Item] items
    cbool complete         # the start rule may end here
    Few[LexState*] starts
    vector[LexState*] tokens    # of those waited for that stand for themselves
    LexState* lexer        # start of the lexer for the terminals waited for, or NULL
    int32_t indent         # column of the innermost open block
    char opens             # 1: a newline can come next, 2: none, 0: not known yet (state_opens_line)
    uint64_t first[4]
    vector[int32_t] guards  # of the arrays of different items that may begin here, each once
    Edges[int64_t] moves   # (automaton uid << 32 | tag) -> parser state or NO_STATE
    KeyIds keyed_moves     # the same for keys that must not come again, with the key

cdef cppclass Program:
    # the grammar, as given
    vector[Automaton*] automata
    Automaton* lexer                         # NULL: the grammar has none
    vector[LexState*] terminal_starts        # by terminal of the lexer
    cbool has_tokens                         # that stand for themselves
    Index* index
    Rows[PlainTerm] plain_terms
    Rows[Call] plain_calls         # Call.back is a plain state here
    vector[uint8_t] plain_final
    vector[int32_t] plain_guard              # of a rule's first state: that of its array (see Frame), or 0
    vector[RuleStart] rules
    vector[RepeatedDef] repeated
    vector[RecordDef] records
    vector[int32_t] indented                 # the rule inside
    int32_t start_rule
    # everything reached so far
    int64_t held                             # bytes of what nodes and parser states refer to
    int64_t most_bytes                       # of all that is reached, at the end of this operation (program_bytes)
    Blocks[Local] locals
    KeyIds local_ids
    Blocks[StackNode] nodes
    KeyIds node_ids
    KeyIds cycle_ids       # of nodes that refer to each other: the first one
    Blocks[ParserState] states
    KeyIds state_ids
    KeyIds kernel_ids      # by items before the closure: the parser state, one higher
    unordered_map[int64_t, int32_t] unions
    TextSets key_sets                        # of keys that must not come again, in canonical spelling
    vector[Automaton*] keysets               # copies, for keys that must not come again (keyset_of)
    Edges[int32_t] cycle_first               # by stack node that is part of a cycle: the first one of it,
    Edges[int32_t] cycle_rule                # and the rule that was called
    int32_t first_line                       # the parser state that state_first_line made, or NO_STATE
    Column* column                           # scratch (stacks.pxi)


cdef void parse_free(Program* program) noexcept nogil:
    cdef size_t i
    while program.locals.drop() or program.nodes.drop() or program.states.drop():
        Reaper.breathe()
    for i in range(program.keysets.size()):
        lex_free(program.keysets[i])
    del program.column
    del program


# --- local states ---------------------------------------------------------------------------

cdef int32_t parse_local(Program* program, int32_t kind, int32_t index, int32_t phase,
                         int32_t count) noexcept nogil:
    cdef int32_t fields[4]
    cdef int32_t known
    cdef Local* local
    fields[0] = kind
    fields[1] = index
    fields[2] = phase
    fields[3] = count
    known = program.local_ids.find(fields, sizeof(fields))
    if known >= 0:
        return known
    program.local_ids.insert(fields, sizeof(fields), <int32_t>program.locals.size())
    local = program.locals.add()
    local.kind = kind
    local.index = index
    local.phase = phase
    local.count = count
    return <int32_t>program.locals.size() - 1


cdef int32_t parse_rule_start(Program* program, int32_t rule) noexcept nogil:
    cdef int32_t place = 0
    if program.rules[rule].kind == LOCAL_RECORD:
        place = record_start(&program.records[program.rules[rule].index])
    return parse_local(program, program.rules[rule].kind, program.rules[rule].index, 0, place)


cdef Automaton* keyset_of(Program* program, int32_t place) noexcept nogil:
    # The automaton of a record's keys.  What its states say of keys that came belongs to texts, and not to the language: of such
    # a keyset, a program has a copy.
    cdef Automaton* given = program.automata[place]
    cdef Automaton* own
    if not given.unique or given.used != NULL:
        return given
    own = automaton_new(program.index, KIND_KEYSET)
    own.uid = given.uid
    own.spelling = given.spelling
    own.names = given.names
    own.tags = given.tags
    own.other_tag = given.other_tag
    own.kinds = given.kinds
    own.base = given.base
    own.unique = True
    own.used = &program.key_sets
    own.held = &program.held
    own.place = place
    program.keysets.push_back(own)
    program.automata[place] = own
    own.start = key_start(own, 0, <int32_t>0x7FFFFFFF, own.base != NULL, NULL, 0, False)
    return own


cdef void parse_add_term(Program* program, Local* local, int32_t automaton) noexcept nogil:
    if program.automata[automaton].kind == KIND_TOKENS:
        local.tokens.push_back(program.automata[automaton].start)
    elif program.automata[automaton].start != LEX_DEAD:
        local.terms.push_back(program.automata[automaton].start)


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


cdef inline int32_t parse_guard(const Program* program, int32_t id) noexcept nogil:
    # Of a local state before an array of different items; else 0.
    cdef const Local* local = program.locals[id]
    return program.plain_guard[local.index] if local.kind == LOCAL_PLAIN else 0


cdef void parse_expand_plain(Program* program, Local* local) noexcept nogil:
    cdef size_t i
    cdef Call call
    for i in range(program.plain_terms[local.index].size()):
        if program.plain_terms[local.index][i].automaton < 0:
            local.terminals.push_back(-1 - program.plain_terms[local.index][i].automaton)
            terminals_add(local.terminal_set, local.terminals.back())
        else:
            parse_add_term(program, local, program.plain_terms[local.index][i].automaton)
    for i in range(program.plain_calls[local.index].size()):
        call.rule = program.plain_calls[local.index][i].rule
        call.back = parse_local(program, LOCAL_PLAIN, program.plain_calls[local.index][i].back, 0, 0)
        local.calls.push_back(call)
    local.final = program.plain_final[local.index] != 0


cdef inline cbool local_waits(const Local* local) noexcept nogil:
    return local.waits_for_line or not (local.terms.empty() and local.terminals.empty() and local.tokens.empty())


cdef Local* parse_expand(Program* program, int32_t id) noexcept nogil:
    cdef Local* local = program.locals[id]
    if not local.expanded:
        local.expanded = True
        local.final = False
        if local.kind == LOCAL_PLAIN:
            parse_expand_plain(program, local)
        elif local.kind == LOCAL_REPEATED:
            parse_expand_repeated(program, local)
        elif local.kind == LOCAL_INDENTED:
            parse_expand_indented(program, local)
        else:
            record_expand(program, local)
        local.pure_final = local.final and not local_waits(local) and local.calls.empty()
    return local


cdef inline LexState* parse_term_start(const Program* program, int32_t term) noexcept nogil:
    return program.terminal_starts[-1 - term] if term < 0 else program.automata[term].start


cdef inline cbool parse_is_term(const Program* program, int32_t term, const Automaton* automaton,
                                int32_t tag) noexcept nogil:
    if term < 0:
        return automaton == program.lexer and tag == -1 - term
    return program.automata[term] == automaton


cdef void parse_advance(Program* program, int32_t id, const Automaton* automaton, int32_t tag, int32_t key,
                        vector[int32_t]& out) noexcept nogil:
    # The local states behind a lexeme.
    cdef Local* local = program.locals[id]
    cdef size_t i
    cdef int32_t phase, count
    if local.kind == LOCAL_PLAIN:
        for i in range(program.plain_terms[local.index].size()):
            if program.plain_terms[local.index][i].tag not in (NO_TAG, tag):
                continue
            if parse_is_term(program, program.plain_terms[local.index][i].automaton, automaton, tag):
                out.push_back(parse_local(program, LOCAL_PLAIN,
                                          program.plain_terms[local.index][i].target, 0, 0))
    elif local.kind == LOCAL_RECORD:
        phase = record_phase_after(program, local, automaton, tag, key, &count)
        if phase != NO_STATE:
            out.push_back(parse_local(program, LOCAL_RECORD, local.index, phase, count))
