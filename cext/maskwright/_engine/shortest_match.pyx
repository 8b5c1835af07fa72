# The nearest match: shortest texts of automata that have too many states to be looked through.
#
# Where what was read may be counted from many places (`[ab]*a[ab]{20}`), DFA states are exponentially many.  How far an
# item of one is from a match, the NFA tells without any of them: with the passes that its count still demands.  This
# estimate is exact but for respelled characters and lengths of automata, and never too large, so a search that goes
# where it is least (A*: Hart, Nilsson, Raphael 1968) makes the states along one shortest text, and few others.

from libc.stdint cimport uint32_t, uint64_t
from libcpp.pair cimport pair

from maskwright._engine.containers cimport priority_queue, ScratchIds
from maskwright._engine.sizes cimport bits_has, set_has
from maskwright._engine.turns cimport turn_late, turn_offer
from maskwright._engine.lexemes cimport (
    Automaton, LazyDfa, DfaEdge, EPSILON_ENTER, EPSILON_PLAIN, KEY_CLOSED, KIND_KEYSET, KIND_TEXT,
    NfaEpsilon, NO_LOOP, NO_TAG, TWO_LOOPS
)
from maskwright._engine.lexeme_texts cimport (
    FORM_CLOSED, FORM_LOW_SETTLED, FORM_OUTSIDE, FORM_PAIR_SETTLED, FORM_TEXT, FORM_UNIT_SETTLED, FORM_UTF8,
    FORM_UTF8_SETTLED, LEX_DEAD, SPELLING_UTF8
)
from maskwright._engine.lexeme_state cimport lex_first, lex_next

cdef cppclass Rests:
    # Least bytes to a match.
    vector[int32_t] behind         # by NFA state, passes that the count demands left out
    vector[int32_t] heads          # by NFA state: the one where the passes begin whose count it has; or NO_LOOP, TWO_LOOPS
    vector[int32_t] loops          # by head
    vector[int32_t] passes         # by head: of one pass; 0: not known
    vector[char] begins            # by NFA state: whether passes begin here
    vector[char] several           # by head: passes of its count begin elsewhere, too
    int32_t demanded               # by all loops
    int32_t character              # the shortest one

cdef struct NearNode:
    LexState* state
    int32_t before         # index of the node before, or -1
    int32_t bytes          # so far
    uint8_t byte
    int32_t next           # bytes below it have been tried


cdef int32_t nearest_of_class(const LazyDfa* dfa, int32_t cls) noexcept nogil:
    # Bytes of its shortest character.
    cdef int32_t dfa_state
    cdef size_t i
    for dfa_state in range(128):
        if dfa.ascii_class[dfa_state] == cls:
            return 1
    for i in range(dfa.range_low.size()):
        if dfa.range_class[i] == cls:
            return 2 if dfa.range_low[i] < 0x800 else 3 if dfa.range_low[i] < 0x10000 else 4
    return 1


cdef void nearest_pull(vector[int32_t]& known, int32_t state, int32_t bytes,
                       priority_queue[pair[int64_t, int32_t]]& queue) noexcept nogil:
    if bytes < known[state]:
        known[state] = bytes
        queue.push(pair[int64_t, int32_t](-<int64_t>bytes, state))


cdef void nearest_relax(LazyDfa* dfa, Rests* rests, vector[int32_t]& known, const vector[int32_t]& goals, int32_t head,
                        const vector[vector[pair[int32_t, int32_t]]]& before) noexcept nogil:
    # Dijkstra's algorithm, backwards from `goals`; inside the loop of a head, or with NO_LOOP everywhere.
    cdef priority_queue[pair[int64_t, int32_t]] queue
    cdef pair[int32_t, int32_t] step
    cdef int32_t state, bytes, entered
    cdef size_t i
    for i in range(goals.size()):
        nearest_pull(known, goals[i], 0, queue)
    while not queue.empty():
        state = queue.top().second
        bytes = <int32_t>-queue.top().first
        queue.pop()
        if bytes > known[state]:
            continue
        entered = rests.heads[state]
        for i in range(before[state].size()):
            step = before[state][i]
            if head != NO_LOOP:
                if rests.heads[step.first] == head:
                    nearest_pull(known, step.first, bytes + step.second, queue)
            elif entered >= 0 and not rests.several[entered] and rests.heads[step.first] not in (entered, TWO_LOOPS):
                # All passes are still to be made.
                nearest_pull(known, step.first, cost_passes(dfa, rests, entered, 0, bytes + step.second), queue)
            else:
                nearest_pull(known, step.first, bytes + step.second, queue)


