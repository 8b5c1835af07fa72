# Tokens that run over a boundary.
#
# Two grammars with a lexer stand beside each other, or something comes behind one (``maskwright.ir.grammar.Boundary``).  Where a text of
# the first ends, the lexer begins anew.  No longest match looks over that place, so what a lexer says about tokens says nothing about
# those that run over it.
#
#     SELECT a FROM b|\n```      the token `b\n` has a name, a boundary, and the beginning of what comes behind
#
# Such a token has a byte with which something begins behind some boundary.  There are few such bytes mostly, so the tokens that have one
# behind their first byte are a small trie, which is walked by threads.

from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t
from libcpp.vector cimport vector

from maskwright._engine.sizes cimport bits_has
from maskwright._engine.trie cimport trie_build, trie_size
from maskwright._engine.lexemes cimport KIND_BOUNDARY, ResidualView
from maskwright._engine.program cimport ACCEPT, Item, LOCAL_PLAIN, NO_STATE, PlainTerm, Program, Return
from maskwright._engine.rules cimport parse_local
from maskwright._engine.columns cimport node_intern
from maskwright._engine.stacks cimport state_from_kernel
from maskwright._engine.rest_facts cimport thread_meets_boundary
from maskwright._engine.states cimport mask_walk


cdef void begins_behind(Program* program, uint64_t* first) noexcept nogil:
    # The bytes with which something begins behind some boundary.  What may be empty there may be left out before it
    # (``maskwright.algebra.joins``), so what comes behind that one counts behind another boundary.
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
            if term.automaton < 0 or program.automata[term.automaton].kind != KIND_BOUNDARY:
                continue
            item.local = parse_local(program, LOCAL_PLAIN, term.target, 0, 0)
            kernel.assign(1, item)
            id = state_from_kernel(program, kernel)
            for j in range(4 if id != NO_STATE else 0):
                first[j] |= program.states[id].first[j]


cdef void crossing_tokens(Core* core) noexcept nogil:
    # The tokens that may run over a boundary, made once.
    cdef const int64_t* starts = core.index.token_starts
    cdef vector[int32_t] ids
    cdef uint64_t first[4]
    cdef int32_t token
    cdef size_t at
    cdef int64_t i
    if core.boundaries.known:
        return
    first[0] = first[1] = first[2] = first[3] = 0
    begins_behind(core.program, first)
    if core.index.deadline.passed:
        return
    for at in range(core.index.trie.tokens.size()):
        token = core.index.trie.tokens[at]
        for i in range(starts[token] + 1, starts[token + 1]):
            if bits_has(first, core.index.token_data[i]):
                ids.push_back(token)
                break
    trie_of(core, ids)
    core.program.held += trie_size(&core.boundaries.trie)
    core.boundaries.known = True


cdef void trie_of(Core* core, const vector[int32_t]& ids) noexcept nogil:
    # Of some tokens, in their order.
    cdef vector[uint8_t] data
    cdef vector[int64_t] starts
    cdef int32_t token
    cdef size_t at
    cdef int64_t i
    starts.push_back(0)
    for at in range(ids.size()):
        token = ids[at]
        for i in range(core.index.token_starts[token], core.index.token_starts[token + 1]):
            data.push_back(core.index.token_data[i])
        starts.push_back(<int64_t>data.size())
    trie_build(&core.boundaries.trie, data.data(), starts.data(), ids.data(), <int64_t>ids.size())


cdef void mask_add_crossing(Core* core, const vector[Thread]& threads, Mask* mask) noexcept nogil:
    # Add the tokens that some threads allow and that run over a boundary.
    cdef vector[Thread] near
    cdef ResidualView view
    cdef size_t i
    for i in range(threads.size()):
        if thread_meets_boundary(core, threads[i]):
            near.push_back(threads[i])
    if near.empty():
        return
    crossing_tokens(core)
    if core.index.deadline.passed:
        return
    view.trie = &core.boundaries.trie
    view.first = 1
    view.last = view.trie.nodes[0].end
    view.depth = 0
    mask_walk(core, threads, view, near, mask.added)
