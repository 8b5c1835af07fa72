# Sets of lexer states, and what a token that is not known does to them.
#
# Where a lexeme stands after some tokens that are not known is a set of states of its automaton.  These sets are the
# states of a subset construction: interned, with transitions by byte.  One walk of the token trie says where all
# tokens lead that stay in the lexeme, as one set again, and with what tags it ends; a second one, made only when something
# may follow, what is left of the tokens that run past its end: a *residual*, a small trie of its own.
# A member that accepts nothing but what others accept is left out: of a string of at most 60 characters that may end already,
# the state that has read the fewest stands for all (`lexset_reduce`).
# Nothing here depends on the grammar around a lexeme.  Sets are kept with their automaton.

from cython.operator cimport dereference
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp.algorithm cimport sort
from libcpp.string cimport string

from maskwright._engine.sizes cimport ALLOCATION, vector_bytes
from maskwright._engine.limits cimport deadline_passed
from maskwright._engine.trie cimport Trie, TrieNode
from maskwright._engine.residuals cimport residual_intern
from maskwright._engine.lexemes cimport (
    Best, LazyDfa, DfaEdge, EPSILON_ENTER, EPSILON_PLAIN, KIND_TEXT, LexCrossing, NfaEpsilon, NO_LOOP,
    NO_TAG, TWO_LOOPS
)
from maskwright._engine.lazy_dfa cimport dfa_intern
from maskwright._engine.lexeme_texts cimport (
    automaton_grew, FORM_CLOSED, FORM_LOW_SETTLED, FORM_PAIR_SETTLED, FORM_UNIT_SETTLED, FORM_UTF8_SETTLED,
    LEX_DEAD, text_state
)
from maskwright._engine.lexeme_state cimport lex_goes_on, lex_keeps_text, lex_next

cdef LexSet LEXSET_DEAD_SET

LEXSET_DEAD = &LEXSET_DEAD_SET


cdef void lexsets_free(Automaton* automaton) noexcept nogil:
    cdef size_t i
    for i in range(automaton.sets.all.size()):
        del automaton.sets.all[i]
    automaton.sets.all.clear()
    automaton.sets.singles.clear()
    automaton.sets.bests.clear()
    automaton.sets.ids.clear()
    automaton.sets.unions.clear()
    # What is freed without the lock (core_free) has none left.
    if automaton.sets.bytes:
        automaton.index.cache.set_bytes -= automaton.sets.bytes
        automaton.sets.bytes = 0


cdef inline void lexsets_count(Automaton* automaton, int64_t size) noexcept nogil:
    automaton.sets.bytes += size
    automaton.index.cache.set_bytes += size


cdef void numbers_normalize(vector[int32_t]& numbers) noexcept nogil:
    # Sorted, each once.
    cdef size_t i, j = 0
    sort(numbers.begin(), numbers.end())
    for i in range(numbers.size()):
        if j == 0 or numbers[i] != numbers[j - 1]:
            numbers[j] = numbers[i]
            j += 1
    numbers.resize(j)


cdef inline cbool exit_same(const LexState* a, const LexState* b) noexcept nogil:
    # Whether the same follows.
    return a.tag == b.tag and lex_keeps_text(a) == lex_keeps_text(b)


cdef void exit_add(vector[LexState*]& exits, LexState* lex) noexcept nogil:
    cdef LexState* known
    for known in exits:
        if exit_same(known, lex):
            return
    exits.push_back(lex)


cdef void dfa_loops(LazyDfa* dfa) noexcept nogil:
    # Find the loop whose passes the count of an item is, for each NFA state.
    cdef vector[int32_t] work
    cdef NfaEpsilon epsilon
    cdef DfaEdge edge
    cdef size_t i
    cdef int32_t state
    if not dfa.loops.empty():
        return
    dfa.loops.resize(dfa.edges.size(), NO_LOOP)
    for i in range(dfa.edges.size()):
        for epsilon in dfa.epsilons[i]:
            if epsilon.op == EPSILON_ENTER:
                dfa_put_loop(dfa, epsilon.target, epsilon.loop, work)
    while not work.empty():
        state = work.back()
        work.pop_back()
        for edge in dfa.edges[state]:
            dfa_put_loop(dfa, edge.target, dfa.loops[state], work)
        for epsilon in dfa.epsilons[state]:
            if epsilon.op == EPSILON_PLAIN:
                dfa_put_loop(dfa, epsilon.target, dfa.loops[state], work)