cdef int32_t cost_passes(const LazyDfa* dfa, const Rests* rests, int32_t head, int32_t count,
                         int64_t bytes) noexcept nogil:
    # The passes that a count still demands (by TWO_LOOPS, too), and `bytes`.
    cdef int64_t missing = (rests.demanded if head == TWO_LOOPS else dfa.loop_min[rests.loops[head]]) - count
    if missing <= 0:
        pass
    elif head == TWO_LOOPS or rests.several[head]:
        # A pass is a character, and what `bytes` are of may be passes, too.
        if bytes < missing * rests.character:
            bytes = missing * rests.character
    else:
        bytes += missing * rests.passes[head]
    return <int32_t>bytes if bytes < UNREACHED else UNREACHED


cdef void nearest_find_heads(LazyDfa* dfa, Rests* rests) noexcept nogil:
    # Whose passes the count of an item is: those that begin at one place follow each other (of an automaton whose
    # length is counted, they begin at several).
    cdef vector[int32_t] work
    cdef NfaEpsilon epsilon
    cdef DfaEdge edge
    cdef int32_t state
    rests.heads.assign(dfa.edges.size(), NO_LOOP)
    rests.loops.assign(dfa.edges.size(), 0)
    rests.passes.assign(dfa.edges.size(), 0)
    rests.several.assign(dfa.edges.size(), False)
    rests.begins.assign(dfa.edges.size(), False)
    for state in range(<int32_t>dfa.edges.size()):
        for epsilon in dfa.epsilons[state]:
            if epsilon.op == EPSILON_ENTER:
                rests.loops[state] = epsilon.loop
                rests.begins[state] = True
                nearest_put_head(rests, epsilon.target, state, work)
    while not work.empty():
        state = work.back()
        work.pop_back()
        for edge in dfa.edges[state]:
            nearest_put_head(rests, edge.target, rests.heads[state], work)
        for epsilon in dfa.epsilons[state]:
            if epsilon.op == EPSILON_PLAIN:
                nearest_put_head(rests, epsilon.target, rests.heads[state], work)


cdef void nearest_put_head(Rests* rests, int32_t state, int32_t head, vector[int32_t]& work) noexcept nogil:
    cdef int32_t other = rests.heads[state]
    if head >= 0 and (rests.begins[state] and state != head or other != NO_LOOP and other != head):
        rests.several[head] = True
    if other >= 0 and other != head:
        rests.several[other] = True
    if other == head or other == TWO_LOOPS:
        return
    rests.heads[state] = head if rests.heads[state] == NO_LOOP else TWO_LOOPS
    work.push_back(state)


cdef void nearest_prepare(LazyDfa* dfa, int32_t tag, Rests* rests) noexcept nogil:
    # To a match with `tag` (NO_TAG: any).
    cdef vector[vector[pair[int32_t, int32_t]]] before
    cdef vector[int32_t] of_set, of_class, entries, goals, known, own
    cdef NfaEpsilon epsilon
    cdef DfaEdge edge
    cdef int32_t state, cls, least, states = <int32_t>dfa.edges.size()
    cdef size_t i
    nearest_find_heads(dfa, rests)
    rests.character = 4
    for cls in range(dfa.classes):
        of_class.push_back(nearest_of_class(dfa, cls))
        rests.character = min(rests.character, of_class.back())
    rests.demanded = UNREACHED
    for least in dfa.loop_min:
        rests.demanded = min(rests.demanded, least)
    of_set.resize(dfa.sets.size(), 4)
    for i in range(dfa.sets.size()):
        for cls in range(dfa.classes):
            if set_has(dfa.sets[i], cls) and of_class[cls] < of_set[i]:
                of_set[i] = of_class[cls]
    before.resize(states)
    entries.resize(states, -1)
    for state in range(states):
        for edge in dfa.edges[state]:
            before[edge.target].push_back(pair[int32_t, int32_t](state, of_set[edge.set]))
        for epsilon in dfa.epsilons[state]:
            before[epsilon.target].push_back(pair[int32_t, int32_t](state, 0))
            if epsilon.op == EPSILON_ENTER:
                entries[state] = epsilon.target
        if dfa.accept[state] == tag if tag != NO_TAG else dfa.accept[state] != NO_TAG:
            goals.push_back(state)
    known.assign(states, UNREACHED)
    for state in range(states):
        if entries[state] >= 0 and rests.heads[state] == state:
            own.assign(1, state)
            nearest_relax(dfa, rests, known, own, state, before)
            if known[entries[state]] < UNREACHED:
                rests.passes[state] = known[entries[state]]
    rests.behind.assign(states, UNREACHED)
    nearest_relax(dfa, rests, rests.behind, goals, NO_LOOP, before)


