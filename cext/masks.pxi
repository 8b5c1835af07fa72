# Matcher states and their masks.
#
# A matcher state is a set of threads (lexer state inside a lexeme, parser state where it began),
# interned.  A thread whose lexer state is NULL stands at the start of a lexeme; there is at most one
# for a text, because everything that a byte completes is joined in one parser state.
#
# A mask is computed once per state: the union over threads of the lexer state's inside tokens,
# and of the crossing tokens whose residual the following parser state accepts.

cdef enum:
    TERMINATED = -2                # behind EOS
    UNKNOWN = -3                   # not computed yet

cdef struct Thread:
    LexState* lex
    LexState* watch        # what must not match from here on (lexing.pxi), or NULL
    int32_t parser
    int32_t text           # > 0: what has been read of a key that must not come again; < 0: what has been
                           # read of an array of different items (tracker.pxi); else 0

cdef cppclass Mask:
    Bits* bits                     # start from these, when not NULL
    vector[int32_t] base           # then set these
    vector[int32_t] removed        # then clear these
    vector[int32_t] added          # then set these

cdef cppclass MatcherState:
    vector[Thread] threads
    cbool accepting
    cbool used                     # its mask, since the hand came by (evict.pxi)
    Mask* mask
    Edges[int32_t] edges           # the state behind a token, or NO_STATE

cdef cppclass OpenGroup:
    # Tokens that are allowed if any of some threads can be completed, which takes a search (lexed.pxi).
    vector[Thread] threads
    vector[int32_t] tokens

cdef cppclass Core:
    # One compiled grammar on one vocabulary.
    Program* program
    Costs* costs
    KeyIds alive                   # by thread, where it is known (alive.pxi, distinct.pxi): 1 or 0
    KeyIds careless                # whether a string may become any, by what is behind it (distinct.pxi)
    KeyIds powers                  # whether a number may get an exponent, by lexer state (twins.pxi)
    KeyIds endless                 # whether every text can be made longer without end, by code state (endless.pxi)
    Index* index
    size_t words                   # of a mask row
    vector[int32_t] eos
    Blocks[MatcherState] states
    int32_t start                  # the state of the empty text, and
    int32_t opening                # the one at the very start, where tokens stand for something else; or UNKNOWN
    int32_t begin                  # that of these in which matchers begin
    KeyIds state_ids
    int64_t edges                  # of tokens, from all states
    Tracker tracker
    vector[FrameMask*] frames      # of masks (framemask.pxi)
    KeyIds frame_ids
    unordered_map[int32_t, int32_t] frame_states   # parser state of a frame, by its local state
    int32_t bottom                 # stack node of frames, or UNKNOWN
    cbool walks                    # for a mask: keys are read without telling which they are (mask_walk)
    vector[vector[Thread]] stack   # scratch of walks, by depth
    vector[OpenGroup] open         # of the mask under way
    int64_t set_states             # of many texts (sets.pxi)
    int64_t max_states             # limits of one operation
    int64_t max_lexer_states
    int64_t max_bytes
    int64_t max_search
    int64_t max_set_bytes          # of sets of texts (setbytes.pxi)
    double max_seconds
    int64_t holders                # the grammar, and matchers and others that are in it (generations.pxi)
    void* matchers                 # one of these matchers, which knows the next one; or NULL
    void* mover                    # what takes them to another generation (tasks.pxi), or NULL: nobody went yet
    int64_t number                 # of the generation
    int64_t room                   # bytes that it may have before the grammar begins another one; 0: any number
    int64_t live                   # of these, what there was at first and what moved into it
    cbool overgrown                # it has more
    void* handles                  # a list of the handles of its automata, which it keeps


cdef void core_free(void* freed) noexcept nogil:
    # In another thread (threads.pxi).
    cdef Core* core = <Core*>freed
    cdef size_t i
    framemasks_forget(core)
    for i in range(core.states.size()):
        core.index.bytes.subtract(core.states[i].edges.bytes())
        mask_free(core, core.states[i].mask)
        Reaper.breathe()
    while core.states.drop():
        Reaper.breathe()
    parse_free(core.program)
    tracker_free(&core.tracker)
    mover_free(core.mover)
    del core.costs
    del core


