# Arrays of different items: which threads can be completed, and the masks of states inside such arrays.
#
# A thread whose text is tracked (tracker.pyx) is *easy* when its current item will be new whatever
# follows.  Any other one is alive when a search over bytes finds a way to an easy state, or out of
# the array; what is known about a thread is kept.
#
# A mask starts from what the lexer state allows in any context.  Only along the bytes that stay
# compatible with earlier items may a token inside the lexeme be wrong; those are followed one by
# one.  So are tokens that run past the end of the lexeme, unless it is a string: then its value is left open,
# so that what is behind it is asked once for all of them, and only tokens that go on into an item that may be
# equal to it are read one by one.

from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset
from libcpp.pair cimport pair
from libcpp.string cimport string

from maskwright._engine.containers cimport Interner, priority_queue
from maskwright._engine.sizes cimport bits_has, bits_set
from maskwright._engine.turns cimport turn_late
from maskwright._engine.lexemes cimport Automaton, LazyDfa, DfaState, KIND_TEXT, LexState, NO_CLASS, NO_TAG
from maskwright._engine.lazy_dfa cimport DFA_DEAD, dfa_next
from maskwright._engine.lexeme_texts cimport BACKSLASH, LEX_DEAD, QUOTE, SPELLING_UTF8
from maskwright._engine.lexeme_state cimport lex_first, lex_next
from maskwright._engine.shortest_match cimport UNREACHED
from maskwright._engine.lexeme_mask cimport raw_in_text
from maskwright._engine.program cimport cost_add, NO_KEY, NO_STATE, ParserState
from maskwright._engine.stacks cimport state_goto, state_union
from maskwright._engine.tracked cimport (
    Frame, is_tracked, MEMORY_WRONG, TRACK_AFTER, TRACK_NUMBER, TRACK_STRING, tracked_state, Tracker,
    TrackerState, Value, VALUE_NUMBER
)
from maskwright._engine.values cimport is_blank, number_digits, number_plain, number_text, text_bytes, text_characters, UNKNOWN_TEXT
from maskwright._engine.item_groups cimport frame_scalars, frame_sets, frame_targets
from maskwright._engine.tracker cimport (
    tracker_ahead, tracker_alive, tracker_any, tracker_compatible, tracker_easy, tracker_free_behind,
    tracker_lost, tracker_missing, tracker_owes, tracker_seeks, tracker_spelled, tracker_unknown
)
from maskwright._engine.core cimport thread_at
from maskwright._engine.threads cimport core_learn, thread_key, thread_step
from maskwright._engine.costs cimport cost_lexeme, cost_parser, costs_prepare, shortest_byte

cdef struct DistinctNode:
    Thread thread
    int32_t parent
    uint8_t byte           # by which it was reached
    cbool typed            # in an escape that was begun before the search
    int32_t owed           # the most arrays that needed two equal items at a time, on the way here
    int32_t paid           # those that got them, but no more than were ever owed
    int32_t due            # arrays that needed them where the search began
    int32_t owing          # bytes in another one that still needs them
    int32_t put_off        # how often the cheapest way to end an easy item was not taken
    cbool easy             # for a completion only
    cbool begun            # what comes first has been tried, the rest not (see distinct_waits)


# --- alive ----------------------------------------------------------------------------------

cdef inline cbool distinct_decided(const Core* core, const Thread& thread) noexcept nogil:
    # Whether it is decided already what follows an item, a comma or the end.
    cdef TrackerState at = core.tracker.states[tracked_state(thread.memory)]
    return thread.lex != NULL and at.mode == TRACK_AFTER and core.tracker.frames[at.frame].guard != 0


cdef cbool distinct_alive(Core* core, const Thread& thread) noexcept nogil:
    cdef int32_t known
    if not is_tracked(thread.memory) or (tracker_alive(&core.tracker, thread.memory) and not distinct_decided(core, thread)):
        return True
    if distinct_endless(core, thread) or distinct_countless(core, thread):
        return True
    known = core.facts.alive.find(thread_key(thread))
    if known >= 0:
        return known == 1
    if twins_lost(core, thread):
        return False
    if distinct_careless(core, thread):
        return True
    return distinct_search(core, &thread, 1, SEARCH_ALIVE, 0, NULL)