cdef int32_t nearest_estimate(const Rests* rests, const LexState* state) noexcept nogil:
    # Bytes to a match, at least.
    cdef const LazyDfa* dfa
    cdef int32_t nfa, head, least = UNREACHED, bytes, close, length
    cdef size_t i
    if state.automaton.kind == KIND_KEYSET:
        if state.key.where == KEY_CLOSED:
            return 0
        if state.base == NULL or state.key.first < state.key.last:
            return 1
        return nearest_estimate(rests, state.base)
    if state.form == FORM_CLOSED:
        return 0
    dfa = state.automaton.dfa
    for i in range(state.dfa_state.items.size()):
        nfa = <int32_t>(state.dfa_state.items[i] >> 32)
        head = rests.heads[nfa]
        bytes = rests.behind[nfa]
        if head != NO_LOOP:
            bytes = cost_passes(dfa, rests, head, <int32_t><uint32_t>state.dfa_state.items[i], bytes)
        if bytes < least:
            least = bytes
    close = 0 if state.automaton.spelling == SPELLING_UTF8 else 1
    if state.form == FORM_TEXT:
        return least + close
    if state.form == FORM_OUTSIDE:
        return least + 2
    if state.form in (FORM_UTF8_SETTLED, FORM_UNIT_SETTLED, FORM_PAIR_SETTLED, FORM_LOW_SETTLED):
        return state.left + least + close
    # Before the character under way: what was read of it is not missing any more.
    length = 12
    if state.form == FORM_UTF8:
        length = 2 if 0 < state.low < 0x800 else 3 if state.left == 2 and state.low < 0x10000 else 4
        if state.left == 1 and 0x800 <= state.low < 0x10000:
            length = 3
    least -= length - state.left
    return (least if least > state.left else state.left) + close


cdef inline int64_t nearest_rank(int64_t estimate, int32_t bytes) noexcept nogil:
    # What is higher is looked at first: the nearest, of those the longest.
    return (-estimate << 31) + bytes


cdef void nearest_match(LexState* start, int32_t tag, int64_t most, vector[uint8_t]& out, cbool* found) noexcept nogil:
    # The shortest bytes, one at least, from `start` to a state that accepts `tag` (NO_TAG: anything), if `most` states
    # are enough to find them (0: any number).  `out` is appended to.  Not of words and tokens.
    cdef Automaton* text = start.automaton if start.automaton.kind == KIND_TEXT else start.automaton.keyset.base
    cdef priority_queue[pair[int64_t, int32_t]] queue
    cdef vector[NearNode] nodes
    cdef ScratchIds seen                                   # states, each with its place in `best`
    cdef vector[int32_t] best                              # the fewest bytes to it so far
    cdef vector[uint8_t] reversed_path
    cdef NearNode node, fresh
    cdef Rests rests
    cdef const uint64_t* first
    cdef int64_t looked = 0, estimate, nearest
    cdef int32_t at, byte, known
    found[0] = False
    if turn_late(start.automaton.index):
        return
    if text != NULL:
        nearest_prepare(text.dfa, tag if text == start.automaton else NO_TAG, &rests)
    node.state = start
    node.before = -1
    node.bytes = 0
    node.byte = 0
    node.next = 0
    nodes.push_back(node)
    queue.push(pair[int64_t, int32_t](0, 0))
    while not queue.empty():
        at = queue.top().second
        nearest = queue.top().first
        queue.pop()
        node = nodes[at]
        if at > 0:
            if best[seen.find(<int64_t>node.state)] < node.bytes:
                continue
            if node.state.tag != NO_TAG and (tag == NO_TAG or node.state.tag == tag):
                found[0] = True
                while at > 0:
                    reversed_path.push_back(nodes[at].byte)
                    at = nodes[at].before
                out.insert(out.end(), reversed_path.rbegin(), reversed_path.rend())
                return
        looked += 1
        if looked == most or (looked & 7 == 0 and turn_late(start.automaton.index)):
            return
        first = lex_first(node.state)
        # The rest of the bytes waits once one leads on as near as it can be: most are never needed.
        for byte in range(node.next, 256):
            if not bits_has(first, <uint8_t>byte):
                continue
            turn_offer(start.automaton.index)
            fresh.state = lex_next(node.state, <uint8_t>byte)
            fresh.before = at
            fresh.bytes = node.bytes + 1
            fresh.byte = <uint8_t>byte
            fresh.next = 0
            if fresh.state == LEX_DEAD:
                continue
            known = seen.find(<int64_t>fresh.state)
            if known < 0:
                seen.insert(<int64_t>fresh.state, <int32_t>best.size())
                best.push_back(fresh.bytes)
            elif best[known] <= fresh.bytes:
                continue
            else:
                best[known] = fresh.bytes
            estimate = nearest_rank(fresh.bytes + <int64_t>nearest_estimate(&rests, fresh.state), fresh.bytes)
            queue.push(pair[int64_t, int32_t](estimate, <int32_t>nodes.size()))
            nodes.push_back(fresh)
            if estimate > nearest:
                nodes[at].next = byte + 1
                queue.push(pair[int64_t, int32_t](nearest, at))
                break