# --- operations -----------------------------------------------------------------------------

cdef enum:
    OUTCOME_GOOD = 0
    OUTCOME_PARSER_STATES = 1
    OUTCOME_LEXER_STATES = 2
    OUTCOME_LATE = 3
    OUTCOME_SEARCH = 4
    OUTCOME_SET_BYTES = 5
    OUTCOME_MEMORY = 6
    OUTCOME_SETS_GONE = 7
    OUTCOME_INTERRUPTED = 8
    OUTCOME_BYTES = 9

cdef struct Outcome:
    int32_t kind
    double given


cdef void core_enter(Core* core) noexcept nogil:
    # Begin an operation that may add to the tables.
    core.index.lock.lock()
    deadline_begin(&core.index.deadline, core.max_seconds, core.max_lexer_states, core.max_bytes)
    core.program.most_bytes = program_bytes(core.program) + core.max_bytes


cdef Outcome core_outcome(Core* core) noexcept nogil:
    # How it went.  Tables may overshoot their limits by one operation; what is in them is always whole.
    cdef Outcome outcome
    cdef int64_t size = <int64_t>core.program.states.size()
    outcome.kind = OUTCOME_GOOD
    outcome.given = 0
    if <int64_t>core.states.size() > size:
        size = <int64_t>core.states.size()
    if core.set_states > size:
        size = core.set_states
    if <int64_t>core.tracker.states.size() > size:
        size = <int64_t>core.tracker.states.size()
    if core.index.deadline.interrupted:
        outcome.kind = OUTCOME_INTERRUPTED
    elif core.index.deadline.searched > core.max_search:
        outcome.kind = OUTCOME_SEARCH
        outcome.given = core.index.deadline.searched
    elif core.index.deadline.crowded > 0:
        outcome.kind = OUTCOME_LEXER_STATES
        outcome.given = core.index.deadline.crowded
    elif core.index.deadline.heavy > 0:
        outcome.kind = OUTCOME_BYTES
        outcome.given = core.index.deadline.heavy
    elif core.index.deadline.passed:
        outcome.kind = OUTCOME_LATE
        outcome.given = core.max_seconds + seconds_now() - core.index.deadline.at
    elif size > core.max_states:
        outcome.kind = OUTCOME_PARSER_STATES
        outcome.given = size
        # Others need little of what one text has filled: they go on in a new generation.
        core.overgrown = core.overgrown or core.room > 0
    elif core.index.largest > core.max_lexer_states:
        size = core_lexer_states(core)
        if size > core.max_lexer_states:
            outcome.kind = OUTCOME_LEXER_STATES
            outcome.given = size
    return outcome


cdef void core_close(Core* core) noexcept nogil:
    # End it.
    if core.index.deadline.swollen:
        core_look_at_lexemes(core)
    deadline_end(&core.index.deadline)
    core_overgrown(core)
    if core.index.bytes.value() > core.index.budget - core.index.budget // (2 * EVICT_ROOM):
        evict(core.index)
    core.index.lock.unlock()


cdef Outcome core_leave(Core* core) noexcept nogil:
    cdef Outcome outcome = core_outcome(core)
    core_close(core)
    return outcome


# --- states ---------------------------------------------------------------------------------

cdef cbool thread_before(const Thread& a, const Thread& b) noexcept nogil:
    if a.lex != b.lex:
        return <uint64_t>a.lex < <uint64_t>b.lex
    if a.parser != b.parser:
        return a.parser < b.parser
    if a.text != b.text:
        return a.text < b.text
    return <uint64_t>a.watch < <uint64_t>b.watch


cdef inline cbool thread_same(const Thread& a, const Thread& b) noexcept nogil:
    return a.lex == b.lex and a.parser == b.parser and a.text == b.text and a.watch == b.watch


