# Generations: what a grammar keeps of the texts that came is bounded.
#
# What texts reach is interned in a core, and nothing is ever taken out of one.  When a core has more bytes than its *room*, the
# grammar begins a new one, its next *generation*, linked from the same tables: new matchers begin there, and others move to it
# (move.pxi) when they are next asked for something; those that nobody asks are fetched, a few at each operation of others
# (fetch_matchers).  Who is in a core is counted; when nobody is left in an old one, the reaper frees it in small steps.  What moved into a core is alive, so its room is at least twice that: however
# much the texts at hand need, moving is a fixed part of the work that filled a core.

cdef enum:
    ALLOCATION = 16        # what an allocation takes besides
    EDGES_ENTRY = 40       # the edges over bytes of one state, which mostly are two at most
    MAP_ENTRY = 48         # an entry of an unordered map of numbers, with its share of buckets


cdef inline int64_t vector_bytes(size_t capacity, size_t item) noexcept nogil:
    return <int64_t>(capacity * item + ALLOCATION) if capacity else 0


cdef int64_t program_bytes(const Program* program) noexcept nogil:
    # Of everything reached so far.
    return (program.held
            + <int64_t>(program.node_ids.bytes() + program.cycle_ids.bytes() + program.state_ids.bytes()
                        + program.kernel_ids.bytes() + program.local_ids.bytes() + program.key_sets.bytes())
            + <int64_t>(program.nodes.size() * sizeof(StackNode) + program.states.size() * sizeof(ParserState)
                        + program.locals.size() * (sizeof(Local) + ALLOCATION)
                        + program.unions.size() * MAP_ENTRY))


cdef int64_t core_bytes(const Core* core) noexcept nogil:
    # Of everything computed for a grammar but masks and token edges.
    return (program_bytes(core.program) + core.tracker.held + core.tracker.store.held + indices_bytes(&core.tracker)
            + <int64_t>(core.state_ids.bytes() + core.alive.bytes() + core.careless.bytes() + core.powers.bytes() + core.costs.embedded.bytes()
                        + core.endless.bytes()
                        + core.tracker.state_ids.bytes()
                        + core.tracker.frame_ids.bytes() + core.tracker.store.ids.bytes() + core.tracker.store.cell_ids.bytes())
            + <int64_t>(core.states.size() * (sizeof(MatcherState) + 2 * ALLOCATION + 2 * sizeof(Thread))
                        + core.tracker.states.size() * (2 * sizeof(TrackerState) + EDGES_ENTRY)
                        + core.tracker.store.texts.before.size() * (2 * sizeof(int32_t) + EDGES_ENTRY)
                        + core.tracker.store.cells.size() * sizeof(Cell)
                        + core.tracker.frames.size() * (sizeof(Frame) + 3 * ALLOCATION)
                        + core.tracker.store.values.size() * (sizeof(Value) + 3 * ALLOCATION)
                        + (core.costs.nodes.size() + core.costs.lexemes.size() + core.costs.behind.size()
                           + core.costs.plain.size()) * MAP_ENTRY))


cdef inline cbool core_overgrown(Core* core) noexcept nogil:
    # Whether the grammar should begin another generation.
    if not core.overgrown and core.room > 0:
        core.overgrown = core_bytes(core) > max(core.room, 2 * (core.live + core.tracker.remade))
    return core.overgrown


cdef int64_t core_lexer_states(const Core* core) noexcept nogil:
    # The states of its largest automaton.
    cdef int64_t size = 0
    cdef size_t i
    if core.program.lexer != NULL:
        size = lex_size(core.program.lexer)
    for i in range(core.program.automata.size()):
        if lex_size(core.program.automata[i]) > size:
            size = lex_size(core.program.automata[i])
    return size


cdef cbool lexeme_is_swollen(const Automaton* automaton, int64_t most_states, int64_t most_bytes) noexcept nogil:
    # Whether so many states were reached that a new generation should have an automaton of its own for it.
    return (automaton.kind == KIND_TEXT and automaton.lexer == NULL and not automaton.is_base
            and (lex_size(automaton) > most_states // 2 or automaton.codes.held > most_bytes // 2))


cdef void core_look_at_lexemes(Core* core) noexcept nogil:
    cdef size_t i
    for i in range(core.program.automata.size() if core.room > 0 else 0):
        if lexeme_is_swollen(core.program.automata[i], core.max_lexer_states, core.max_bytes):
            core.overgrown = True


cdef void core_settle(Core* core, int64_t before) noexcept nogil:
    # What was added since there were so many bytes is alive: there must be room for as much again.
    core.live += core_bytes(core) - before
    core.tracker.moved = <int32_t>core.tracker.store.values.size()
    if core.room > 0:
        core.room = max(core.index.state_budget, 2 * core.live)


cdef Core* core_new(Index* index) except NULL:
    # Not linked yet.  Whoever asks is in it.
    cdef Core* core = new Core()
    core.program = new Program()
    core.program.column = new Column()
    core.program.index = index
    core.program.lexer = NULL
    core.program.has_tokens = False
    core.program.held = 0
    core.program.most_bytes = NO_LIMIT
    core.program.first_line = NO_STATE
    core.costs = new Costs()
    core.costs.settled = False
    core.index = index
    core.words = index.words
    core.edges = 0
    core.tracker.held = core.tracker.listed = core.tracker.remade = core.tracker.store.held = 0
    core.tracker.moved = 0
    core.set_states = 0
    core.walks = False
    core.bottom = UNKNOWN
    core.start = core.opening = core.begin = UNKNOWN
    core.holders = 1
    core.matchers = core.mover = NULL
    core.handles = NULL
    core.room = core.live = 0
    core.overgrown = False
    return core


cdef void core_let_go(Core* core) noexcept:
    # One less is in it.  Holders are counted under the interpreter's lock.
    cdef Index* index = core.index
    cdef Core* target = NULL
    cdef size_t i
    core.holders -= 1
    if core.holders > 0:
        return
    if core.handles != NULL:
        # Those that nobody else has are freed with all their states.
        Py_DECREF(<object>core.handles)
        core.handles = NULL
    if core.mover != NULL:
        target = mover_target(core.mover)
    with nogil:
        index.lock.lock()
        for i in range(index.cores.size()):
            if index.cores[i] == core:
                index.cores[i] = index.cores.back()
                index.cores.pop_back()
                break
        for i in range(core.program.keysets.size()):
            lexsets_free(core.program.keysets[i])
        index.lock.unlock()
        Reaper.instance().take(index, core, core_free)
    if target != NULL:
        core_let_go(target)


cdef Outcome core_open(Core* core, const Core* before) noexcept nogil:
    # The state in which texts begin; what the generation before found out about rules is kept.
    core_enter(core)
    core.index.cores.push_back(core)
    if before != NULL:
        core.costs.rules = before.costs.rules
        core.costs.plain = before.costs.plain
        core.costs.tagged = before.costs.tagged
        core.costs.settled = before.costs.settled
    if core.program.lexer != NULL:
        terminals_begin(core.program)
    core.begin = core.start = matcher_start(core)
    if core.start != NO_STATE and core.index.opening != NULL:
        core.begin = core.opening = opening_state(core)
    core_settle(core, 0)
    return core_leave(core)