cdef void dfa_put_loop(LazyDfa* dfa, int32_t state, int32_t loop, vector[int32_t]& work) noexcept nogil:
    if dfa.loops[state] == loop or dfa.loops[state] == TWO_LOOPS:
        return
    dfa.loops[state] = loop if dfa.loops[state] == NO_LOOP else TWO_LOOPS
    work.push_back(state)


cdef cbool item_is_ordered(const LazyDfa* dfa, int32_t loop, int32_t count) noexcept nogil:
    # Whether items at one NFA state with this and other such counts allow one more than the other, or the count is always this.
    if loop == NO_LOOP:
        return count == 0
    return loop >= 0 and (dfa.loop_max[loop] < 0 or count >= dfa.loop_min[loop])


cdef void item_claim(const LazyDfa* dfa, Best* best, uint64_t item, int32_t id) noexcept nogil:
    cdef int32_t state = <int32_t>(item >> 32), count = <int32_t><uint32_t>item
    cdef int32_t loop = dfa.loops[state], known = best.count[state]
    if not item_is_ordered(dfa, loop, count):
        found = best.others.find(item)
        if found == best.others.end() or id < dereference(found).second:
            best.others[item] = id
        return
    if known < 0:
        best.touched.push_back(state)
    if known < 0 or (loop >= 0 and (count > known if dfa.loop_max[loop] < 0 else count < known)):
        best.count[state] = count
        best.owner[state] = id
    elif count == known and id < best.owner[state]:
        best.owner[state] = id


cdef cbool item_is_claimed(const LazyDfa* dfa, Best* best, uint64_t item, int32_t id) noexcept nogil:
    # By the member itself.
    cdef int32_t state = <int32_t>(item >> 32), count = <int32_t><uint32_t>item
    if not item_is_ordered(dfa, dfa.loops[state], count):
        return best.others[item] == id
    return best.count[state] == count and best.owner[state] == id


cdef void lexset_split(Automaton* automaton, vector[int32_t]& members) noexcept nogil:
    # Put a member for each item in place of members with several: there are few items, and many sets of them.  Not in the middle of a character:
    # some items may not be able to finish it.
    cdef LazyDfa* dfa = automaton.dfa
    cdef vector[int32_t] out
    cdef vector[int32_t]* parts
    cdef int32_t id, part
    if automaton.kinds != 1 or not dfa.early.empty():
        return
    automaton.sets.mark += 1
    for id in members:
        parts = lexset_parts(automaton, automaton.states[id])
        automaton.sets.marks.resize(automaton.states.size(), 0)
        for part in parts[0]:
            if automaton.sets.marks[part] != automaton.sets.mark:
                automaton.sets.marks[part] = automaton.sets.mark
                out.push_back(part)
    members.swap(out)


cdef vector[int32_t]* lexset_parts(Automaton* automaton, LexState* lex) noexcept nogil:
    # The members that stand for one.
    cdef vector[uint64_t] single
    cdef vector[int32_t] parts
    cdef LexState* part
    cdef size_t i
    cdef int32_t id
    if automaton.sets.splits.size() <= <size_t>lex.id:
        automaton.sets.splits.resize(automaton.states.size())
    if automaton.sets.splits[lex.id].empty():
        if lex.dfa_state.items.size() > 1 and (lex.form <= FORM_CLOSED or form_is_settled(lex.form)):
            for i in range(lex.dfa_state.items.size()):
                single.assign(1, lex.dfa_state.items[i])
                part = text_state(automaton, dfa_intern(automaton.dfa, single), lex.form, lex.left, lex.low)
                parts.push_back(part.id)
        else:
            parts.push_back(lex.id)
        automaton.sets.splits.resize(automaton.states.size())
        for id in parts:
            # A member that stands for an item, and what that leads to without a character, stays whole.
            automaton.sets.splits[id].assign(1, id)
        automaton.sets.splits[lex.id] = parts
    return &automaton.sets.splits[lex.id]