cdef cbool distinct_careless(Core* core, const Thread& thread) noexcept nogil:
    # Whether a string under way may become any: two equal items are needed, none must differ, and they are found
    # behind a string that is like nothing else.
    cdef TrackerState at = core.tracker.states[tracked_state(thread.memory)]
    cdef const Frame* frame = core.tracker.frames[at.frame]
    cdef const Automaton* automaton
    cdef Thread behind
    cdef string name
    cdef int32_t known
    if at.mode != TRACK_STRING or not frame.owes or frame.must_differ:
        return False
    automaton = thread.lex.automaton
    if automaton.kind != KIND_TEXT or automaton.spelling == SPELLING_UTF8:
        return False
    behind = thread_at(state_goto(core.program, thread.parser, automaton, 0, NO_KEY), NULL)
    behind.memory = tracker_unknown(&core.tracker, thread.memory)
    if behind.parser == NO_STATE or behind.memory == MEMORY_WRONG:
        return False
    name = thread_key(behind)
    known = core.facts.careless.find(name)
    if known < 0:
        known = 1 if distinct_search(core, &behind, 1, SEARCH_ALIVE, SEARCH_SHORT, NULL) else 0
        if not core.index.deadline.passed:
            core.facts.careless.insert(name, known)
    return known == 1


cdef void distinct_clean(Core* core, vector[Thread]& threads) noexcept nogil:
    # Join what stands at the start of a lexeme behind the same text; drop what cannot be completed.
    cdef size_t i, j, kept = 0
    cdef Thread thread
    for i in range(threads.size()):
        thread = threads[i]
        for j in range(kept if thread.lex == NULL else 0):
            if threads[j].lex == NULL and threads[j].memory == thread.memory:
                threads[j].parser = state_union(core.program, threads[j].parser, thread.parser)
                break
        else:
            threads[kept] = thread
            kept += 1
    threads.resize(kept)
    kept = 0
    for i in range(threads.size()):
        thread = threads[i]
        if distinct_alive(core, thread):
            threads[kept] = thread
            kept += 1
    threads.resize(kept)


cdef int64_t distinct_rank(Core* core, const Thread& thread, int32_t goal, cbool like) noexcept nogil:
    # What is higher is looked at first.  Two equal items are found where one is `like` an earlier one.
    # Where other items can always be found, few states are compatible; elsewhere the cheapest way out
    # of the grammar leads the search; a completion tries no long spellings of a number that came, nor very long strings.
    cdef int32_t after, cost
    cdef int64_t first = -1
    cdef cbool out = goal == SEARCH_OUT or goal == SEARCH_APART
    cdef TrackerState at
    if tracker_owes(&core.tracker, thread.memory):
        at = core.tracker.states[tracked_state(thread.memory)]
        if like:
            # What is still missing counts: a long string is not repeated where a short item can be.
            first = max(0, HEAD_START - tracker_missing(&core.tracker, thread.memory))
        if at.mode >= TRACK_STRING and (not like or at.mode == TRACK_NUMBER):
            # A number longer than an earlier one is hardly its first spelling; what is like nothing earlier should end soon.
            first -= HEAD_START // 8 * max(0, text_characters(&core.tracker.store.texts, at.text)
                                           - (tracker_spelled(&core.tracker, thread.memory) if like else 0))
    elif goal == SEARCH_ALIVE and tracker_free_behind(&core.tracker, thread.memory):
        return 0
    elif out:
        # No worse than what still owes.
        first = HEAD_START
        at = core.tracker.states[tracked_state(thread.memory)]
        if at.mode >= TRACK_STRING and tracker_compatible(&core.tracker, thread.memory):
            first -= text_characters(&core.tracker.store.texts, at.text) // (1 if at.mode == TRACK_NUMBER else LONG_STRING)
    costs_prepare(core)
    if core.index.deadline.passed:
        return 0
    if thread.lex == NULL:
        cost = cost_parser(core.program, core.costs, thread.parser)
    else:
        cost = cost_lexeme(core.costs, thread.lex)
        after = thread.parser
        if thread.lex.automaton.kind == KIND_TEXT:
            after = state_goto(core.program, thread.parser, thread.lex.automaton, 0, NO_KEY)
        if after != NO_STATE:
            cost = cost_add(cost, cost_parser(core.program, core.costs, after))
    return first - cost


cdef cbool distinct_skips(const TrackerState& at, const LexState* lex, uint8_t byte, cbool typed) noexcept nogil:
    # Other spellings of the same string: a search needs one of each.  A lexeme that says spellings itself may have few of them.
    if at.mode != TRACK_STRING or at.escape == 0 or typed:
        return False
    if lex != NULL and lex.automaton.kind == KIND_TEXT and lex.automaton.spelling == SPELLING_UTF8:
        return False
    if at.escape == 1:
        return byte == 47
    if at.escape <= 3:
        return byte != 48
    if at.escape == 4:
        return byte != 48 and byte != 49
    return 65 <= byte <= 70


