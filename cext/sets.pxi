# States of many texts at once: what a text with open slots needs.
#
# What may follow one of several texts is a set of threads, like what may follow one text: stacks merge as
# Earley columns do, and the language of the union is the union of the languages.  `sets_any` is the state behind
# all texts that are one token longer, which is all that an open slot means; a canvas is read left to right in
# polynomial time, whatever the grammar.
#
# A state of many texts is a list of *parts*: a set of lexer states of one automaton (lexsets.pxi) and the parser state in
# which these lexemes began.  What a token does inside a lexeme is looked up once for the whole set, so a string of up to
# 10 000 characters costs what any string does.  Parts of one parser state become one, and so do those of
# one set of lexer states; stacks are merged deeper than a text needs it: return addresses to one place become one, with the
# union of what is below (`stack_merge`).  Otherwise a set of all depths would list them all.
#
# Two things are forgotten: which key it was, in records whose keys must not come twice (ANY_KEY), and which items
# an array of different items has.  There, and only there, the state of many texts allows more than one of them does.
#
# With a lexer, what may follow is split by what a parser state waits for, and parser states must not be merged:
# lexedsets.pxi.

cdef enum:
    SET_BASE = 1 << 30     # states of many texts have numbers from here on, those of one text below

cdef struct Part:
    LexSet* lexes          # NULL: before a lexeme
    int32_t parser

cdef cppclass SetState:
    vector[Part] parts             # sorted
    cbool accepting
    int32_t any                    # behind any token; UNKNOWN
    vector[int32_t] bytes          # behind a byte; UNKNOWN; empty: none known

cdef cppclass Sets:
    cbool full                                            # above `max_set_bytes` (setbytes.pxi)
    cbool gone                                            # what they refer to: nothing can be asked
    int64_t releases                                      # of memory that was set aside (attempt.hpp), before this operation
    int64_t held                                          # bytes of what states and reaches refer to
    vector[SetState*] states
    KeyIds ids
    unordered_map[int32_t, int32_t] single                # by matcher state
    unordered_map[int64_t, int32_t] joined                # by two states
    unordered_map[int32_t, vector[LexSet*]] starts        # by parser state
    unordered_map[int32_t, int32_t] plain                 # by stack node: that of different return addresses
    unordered_map[int64_t, int32_t] unions                # of two such
    unordered_map[string, int32_t] merged                 # by stack nodes with cycles; UNDER_WAY
    unordered_map[int32_t, vector[int32_t]] parts         # of merged nodes with cycles: what they stand for
    unordered_map[string, int32_t] parsers                # by parser states
    unordered_map[int64_t, int32_t] narrowed              # parser states, by parser state and automaton
    # frames (frames.pxi)
    unordered_map[int32_t, int32_t] behind                # parser states, by stack node
    unordered_map[int64_t, int32_t] put_nodes             # by stack node and bottom; UNDER_WAY
    unordered_map[int64_t, int32_t] put_states            # by parser state and bottom
    vector[Reach*] reaches
    unordered_map[int64_t, int32_t] walked                # by parser state and residual
    unordered_map[int64_t, int32_t] frame_walks           # by local state and residual
    KeyIds frame_reads                                    # by set of lexer states and local state
    # with an opening (openingsets.pxi)
    int32_t opening_any                                   # behind any token at the very start; UNKNOWN
    vector[int32_t] mixed                                 # by number of a mixed state: the state of the others
    unordered_map[int32_t, int32_t] mixed_ids             # the reverse
    # with a lexer (lexedsets.pxi)
    KeyIds after                                          # by thread: its place in `threads`
    vector[vector[Thread]] threads                        # behind all tokens
    unordered_map[int32_t, int32_t] any                   # by matcher state
    vector[vector[Thread]] levels                         # scratch of walks, by depth


cdef inline int64_t pair_key(int32_t a, int32_t b) noexcept nogil:
    return (<int64_t>a << 32) | <uint32_t>b


cdef void sets_free(Index* index, Sets* sets) noexcept nogil:
    cdef size_t i
    for i in range(index.set_holders.size()):
        if index.set_holders[i] == sets:
            index.set_holders[i] = index.set_holders.back()
            index.set_holders.pop_back()
            break
    for i in range(sets.states.size()):
        del sets.states[i]
    reaches_free(sets.reaches)
    del sets


