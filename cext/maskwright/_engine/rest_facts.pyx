# What may come in the rest of a rule, and of those that called it: a terminal of the lexer, or a boundary.
#
#     item: "[" TERMINAL "]" value        behind "[", a terminal may come; behind TERMINAL, none may, unless `value` has one

from libc.stdint cimport int32_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.limits cimport deadline_look
from maskwright._engine.lexemes cimport KIND_BOUNDARY
from maskwright._engine.shortest_match cimport UNREACHED
from maskwright._engine.program cimport ACCEPT, Item, LOCAL_PLAIN, LOCAL_RECORD, LOCAL_REPEATED, Program, Return
from maskwright._engine.core cimport RestFacts
from maskwright._engine.costs cimport cost_plain, costs_prepare


cdef cbool kind_leads_to(const Program* program, const RestFacts* facts, int32_t kind, int32_t index) noexcept nogil:
    # Whether it may come in what a rule of a kind (LOCAL_*), or the rest of one, is made of.
    cdef size_t i, j
    if kind == LOCAL_PLAIN:
        return facts.plain[index] != 0
    if kind == LOCAL_REPEATED:
        return facts.rules[program.repeated[index].first] != 0 or facts.rules[program.repeated[index].rest] != 0
    if kind == LOCAL_RECORD:
        for i in range(program.records[index].values.size()):
            for j in range(program.records[index].values[i].size()):
                if facts.rules[program.records[index].values[i][j].rule]:
                    return True
        return False
    return True


cdef cbool plain_leads_to(Core* core, const RestFacts* facts, int32_t what, size_t state) noexcept nogil:
    # The same of a state of a rule's body.  One without any way on leads nowhere, and counts as well: a product of grammars has such
    # (``algebra.product``).
    cdef const Program* program = core.program
    cdef int32_t automaton
    cdef size_t i
    if cost_plain(core.program, core.costs, <int32_t>state) >= UNREACHED:
        return True
    for i in range(program.plain_terms[state].size()):
        automaton = program.plain_terms[state][i].automaton
        if facts.plain[program.plain_terms[state][i].target] or (
                automaton < 0 if what == A_TERMINAL else automaton >= 0 and program.automata[automaton].kind == KIND_BOUNDARY):
            return True
    for i in range(program.plain_calls[state].size()):
        if facts.plain[program.plain_calls[state][i].back] or facts.rules[program.plain_calls[state][i].rule]:
            return True
    return False


cdef void facts_find(Core* core, RestFacts* facts, int32_t what) noexcept nogil:
    cdef Program* program = core.program
    cdef size_t i
    cdef cbool more = facts.plain.empty()
    if more:
        costs_prepare(core)
        facts.plain.resize(program.plain_terms.size(), 0)
        facts.rules.resize(program.rules.size(), 0)
    while more and not deadline_look(&core.index.deadline):
        more = False
        for i in range(program.rules.size()):
            if not facts.rules[i] and kind_leads_to(program, facts, program.rules[i].kind, program.rules[i].index):
                facts.rules[i] = 1
                more = True
        for i in range(program.plain_terms.size(), 0, -1):
            if not facts.plain[i - 1] and plain_leads_to(core, facts, what, i - 1):
                facts.plain[i - 1] = 1
                more = True
    if core.index.deadline.passed:
        facts.plain.clear()


cdef cbool local_leads_to(Core* core, int32_t what, const DottedItem* local) noexcept nogil:
    # Whether it may come behind a dotted item, in its rule; True as well when time is up.
    cdef RestFacts* facts = &core.facts.lexed if what == A_TERMINAL else &core.facts.bounded
    facts_find(core, facts, what)
    return facts.plain.empty() or kind_leads_to(core.program, facts, local.kind, local.index)


cdef cbool node_meets_boundary(Core* core, int32_t start) noexcept nogil:
    # Whether one may come behind a return to a GSS node.
    cdef Program* program = core.program
    cdef vector[int32_t] work
    cdef vector[char] seen
    cdef Return back
    cdef size_t head = 0
    cdef int32_t known = core.facts.bounded_nodes.find(&start, sizeof(start))
    if known >= 0:
        return known == 1
    known = 0
    work.push_back(start)
    seen.resize(program.nodes.size(), 0)
    seen[start] = 1
    while head < work.size() and known == 0:
        for back in program.nodes[work[head]].returns:
            if back.local == ACCEPT:
                continue
            if local_leads_to(core, A_BOUNDARY, program.locals[back.local]):
                known = 1
                break
            if not seen[back.node]:
                seen[back.node] = 1
                work.push_back(back.node)
        head += 1
    if not core.index.deadline.passed:
        core.facts.bounded_nodes.insert(&start, sizeof(start), known)
    return known == 1


cdef cbool thread_meets_boundary(Core* core, const Thread& thread) noexcept nogil:
    # Whether a thread may come to a boundary.
    cdef Item item
    for item in core.program.states[thread.parser].items:
        if local_leads_to(core, A_BOUNDARY, core.program.locals[item.local]) or node_meets_boundary(core, item.node):
            return True
    return False