cdef void distinct_first(const uint64_t* first, cbool inside, uint64_t* out) noexcept nogil:
    # Add the bytes that lead on from one lexer state.  White space changes nothing where something else
    # may come in the same lexeme.
    cdef uint64_t blank[4]
    cdef uint64_t others = 0
    cdef size_t i
    memset(blank, 0, 32)
    if not inside:
        for i in range(33):
            if is_blank(<uint8_t>i):
                bits_set(blank, <uint8_t>i)
        for i in range(4):
            others |= first[i] & ~blank[i]
        if others == 0:
            memset(blank, 0, 32)
    for i in range(4):
        out[i] |= first[i] & ~blank[i]


cdef inline cbool distinct_waits(Core* core, const DistinctNode& node) noexcept nogil:
    # Whether most bytes may be left for later: in a string, it may end first, or go on like an earlier one; what is easy
    # may end in the cheapest way.
    cdef TrackerState at = core.tracker.states[tracked_state(node.thread.memory)]
    return node.easy or (at.mode == TRACK_STRING and at.escape == 0)


cdef void distinct_bytes(Core* core, const DistinctNode& node, vector[uint8_t]& out) noexcept nogil:
    # The bytes to go on with.
    cdef TrackerState at = core.tracker.states[tracked_state(node.thread.memory)]
    cdef cbool inside = at.mode == TRACK_STRING
    cdef cbool plain = inside and at.escape == 0
    cdef const ParserState* state = core.program.states[node.thread.parser]
    cdef uint64_t first[4]
    cdef uint64_t ahead[4]
    cdef int32_t byte
    cdef size_t i
    out.clear()
    if node.easy and not node.begun:
        byte = shortest_byte(core, node.thread)
        if byte >= 0:
            out.push_back(<uint8_t>byte)
        return
    memset(first, 0, 32)
    memset(ahead, 0, 32)
    if plain and not node.easy:
        if tracker_compatible(&core.tracker, node.thread.memory):
            tracker_ahead(&core.tracker, node.thread.memory, ahead)
        bits_set(ahead, QUOTE)
    if plain and not node.begun:
        # SmallVector bytes: those that lead nowhere are soon seen.
        memcpy(first, ahead, 32)
    elif node.thread.lex != NULL:
        distinct_first(lex_first(node.thread.lex), inside, first)
        if node.parent >= 0 and node.thread.lex.tag != NO_TAG and not inside:
            # White space adds nothing where the lexeme may end: another node has what comes behind it.
            for i in range(33):
                if is_blank(<uint8_t>i):
                    first[0] &= ~(<uint64_t>1 << i)
    else:
        for i in range(state.starts.size()):
            distinct_first(lex_first(state.starts[i]), inside, first)
    for i in range(4 if node.begun else 0):
        first[i] &= ~ahead[i]
    # Of equals, the last is looked at first.  Where a character may stand for itself, escapes add nothing.
    if plain and bits_has(first, BACKSLASH):
        out.push_back(BACKSLASH)
    for byte in range(256):
        if bits_has(first, <uint8_t>byte) and not distinct_skips(at, node.thread.lex, <uint8_t>byte, node.typed):
            if byte != BACKSLASH or not plain:
                out.push_back(<uint8_t>byte)


cdef void distinct_path(const vector[DistinctNode]& nodes, int32_t at, uint8_t last, vector[uint8_t]& out) noexcept nogil:
    cdef vector[uint8_t] reversed_path
    reversed_path.push_back(last)
    while nodes[at].parent >= 0:
        reversed_path.push_back(nodes[at].byte)
        at = nodes[at].parent
    while not reversed_path.empty():
        out.push_back(reversed_path.back())
        reversed_path.pop_back()


