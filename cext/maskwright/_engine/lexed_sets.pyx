# States of many texts where a grammar has a lexer (longest_match.pyx).
#
# What may follow is split there by what a parser state waits for, so parser states are not merged and the states of many
# texts are matcher states like those of one.  What is behind all tokens is the union of what is behind them
# from each thread, and is kept by thread.
#
# Where tokens end is a question of the lexer first: inside the terminal, with it, or behind it.  So the vocabulary is walked once for each
# lexer state, with no parser state in sight.  What is left of the tokens that run past the end of the terminal is put together by what
# ended, and walked from the start of the lexer that comes next, in the same way.  A thread then only asks where terminals lead.

from cython.operator cimport dereference
from libc.stdint cimport uint32_t, uint8_t
from libcpp.pair cimport pair
from libcpp.string cimport string

from maskwright._engine.sizes cimport vector_bytes
from maskwright._engine.trie cimport Trie, trie_merge, trie_size
from maskwright._engine.lexemes cimport Ended, Hypothesis, LexState, NO_TAG
from maskwright._engine.lexeme_texts cimport LEX_DEAD
from maskwright._engine.lexeme_state cimport lex_goes_on, lex_next
from maskwright._engine.longest_match cimport lexer_hopeless, lexer_matched, lexer_of, lookahead_join, lookahead_step
from maskwright._engine.program cimport NO_KEY, NO_STATE, ParserState, UNKNOWN
from maskwright._engine.values cimport UNKNOWN_TEXT
from maskwright._engine.stacks cimport state_goto
from maskwright._engine.core cimport Thread, thread_at
from maskwright._engine.threads cimport threads_normalize
from maskwright._engine.rest_facts cimport thread_boundaries
from maskwright._engine.alive cimport threads_keep_alive, threads_step
from maskwright._engine.states cimport matcher_intern
from maskwright._engine.set_states cimport EndedRest, TokenEnds
from maskwright._engine.set_stacks cimport sets_stop

cdef enum:
    LOOK = 63              # nodes between two looks at the limits
    SHARE_LEAST = 64       # trie nodes below which keeping what is found does not pay
    ENDS_ENTRY = 192       # bytes of what finds one of them


cdef void ends_free(Sets* sets) noexcept nogil:
    cdef pair[string, TokenEnds*] entry
    cdef pair[string, Trie*] joined
    for entry in sets.ends:
        del entry.second
    for entry in sets.ends_below:
        del entry.second
    for joined in sets.joined_rests:
        del joined.second


cdef void lexed_forget_keys(vector[Thread]& threads) noexcept nogil:
    cdef size_t i
    for i in range(threads.size()):
        if threads[i].memory > 0:
            threads[i].memory = UNKNOWN_TEXT


cdef cbool lexed_walk_level(Core* core, Sets* sets, const Trie* trie, uint32_t node) noexcept nogil:
    # One level of a walk of a trie from level 0; False when nothing is left there.
    cdef size_t depth = trie.nodes[node].depth
    threads_step(core, sets.levels[depth - 1], trie.nodes[node].byte, sets.levels[depth])
    lexed_forget_keys(sets.levels[depth])
    return not sets.levels[depth].empty()


cdef void lexed_walk(Core* core, Sets* sets, const Trie* trie, uint32_t node, uint32_t last, const Thread& thread,
                     vector[Thread]& out) noexcept nogil:
    # Add the threads behind the tokens below nodes [node, last), all of which hang on one node, where a thread stands.
    cdef vector[Thread]* here
    cdef size_t limit = 2 * out.size() + 256, top = <size_t>trie.nodes[node].depth - 1
    sets.levels[top].assign(1, thread)
    while node < last:
        if node & LOOK == LOOK and sets_stop(core, sets):
            return
        if not lexed_walk_level(core, sets, trie, node):
            node = trie.nodes[node].end
            continue
        if trie.nodes[node].token < trie.nodes[node + 1].token:
            here = &sets.levels[trie.nodes[node].depth]
            out.insert(out.end(), here.begin(), here.end())
            if out.size() > limit:
                threads_normalize(out)
                limit = 2 * out.size() + 256
        node += 1


# --- where tokens end for a lexer

cdef inline int64_t hypothesis_key(int32_t first, const LexState* lookahead) noexcept nogil:
    return (<int64_t>first << 32) | (0 if lookahead == NULL else lookahead.id + 1)


