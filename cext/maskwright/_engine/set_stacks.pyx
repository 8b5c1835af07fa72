# Stacks and parser states of many texts: return addresses to one place become one, with the union of what is below.

from cython.operator cimport dereference
from libcpp.algorithm cimport sort
from libcpp.string cimport string

from maskwright._engine.containers cimport SmallVector
from maskwright._engine.sizes cimport ALLOCATION, MAP_ENTRY, pair_key, vector_bytes
from maskwright._engine.vocabulary cimport Index
from maskwright._engine.residuals cimport residuals_free
from maskwright._engine.lexemes cimport Automaton
from maskwright._engine.lexeme_sets cimport lexset_of, lexset_union, lexsets_free, numbers_normalize
from maskwright._engine.program cimport ACCEPT, Item, NO_STATE, ParserState, Program, Return, UNKNOWN
from maskwright._engine.columns cimport node_intern, returns_normalize
from maskwright._engine.stacks cimport item_before, node_reserve, node_union, state_goto_guarded, state_intern
from maskwright._engine.values cimport UNKNOWN_TEXT
from maskwright._engine.core cimport (
    OUTCOME_GOOD, OUTCOME_INTERRUPTED, OUTCOME_LATE, OUTCOME_MEMORY, OUTCOME_SET_BYTES, OUTCOME_SETS_GONE
)
from maskwright._engine.threads cimport thread_goto
from maskwright._engine.generations cimport core_bytes, core_enter, core_leave
from maskwright._engine.set_states cimport SET_BASE, SetState


cdef void stack_expand(Sets* sets, int32_t node, vector[int32_t]& out) noexcept nogil:
    # The nodes that a merged node stands for.
    found = sets.parts.find(node)
    if found == sets.parts.end():
        out.push_back(node)
    else:
        out.insert(out.end(), dereference(found).second.begin(), dereference(found).second.end())


cdef int32_t stack_plain(Core* core, Sets* sets, int32_t node, int32_t depth) noexcept nogil:
    # A stack without cycles, with different return addresses at every level.
    cdef Program* program = core.program
    cdef vector[Return] returns, merged
    cdef Return back
    cdef size_t i = 0
    cdef int32_t below
    found = sets.plain.find(node)
    if found != sets.plain.end():
        return dereference(found).second
    returns = program.nodes[node].returns.copied()
    if depth == MERGE_DEPTH or sets_stop(core, sets):
        return node
    while i < returns.size():
        back = returns[i]
        if back.local != ACCEPT:
            back.node = stack_plain(core, sets, back.node, depth + 1)
        i += 1
        while i < returns.size() and returns[i].local == back.local:
            if back.local != ACCEPT:
                below = stack_plain(core, sets, returns[i].node, depth + 1)
                back.node = stack_union(core, sets, back.node, below, depth + 1)
            i += 1
        merged.push_back(back)
    below = node_intern(program, merged)
    sets.plain[node] = below
    sets.plain[below] = below
    return below


cdef int32_t stack_union(Core* core, Sets* sets, int32_t a, int32_t b, int32_t depth) noexcept nogil:
    # The union of two such stacks as one such.  They are interned from the bottom, so equal unions are one node.
    cdef Program* program = core.program
    cdef const SmallVector[Return]* left
    cdef const SmallVector[Return]* right
    cdef vector[Return] merged
    cdef Return back
    cdef size_t i = 0, j = 0
    cdef int64_t key
    cdef int32_t id
    if a == b:
        return a
    if a > b:
        a, b = b, a
    key = pair_key(a, b)
    found = sets.unions.find(key)
    if found != sets.unions.end():
        return dereference(found).second
    if depth == MERGE_DEPTH or sets_stop(core, sets):
        return node_union(program, a, b)
    left = &program.nodes[a].returns
    right = &program.nodes[b].returns
    while i < left.size() or j < right.size():
        if j == right.size() or (i < left.size() and left[0][i].local < right[0][j].local):
            merged.push_back(left[0][i])
            i += 1
        elif i == left.size() or right[0][j].local < left[0][i].local:
            merged.push_back(right[0][j])
            j += 1
        else:
            back = left[0][i]
            if back.local != ACCEPT:
                back.node = stack_union(core, sets, back.node, right[0][j].node, depth + 1)
            merged.push_back(back)
            i += 1
            j += 1
    id = node_intern(program, merged)
    sets.unions[key] = id
    sets.plain[id] = id
    return id