cdef cbool distinct_add(Core* core, vector[DistinctNode]& nodes, Interner* seen, priority_queue[pair[int64_t, int32_t]]* queue,
                      const Thread& thread, int32_t parent, uint8_t byte, int32_t goal) noexcept nogil:
    # Note a thread that is reached; True when it is a goal.
    cdef DistinctNode node
    cdef TrackerState at
    cdef int32_t known
    cdef string name
    cdef Thread same
    cdef int32_t owes, paid
    if not is_tracked(thread.memory):
        return True
    if distinct_decided(core, thread):
        pass
    elif goal == SEARCH_ALIVE and (tracker_alive(&core.tracker, thread.memory) or distinct_endless(core, thread)
                                   or distinct_countless(core, thread)):
        return True
    if goal != SEARCH_TEXT:
        known = core.facts.alive.find(thread_key(thread))
        if known == 0:
            return False
        if known == 1 and goal == SEARCH_ALIVE:
            return True
    if twins_lost(core, thread):
        return False
    name = thread_key(thread)
    if goal == SEARCH_OUT and tracker_any(&core.tracker, thread.memory):
        same = thread
        same.memory = UNKNOWN_TEXT
        name = thread_key(same)
    if seen.find(name) >= 0:
        return False
    seen.insert(name, 1)
    node.thread = thread
    node.parent = parent
    node.byte = byte
    at = core.tracker.states[tracked_state(thread.memory)]
    node.typed = at.mode == TRACK_STRING and at.escape != 0 and (parent < 0 or nodes[parent].typed)
    node.begun = False
    owes = tracker_owes(&core.tracker, thread.memory)
    node.owed = owes
    node.paid = 0
    node.due = owes
    node.owing = 0
    node.put_off = 0
    node.easy = (goal == SEARCH_OUT and owes == core.tracker.frames[at.frame].tied and tracker_easy(&core.tracker, thread.memory))
    if parent >= 0:
        node.put_off = nodes[parent].put_off
        # An array more with two equal items is no step forward where none is needed.
        node.owed = max(owes, nodes[parent].owed)
        node.due = nodes[parent].due
        node.owing = nodes[parent].owing + 1 if owes > node.due else 0
        paid = tracker_owes(&core.tracker, nodes[parent].thread.memory) - owes
        node.paid = min(nodes[parent].paid + max(paid, 0), node.owed)
    nodes.push_back(node)
    distinct_push(core, nodes, queue, <int32_t>nodes.size() - 1, goal)
    return False


cdef void distinct_push(Core* core, vector[DistinctNode]& nodes, priority_queue[pair[int64_t, int32_t]]* queue, int32_t at,
                        int32_t goal) noexcept nogil:
    # Where whatever came makes no difference, no more is needed than the grammar says: that goes before what looks for two
    # equal items.
    cdef const Thread* thread = &nodes[at].thread
    cdef const Frame* frame = core.tracker.frames[core.tracker.states[tracked_state(thread.memory)].frame]
    cdef cbool like = not nodes[at].begun and tracker_seeks(&core.tracker, thread.memory)
    # So does an item that is known to be like an earlier one.
    cdef cbool ready = goal == SEARCH_OUT and (tracker_any(&core.tracker, thread.memory)
                                               or (like and frame.twin and frame.owes == frame.tied))
    queue.push(pair[int64_t, int32_t](distinct_rank(core, thread[0], goal, like) - nodes[at].owing
                                      + 4 * <int64_t>UNREACHED * (nodes[at].paid + ready - nodes[at].put_off), at))


cdef cbool distinct_search(Core* core, const Thread* roots, size_t count, int32_t goal, int64_t most,
                           vector[uint8_t]* path) noexcept nogil:
    # Whether one of some threads can reach a goal; `path`, if given, gets the bytes.  `most`, if not 0: looks at so many states,
    # and finds nothing behind them.
    cdef vector[DistinctNode] nodes
    cdef Interner seen
    cdef priority_queue[pair[int64_t, int32_t]] queue
    cdef vector[uint8_t] bytes
    cdef vector[Thread] out
    cdef Thread thread
    cdef size_t i
    cdef int32_t at
    cdef uint8_t byte
    cdef cbool found
    for i in range(count):
        if distinct_add(core, nodes, &seen, &queue, roots[i], -1, 0, goal):
            return True
    while not queue.empty():
        if most and <int64_t>nodes.size() > most:
            return False
        # A mask asks for many searches, most of which end at once: each is bounded.
        if <int64_t>nodes.size() > core.limits.max_search:
            core.index.deadline.searched = <int64_t>nodes.size()
            core.index.deadline.passed = True
        if turn_late(core.index):
            # Nothing that follows from this answer is kept.
            return True
        at = queue.top().second
        queue.pop()
        distinct_bytes(core, nodes[at], bytes)
        for byte in bytes:
            out.clear()
            thread = nodes[at].thread
            found = thread_step(core, thread, byte, NO_STATE, out) != NO_STATE
            for i in range(out.size()):
                found = found or distinct_add(core, nodes, &seen, &queue, out[i], at, byte, goal)
            if core.index.deadline.passed:
                return True
            if found:
                if path != NULL:
                    distinct_path(nodes, at, byte, path[0])
                while at >= 0 and goal != SEARCH_TEXT:
                    core_learn(core, nodes[at].thread, 1)
                    at = nodes[at].parent
                return True
        if not nodes[at].begun and distinct_waits(core, nodes[at]):
            nodes[at].begun = True
            nodes[at].put_off += nodes[at].easy
            distinct_push(core, nodes, &queue, at, goal)
    for i in range(nodes.size() if goal == SEARCH_ALIVE or goal == SEARCH_APART else 0):
        core_learn(core, nodes[i].thread, 0)
    return False


