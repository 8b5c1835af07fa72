# Generations: what a grammar keeps of the texts that came is bounded.
#
# What texts reach is interned in a core, and nothing is ever taken out of one.  When a core has more bytes than its *room*, the
# grammar begins a new one, its next *generation*, linked from the same tables: new matchers begin there, and others move to it
# (moves.pyx) when they are next asked for something; those that nobody asks are fetched, a few at each operation of others
# (fetch_matchers).  Who is in a core is counted; when nobody is left in an old one, the thread of deferred frees takes it in small steps.
# What moved into a core is alive, so its room is at least twice that: however much the texts at hand need, moving is a fixed part of the work
# that filled a core.

from libc.string cimport memset
from libcpp.atomic cimport memory_order_relaxed

from maskwright.errors import LimitError

from maskwright._engine.containers cimport seconds_now
from maskwright._engine.sizes cimport ALLOCATION, EDGES_ENTRY, MAP_ENTRY
from maskwright._engine.limits cimport deadline_begin, deadline_end, NO_LIMIT, deferred_free_finish
from maskwright._engine.vocabulary cimport Bits, opening_marks
from maskwright._engine.turns cimport turns_begin
from maskwright._engine.char_index cimport bits_add, bits_hold, bits_new, EVICT_ROOM, index_forget_slices
from maskwright._engine.lexeme_texts cimport lex_size
from maskwright._engine.lexeme_mask cimport evict_lexstate, masktable_evict
from maskwright._engine.longest_match cimport lexer_of
from maskwright._engine.longest_match_walks cimport lexer_forget_masks
from maskwright._engine.program cimport Column, Costs, NO_STATE, Program, UNKNOWN
from maskwright._engine.stacks cimport program_bytes, terminals_begin
from maskwright._engine.tracked cimport Cell, Frame, TrackerState, Value
from maskwright._engine.item_groups cimport indices_bytes
from maskwright._engine.core cimport (
    Mask, MatcherState, OUTCOME_BYTES, OUTCOME_GOOD, OUTCOME_INTERRUPTED, OUTCOME_LATE, OUTCOME_LEXER_STATES, OUTCOME_MEMORY,
    OUTCOME_PARSER_STATES, OUTCOME_SEARCH, OUTCOME_SET_BYTES, OUTCOME_SETS_GONE, TERMINATED, Thread
)
from maskwright._engine.threads cimport state_waits_for
from maskwright._engine.states cimport (
    edge_add, mask_flatten, mask_free, mask_size, mask_write, matcher_start, matcher_step_bytes, matcher_step_token
)
from maskwright._engine.frame_masks cimport framemasks_forget
from maskwright._engine.lexed_masks cimport plans_forget
from maskwright._engine.masks cimport mask_get, opening_silent, opening_state


cdef int64_t core_bytes(const Core* core) noexcept nogil:
    # Of everything computed for a grammar but masks and token edges.
    return (program_bytes(core.program) + core.tracker.held + core.tracker.store.held + indices_bytes(&core.tracker)
            + <int64_t>(core.state_ids.bytes() + core.facts.alive.bytes() + core.facts.shut_in.bytes() + core.facts.embedded.bytes()
                        + core.facts.careless.bytes() + core.facts.powers.bytes()
                        + core.costs.embedded.bytes()
                        + core.facts.endless.bytes() + 8 * (core.facts.rests.plain.size() + core.facts.rests.rules.size())
                        + MAP_ENTRY * core.facts.rests.nodes.size()
                        + core.facts.free.size() + core.facts.free_rules.size() + core.facts.free_nodes.size()
                        + core.facts.free_threads.bytes()
                        + core.tracker.state_ids.bytes()
                        + core.tracker.frame_ids.bytes() + core.tracker.store.ids.bytes() + core.tracker.store.cell_ids.bytes())
            + <int64_t>(core.states.size() * (sizeof(MatcherState) + 2 * ALLOCATION + 2 * sizeof(Thread))
                        + core.tracker.states.size() * (2 * sizeof(TrackerState) + EDGES_ENTRY)
                        + core.tracker.store.texts.before.size() * (2 * sizeof(int32_t) + EDGES_ENTRY)
                        + core.tracker.store.cells.size() * sizeof(Cell)
                        + core.tracker.frames.size() * (sizeof(Frame) + 3 * ALLOCATION)
                        + core.tracker.store.values.size() * (sizeof(Value) + 3 * ALLOCATION)
                        + (core.costs.nodes.size() + core.costs.lexemes.size() + core.costs.behind.size()
                           + core.costs.plain.size() + 2 * core.facts.free_next.size() + 2 * core.facts.free_behind.size()
                           + 2 * core.facts.free_ends.size()) * MAP_ENTRY))