cdef inline cbool form_is_settled(int32_t form) noexcept nogil:
    return (form == FORM_UTF8_SETTLED or form == FORM_UNIT_SETTLED or form == FORM_PAIR_SETTLED
            or form == FORM_LOW_SETTLED)


cdef void lexset_reduce(Automaton* automaton, vector[int32_t]& members) noexcept nogil:
    # Leave out members that accept only what others accept: counts of loops are compared.
    cdef LazyDfa* dfa = automaton.dfa
    cdef vector[Best]* groups = &automaton.sets.bests
    cdef vector[size_t] group
    cdef LexState* lex
    cdef size_t i, j, used = 0, count = 0
    cdef uint64_t item
    cdef int32_t id
    if automaton.kind != KIND_TEXT or dfa.loop_min.empty():
        return
    dfa_loops(dfa)
    lexset_split(automaton, members)
    if members.size() < 2:
        return
    for id in members:
        lex = automaton.states[id]
        j = 0
        while j < used and not (groups[0][j].form == lex.form and groups[0][j].left == lex.left
                                and groups[0][j].low == lex.low):
            j += 1
        if j == used:
            used += 1
            best_begin(groups[0], j, dfa.edges.size())
            groups[0][j].form = lex.form
            groups[0][j].left = lex.left
            groups[0][j].low = lex.low
        group.push_back(j)
        for item in lex.dfa_state.items:
            item_claim(dfa, &groups[0][j], item, id)
    for i in range(members.size()):
        id = members[i]
        for item in automaton.states[id].dfa_state.items:
            if item_is_claimed(dfa, &groups[0][group[i]], item, id):
                members[count] = id
                count += 1
                break
    members.resize(count)


cdef void best_begin(vector[Best]& groups, size_t place, size_t states) noexcept nogil:
    # Empty a group; it has few of the many states.
    cdef int32_t state
    if place == groups.size():
        groups.resize(place + 1)
        groups[place].count.assign(states, -1)
        groups[place].owner.assign(states, -1)
    for state in groups[place].touched:
        groups[place].count[state] = -1
    groups[place].touched.clear()
    groups[place].others.clear()


cdef LexSet* lexset_intern(Automaton* automaton, vector[int32_t]& members) noexcept nogil:
    # `members`: at least one, each once.
    lexset_reduce(automaton, members)
    sort(members.begin(), members.end())
    return lexset_make(automaton, members)


cdef LexSet* lexset_make(Automaton* automaton, vector[int32_t]& members) noexcept nogil:
    # The same with all members, which are ascending.
    cdef string key
    cdef LexSet* made
    cdef LexState* lex
    cdef vector[int32_t] going
    cdef int32_t id
    key.assign(<const char*>members.data(), members.size() * sizeof(int32_t))
    id = automaton.sets.ids.find(key)
    if id >= 0:
        return automaton.sets.all[id]
    made = new LexSet()
    made.automaton = automaton
    made.id = <int32_t>automaton.sets.all.size()
    made.members = members
    made.going = made
    made.is_read = False
    made.is_crossed = False
    made.inside = NULL
    lexsets_count(automaton, <int64_t>(sizeof(LexSet) + 3 * ALLOCATION + members.size() * sizeof(int32_t)
                                       + 3 * sizeof(void*)) - <int64_t>automaton.sets.ids.bytes())
    automaton.sets.ids.insert(key, made.id)
    lexsets_count(automaton, <int64_t>automaton.sets.ids.bytes())
    automaton.sets.all.push_back(made)
    for id in members:
        lex = automaton.states[id]
        if lex.tag != NO_TAG:
            exit_add(made.exits, lex)
            if not lex_goes_on(lex):
                continue
        going.push_back(id)
    if going.empty():
        made.going = NULL
    elif going.size() < members.size():
        made.going = lexset_make(automaton, going)
    automaton_grew(automaton)
    return made