cdef void ends_add_inside(TokenEnds* ends, EndsBuilder& known, const Hypothesis& each) noexcept nogil:
    cdef int64_t key = hypothesis_key(each.lex.id, each.lookahead)
    if known.inside.count(key) == 0:
        known.inside[key] = 1
        ends.inside.push_back(each)


cdef void ends_add_ended(TokenEnds* ends, EndsBuilder& known, const Ended& each) noexcept nogil:
    cdef int64_t key = hypothesis_key(each.tag, each.lookahead)
    if known.ended.count(key) == 0:
        known.ended[key] = 1
        ends.ended.push_back(each)


cdef EndedRest* ends_rest(TokenEnds* ends, EndsBuilder& known, int32_t tag, LexState* lookahead) noexcept nogil:
    cdef int64_t key = hypothesis_key(tag, lookahead)
    cdef size_t at = ends.rests.size()
    found = known.rests.find(key)
    if found != known.rests.end():
        return &ends.rests[dereference(found).second]
    known.rests[key] = at
    ends.rests.resize(at + 1)
    ends.rests[at].tag = tag
    ends.rests[at].lookahead = lookahead
    return &ends.rests[at]


cdef cbool hypothesis_step(const Hypothesis& before, uint8_t byte, Hypothesis* out) noexcept nogil:
    # Over a byte within a terminal; False where nothing is left.
    out.lookahead = before.lookahead
    out.lex = lex_next(before.lex, byte)
    return (out.lex != LEX_DEAD and lookahead_step(&out.lookahead, byte)
            and (lexer_matched(out.lex) or not lexer_hopeless(out.lex, out.lookahead)))


cdef void ends_at(TokenEnds* ends, EndsBuilder& known, const Trie* trie, uint32_t node, const Hypothesis& here) noexcept nogil:
    # Add the tokens that end at a node.
    cdef Ended ended
    if trie.nodes[node].token == trie.nodes[node + 1].token:
        return
    if (here.lex.tag == NO_TAG or lex_goes_on(here.lex)) and not lexer_hopeless(here.lex, here.lookahead):
        ends_add_inside(ends, known, here)
    if lexer_matched(here.lex):
        ended.tag = here.lex.tag
        ended.lookahead = lookahead_join(here.lookahead, here.lex)
        ends_add_ended(ends, known, ended)


cdef cbool ends_walk(Core* core, Sets* sets, TokenEnds* ends, EndsBuilder& known, const Trie* trie, uint32_t top,
                     const Hypothesis& start) noexcept nogil:
    # Add the tokens of a node and of those below, where the lexer is behind its byte.  False when time is up.
    cdef vector[Hypothesis] path
    cdef Hypothesis here
    cdef LexState* after
    cdef LexState* ahead
    cdef size_t depth
    cdef uint32_t node = top + 1
    cdef uint8_t byte
    ends_at(ends, known, trie, top, start)
    path.push_back(start)
    while node < trie.nodes[top].end:
        if node & LOOK == LOOK and sets_stop(core, sets):
            return False
        depth = <size_t>trie.nodes[node].depth - trie.nodes[top].depth
        byte = trie.nodes[node].byte
        if lexer_matched(path[depth - 1].lex):
            ahead = after = lookahead_join(path[depth - 1].lookahead, path[depth - 1].lex)
            if lookahead_step(&after, byte):
                ends_rest(ends, known, path[depth - 1].lex.tag, ahead if after != NULL else <LexState*>NULL).nodes.push_back(node)
        if not hypothesis_step(path[depth - 1], byte, &here):
            node = trie.nodes[node].end
            continue
        ends_at(ends, known, trie, node, here)
        path.resize(depth)
        path.push_back(here)
        node += 1
    return True


cdef string ends_key(const Trie* trie, uint32_t node, const Hypothesis& here) noexcept nogil:
    cdef string key
    key.append(<const char*>&trie, sizeof(trie))
    key.append(<const char*>&node, sizeof(node))
    key.append(<const char*>&here, sizeof(Hypothesis))
    return key


