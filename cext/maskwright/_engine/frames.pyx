# What tokens do inside one rule, whatever is around it.
#
# The state behind any token is asked for at every open slot, and the stacks are new each time.  What a token
# does depends on the stack only where it ends the rule under way.  So it is computed once for a *frame*, a dotted item over a
# stack that has nothing but a bottom, and kept as a `Reach`: the parts that it leads to, with stacks that end in that bottom,
# and what is left (a residual) of those tokens that run past the end of the rule.  Over another stack these are the same parts
# with the bottom replaced (`frame_put`), and what is left is read by the frames that the rule returns to.

from cython.operator cimport dereference
from libc.stdint cimport int64_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.string cimport string

from maskwright._engine.sizes cimport bits_meet, pair_key, vector_bytes
from maskwright._engine.vocabulary cimport Residual
from maskwright._engine.residuals cimport residual_below
from maskwright._engine.lexemes cimport LexSet, LexState
from maskwright._engine.lexeme_sets cimport (
    lexset_cross, LEXSET_DEAD, lexset_next, lexset_read, lexset_union, numbers_normalize
)
from maskwright._engine.program cimport ACCEPT, Item, NO_STATE, ParserState, Program, Return, UNKNOWN
from maskwright._engine.rules cimport parse_expand
from maskwright._engine.columns cimport node_intern, returns_normalize
from maskwright._engine.stacks cimport node_reserve, state_behind, state_intern
from maskwright._engine.states cimport frame_bottom, frame_state
from maskwright._engine.set_states cimport Reach
from maskwright._engine.set_stacks cimport (
    parsers_merge, parts_compact, parts_join, set_intern, set_leave, set_starts, sets_stop, UNDER_WAY
)


cdef int32_t reach_keep(Sets* sets, Reach* reach) noexcept nogil:
    sets.held += (vector_bytes(reach.parts.capacity(), sizeof(Part))
                  + vector_bytes(reach.rests.capacity(), sizeof(void*)))
    sets.reaches.push_back(reach)
    return <int32_t>sets.reaches.size() - 1


# --- states ---------------------------------------------------------------------------------

cdef cbool dotted_reads(Program* program, int32_t local, const Automaton* automaton) noexcept nogil:
    cdef LexState* term
    for term in parse_expand(program, local).terms:
        if term.automaton == automaton:
            return True
    return False


cdef int32_t parser_narrow(Core* core, Sets* sets, int32_t parser, const Automaton* automaton) noexcept nogil:
    # The part of a parser state that waits for lexemes of an automaton: inside of one, nothing else matters.
    cdef ParserState* state = core.program.states[parser]
    cdef int64_t key = pair_key(parser, automaton.uid)
    cdef vector[Item] items
    cdef Item item
    found = sets.narrowed.find(key)
    if found != sets.narrowed.end():
        return dereference(found).second
    for item in state.items:
        if dotted_reads(core.program, item.local, automaton):
            items.push_back(item)
    sets.narrowed[key] = state_intern(core.program, items, False)
    return sets.narrowed[key]


cdef int32_t frame_behind(Core* core, Sets* sets, int32_t node) noexcept nogil:
    # `state_behind`, kept.
    cdef int32_t id
    found = sets.behind.find(node)
    if found != sets.behind.end():
        return dereference(found).second
    id = state_behind(core.program, node)
    if not core.index.deadline.passed:
        sets.behind[node] = id
    return id


cdef int32_t node_put(Core* core, Sets* sets, int32_t node, int32_t bottom) noexcept nogil:
    # A stack with its bottom replaced.
    cdef Program* program = core.program
    cdef vector[Return] returns
    cdef Return back
    cdef int64_t key = pair_key(node, bottom)
    cdef int32_t id
    if node == frame_bottom(core):
        return bottom
    found = sets.put_nodes.find(key)
    if found != sets.put_nodes.end():
        id = dereference(found).second
        if id == UNDER_WAY:
            # A cycle (left recursion): the node comes first, what it holds later.
            id = node_reserve(program)
            sets.put_nodes[key] = id
        return id
    sets.put_nodes[key] = UNDER_WAY
    for back in program.nodes[node].returns:
        if back.local == ACCEPT:
            returns.insert(returns.end(), program.nodes[bottom].returns.begin(), program.nodes[bottom].returns.end())
            continue
        back.node = node_put(core, sets, back.node, bottom)
        returns.push_back(back)
    id = sets.put_nodes[key]
    if id == UNDER_WAY:
        id = sets.put_nodes[key] = node_intern(program, returns)
    else:
        returns_normalize(returns)
        program.nodes[id].returns.assign(returns)
    return id