cdef int32_t stack_merge(Core* core, Sets* sets, vector[int32_t]& nodes, int32_t depth) noexcept nogil:
    # The union of stacks as one whose return addresses differ, down to the bottom.  `nodes` are sorted here.
    cdef size_t i
    cdef int32_t id
    numbers_normalize(nodes)
    for id in nodes:
        if core.program.nodes[id].cyclic:
            return stack_merge_cyclic(core, sets, nodes, depth)
    id = stack_plain(core, sets, nodes[0], depth)
    for i in range(1, nodes.size()):
        id = stack_union(core, sets, id, stack_plain(core, sets, nodes[i], depth), depth)
    return id


cdef int32_t stack_merge_cyclic(Core* core, Sets* sets, vector[int32_t]& nodes, int32_t depth) noexcept nogil:
    # The same where stacks have cycles: a subset construction, with GSS nodes as states.
    cdef Program* program = core.program
    cdef vector[Return] returns, merged
    cdef vector[int32_t] below
    cdef Return back
    cdef string key
    cdef size_t i = 0
    cdef int32_t id, count
    if nodes.size() == 1:
        return nodes[0]
    key.assign(<const char*>nodes.data(), nodes.size() * sizeof(int32_t))
    found = sets.merged.find(key)
    if found != sets.merged.end() and dereference(found).second != UNDER_WAY:
        return dereference(found).second
    if found != sets.merged.end():
        # A cycle (left recursion): the node comes first, what it holds later.
        id = node_reserve(program)
        sets.merged[key] = id
        sets.parts[id] = nodes
        return id
    for id in nodes:
        returns.insert(returns.end(), program.nodes[id].returns.begin(), program.nodes[id].returns.end())
    returns_normalize(returns)
    if depth == MERGE_DEPTH or sets_stop(core, sets):
        return node_intern(program, returns)
    sets.merged[key] = UNDER_WAY
    sets.held += <int64_t>key.size()
    while i < returns.size():
        back = returns[i]
        below.clear()
        while i < returns.size() and returns[i].local == back.local:
            stack_expand(sets, returns[i].node, below)
            i += 1
        if back.local != ACCEPT:
            back.node = stack_merge(core, sets, below, depth + 1)
        merged.push_back(back)
    id = sets.merged[key]
    if id != UNDER_WAY:
        program.nodes[id].returns.assign(merged)
        return id
    count = <int32_t>program.nodes.size()
    id = node_intern(program, merged)
    sets.merged[key] = id
    if id == count and program.nodes[id].cyclic:
        sets.parts[id] = nodes
    return id


cdef int32_t parsers_merge(Core* core, Sets* sets, vector[int32_t]& ids) noexcept nogil:
    # The union of parser states, at least one; they are sorted here.
    cdef Program* program = core.program
    cdef vector[Item] items, merged
    cdef vector[int32_t] nodes
    cdef Item item
    cdef string key
    cdef size_t i = 0
    cdef int32_t id
    cdef cbool complete = False
    numbers_normalize(ids)
    if ids.size() == 1:
        return ids[0]
    key.assign(<const char*>ids.data(), ids.size() * sizeof(int32_t))
    found = sets.parsers.find(key)
    if found != sets.parsers.end():
        return dereference(found).second
    for id in ids:
        items.insert(items.end(), program.states[id].items.begin(), program.states[id].items.end())
        complete = complete or program.states[id].complete
    sort(items.begin(), items.end(), item_before)
    while i < items.size():
        item = items[i]
        nodes.clear()
        while i < items.size() and items[i].local == item.local:
            stack_expand(sets, items[i].node, nodes)
            i += 1
        item.node = stack_merge(core, sets, nodes, 0)
        merged.push_back(item)
    id = state_intern(program, merged, complete)
    sets.parsers[key] = id
    sets.held += <int64_t>key.size()
    return id


# --- What sets of texts take, and that they end where `max_set_bytes` says.
#
# All of it is a cache.  States of many texts, and the stacks that they need, are in a core of their own (StateSets), which
# is dropped as a whole; sets of lexer states and residuals are shared by all grammars of a vocabulary.  An operation that
# leaves both together above the limit ends like one that is late.  If those that are shared are more than half, they are dropped
# too: everyone who holds sets of texts has to begin anew then, and does so at the next question.  The size is a sum over counts
# that are kept anyway and a few running sums, so it is looked at whenever a stack is merged.
# Lexer states are bounded by `max_lexer_states`, token edges by `mask_budget`.