cdef cbool ends_below(Core* core, Sets* sets, TokenEnds* ends, EndsBuilder& known, const Trie* trie, uint32_t node,
                      const Hypothesis& here) noexcept nogil:
    # As `ends_walk`.  Most bytes lead most states to the same one, so what is below a large node is kept.
    cdef TokenEnds* below
    cdef EndsBuilder inner
    cdef vector[uint32_t]* nodes
    cdef string key
    cdef size_t i
    if trie.nodes[node].end - node <= SHARE_LEAST:
        return ends_walk(core, sets, ends, known, trie, node, here)
    key = ends_key(trie, node, here)
    found = sets.ends_below.find(key)
    if found != sets.ends_below.end():
        below = dereference(found).second
    else:
        below = new TokenEnds()
        if not ends_walk(core, sets, below, inner, trie, node, here):
            del below
            return False
        sets.ends_below[key] = below
        sets.held += ends_size(below)
    for i in range(below.inside.size()):
        ends_add_inside(ends, known, below.inside[i])
    for i in range(below.ended.size()):
        ends_add_ended(ends, known, below.ended[i])
    for i in range(below.rests.size()):
        nodes = &ends_rest(ends, known, below.rests[i].tag, below.rests[i].lookahead).nodes
        nodes.insert(nodes.end(), below.rests[i].nodes.begin(), below.rests[i].nodes.end())
    return True


cdef int64_t ends_size(const TokenEnds* ends) noexcept nogil:
    cdef int64_t size = sizeof(TokenEnds) + ENDS_ENTRY + vector_bytes(ends.inside.size(), sizeof(Hypothesis)) + vector_bytes(
        ends.ended.size(), sizeof(Ended)) + vector_bytes(ends.rests.size(), sizeof(EndedRest))
    cdef size_t i
    for i in range(ends.rests.size()):
        size += vector_bytes(ends.rests[i].nodes.size(), sizeof(uint32_t))
    return size


cdef TokenEnds* lexed_ends(Core* core, Sets* sets, const Trie* trie, uint32_t first, uint32_t last,
                           const Hypothesis& start) noexcept nogil:
    # Where the tokens below nodes [first, last) end, all of which hang on one node, where the lexer is in a state with a lookahead.  NULL
    # when time is up.
    cdef TokenEnds* ends
    cdef EndsBuilder known
    cdef Hypothesis here
    cdef string key = ends_key(trie, first, start)
    cdef uint32_t node = first
    cdef size_t i
    found = sets.ends.find(key)
    if found != sets.ends.end():
        return dereference(found).second
    ends = new TokenEnds()
    while node < last:
        if hypothesis_step(start, trie.nodes[node].byte, &here) and not ends_below(core, sets, ends, known, trie, node, here):
            del ends
            return NULL
        node = trie.nodes[node].end
    for i in range(ends.rests.size()):
        lexed_join_rest(sets, trie, ends.rests[i])
    sets.ends[key] = ends
    sets.held += ends_size(ends)
    return ends


cdef void lexed_join_rest(Sets* sets, const Trie* trie, EndedRest& rest) noexcept nogil:
    # What is left behind one terminal is walked as one.
    cdef string key
    cdef Trie* joined
    rest.trie = trie
    rest.first = rest.nodes[0]
    if rest.nodes.size() > 1:
        key.append(<const char*>&trie, sizeof(trie))
        key.append(<const char*>rest.nodes.data(), rest.nodes.size() * sizeof(uint32_t))
        found = sets.joined_rests.find(key)
        if found != sets.joined_rests.end():
            joined = dereference(found).second
        else:
            joined = new Trie()
            trie_merge(trie, joined, rest.nodes)
            sets.joined_rests[key] = joined
            sets.held += trie_size(joined) + <int64_t>key.size() + ENDS_ENTRY
        rest.trie = joined
        rest.first = 1
    rest.last = rest.trie.nodes[rest.first].end if rest.trie == trie else rest.trie.nodes[0].end
    rest.nodes.clear()
    rest.nodes.shrink_to_fit()