cdef int32_t frame_put(Core* core, Sets* sets, int32_t parser, int32_t bottom) noexcept nogil:
    # A parser state with the bottom of its stacks replaced; NO_STATE when nothing can follow.
    cdef ParserState* state = core.program.states[parser]
    cdef int64_t key = pair_key(parser, bottom)
    cdef vector[Item] items
    cdef vector[int32_t] both
    cdef Item item
    cdef int32_t id = NO_STATE
    if bottom == frame_bottom(core):
        return parser
    found = sets.put_states.find(key)
    if found != sets.put_states.end():
        return dereference(found).second
    for item in state.items:
        item.node = node_put(core, sets, item.node, bottom)
        items.push_back(item)
    if not items.empty():
        id = state_intern(core.program, items, False)
        both.push_back(id)
    if state.complete:
        id = frame_behind(core, sets, bottom)
        if id != NO_STATE:
            both.push_back(id)
    if not both.empty():
        id = parsers_merge(core, sets, both)
    if not core.index.deadline.passed:
        sets.put_states[key] = id
    return id


# --- tokens ---------------------------------------------------------------------------------

cdef void reach_compact(Core* core, Sets* sets, Reach* found) noexcept nogil:
    cdef vector[int32_t] ids
    cdef Residual* rest
    cdef int32_t id
    parts_compact(core, sets, found.parts)
    for rest in found.rests:
        ids.push_back(rest.id)
    numbers_normalize(ids)
    found.rests.clear()
    for id in ids:
        found.rests.push_back(core.index.residuals.all[id])


cdef cbool reach_put(Core* core, Sets* sets, const Reach* reach, int32_t node, Reach* out) noexcept nogil:
    # Add what a frame reaches, over a stack; False when time is up.
    cdef Part part
    cdef size_t i
    cdef int32_t behind
    for i in range(reach.parts.size()):
        if sets_stop(core, sets):
            return False
        part = reach.parts[i]
        part.parser = frame_put(core, sets, part.parser, node)
        if part.parser != NO_STATE:
            out.parts.push_back(part)
    if reach.rests.empty():
        return True
    behind = frame_behind(core, sets, node)
    for i in range(reach.rests.size() if behind != NO_STATE else 0):
        if not frames_follow(core, sets, behind, reach.rests[i], out):
            return False
    return True


cdef cbool frames_follow(Core* core, Sets* sets, int32_t parser, Residual* rest, Reach* out) noexcept nogil:
    # Add what strings lead to from before a lexeme; False when time is up.
    cdef ParserState* state = core.program.states[parser]
    cdef int64_t key = pair_key(parser, rest.id)
    cdef Reach* found
    cdef Reach* walked
    cdef size_t i
    if state.complete:
        out.rests.push_back(rest)
    if not bits_meet(state.first, rest.first):
        return True
    known = sets.walked.find(key)
    if known != sets.walked.end():
        found = sets.reaches[dereference(known).second]
    else:
        found = new Reach()
        for i in range(state.items.size()):
            walked = frame_walk(core, sets, state.items[i].local, rest)
            if walked == NULL or not reach_put(core, sets, walked, state.items[i].node, found):
                del found
                return False
        reach_compact(core, sets, found)
        sets.walked[key] = reach_keep(sets, found)
    out.parts.insert(out.parts.end(), found.parts.begin(), found.parts.end())
    out.rests.insert(out.rests.end(), found.rests.begin(), found.rests.end())
    return True


cdef Reach* frame_walk(Core* core, Sets* sets, int32_t local, Residual* rest) noexcept nogil:
    # Where a frame that waits for a lexeme gets by strings; NULL when time is up.
    cdef int64_t key = pair_key(local, rest.id)
    cdef int32_t frame
    cdef vector[LexSet*] path, inside
    cdef vector[LexSet*]* starts
    cdef vector[int32_t] joined
    cdef LexSet* here
    cdef Part part
    cdef Reach* found
    cdef uint32_t node
    cdef size_t i, j
    known = sets.frame_walks.find(key)
    if known != sets.frame_walks.end():
        return sets.reaches[dereference(known).second]
    found = new Reach()
    frame = frame_state(core, local)
    starts = set_starts(core, sets, frame)
    path.resize(core.index.most_bytes + 1, <LexSet*>NULL)
    for i in range(starts.size()):
        path[0] = starts[0][i]
        inside.clear()
        node = 0
        while node < rest.nodes.size():
            if sets_stop(core, sets):
                del found
                return NULL
            here = lexset_next(path[rest.nodes[node].depth - 1], rest.nodes[node].byte)
            if here == LEXSET_DEAD:
                node = rest.nodes[node].end
                continue
            path[rest.nodes[node].depth] = here
            if rest.nodes[node].final and here.going != NULL:
                inside.push_back(here.going)
            for j in range(here.exits.size()):
                if not frame_leave(core, sets, here.exits[j], frame, rest, node, joined, found):
                    del found
                    return NULL
            node += 1
        if not inside.empty():
            part.lexes = lexset_union(starts[0][i].automaton, inside)
            part.parser = frame
            found.parts.push_back(part)
    parts_join(core, sets, joined, found.parts)
    reach_compact(core, sets, found)
    sets.frame_walks[key] = reach_keep(sets, found)
    return found