cdef LexSet* lexset_union(Automaton* automaton, vector[LexSet*]& sets) noexcept nogil:
    # Of one automaton; at least one.
    cdef string key
    cdef vector[int32_t] ids, members
    cdef LexSet* each
    cdef int32_t id, member
    for each in sets:
        ids.push_back(each.id)
    numbers_normalize(ids)
    if ids.size() == 1:
        return automaton.sets.all[ids[0]]
    key.assign(<const char*>ids.data(), ids.size() * sizeof(int32_t))
    id = automaton.sets.unions.find(key)
    if id >= 0:
        return automaton.sets.all[id]
    automaton.sets.mark += 1
    automaton.sets.marks.resize(automaton.states.size(), 0)
    for id in ids:
        each = automaton.sets.all[id]
        for member in each.members:
            if automaton.sets.marks[member] != automaton.sets.mark:
                automaton.sets.marks[member] = automaton.sets.mark
                members.push_back(member)
    each = lexset_intern(automaton, members)
    lexsets_count(automaton, -<int64_t>automaton.sets.unions.bytes())
    automaton.sets.unions.insert(key, each.id)
    lexsets_count(automaton, <int64_t>automaton.sets.unions.bytes())
    return each


cdef LexSet* lexset_of(LexState* lex) noexcept nogil:
    cdef vector[int32_t] members
    members.push_back(lex.id)
    return lexset_intern(lex.automaton, members)


cdef LexSet* lexset_single(LexState* lex) noexcept nogil:
    # The set with just this member.
    cdef Automaton* automaton = lex.automaton
    cdef vector[int32_t] members
    if automaton.sets.singles.size() <= <size_t>lex.id:
        automaton.sets.singles.resize(automaton.states.size(), <LexSet*>NULL)
    if automaton.sets.singles[lex.id] == NULL:
        members.push_back(lex.id)
        automaton.sets.singles[lex.id] = lexset_make(automaton, members)
    return automaton.sets.singles[lex.id]


cdef LexSet* lexset_next(LexSet* before, uint8_t byte) noexcept nogil:
    # LEXSET_DEAD when no member reads the byte.
    cdef Automaton* automaton = before.automaton
    cdef vector[int32_t] members
    cdef LexState* lex
    cdef LexSet* target
    cdef size_t place = byte
    cdef int32_t id
    if automaton.kind == KIND_TEXT:
        place = automaton.byte_class[byte]
    if before.next.empty():
        before.next.resize(automaton.class_byte.size() if automaton.kind == KIND_TEXT else 256, <LexSet*>NULL)
        lexsets_count(automaton, vector_bytes(before.next.size(), sizeof(void*)))
    target = before.next[place]
    if target != NULL:
        return target
    for id in before.members:
        lex = lex_next(automaton.states[id], byte)
        if lex != LEX_DEAD:
            members.push_back(lex.id)
    numbers_normalize(members)
    target = LEXSET_DEAD
    if not members.empty():
        target = lexset_intern(automaton, members)
    before.next[place] = target
    return target


cdef cbool lexset_read(Index* index, LexSet* start) noexcept nogil:
    # Fill in what tokens do; False when time is up.
    cdef const Trie* trie = index.trie
    cdef const TrieNode* nodes = trie.nodes.data()
    cdef uint32_t node = 1, last = nodes[0].end
    cdef Automaton* automaton
    cdef vector[LexState*] path, ended, passed
    cdef vector[int32_t] reached, inside
    cdef LexState* lex
    cdef int64_t mark
    cdef int32_t id
    if start.is_read:
        return True
    if start.members.size() > 1:
        return lexset_read_members(index, start)
    automaton = start.automaton
    automaton.sets.mark += 1
    mark = automaton.sets.mark
    lex = automaton.states[start.members[0]]
    path.resize(index.most_bytes + 1, lex)
    while node < last:
        if deadline_passed(&index.deadline):
            return False
        lex = lex_next(path[nodes[node].depth - 1], nodes[node].byte)
        if lex == LEX_DEAD:
            node = nodes[node].end
            continue
        path[nodes[node].depth] = lex
        if nodes[node].token < nodes[node + 1].token:
            if automaton.sets.marks.size() < automaton.states.size():
                automaton.sets.marks.resize(automaton.states.size(), 0)
            if automaton.sets.marks[lex.id] != mark:
                automaton.sets.marks[lex.id] = mark
                reached.push_back(lex.id)
        if lex.tag != NO_TAG and nodes[node].end > node + 1:
            exit_add(passed, lex)
        node += 1
    for id in reached:
        lex = automaton.states[id]
        if lex.tag != NO_TAG:
            exit_add(ended, lex)
        if lex.tag == NO_TAG or lex_goes_on(lex):
            inside.push_back(id)
    if not inside.empty():
        start.inside = lexset_intern(automaton, inside)
    start.ended.swap(ended)
    start.passed.swap(passed)
    start.is_read = True
    return True