cdef void threads_normalize(vector[Thread]& threads) noexcept nogil:
    # Sorted, each once.
    cdef size_t i, j = 0
    sort(threads.begin(), threads.end(), &thread_before)
    for i in range(threads.size()):
        if j == 0 or not thread_same(threads[i], threads[j - 1]):
            threads[j] = threads[i]
            j += 1
    threads.resize(j)


cdef int32_t matcher_intern(Core* core, vector[Thread]& threads) noexcept nogil:
    if core.program.lexer != NULL:
        threads_keep_alive(core, threads)
    return NO_STATE if threads.empty() else threads_intern(core, threads)


cdef int32_t threads_intern(Core* core, vector[Thread]& threads) noexcept nogil:
    # The state of threads that can be completed.
    cdef MatcherState* state
    cdef int32_t known
    threads_normalize(threads)
    # A thread has no padding.
    known = core.state_ids.find(threads.data(), threads.size() * sizeof(Thread))
    if known >= 0:
        return known
    core.state_ids.insert(threads.data(), threads.size() * sizeof(Thread), <int32_t>core.states.size())
    state = core.states.add()
    state.threads = threads
    state.accepting = threads_complete(core, threads)
    return <int32_t>core.states.size() - 1


cdef cbool threads_complete(const Core* core, const vector[Thread]& threads) noexcept nogil:
    # Whether the text is complete.  Threads before a lexeme come first.
    cdef size_t i
    for i in range(threads.size()):
        if threads[i].lex != NULL:
            return False
        if core.program.states[threads[i].parser].complete:
            return True
    return False


cdef inline Thread thread_at(int32_t parser, LexState* watch) noexcept nogil:
    cdef Thread thread
    thread.lex = NULL
    thread.watch = watch
    thread.parser = parser
    thread.text = 0
    return thread


cdef int32_t matcher_start(Core* core) noexcept nogil:
    cdef vector[Thread] threads
    cdef Thread thread = thread_at(NO_STATE, NULL)
    thread.parser = state_start(core.program, core.program.start_rule)
    if thread.parser == NO_STATE:
        return NO_STATE
    threads.push_back(thread)
    return matcher_intern(core, threads)


cdef void edge_add(Core* core, int32_t id, int32_t token, int32_t target) noexcept nogil:
    cdef Edges[int32_t]* edges = &core.states[id].edges
    core.index.bytes.subtract(edges.bytes())
    edges.insert(token, target)
    core.index.bytes.add(edges.bytes())
    core.edges += 1


cdef int32_t matcher_step_bytes(Core* core, int32_t id, const uint8_t* data, int64_t length) noexcept nogil:
    # The state behind some bytes, or NO_STATE.
    cdef vector[Thread] threads = core.states[id].threads
    cdef vector[Thread] after
    cdef int64_t i
    for i in range(length):
        if i & 15 == 15 and deadline_look(&core.index.deadline):
            return NO_STATE
        threads_step(core, threads, data[i], after)
        if after.empty():
            return NO_STATE
        threads.swap(after)
    return matcher_intern(core, threads)


cdef int64_t matcher_read(Core* core, int32_t id, const uint8_t* data, int64_t length) noexcept nogil:
    # How many bytes can come next.
    cdef vector[Thread] threads = core.states[id].threads
    cdef vector[Thread] after
    cdef int64_t i
    for i in range(length):
        if i & 15 == 15 and deadline_look(&core.index.deadline):
            return i
        threads_step(core, threads, data[i], after)
        if not threads_alive(core, after):
            return i
        threads.swap(after)
    return length


# --- masks ----------------------------------------------------------------------------------

cdef cbool threads_pending(Core* core, const vector[Thread]& threads) noexcept nogil:
    # Whether some thread is in a key or an item that may have come before, in this very token.
    cdef size_t i
    for i in range(threads.size()):
        if threads[i].text < 0 and tracker_doubtful(&core.tracker, threads[i].text):
            return True
        if (threads[i].lex != NULL and threads[i].lex.automaton.kind == KIND_KEYSET
                and threads[i].lex.key.pending):
            return True
    return False