cdef cbool frame_leave(Core* core, Sets* sets, LexState* lex, int32_t frame, Residual* rest, uint32_t node,
                       vector[int32_t]& joined, Reach* out) noexcept nogil:
    # Go on behind a lexeme that ends at a node of a residual; False when time is up.
    cdef vector[int32_t] after
    cdef int32_t target
    set_leave(core, lex, frame, after)
    for target in after:
        if rest.nodes[node].final:
            joined.push_back(target)
        if rest.nodes[node].end > node + 1:
            if not frames_follow(core, sets, target, residual_below(core.index, rest, node), out):
                return False
    return True


cdef Reach* frame_read(Core* core, Sets* sets, LexSet* lexes, int32_t local) noexcept nogil:
    # What all tokens reach from inside a lexeme of a frame; NULL when time is up.
    cdef vector[int32_t] joined
    cdef string key
    cdef Part part
    cdef LexState* lex
    cdef Reach* found
    cdef int32_t frame, known
    key.assign(<const char*>&lexes, sizeof(LexSet*))
    key.append(<const char*>&local, sizeof(int32_t))
    known = sets.frame_reads.find(key)
    if known >= 0:
        return sets.reaches[known]
    if not lexset_read(core.index, lexes):
        return NULL
    frame = frame_state(core, local)
    found = new Reach()
    if lexes.inside != NULL:
        part.lexes = lexes.inside
        part.parser = frame
        found.parts.push_back(part)
    for lex in lexes.ended:
        set_leave(core, lex, frame, joined)
    parts_join(core, sets, joined, found.parts)
    if not frame_cross(core, sets, lexes, frame, found):
        del found
        return NULL
    reach_compact(core, sets, found)
    sets.frame_reads.insert(key, reach_keep(sets, found))
    return found


cdef cbool frame_cross(Core* core, Sets* sets, LexSet* lexes, int32_t frame, Reach* out) noexcept nogil:
    # Tokens that run past the end of the lexeme; False when time is up.
    cdef vector[int32_t] after
    cdef LexState* lex
    cdef size_t i
    cdef int32_t target
    if not lexes.is_crossed:
        for lex in lexes.passed:
            set_leave(core, lex, frame, after)
        if after.empty():
            # Nothing can follow here.
            return True
        if not lexset_cross(core.index, lexes):
            return False
    for i in range(lexes.crossings.size()):
        after.clear()
        set_leave(core, lexes.crossings[i].lex, frame, after)
        for target in after:
            if not frames_follow(core, sets, target, lexes.crossings[i].rest, out):
                return False
    return not core.index.deadline.passed


cdef int32_t frames_any(Core* core, Sets* sets, const vector[Part]& parts) noexcept nogil:
    # The state behind any token that is text; NO_STATE when there is none, UNKNOWN when time is up.
    cdef Reach found
    cdef Reach* reach
    cdef vector[LexSet*]* starts
    cdef ParserState* state
    cdef Item item
    cdef size_t i, j, k
    for i in range(parts.size()):
        state = core.program.states[parts[i].parser]
        for j in range(state.items.size()):
            item = state.items[j]
            if parts[i].lexes != NULL:
                reach = frame_read(core, sets, parts[i].lexes, item.local)
                if reach == NULL or not reach_put(core, sets, reach, item.node, &found):
                    return UNKNOWN
                continue
            starts = set_starts(core, sets, frame_state(core, item.local))
            for k in range(starts.size()):
                reach = frame_read(core, sets, starts[0][k], item.local)
                if reach == NULL or not reach_put(core, sets, reach, item.node, &found):
                    return UNKNOWN
    return set_intern(core, sets, found.parts)