cdef cbool lexset_read_members(Index* index, LexSet* start) noexcept nogil:
    # The same, as the union of what tokens do to each member: few members are new in a new set.
    cdef vector[LexSet*] inside
    cdef vector[LexState*] ended, passed
    cdef LexSet* single
    cdef LexState* lex
    cdef size_t i
    for i in range(start.members.size()):
        single = lexset_single(start.automaton.states[start.members[i]])
        if not lexset_read(index, single):
            return False
        if single.inside != NULL:
            inside.push_back(single.inside)
        for lex in single.ended:
            exit_add(ended, lex)
        for lex in single.passed:
            exit_add(passed, lex)
    if not inside.empty():
        start.inside = lexset_union(start.automaton, inside)
    start.ended.swap(ended)
    start.passed.swap(passed)
    start.is_read = True
    return True


cdef cbool lexset_cross_members(Index* index, LexSet* start) noexcept nogil:
    # As `lexset_cross`; what is left of the tokens of several members is joined when it is the same.
    cdef LexSet* single
    cdef LexCrossing crossing, known
    cdef size_t i
    cdef cbool found
    for i in range(start.members.size()):
        single = lexset_single(start.automaton.states[start.members[i]])
        if not lexset_cross(index, single):
            start.crossings.clear()
            return False
        for crossing in single.crossings:
            found = False
            for known in start.crossings:
                found = found or (known.rest == crossing.rest and exit_same(known.lex, crossing.lex))
            if not found:
                start.crossings.push_back(crossing)
    start.is_crossed = True
    return True


cdef cbool lexset_cross(Index* index, LexSet* start) noexcept nogil:
    # Fill in what is left of tokens that run past the end; False when time is up.
    cdef const Trie* trie = index.trie
    cdef const TrieNode* nodes = trie.nodes.data()
    cdef uint32_t node = 1, last = nodes[0].end
    cdef vector[LexState*] path
    cdef vector[vector[string]] rests
    cdef LexCrossing crossing
    cdef LexState* lex
    cdef size_t i
    cdef int32_t t, token, depth
    cdef string rest
    if start.is_crossed:
        return True
    if start.members.size() > 1:
        return lexset_cross_members(index, start)
    if not lexset_read(index, start):
        return False
    rests.resize(start.passed.size())
    path.resize(index.most_bytes + 1, start.automaton.states[start.members[0]])
    while node < last:
        if deadline_passed(&index.deadline):
            return False
        depth = nodes[node].depth
        lex = lex_next(path[depth - 1], nodes[node].byte)
        if lex == LEX_DEAD:
            node = nodes[node].end
            continue
        path[depth] = lex
        for i in range(start.passed.size() if lex.tag != NO_TAG else 0):
            if exit_same(start.passed[i], lex):
                for t in range(nodes[node + 1].token, nodes[nodes[node].end].token):
                    token = trie.tokens[t]
                    rest.assign(<const char*>index.token_data + index.token_starts[token] + depth,
                                <size_t>(index.token_starts[token + 1] - index.token_starts[token] - depth))
                    rests[i].push_back(rest)
                break
        node += 1
    for i in range(rests.size()):
        if not rests[i].empty():
            crossing.lex = start.passed[i]
            crossing.rest = residual_intern(index, rests[i])
            start.crossings.push_back(crossing)
    lexsets_count(start.automaton, vector_bytes(start.crossings.size(), sizeof(LexCrossing)))
    start.is_crossed = True
    return True