cdef void lexed_behind(Core* core, Sets* sets, const Trie* trie, uint32_t first, uint32_t last, const Thread& thread,
                       vector[Thread]& out) noexcept nogil:
    # As `lexed_walk`, by way of the lexer where that alone decides.  Recursion is bounded by the longest token.
    cdef Program* program = core.program
    cdef ParserState* state = program.states[thread.parser]
    cdef Hypothesis start
    cdef TokenEnds* ends
    cdef Thread behind = thread
    cdef size_t i
    start.lex = thread.lex
    start.lookahead = thread.lookahead
    if program.has_boundaries and thread_boundaries(core, thread):
        lexed_walk(core, sets, trie, first, last, thread, out)
        return
    if start.lex == NULL and state.starts.empty():
        start.lex = state.lexer
        if start.lex == NULL:
            return
    if start.lex == NULL or start.lex.automaton != program.lexer or lexer_of(program.lexer).newline >= 0:
        lexed_walk(core, sets, trie, first, last, thread, out)
        return
    ends = lexed_ends(core, sets, trie, first, last, start)
    if ends == NULL:
        return
    for i in range(ends.inside.size()):
        behind.lex = ends.inside[i].lex
        behind.lookahead = ends.inside[i].lookahead
        out.push_back(behind)
    for i in range(ends.ended.size()):
        behind = thread_at(state_goto(program, thread.parser, program.lexer, ends.ended[i].tag, NO_KEY), ends.ended[i].lookahead)
        if behind.parser != NO_STATE:
            out.push_back(behind)
    for i in range(ends.rests.size()):
        if core.index.deadline.passed:
            return
        behind = thread_at(state_goto(program, thread.parser, program.lexer, ends.rests[i].tag, NO_KEY), ends.rests[i].lookahead)
        if behind.parser != NO_STATE:
            lexed_behind(core, sets, ends.rests[i].trie, ends.rests[i].first, ends.rests[i].last, behind, out)


cdef vector[Thread]* lexed_after(Core* core, Sets* sets, const Thread& thread) noexcept nogil:
    # The threads behind all tokens; NULL when time is up.
    cdef const Trie* trie = core.index.trie
    cdef vector[Thread] out
    cdef string key
    cdef int32_t known
    key.append(<const char*>&thread.lex, sizeof(LexState*))
    key.append(<const char*>&thread.lookahead, sizeof(LexState*))
    key.append(<const char*>&thread.parser, sizeof(int32_t))
    key.append(<const char*>&thread.memory, sizeof(int32_t))
    known = sets.after.find(key)
    if known >= 0:
        return &sets.threads[known]
    if trie.nodes[0].end > 1:
        lexed_behind(core, sets, trie, 1, trie.nodes[0].end, thread, out)
    threads_normalize(out)
    if core.index.deadline.passed or sets_stop(core, sets):
        return NULL
    threads_keep_alive(core, out)
    if core.index.deadline.passed:
        return NULL
    sets.after.insert(key, <int32_t>sets.threads.size())
    sets.threads.push_back(out)
    sets.held += vector_bytes(out.size(), sizeof(Thread))
    return &sets.threads.back()


cdef int32_t lexed_any(Core* core, Sets* sets, int32_t id) noexcept nogil:
    # As `sets_any`.
    cdef vector[Thread] out
    cdef vector[Thread]* after
    cdef Thread thread
    cdef int32_t target
    found = sets.any.find(id)
    if found != sets.any.end():
        return dereference(found).second
    for thread in core.states[id].threads:
        after = lexed_after(core, sets, thread)
        if after == NULL:
            return UNKNOWN
        out.insert(out.end(), after.begin(), after.end())
    target = matcher_intern(core, out)
    sets.any[id] = target
    return target


cdef int32_t lexed_join(Core* core, int32_t a, int32_t b) noexcept nogil:
    cdef vector[Thread] threads = core.states[a].threads
    threads.insert(threads.end(), core.states[b].threads.begin(), core.states[b].threads.end())
    return matcher_intern(core, threads)


cdef cbool lexed_covers(const Core* core, int32_t a, int32_t b) noexcept nogil:
    # As `sets_covers`, by equal threads.
    cdef const vector[Thread]* over = &core.states[a].threads
    cdef const vector[Thread]* under = &core.states[b].threads
    cdef size_t i, j
    for i in range(under.size()):
        for j in range(over.size()):
            if (over[0][j].lex == under[0][i].lex and over[0][j].lookahead == under[0][i].lookahead
                    and over[0][j].parser == under[0][i].parser
                    and (over[0][j].memory == under[0][i].memory or over[0][j].memory == UNKNOWN_TEXT)):
                break
        else:
            return False
    return True


cdef void lexed_classes(Core* core, Sets* sets, int32_t id, const Trie* trie, vector[int32_t]& targets) noexcept nogil:
    # As `sets_classes`.
    cdef uint32_t node = 1
    cdef vector[Thread] here
    cdef int32_t t, target
    sets.levels[0] = core.states[id].threads
    while node < trie.nodes[0].end:
        if sets_stop(core, sets):
            return
        if not lexed_walk_level(core, sets, trie, node):
            node = trie.nodes[node].end
            continue
        if trie.nodes[node].token < trie.nodes[node + 1].token:
            here = sets.levels[trie.nodes[node].depth]
            target = matcher_intern(core, here)
            for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
                targets[trie.tokens[t]] = target
        node += 1