cdef void mask_check(Core* core, const vector[Thread]& threads, const ResidualView& view, uint32_t node,
                     vector[int32_t]& added) noexcept nogil:
    # Add the tokens at a node and below that the whole state allows, each on its own.
    cdef const Trie* trie = view.trie
    cdef vector[Thread] before, after
    cdef const uint8_t* data = core.index.token_data
    cdef const int64_t* starts = core.index.token_starts
    cdef int32_t t, token
    cdef int64_t i
    if core.index.opening != NULL and trie == &core.index.opening.trie:
        data = core.index.opening.data.data()
        starts = core.index.opening.starts.data()
    for t in range(trie.nodes[node].token, trie.nodes[trie.nodes[node].end].token):
        token = trie.tokens[t]
        before = threads
        for i in range(starts[token], starts[token + 1]):
            threads_step(core, before, data[i], after)
            before.swap(after)
            if before.empty():
                break
        if threads_alive(core, before):
            added.push_back(token)


cdef void mask_walk(Core* core, const vector[Thread]& threads, const ResidualView& view,
                    const vector[Thread]& start, vector[int32_t]& added) noexcept nogil:
    # Add the tokens of the residuals that `start` accepts; `threads` are those of the whole state.
    # Which key a token completes matters only if another one begins in it: then it is checked on its own.
    cdef const Trie* trie = view.trie
    cdef uint32_t node = view.first
    cdef size_t depth
    cdef int32_t t
    core.stack[0] = start
    core.walks = True
    while node < view.last:
        if deadline_passed(&core.index.deadline):
            break
        depth = <size_t>(trie.nodes[node].depth - view.depth)
        threads_step(core, core.stack[depth - 1], trie.nodes[node].byte, core.stack[depth])
        if core.stack[depth].empty():
            node = trie.nodes[node].end
            continue
        if threads_pending(core, core.stack[depth]):
            core.walks = False
            mask_check(core, threads, view, node, added)
            core.walks = True
            node = trie.nodes[node].end
            continue
        if (trie.nodes[node].token < trie.nodes[node + 1].token
                and threads_alive(core, core.stack[depth])):
            for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
                added.push_back(trie.tokens[t])
        node += 1
    core.walks = False


cdef void mask_behind(Core* core, LexState* lex, int32_t tag, int32_t parser, int32_t key, vector[Thread]& out,
                      uint64_t* first) noexcept nogil:
    # The threads behind a lexeme, where nothing is tracked, and the bytes that they may begin with.
    cdef Thread thread = thread_at(state_goto(core.program, parser, lex.automaton, tag, key), NULL)
    cdef int32_t guard
    cdef size_t i, j
    out.clear()
    memset(first, 0, 32)
    if thread.parser != NO_STATE:
        out.push_back(thread)
    for guard in core.program.states[parser].guards:
        thread.parser = state_goto_guarded(core.program, parser, lex.automaton, tag, guard)
        if thread.parser != NO_STATE:
            thread.text = tracker_open(&core.tracker, 0, guard)
            out.push_back(thread)
    for i in range(out.size()):
        for j in range(4):
            first[j] |= core.program.states[out[i].parser].first[j]


cdef cbool mask_open(Core* core, LexMask* mask, LexState* lex, int32_t parser) noexcept nogil:
    # Add crossings that were left out, if something can follow them; False when time is up.
    cdef vector[Thread] behind
    cdef uint64_t first[4]
    if mask.open_tag == NO_TAG:
        return True
    mask_behind(core, lex, mask.open_tag, parser, NO_KEY, behind, first)
    return (first[0] | first[1] | first[2] | first[3]) == 0 or lexmask_open(mask, lex)