cdef extern from "attempt.hpp" namespace "maskwright" nogil:
    cbool attempt(Attempted function, void* argument)
    int64_t memory_releases()


cdef int64_t sets_bytes(const Core* core, const Sets* sets) noexcept nogil:
    return (core_bytes(core) + sets.held
            + <int64_t>(sets.ids.bytes() + sets.frame_reads.bytes() + sets.after.bytes())
            + <int64_t>(sets.states.size() * (sizeof(SetState) + ALLOCATION + 2 * sizeof(void*))
                        + sets.reaches.size() * (sizeof(Reach) + ALLOCATION + 2 * sizeof(void*))
                        + (sets.single.size() + sets.joined.size() + sets.plain.size() + sets.unions.size()
                           + sets.narrowed.size() + core.frames.states.size() + sets.behind.size() + sets.put_nodes.size()
                           + sets.put_states.size() + sets.walked.size() + sets.frame_walks.size()
                           + sets.any.size() + sets.mixed.size()) * MAP_ENTRY
                        + (sets.merged.size() + sets.parsers.size() + sets.parts.size() + sets.starts.size())
                        * (2 * MAP_ENTRY + ALLOCATION)))


cdef int64_t sets_total(const Core* core, const Sets* sets) noexcept nogil:
    # What `max_set_bytes` bounds.
    return sets_bytes(core, sets) + core.index.cache.set_bytes


cdef cbool sets_full(Core* core, Sets* sets) noexcept nogil:
    # Whether sets of texts are above their limit, or memory is at its end: the operation under way ends as if it were late.
    if not sets.full and (sets_total(core, sets) > core.limits.max_set_bytes or memory_releases() != sets.releases):
        sets.full = True
        core.index.deadline.passed = True
    return sets.full


cdef void sets_drop_shared(Index* index) noexcept nogil:
    # Drop sets of lexer states and residuals; nobody may ask them for anything any more.
    cdef Program* program
    cdef size_t i, j
    for i in range(index.cache.set_holders.size()):
        (<Sets*>index.cache.set_holders[i]).gone = True
    for i in range(index.cache.automata.size()):
        lexsets_free(<Automaton*>index.cache.automata[i])
    for i in range(index.cache.cores.size()):
        program = (<Core*>index.cache.cores[i]).program
        for j in range(program.keysets.size()):
            lexsets_free(program.keysets[j])
    residuals_free(index)


cdef Outcome sets_attempt(Core* core, Sets* sets, Attempted function, void* argument) noexcept nogil:
    # One operation that may add to sets of texts.  When they are full, what is known can still be asked for.
    cdef Outcome outcome
    cdef int64_t before, behind
    cdef cbool good = True
    core_enter(core)
    before = sets_total(core, sets)
    sets.full = False
    sets.releases = memory_releases()
    if sets.gone:
        outcome = core_leave(core)
        outcome.kind = OUTCOME_SETS_GONE
        return outcome
    good = attempt(function, argument)
    behind = sets_total(core, sets)
    if not good or (core.index.cache.set_bytes > core.limits.max_set_bytes // 2 and behind > core.limits.max_set_bytes):
        # Without memory, what is shared goes in any case.
        sets_drop_shared(core.index)
    outcome = core_leave(core)
    if not good and outcome.kind != OUTCOME_INTERRUPTED:
        outcome.kind = OUTCOME_MEMORY
        outcome.given = behind
    elif outcome.kind in (OUTCOME_GOOD, OUTCOME_LATE):
        if sets.full or (behind > core.limits.max_set_bytes and behind > before):
            outcome.kind = OUTCOME_SET_BYTES
            outcome.given = behind
    return outcome


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


cdef void parts_join(Core* core, Sets* sets, vector[int32_t]& joined, vector[Part]& out) noexcept nogil:
    cdef Part part
    if not joined.empty():
        part.lexes = NULL
        part.parser = parsers_merge(core, sets, joined)
        out.push_back(part)


cdef void reaches_free(vector[Reach*]& reaches) noexcept nogil:
    cdef size_t i
    for i in range(reaches.size()):
        del reaches[i]