# --- parts ----------------------------------------------------------------------------------

cdef cbool part_before(const Part& a, const Part& b) noexcept nogil:
    # By set of lexer states.
    if a.lexes != b.lexes:
        if a.lexes == NULL or b.lexes == NULL:
            return a.lexes == NULL
        if a.lexes.automaton != b.lexes.automaton:
            return a.lexes.automaton.uid < b.lexes.automaton.uid
        return a.lexes.id < b.lexes.id
    return a.parser < b.parser


cdef cbool part_before_by_parser(const Part& a, const Part& b) noexcept nogil:
    return a.parser < b.parser or (a.parser == b.parser and part_before(a, b))


cdef inline cbool part_joins(const Part& a, const Part& b) noexcept nogil:
    # Whether their lexer states become one set.
    if a.parser != b.parser or a.lexes == NULL or b.lexes == NULL:
        return a.parser == b.parser and a.lexes == b.lexes
    return a.lexes.automaton == b.lexes.automaton


cdef void parts_compact(Core* core, Sets* sets, vector[Part]& parts) noexcept nogil:
    # Parts of one parser state and automaton become one, then those of one set of lexer states.
    cdef vector[LexSet*] lexes
    cdef vector[int32_t] parsers
    cdef size_t i = 0, first, j = 0
    sort(parts.begin(), parts.end(), &part_before_by_parser)
    while i < parts.size():
        first = i
        lexes.clear()
        while i < parts.size() and part_joins(parts[first], parts[i]):
            lexes.push_back(parts[i].lexes)
            i += 1
        parts[j] = parts[first]
        if parts[first].lexes != NULL:
            parts[j].lexes = lexset_union(lexes[0].automaton, lexes)
        j += 1
    parts.resize(j)
    sort(parts.begin(), parts.end(), &part_before)
    i = j = 0
    while i < parts.size():
        first = i
        parsers.clear()
        while i < parts.size() and parts[i].lexes == parts[first].lexes:
            parsers.push_back(parts[i].parser)
            i += 1
        parts[j].lexes = parts[first].lexes
        parts[j].parser = parsers_merge(core, sets, parsers)
        j += 1
    parts.resize(j)


cdef int32_t set_intern(Core* core, Sets* sets, vector[Part]& parts) noexcept nogil:
    cdef string key
    cdef SetState* state
    cdef Part part
    cdef int32_t known
    if parts.empty():
        return NO_STATE
    parts_compact(core, sets, parts)
    for part in parts:
        key.append(<const char*>&part.lexes, sizeof(LexSet*))
        key.append(<const char*>&part.parser, sizeof(int32_t))
    known = sets.ids.find(key)
    if known >= 0:
        return SET_BASE + known
    state = new SetState()
    state.parts = parts
    sets.held += vector_bytes(state.parts.capacity(), sizeof(Part))
    state.any = UNKNOWN
    state.accepting = parts[0].lexes == NULL and core.program.states[parts[0].parser].complete
    known = <int32_t>sets.states.size()
    sets.ids.insert(key, known)
    sets.states.push_back(state)
    core.set_states = known + 1
    return SET_BASE + known


cdef SetState* set_of(Core* core, Sets* sets, int32_t id) noexcept nogil:
    # A state as one of many texts.
    cdef vector[Part] parts
    cdef Part part
    cdef Thread thread
    if id >= SET_BASE:
        return sets.states[id - SET_BASE]
    found = sets.single.find(id)
    if found != sets.single.end():
        return sets.states[dereference(found).second - SET_BASE]
    for thread in core.states[id].threads:
        part.lexes = NULL
        part.parser = thread.parser
        if thread.lex != NULL:
            part.lexes = lexset_of(thread.lex)
            part.parser = parser_narrow(core, sets, thread.parser, thread.lex.automaton)
        parts.push_back(part)
    sets.single[id] = set_intern(core, sets, parts)
    return sets.states[sets.single[id] - SET_BASE]


# --- bytes ----------------------------------------------------------------------------------

