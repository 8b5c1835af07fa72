# Tokens that run over a boundary.
#
# Two grammars with a lexer stand beside each other, or something comes behind one (``maskwright.ir.grammar.Boundary``).  Where a text of
# the first ends, the lexer begins anew.  No longest match looks over that place, so what a lexer says about tokens says nothing about
# those that run over it.
#
#     SELECT a FROM b|\n```      the token `b\n` has a name, a boundary, and the beginning of what comes behind
#
# Such a token ends with something that is read behind the boundary, or with something that is longer.  There are few such tokens mostly: they
# are a small trie, which is walked by threads.

from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.sizes cimport bits_has
from maskwright._engine.turns cimport turn_passed
from maskwright._engine.trie cimport trie_build, trie_size
from maskwright._engine.lexemes cimport ResidualView
from maskwright._engine.program cimport ACCEPT, Item, LOCAL_PLAIN, NO_STATE, PlainTerm, Program, Return
from maskwright._engine.rules cimport parse_local
from maskwright._engine.columns cimport node_intern
from maskwright._engine.stacks cimport state_from_kernel
from maskwright._engine.core cimport CrossingTokens, thread_at
from maskwright._engine.threads cimport lexed_step, threads_complete
from maskwright._engine.rest_facts cimport term_fact, thread_boundaries
from maskwright._engine.states cimport mask_walk


cdef void threads_over(Core* core, uint64_t over, vector[Thread]& out, uint64_t* first) noexcept nogil:
    # Add the threads behind some boundaries, whatever was around, and the bytes with which they go on.  What may be empty there may
    # be left out before it (``maskwright.algebra.joins``), so what comes behind that one counts behind another boundary.
    cdef Program* program = core.program
    cdef vector[Item] kernel
    cdef vector[Return] returns
    cdef Return accept
    cdef Item item
    cdef PlainTerm term
    cdef size_t i, j
    cdef int32_t id
    accept.local = ACCEPT
    accept.node = 0
    returns.push_back(accept)
    item.node = node_intern(program, returns)
    for i in range(program.plain_terms.size()):
        for term in program.plain_terms[i]:
            if not term_fact(program, term.automaton) & over:
                continue
            item.local = parse_local(program, LOCAL_PLAIN, term.target, 0, 0)
            kernel.assign(1, item)
            id = state_from_kernel(program, kernel)
            if id != NO_STATE:
                out.push_back(thread_at(id, NULL))
                for j in range(4):
                    first[j] |= program.states[id].first[j]


cdef cbool token_goes_over(Core* core, int32_t token, const vector[Thread]& start, const uint64_t* first) noexcept nogil:
    # Whether what is behind some byte of a token may be read by threads, to its end or to theirs.
    cdef vector[Thread] before, after
    cdef int64_t i, j, end = core.index.token_starts[token + 1]
    for i in range(core.index.token_starts[token] + 1, end):
        if not bits_has(first, core.index.token_data[i]):
            continue
        before = start
        for j in range(i, end):
            lexed_step(core, before, core.index.token_data[j], after)
            before.swap(after)
            if threads_complete(core, before):
                return True
            if before.empty():
                break
        if not before.empty():
            return True
    return False


cdef const CrossingTokens* crossing_tokens(Core* core, uint64_t over) noexcept nogil:
    # The tokens that may run over some boundaries, found once; NULL when time is up.
    cdef CrossingTokens* found
    cdef vector[Thread] start
    cdef vector[int32_t] ids
    cdef uint64_t first[4]
    cdef size_t at
    for at in range(core.crossing.size()):
        if core.crossing[at].over == over:
            return core.crossing[at]
    first[0] = first[1] = first[2] = first[3] = 0
    threads_over(core, over, start, first)
    for at in range(core.index.trie.tokens.size()):
        if token_goes_over(core, core.index.trie.tokens[at], start, first):
            ids.push_back(core.index.trie.tokens[at])
        if turn_passed(core.index):
            return NULL
    found = core.crossing.add()
    found.over = over
    trie_of(core, ids, found)
    core.program.held += trie_size(&found.trie)
    return found


cdef void trie_of(Core* core, const vector[int32_t]& ids, CrossingTokens* out) noexcept nogil:
    # Of some tokens, in their order.
    cdef vector[uint8_t] data
    cdef vector[int64_t] starts
    cdef size_t at
    cdef int64_t i
    starts.push_back(0)
    for at in range(ids.size()):
        for i in range(core.index.token_starts[ids[at]], core.index.token_starts[ids[at] + 1]):
            data.push_back(core.index.token_data[i])
        starts.push_back(<int64_t>data.size())
    trie_build(&out.trie, data.data(), starts.data(), ids.data(), <int64_t>ids.size())


cdef void mask_add_crossing(Core* core, const vector[Thread]& threads, Mask* mask) noexcept nogil:
    # Add the tokens that some threads allow and that run from a terminal over a boundary.
    cdef vector[Thread] near
    cdef ResidualView view
    cdef const CrossingTokens* tokens
    cdef const Thread* thread
    cdef uint64_t over = 0, its
    cdef size_t i
    for i in range(threads.size()):
        thread = &threads[i]
        if core.program.states[thread.parser].lexer == NULL if thread.lex == NULL else thread.lex.automaton != core.program.lexer:
            continue
        its = thread_boundaries(core, threads[i])
        if its:
            over |= its
            near.push_back(threads[i])
    if near.empty():
        return
    tokens = crossing_tokens(core, over)
    if tokens == NULL:
        return
    view.trie = &tokens.trie
    view.first = 1
    view.last = view.trie.nodes[0].end
    view.depth = 0
    mask_walk(core, threads, view, near, mask.added)