# --- Arrays of which two items must be equal: which threads cannot be completed any more, as far as that is seen without a search.
#
# An item that must be like an earlier one is written as that.  There are many ways to begin a number and never end it as
# the same one, where the lexeme has no exponents: a search would look at all of them.

cdef enum:
    POWERS_LOOK = 2000         # lexer states that are looked at for an exponent


cdef cbool powers_ahead(Core* core, LexState* lex) noexcept nogil:
    # Whether an exponent may still come in a number, as far as that is soon seen.
    cdef vector[LexState*] work
    cdef Interner seen
    cdef LexState* after
    cdef const uint64_t* first
    cdef size_t i = 0
    cdef int32_t byte, known = core.facts.powers.find(&lex, sizeof(LexState*))
    if known >= 0:
        return known == 1
    known = 0
    work.push_back(lex)
    while known == 0 and i < work.size():
        first = lex_first(work[i])
        if bits_has(first, 69) or bits_has(first, 101) or work.size() > POWERS_LOOK:
            known = 1
        for byte in range(46, 58):
            if bits_has(first, <uint8_t>byte):
                after = lex_next(work[i], <uint8_t>byte)
                if seen.find(&after, sizeof(LexState*)) < 0:
                    seen.insert(&after, sizeof(LexState*), 1)
                    work.push_back(after)
        i += 1
    if known == 1:
        work.resize(1)
    for after in work:
        if core.facts.powers.find(&after, sizeof(LexState*)) < 0:
            core.facts.powers.insert(&after, sizeof(LexState*), known)
    return known == 1


cdef cbool twins_lost(Core* core, const Thread& thread) noexcept nogil:
    # Whether a number under way would have to be like an earlier one, and the lexeme has no such text.
    cdef Tracker* tracker = &core.tracker
    cdef TrackerState at = tracker.states[tracked_state(thread.memory)]
    cdef vector[int32_t] targets
    cdef string read
    cdef int32_t target
    cdef const Value* value
    if at.mode != TRACK_NUMBER or tracker.frames[at.frame].owes == 0 or not tracker_lost(tracker, thread.memory, False):
        return False
    frame_scalars(tracker, at.frame, VALUE_NUMBER, targets)
    read = text_bytes(&tracker.store.texts, at.text)
    for target in targets:
        value = tracker.store.values[target]
        if thread.lex == NULL:
            # It has ended.
            if value.kind == VALUE_NUMBER and number_text(read) == value.text:
                return False
        elif number_plain(value, read):
            return False
    return thread.lex == NULL or not powers_ahead(core, thread.lex)


# --- Strings under way that can always become new ones, however many came before.
#
# Finitely many strings came.  So where a lexeme can go on in endlessly many ways, whatever comes of it next, one of these ways is
# unlike all of them: no search is needed, and of the tokens inside the lexeme only those that end it can be wrong.  These are found
# from the quotes in the vocabulary, which are few; those that only agree with an earlier string become more and more, the more
# strings came.

cdef enum:
    ENDLESS_STATES = 32        # of a lexeme, that are looked at for this


cdef void endless_classes(const LazyDfa* dfa, const Automaton* automaton, vector[char]& out) noexcept nogil:
    # Classes with a character that can be spelled, as far as a look tells.
    cdef int32_t point
    cdef size_t i
    out.assign(<size_t>dfa.classes, 0)
    for point in range(0x20, 0x7F):
        if dfa.ascii_class[point] != NO_CLASS and raw_in_text(automaton, point):
            out[dfa.ascii_class[point]] = 1
    for i in range(dfa.range_low.size()):
        if dfa.range_class[i] != NO_CLASS and 0x80 <= dfa.range_low[i] < 0xD800:
            out[dfa.range_class[i]] = 1