cdef void set_leave(Core* core, LexState* lex, int32_t parser, vector[int32_t]& joined) noexcept nogil:
    # The parser states behind what `lex` has completed.
    cdef int32_t guard
    cdef int32_t after = thread_goto(core, lex, parser, UNKNOWN_TEXT, UNKNOWN_TEXT)
    if after != NO_STATE:
        joined.push_back(after)
    for guard in core.program.states[parser].guards:
        after = state_goto_guarded(core.program, parser, lex.automaton, lex.tag, guard)
        if after != NO_STATE:
            joined.push_back(after)


cdef vector[LexSet*]* set_starts(Core* core, Sets* sets, int32_t parser) noexcept nogil:
    # The lexemes that a parser state waits for, by automaton.
    cdef vector[LexSet*] starts, group
    cdef ParserState* state = core.program.states[parser]
    cdef size_t i, j
    found = sets.starts.find(parser)
    if found != sets.starts.end():
        return &dereference(found).second
    for i in range(state.starts.size()):
        for j in range(starts.size()):
            if starts[j].automaton == state.starts[i].automaton:
                group.clear()
                group.push_back(starts[j])
                group.push_back(lexset_of(state.starts[i]))
                starts[j] = lexset_union(starts[j].automaton, group)
                break
        else:
            starts.push_back(lexset_of(state.starts[i]))
    sets.starts[parser] = starts
    return &sets.starts[parser]


cdef void part_step(Core* core, LexSet* lexes, int32_t parser, uint8_t byte, vector[Part]& out,
                    vector[int32_t]& joined) noexcept nogil:
    cdef LexSet* here = lexset_next(lexes, byte)
    cdef LexState* lex
    cdef Part part
    if here == LEXSET_DEAD:
        return
    if here.going != NULL:
        part.lexes = here.going
        part.parser = parser
        out.push_back(part)
    for lex in here.exits:
        set_leave(core, lex, parser, joined)


cdef void parts_step(Core* core, Sets* sets, const vector[Part]& parts, uint8_t byte,
                     vector[Part]& out) noexcept nogil:
    # All parts over one byte.
    cdef vector[int32_t] joined
    cdef LexSet* start
    cdef size_t i
    out.clear()
    for i in range(parts.size()):
        if parts[i].lexes != NULL:
            part_step(core, parts[i].lexes, parts[i].parser, byte, out, joined)
        elif bits_has(core.program.states[parts[i].parser].first, byte):
            for start in dereference(set_starts(core, sets, parts[i].parser)):
                part_step(core, start, parser_narrow(core, sets, parts[i].parser, start.automaton), byte, out, joined)
    parts_join(core, sets, joined, out)


cdef void parts_join(Core* core, Sets* sets, vector[int32_t]& joined, vector[Part]& out) noexcept nogil:
    cdef Part part
    if not joined.empty():
        part.lexes = NULL
        part.parser = parsers_merge(core, sets, joined)
        out.push_back(part)


cdef int32_t set_byte(Core* core, Sets* sets, int32_t id, uint8_t byte) noexcept nogil:
    # The state of many texts behind one byte, or NO_STATE.
    cdef SetState* state = set_of(core, sets, id)
    cdef vector[Part] out
    if state.bytes.empty():
        state.bytes.resize(256, UNKNOWN)
        sets.held += vector_bytes(256, sizeof(int32_t))
    if state.bytes[byte] == UNKNOWN:
        parts_step(core, sets, state.parts, byte, out)
        state.bytes[byte] = set_intern(core, sets, out)
    return state.bytes[byte]


cdef int32_t set_bytes(Core* core, Sets* sets, int32_t id, const uint8_t* data, int64_t length) noexcept nogil:
    # Behind some bytes; NO_STATE also when time is up.
    cdef int64_t i
    for i in range(length):
        if id == NO_STATE or sets_full(core, sets) or deadline_look(&core.index.deadline):
            return NO_STATE
        id = set_byte(core, sets, id, data[i])
    return id


# --- any token ------------------------------------------------------------------------------

cdef inline cbool bits_meet(const uint64_t* a, const uint64_t* b) noexcept nogil:
    return ((a[0] & b[0]) | (a[1] & b[1]) | (a[2] & b[2]) | (a[3] & b[3])) != 0


cdef int32_t sets_any(Core* core, Sets* sets, int32_t id) noexcept nogil:
    # The state behind any one token that is text; NO_STATE when there is none, UNKNOWN when time is up.
    cdef SetState* state
    if core.program.lexer != NULL:
        return lexed_any(core, sets, id)
    state = set_of(core, sets, id)
    if state.any == UNKNOWN:
        state.any = frames_any(core, sets, state.parts)
    return state.any