cdef inline void core_weigh(Core* core) noexcept nogil:
    # Says in it whether the grammar should begin another generation.
    if (core.generation.room > 0 and not core.generation.overgrown.load(memory_order_relaxed)
            and core_bytes(core) > max(core.generation.room, 2 * (core.generation.live + core.tracker.remade))):
        core.generation.overgrown.store(True, memory_order_relaxed)


cdef cbool lexeme_is_swollen(const Automaton* automaton, int64_t most_states, int64_t most_bytes) noexcept nogil:
    # Whether so many states were reached, in it or in the one for other keys, that a new generation should have an automaton of its own.
    if automaton.keyset.base != NULL and lexeme_is_swollen(automaton.keyset.base, most_states, most_bytes):
        return True
    return (lex_size(automaton) > most_states // 2
            or automaton.dfa != NULL and automaton.dfa.held.load(memory_order_relaxed) > most_bytes // 2)


cdef void core_look_at_lexemes(Core* core) noexcept nogil:
    cdef size_t i
    cdef cbool swollen = False
    if core.generation.room <= 0:
        return
    if core.program.lexer != NULL:
        swollen = lexeme_is_swollen(core.program.lexer, core.limits.max_lexer_states, core.limits.max_bytes)
    for i in range(core.program.automata.size()):
        swollen = swollen or lexeme_is_swollen(core.program.automata[i], core.limits.max_lexer_states, core.limits.max_bytes)
    if swollen:
        core.generation.overgrown.store(True, memory_order_relaxed)


cdef void core_meet_others(Core* core) noexcept nogil:
    # Before an operation: other grammars may have filled the automata that this one shares.  Not each time, as all are looked at.
    core.index.lock.lock()
    core.generation.look_above.store(
        core.index.cache.largest.load(memory_order_relaxed) + core.limits.max_lexer_states // 16, memory_order_relaxed)
    core_look_at_lexemes(core)
    core.index.lock.unlock()


cdef void core_settle(Core* core, int64_t before) noexcept nogil:
    # What was added since there were so many bytes is alive: there must be room for as much again.
    core.generation.live += core_bytes(core) - before
    core.tracker.moved = <int32_t>core.tracker.store.values.size()
    if core.generation.room > 0:
        core.generation.room = max(core.index.cache.state_budget, 2 * core.generation.live)


cdef Core* core_new(Index* index) except NULL:
    # Not linked yet.  Whoever asks is in it.
    cdef Core* core = new Core()
    core.program = new Program()
    core.program.column = new Column()
    core.program.index = index
    core.program.lexer = NULL
    core.program.has_tokens = core.program.has_boundaries = False
    core.program.held = 0
    core.program.most_bytes = NO_LIMIT
    core.away = False
    core.costs = new Costs()
    core.costs.settled = False
    core.index = index
    core.words = index.words
    core.edges = 0
    core.tracker.held = core.tracker.listed = core.tracker.remade = core.tracker.store.held = 0
    core.tracker.moved = 0
    core.set_states = 0
    core.scratch.walks = False
    core.facts.looks_behind = False
    core.frames.bottom = UNKNOWN
    core.start = core.opening = core.begin = UNKNOWN
    core.generation.holders = 1
    core.generation.matchers = core.generation.mover = NULL
    core.handles = NULL
    core.generation.room = core.generation.live = 0
    core.generation.look_above.store(NO_LIMIT, memory_order_relaxed)
    core.plans.made = core.plans.used = 0
    core.generation.overgrown.store(False, memory_order_relaxed)
    return core


cdef Outcome core_open(Core* core, const Core* before) noexcept nogil:
    # The state in which texts begin; what the generation before found out about rules is kept.
    core_enter(core)
    core.index.cache.cores.push_back(core)
    if before != NULL and before.costs.settled:
        core.costs.rules = before.costs.rules
        core.costs.plain = before.costs.plain
        core.costs.tagged = before.costs.tagged
        core.costs.settled = True
    if core.program.lexer != NULL:
        terminals_begin(core.program)
    core.begin = core.start = matcher_start(core)
    if core.start != NO_STATE and core.index.opening != NULL:
        core.begin = core.opening = opening_state(core)
    core_settle(core, 0)
    return core_leave(core)


# --- Keeping what is cached below a number of bytes.
#
# Everything cached can be computed again: masks of matcher states and of lexer states, token edges, slices.  When an operation
# leaves nearly as much as the budget, a *hand* goes on along all states from where it stopped the last time: what was used since it
# came by is marked as unused, what was not is dropped, until there is a little room.  It looks at a bounded number of states, so
# nobody waits long, and begins early enough for that to do.  Only where an operation leaves more than the budget does it go on until
# there is room; if it came round twice and that was not enough, everything goes.  Whoever still refers to a bitset holds it, so
# nothing dangles.

cdef enum:
    EVICT_LOOKS = 1024     # states that the hand looks at behind one operation


cdef void evict_state(Core* core, MatcherState* state, cbool all_of_them) noexcept nogil:
    if state.used.load(memory_order_relaxed) and not all_of_them:
        state.used.store(False, memory_order_relaxed)
        return
    mask_free(core, state.mask)
    state.mask = NULL
    core.index.cache.bytes.subtract(state.edges.bytes())
    core.edges -= <int64_t>state.edges.count()
    state.edges.clear()


cdef void evict_tables(Automaton* automaton, cbool all_of_them) noexcept nogil:
    # What an automaton keeps besides the masks of its states.
    if automaton.counted != NULL:
        masktable_evict(automaton.counted, all_of_them)
    if automaton.lexer != NULL:
        lexer_forget_masks(lexer_of(automaton), all_of_them)


cdef cbool evict_states(Index* index, Automaton* automaton, int64_t goal, cbool all_of_them, int64_t* looks) noexcept nogil:
    # Those of an automaton, from where the hand is; whether it came to the end of them.
    cdef size_t size = automaton.states.size()
    while index.cache.hand_item < size and looks[0] > 0 and index.cache.bytes.value() > goal:
        evict_lexstate(automaton.states[index.cache.hand_item], all_of_them)
        index.cache.hand_item += 1
        looks[0] -= 1
    return index.cache.hand_item >= size


cdef cbool evict_core(Index* index, Core* core, int64_t goal, cbool all_of_them, int64_t* looks) noexcept nogil:
    # The same of a core: its states, then those of each keyset of its own.
    cdef size_t size = core.states.size()
    if index.cache.hand_part == 0:
        while index.cache.hand_item < size and looks[0] > 0 and index.cache.bytes.value() > goal:
            evict_state(core, core.states[index.cache.hand_item], all_of_them)
            index.cache.hand_item += 1
            looks[0] -= 1
        if index.cache.hand_item < size:
            return False
        framemasks_forget(core)
        plans_forget(core)
        index.cache.hand_part = 1
        index.cache.hand_item = 0
    while index.cache.hand_part <= core.program.keysets.size():
        if not evict_states(index, core.program.keysets[index.cache.hand_part - 1], goal, all_of_them, looks):
            return False
        index.cache.hand_part += 1
        index.cache.hand_item = 0
    return True


cdef void evict_along(Index* index, int64_t goal, cbool all_of_them, int64_t looks) noexcept nogil:
    # The hand goes on until there are no more bytes than `goal`, at most twice round, and over at most so many states.  It passes by
    # grammars and lexers of which an operation is away (turns.pyx).
    cdef size_t units = index.cache.cores.size() + index.cache.automata.size(), passed = 0
    cdef Automaton* automaton
    cdef Core* core
    cdef cbool whole, away
    while passed <= 2 * units and looks > 0 and index.cache.bytes.value() > goal:
        if index.cache.hand_unit >= units:
            index.cache.hand_unit = index.cache.hand_part = index.cache.hand_item = 0
        if index.cache.hand_unit < index.cache.cores.size():
            core = <Core*>index.cache.cores[index.cache.hand_unit]
            away = core_away(core)[0]
            if away and looks <= EVICT_LOOKS and index.cache.hand_part + index.cache.hand_item > 0:
                # It was in the middle of this one, and goes on there the next time.
                return
            whole = away or evict_core(index, core, goal, all_of_them, &looks)
        else:
            automaton = <Automaton*>index.cache.automata[index.cache.hand_unit - index.cache.cores.size()]
            away = automaton.lexer != NULL and lexer_of(automaton).away
            whole = away or evict_states(index, automaton, goal, all_of_them, &looks)
            if whole and not away:
                evict_tables(automaton, all_of_them)
        if whole:
            index.cache.hand_part = index.cache.hand_item = 0
            index.cache.hand_unit += 1
            passed += 1
            looks -= 1


cdef inline int64_t evict_goal(const Index* index) noexcept nogil:
    return index.cache.budget - index.cache.budget // EVICT_ROOM


cdef void evict(Index* index) noexcept nogil:
    # To be called between operations, with the lock held exclusively.
    cdef int64_t goal = evict_goal(index)
    evict_along(index, goal, False, EVICT_LOOKS if index.cache.bytes.value() <= index.cache.budget else NO_LIMIT)
    if index.cache.bytes.value() <= index.cache.budget:
        return
    deferred_free_finish(index)
    if index.cache.bytes.value() > goal:
        # While operations are away, what is left may be theirs.
        if index.away == 0:
            index.cache.hand_unit = index.cache.hand_part = index.cache.hand_item = 0
            evict_along(index, 0, True, NO_LIMIT)
        index_forget_slices(index)


# --- Masks and edges of states: those that are known, under a shared lock, and others, which take an operation.

cdef cbool fill_known(Core* core, int32_t id, uint32_t* row) noexcept nogil:
    # Write a mask that exists already, under a shared lock; False when there is none.  Of no state it is empty.
    cdef int32_t t
    if id < 0:
        memset(row, 0, core.words * 4)
        if id == TERMINATED:
            for t in core.eos:
                row[t >> 5] |= (<uint32_t>1) << (t & 31)
        return True
    if core.states[id].mask == NULL:
        return False
    core.states[id].used.store(True, memory_order_relaxed)
    mask_write(core, core.states[id].mask, row)
    return True


cdef Outcome fill_new(Core* core, int32_t id, uint32_t* row) noexcept nogil:
    cdef Mask* mask
    core_enter_turns(core)
    mask = mask_get(core, id)
    if mask != NULL:
        mask_write(core, mask, row)
    return core_leave(core)


cdef Bits* bits_of_state(Core* core, int32_t id) noexcept nogil:
    # The mask of a state as one bitset, held once more; NULL when time is up.
    cdef Mask* mask
    cdef Bits* bits
    cdef int32_t t
    if id == TERMINATED:
        bits = bits_new(core.index)
        for t in core.eos:
            bits_add(bits, t)
        return bits
    mask = mask_get(core, id)
    if mask == NULL:
        return NULL
    if mask.bits == NULL or not (mask.base.empty() and mask.removed.empty() and mask.added.empty()):
        core.index.cache.bytes.subtract(mask_size(mask))
        mask_flatten(core, mask)
        core.index.cache.bytes.add(mask_size(mask))
    return bits_hold(mask.bits)


cdef int32_t edge_known(Core* core, int32_t state, int32_t token) noexcept nogil:
    # The state behind a token, NO_STATE where it is not allowed, UNKNOWN where that takes an operation; under a shared lock.
    cdef int32_t target, t
    if state < 0:
        return NO_STATE
    target = core.states[state].edges.find(token)
    if target != UNKNOWN or core.index.token_starts[token + 1] > core.index.token_starts[token]:
        return target
    if core.program.has_tokens and state_waits_for(core, state, token):
        return UNKNOWN
    for t in core.eos:
        if t == token and core.states[state].accepting:
            return TERMINATED
    return NO_STATE


cdef Outcome edge_new(Core* core, int32_t state, int32_t token, const uint8_t* data, int64_t length,
                      int32_t* target) noexcept nogil:
    # As `edge_make`, as an operation.
    core_enter_turns(core)
    target[0] = edge_make(core, state, token, data, length)
    return core_leave(core)


cdef int32_t edge_make(Core* core, int32_t state, int32_t token, const uint8_t* data, int64_t length) noexcept nogil:
    # The state behind the bytes of a token (-1: behind any bytes).
    cdef int32_t target = UNKNOWN if token < 0 else core.states[state].edges.find(token)
    cdef cbool text = length > 0
    if token < 0 and length == 0:
        return state
    if target == UNKNOWN:
        if token >= 0 and state == core.opening and opening_marks(core.index, token):
            data = core.index.opening.data.data() + core.index.opening.starts[token]
            length = core.index.opening.starts[token + 1] - core.index.opening.starts[token]
        if text and length == 0 and not state_waits_for(core, state, token):
            target = opening_silent(core)
        elif token >= 0 and core.program.has_tokens:
            target = matcher_step_token(core, state, token, text, data, length)
        else:
            target = matcher_step_bytes(core, state, data, length)
        if token >= 0 and not core.index.deadline.passed:
            edge_add(core, state, token, target)
    return target


cdef cbool* core_away(Core* core) noexcept nogil:
    # Whether an operation on its tables has let others in (turns.pyx).
    return &core.away if core.program.lexer == NULL else &lexer_of(core.program.lexer).away


cdef void core_lock(Core* core) noexcept nogil:
    # The vocabulary's lock, to add to the tables of this grammar, or to look at what is not whole while one adds to it.
    core.index.lock.lock()
    while core_away(core)[0]:
        core.index.lock.stand_back()


cdef void core_enter(Core* core) noexcept nogil:
    # Begin an operation that may add to the tables.
    core_lock(core)
    deadline_begin(&core.index.deadline, core.limits.max_seconds, core.limits.max_lexer_states, core.limits.max_bytes)
    core.program.most_bytes = program_bytes(core.program) + core.limits.max_bytes


cdef void core_enter_turns(Core* core) noexcept nogil:
    # The same for one that may take long, and lets operations of other grammars in.
    core_enter(core)
    turns_begin(core.index, core_away(core))


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
    elif core.index.deadline.searched > core.limits.max_search:
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
        outcome.given = core.limits.max_seconds + seconds_now() - core.index.deadline.at
    elif size > core.limits.max_states:
        outcome.kind = OUTCOME_PARSER_STATES
        outcome.given = size
        # Others need little of what one text has filled: they go on in a new generation.
        if core.generation.room > 0:
            core.generation.overgrown.store(True, memory_order_relaxed)
    elif core.index.cache.largest.load(memory_order_relaxed) > core.limits.max_lexer_states:
        size = core_lexer_states(core)
        if size > core.limits.max_lexer_states:
            outcome.kind = OUTCOME_LEXER_STATES
            outcome.given = size
    return outcome


cdef void core_close(Core* core) noexcept nogil:
    # End it.
    if core.index.deadline.swollen:
        core_look_at_lexemes(core)
    deadline_end(&core.index.deadline)
    core_weigh(core)
    if core.index.cache.bytes.value() > core.index.cache.budget - core.index.cache.budget // (2 * EVICT_ROOM):
        evict(core.index)
    core.index.lock.unlock()


cdef Outcome core_leave(Core* core) noexcept nogil:
    cdef Outcome outcome = core_outcome(core)
    core_close(core)
    return outcome


cdef int check_outcome(Outcome outcome, const Core* core) except -1:
    if outcome.kind == OUTCOME_INTERRUPTED:
        raise KeyboardInterrupt
    if outcome.kind == OUTCOME_PARSER_STATES:
        raise LimitError("max_parser_states", outcome.given, core.limits.max_states)
    if outcome.kind == OUTCOME_LEXER_STATES:
        raise LimitError("max_lexer_states", outcome.given, core.limits.max_lexer_states)
    if outcome.kind == OUTCOME_BYTES:
        raise LimitError("max_bytes", outcome.given, core.limits.max_bytes)
    if outcome.kind == OUTCOME_SEARCH:
        raise LimitError("max_search", outcome.given, core.limits.max_search)
    if outcome.kind == OUTCOME_SET_BYTES:
        raise LimitError("max_set_bytes", outcome.given, core.limits.max_set_bytes)
    if outcome.kind == OUTCOME_MEMORY:
        raise LimitError("max_set_bytes", outcome.given, core.limits.max_set_bytes,
                         message=f"there is no memory for more than {outcome.given:.0f} bytes of sets of texts; "
                                 "lower Limits(max_set_bytes=...)")
    if outcome.kind == OUTCOME_SETS_GONE:
        raise LimitError("max_set_bytes", outcome.given, core.limits.max_set_bytes,
                         message="these sets of texts were dropped to make room (max_set_bytes): take new ones")
    if outcome.kind == OUTCOME_LATE:
        raise LimitError("max_seconds", outcome.given, core.limits.max_seconds)
    return 0