cdef void mask_add_crossing(Core* core, const vector[Thread]& threads, LexMask* mask, LexState* lex,
                            int32_t parser, vector[int32_t]& added) noexcept nogil:
    # `mask` is lex's own or that of its base automaton.
    cdef size_t i
    cdef int32_t tag, known = NO_TAG
    cdef vector[Thread] behind
    cdef uint64_t first[4]
    # Many keys end in this group: which one it was matters only if the token goes on to the next one.
    cdef int32_t key = ANY_KEY if lex_keeps_text(lex) else NO_KEY
    if not mask_open(core, mask, lex, parser):
        return
    for i in range(mask.crossings.size()):
        if mask.crossings[i].tag != known:
            known = mask.crossings[i].tag
            tag = known if lex.base == NULL else lex.automaton.other_tag + known
            mask_behind(core, lex, tag, parser, key, behind, first)
        if not bits_has(first, mask.crossings[i].byte):
            continue
        if not frames_fit(core, behind) or not mask_add_frames(core, threads, mask, i, behind, added):
            mask_walk(core, threads, lexmask_residual(mask, i), behind, added)


cdef void mask_add_overrides(Core* core, const vector[Thread]& threads, Mask* mask, LexMask* names,
                             LexState* lex, int32_t parser) noexcept nogil:
    # Tokens that complete a name are decided by what follows that member.
    cdef ResidualView view
    cdef Override override
    cdef vector[Thread] behind
    cdef uint64_t first[4]
    cdef int32_t t
    cdef const Trie* trie = core.index.trie
    view.trie = trie
    for override in names.overrides:
        view.first = override.node + 1
        view.last = trie.nodes[override.node].end
        view.depth = trie.nodes[override.node].depth
        for t in range(trie.nodes[override.node].token, trie.nodes[view.last].token):
            mask.removed.push_back(trie.tokens[t])
        if override.tag == NO_TAG:
            continue
        mask_behind(core, lex, override.tag, parser, NO_KEY, behind, first)
        if not behind.empty():
            for t in range(trie.nodes[override.node].token, trie.nodes[view.first].token):
                mask.added.push_back(trie.tokens[t])
            mask_walk(core, threads, view, behind, mask.added)


cdef void mask_free(Core* core, Mask* mask) noexcept nogil:
    if mask != NULL:
        core.index.bytes.subtract(mask_size(mask))
        bits_release(core.index, mask.bits)
        del mask


cdef int64_t mask_size(const Mask* mask) noexcept nogil:
    # Bytes of a finished mask, without its bits.
    return <int64_t>(sizeof(Mask) + (mask.base.size() + mask.removed.size() + mask.added.size()) * 4)


cdef void mask_flatten(Core* core, Mask* mask) noexcept nogil:
    # Replace shared bits and lists by one bitset of its own.
    cdef int32_t t
    mask.bits = bits_owned(core.index, mask.bits)
    for t in mask.base:
        bits_add(mask.bits, t)
    for t in mask.removed:
        bits_remove(mask.bits, t)
    for t in mask.added:
        bits_add(mask.bits, t)
    mask.base.clear()
    mask.removed.clear()
    mask.added.clear()


cdef void mask_join_bits(Core* core, Mask* mask, Bits* bits) noexcept nogil:
    cdef size_t i
    if bits == NULL or bits == mask.bits:
        return
    if mask.bits == NULL:
        mask.bits = bits_hold(bits)
        return
    mask_flatten(core, mask)
    bits_unite(mask.bits, bits)


cdef void mask_add_thread(Core* core, const vector[Thread]& threads, Mask* mask, LexState* lex,
                          int32_t parser) noexcept nogil:
    # Add what one thread allows; its lexer state lists no overrides.
    cdef LexMask* own = lexmask_get(lex, core.index)
    cdef LexMask* base
    if own == NULL:
        return
    base = own if own.base == NULL else own.base
    mask_join_bits(core, mask, own.bits)
    mask_join_bits(core, mask, base.bits)
    mask.added.insert(mask.added.end(), own.inside.begin(), own.inside.end())
    if base != own:
        mask.added.insert(mask.added.end(), base.inside.begin(), base.inside.end())
    mask_add_crossing(core, threads, base, lex, parser, mask.added)