# --- unions ---------------------------------------------------------------------------------

cdef int32_t sets_join(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil:
    # The state of the texts of both.
    cdef vector[Part] parts
    cdef SetState* other
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
    if core.program.lexer != NULL:
        id = lexed_join(core, a, b)
    else:
        parts = set_of(core, sets, a).parts
        other = set_of(core, sets, b)
        parts.insert(parts.end(), other.parts.begin(), other.parts.end())
        id = set_intern(core, sets, parts)
    sets.joined[key] = id
    return id


cdef cbool parser_covers(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil:
    # Whether all that may follow `b` may follow `a`, as far as merging them shows it.
    cdef vector[int32_t] both
    if a == b:
        return True
    both.push_back(a)
    both.push_back(b)
    return parsers_merge(core, sets, both) == a


cdef cbool lexset_covers(LexSet* a, LexSet* b) noexcept nogil:
    cdef vector[LexSet*] both
    if a == b:
        return True
    if a == NULL or b == NULL or a.automaton != b.automaton:
        return False
    both.push_back(a)
    both.push_back(b)
    return lexset_union(a.automaton, both) == a


cdef cbool sets_covers(Core* core, Sets* sets, int32_t a, int32_t b) noexcept nogil:
    # Whether everything that may follow `b` may follow `a`, as far as equal parts show it.
    cdef SetState* over
    cdef SetState* under
    cdef size_t i, j
    cdef cbool found
    if a == b:
        return True
    if core.program.lexer != NULL:
        return lexed_covers(core, a, b)
    over = set_of(core, sets, a)
    under = set_of(core, sets, b)
    if over == under:
        return True
    for i in range(under.parts.size()):
        found = False
        for j in range(over.parts.size()):
            if (lexset_covers(over.parts[j].lexes, under.parts[i].lexes)
                    and parser_covers(core, sets, over.parts[j].parser, under.parts[i].parser)):
                found = True
                break
        if not found:
            return False
    return True


# --- tokens by where they lead --------------------------------------------------------------

cdef void sets_classes(Core* core, Sets* sets, int32_t id, const Trie* trie, vector[int32_t]& targets) noexcept nogil:
    # Where each token of a trie leads, by token, if it is allowed.
    cdef uint32_t node = 1
    cdef size_t depth
    cdef int32_t t
    cdef vector[int32_t] path
    if core.program.lexer != NULL:
        lexed_classes(core, sets, id, trie, targets)
        return
    path.resize(core.index.most_bytes + 1, NO_STATE)
    path[0] = id
    while node < trie.nodes[0].end:
        if sets_stop(core, sets):
            return
        depth = trie.nodes[node].depth
        path[depth] = set_byte(core, sets, path[depth - 1], trie.nodes[node].byte)
        if path[depth] == NO_STATE:
            node = trie.nodes[node].end
            continue
        for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
            targets[trie.tokens[t]] = path[depth]
        node += 1


# --- completions ----------------------------------------------------------------------------

cdef enum:
    SAMPLED = 4            # members of a set of lexer states that are looked at

cdef cbool sets_shortest(Core* core, Sets* sets, int32_t id, vector[uint8_t]& out) noexcept nogil:
    # Some short completion of one of the texts; the shortest one of the only text.
    cdef SetState* state
    cdef vector[Thread] threads
    cdef Thread thread
    cdef Part part
    cdef size_t i, step
    if id < SET_BASE:
        return shortest_bytes(core, id, out)
    state = sets.states[id - SET_BASE]
    if state.accepting:
        return True
    for part in state.parts:
        thread = thread_at(part.parser, NULL)
        if part.lexes == NULL:
            threads.push_back(thread)
            continue
        step = (part.lexes.members.size() + SAMPLED - 1) // SAMPLED
        i = 0
        while i < part.lexes.members.size():
            thread.lex = part.lexes.automaton.states[part.lexes.members[i]]
            thread.text = UNKNOWN_TEXT if lex_keeps_text(thread.lex) else 0
            threads.push_back(thread)
            i += step
    return shortest_plain(core, threads, out)