cdef cbool endless_states(Automaton* automaton, DfaState* start) noexcept nogil:
    # Whether all states that are reached lead to one that leads to itself.
    cdef LazyDfa* dfa = automaton.dfa
    cdef DfaState* target
    cdef vector[DfaState*] states
    cdef vector[pair[size_t, size_t]] moves
    cdef vector[char] classes, good
    cdef cbool changed = True
    cdef size_t i = 0, j
    cdef int32_t cls
    endless_classes(dfa, automaton, classes)
    states.push_back(start)
    good.push_back(0)
    while i < states.size():
        for cls in range(dfa.classes):
            target = dfa_next(dfa, states[i], cls)
            if target == DFA_DEAD:
                continue
            j = 0
            while j < states.size() and states[j] != target:
                j += 1
            if j == states.size():
                if j == ENDLESS_STATES:
                    return False
                states.push_back(target)
                good.push_back(0)
            if j == i and classes[cls]:
                good[i] = 1
            if moves.empty() or moves.back().first != i or moves.back().second != j:
                moves.push_back(pair[size_t, size_t](i, j))
        i += 1
    while changed:
        changed = False
        for i in range(moves.size()):
            if good[moves[i].second] and not good[moves[i].first]:
                good[moves[i].first] = 1
                changed = True
    for i in range(good.size()):
        if not good[i]:
            return False
    return True


cdef cbool dfa_endless(Core* core, Automaton* automaton, DfaState* dfa_state) noexcept nogil:
    # Whether whatever comes next, texts of any length may follow.
    cdef int32_t known = core.facts.endless.find(&dfa_state, sizeof(DfaState*))
    if known < 0:
        known = endless_states(automaton, dfa_state)
        if core.index.deadline.passed:
            return False
        core.facts.endless.insert(&dfa_state, sizeof(DfaState*), known)
    return known == 1


cdef cbool distinct_need_be_new(Core* core, const Thread& thread, int32_t mode) noexcept nogil:
    # Whether a thread is in a string, or a number (TRACK_*), that only has to become a new one: all that comes behind it can be found.
    cdef const TrackerState* at = &core.tracker.states[tracked_state(thread.memory)]
    cdef const Frame* frame = core.tracker.frames[at.frame]
    if at.mode != mode or thread.lex == NULL or frame.owes or (frame.is_object and frame.key < 0):
        return False
    return tracker_free_behind(&core.tracker, thread.memory)


cdef cbool distinct_endless(Core* core, const Thread& thread) noexcept nogil:
    # Whether a thread is in a string that can become a new one, however it goes on, and nothing else matters.
    cdef Automaton* automaton
    if not distinct_need_be_new(core, thread, TRACK_STRING):
        return False
    automaton = thread.lex.automaton
    if automaton.kind != KIND_TEXT or automaton.spelling == SPELLING_UTF8:
        return False
    return dfa_endless(core, automaton, thread.lex.dfa_state)


cdef cbool distinct_countless(Core* core, const Thread& thread) noexcept nogil:
    # Whether a thread is in a number that can become a new one, and nothing else matters: for some count of digits more, there are
    # more numbers than came before.
    cdef const TrackerState* at = &core.tracker.states[tracked_state(thread.memory)]
    cdef LexState* lex = thread.lex
    cdef LexState* behind
    cdef vector[int32_t] earlier, sets
    cdef int32_t set
    cdef int64_t count, numbers = 1
    cdef uint8_t digit
    cdef string digits
    cdef cbool negative, scientific
    cdef int64_t power = 0
    # Under a lexer, what ends it depends on what follows.
    if not distinct_need_be_new(core, thread, TRACK_NUMBER) or lex.automaton.lexer != NULL:
        return False
    number_digits(text_bytes(&core.tracker.store.texts, at.text), digits, &negative, &scientific, &power)
    if scientific:
        return False
    frame_targets(&core.tracker, at.frame, earlier)
    frame_sets(&core.tracker, at.frame, sets)
    count = <int64_t>earlier.size()
    for set in sets:
        count += core.tracker.items.count(set)
    while numbers <= count:
        behind = lex_next(lex, 48)
        for digit in range(49, 58):
            if lex_next(lex, digit) != behind:
                return False
        if behind == LEX_DEAD:
            return False
        lex = behind
        numbers *= 10
    return lex.tag != NO_TAG