cdef void mask_set_overridden(Core* core, const vector[Thread]& threads, Mask* mask, LexState* lex,
                              int32_t parser) noexcept nogil:
    # What one thread with overrides allows, into an empty mask: the base's tokens but those that
    # complete a name, then these as their member decides.
    cdef LexMask* own = lexmask_get(lex, core.index)
    mask.base = own.base.inside
    mask.base.insert(mask.base.end(), own.inside.begin(), own.inside.end())
    mask_join_bits(core, mask, own.bits)
    mask_join_bits(core, mask, own.base.bits)
    mask_add_crossing(core, threads, own.base, lex, parser, mask.base)
    mask_add_overrides(core, threads, mask, own, lex, parser)


cdef void mask_join_thread(Core* core, const vector[Thread]& threads, Mask* mask, LexState* lex,
                           int32_t parser, cbool alone) noexcept nogil:
    # One thread among others: removals must not touch what the others allow.
    cdef LexMask* own = lexmask_get(lex, core.index)
    cdef Mask part
    if own == NULL:
        return
    if own.overrides.empty():
        mask_add_thread(core, threads, mask, lex, parser)
    elif alone:
        mask_set_overridden(core, threads, mask, lex, parser)
    else:
        part.bits = NULL
        mask_set_overridden(core, threads, &part, lex, parser)
        mask_flatten(core, &part)
        mask_join_bits(core, mask, part.bits)
        bits_release(core.index, part.bits)


cdef inline void mask_join(Core* core, Mask* mask, const vector[Thread]& threads, const Thread& thread,
                           cbool begun, cbool alone) noexcept nogil:
    # `begun`: the thread's lexeme was, else it starts here.
    if thread.text < 0:
        distinct_mask(core, mask, thread, begun, alone)
    else:
        mask_join_thread(core, threads, mask, thread.lex, thread.parser, alone)


cdef Mask* mask_get(Core* core, int32_t id) noexcept nogil:
    # NULL when time is up.
    cdef MatcherState* state = core.states[id]
    cdef Mask* mask = state.mask
    cdef ParserState* parser
    cdef Thread thread
    cdef size_t i, j
    cdef int32_t t
    state.used = True
    if mask != NULL:
        return mask
    mask = new Mask()
    mask.bits = NULL
    if id == core.opening:
        mask_opening(core, mask)
    elif core.program.lexer != NULL:
        mask_lexed(core, state.threads, mask)
    for i in range(state.threads.size() if core.program.lexer == NULL and id != core.opening else 0):
        thread = state.threads[i]
        if thread.lex != NULL:
            mask_join(core, mask, state.threads, thread, True, state.threads.size() == 1)
            continue
        parser = core.program.states[thread.parser]
        for j in range(parser.starts.size()):
            thread.lex = parser.starts[j]
            mask_join(core, mask, state.threads, thread, False, state.threads.size() == 1 and parser.starts.size() == 1)
    if core.program.has_tokens and id != core.opening:
        mask_add_tokens(core, state.threads, mask)
    if state.accepting and id != core.opening:
        for t in core.eos:
            mask.added.push_back(t)
    core.index.bytes.add(mask_size(mask))
    if core.index.deadline.passed:
        mask_free(core, mask)
        return NULL
    state.mask = mask
    return mask


cdef void mask_write(const Core* core, Mask* mask, uint32_t* row) noexcept nogil:
    # Expand into a row of `core.words` words.
    cdef int32_t t
    if mask.bits != NULL:
        memcpy(row, mask.bits.words.data(), core.words * 4)
    else:
        memset(row, 0, core.words * 4)
    for t in mask.base:
        row[t >> 5] |= (<uint32_t>1) << (t & 31)
    for t in mask.removed:
        row[t >> 5] &= ~((<uint32_t>1) << (t & 31))
    for t in mask.added:
        row[t >> 5] |= (<uint32_t>1) << (t & 31)
