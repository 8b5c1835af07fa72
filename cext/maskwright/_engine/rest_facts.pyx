# What may come in the rest of a rule, and of those that called it: a terminal of the lexer, and boundaries.
#
#     item: "[" TERMINAL "]" value        behind "[", a terminal may come; behind TERMINAL, none may, unless `value` has one
#
# It is a set of bits: one for terminals, and one for each boundary.

from cython.operator cimport dereference
from libc.stdint cimport int32_t
from libcpp.vector cimport vector

from maskwright._engine.containers cimport ScratchIds
from maskwright._engine.limits cimport deadline_look
from maskwright._engine.lexemes cimport KIND_BOUNDARY
from maskwright._engine.shortest_match cimport UNREACHED
from maskwright._engine.program cimport ACCEPT, Item, LOCAL_PLAIN, LOCAL_RECORD, LOCAL_REPEATED, Return
from maskwright._engine.core cimport RestFacts
from maskwright._engine.costs cimport cost_plain, costs_prepare

cdef enum:
    A_TERMINAL = 1


cdef uint64_t term_fact(const Program* program, int32_t automaton) noexcept nogil:
    # The bit of a term (PlainTerm.automaton), or 0.
    cdef int32_t i, number = 0
    if automaton < 0:
        return A_TERMINAL
    if program.automata[automaton].kind != KIND_BOUNDARY:
        return 0
    for i in range(automaton):
        if program.automata[i].kind == KIND_BOUNDARY:
            number += 1
    return (<uint64_t>2) << (number if number < MANY_BOUNDARIES else MANY_BOUNDARIES)


cdef uint64_t kind_facts(const Program* program, const RestFacts* facts, int32_t kind, int32_t index) noexcept nogil:
    # What may come in what a rule of a kind (LOCAL_*), or the rest of one, is made of.
    cdef uint64_t found = 0
    cdef size_t i, j
    if kind == LOCAL_PLAIN:
        return facts.plain[index]
    if kind == LOCAL_REPEATED:
        return facts.rules[program.repeated[index].first] | facts.rules[program.repeated[index].rest]
    if kind == LOCAL_RECORD:
        for i in range(program.records[index].values.size()):
            for j in range(program.records[index].values[i].size()):
                found |= facts.rules[program.records[index].values[i][j].rule]
        return found
    return facts.rules[program.indented[index]] | A_TERMINAL


cdef uint64_t plain_facts(Core* core, const RestFacts* facts, size_t state) noexcept nogil:
    # The same of a state of a rule's body.  One without any way on leads nowhere, and counts as one with a terminal: a product of
    # grammars has such (``algebra.product``).
    cdef const Program* program = core.program
    cdef uint64_t found = A_TERMINAL if cost_plain(core.program, core.costs, <int32_t>state) >= UNREACHED else 0
    cdef size_t i
    for i in range(program.plain_terms[state].size()):
        found |= facts.plain[program.plain_terms[state][i].target] | term_fact(program, program.plain_terms[state][i].automaton)
    for i in range(program.plain_calls[state].size()):
        found |= facts.plain[program.plain_calls[state][i].back] | facts.rules[program.plain_calls[state][i].rule]
    return found


cdef RestFacts* facts_of(Core* core) noexcept nogil:
    # Empty when time is up.
    cdef Program* program = core.program
    cdef RestFacts* facts = &core.facts.rests
    cdef size_t i
    cdef uint64_t found
    cdef cbool more = facts.plain.empty()
    if more:
        costs_prepare(core)
        facts.plain.resize(program.plain_terms.size(), 0)
        facts.rules.resize(program.rules.size(), 0)
    while more and not deadline_look(&core.index.deadline):
        more = False
        for i in range(program.rules.size()):
            found = kind_facts(program, facts, program.rules[i].kind, program.rules[i].index)
            more = more or found != facts.rules[i]
            facts.rules[i] = found
        for i in range(program.plain_terms.size(), 0, -1):
            found = plain_facts(core, facts, i - 1)
            more = more or found != facts.plain[i - 1]
            facts.plain[i - 1] = found
    if core.index.deadline.passed:
        facts.plain.clear()
    return facts


cdef cbool local_is_lexed(Core* core, const DottedItem* local) noexcept nogil:
    # Whether a terminal may come behind a dotted item, in its rule; True as well when time is up.
    cdef RestFacts* facts = facts_of(core)
    return facts.plain.empty() or kind_facts(core.program, facts, local.kind, local.index) & A_TERMINAL != 0


cdef uint64_t node_boundaries(Core* core, int32_t start) noexcept nogil:
    # Those that may come behind a return to a GSS node.
    cdef Program* program = core.program
    cdef RestFacts* facts = facts_of(core)
    cdef vector[int32_t] work
    cdef ScratchIds seen
    cdef Return back
    cdef uint64_t found = 0
    cdef size_t head = 0
    known = facts.nodes.find(start)
    if known != facts.nodes.end():
        return dereference(known).second
    work.push_back(start)
    seen.insert(start, 0)
    while head < work.size() and not facts.plain.empty():
        if head & 255 == 255 and deadline_look(&core.index.deadline):
            break
        for back in program.nodes[work[head]].returns:
            if back.local == ACCEPT:
                continue
            found |= kind_facts(program, facts, program.locals[back.local].kind, program.locals[back.local].index)
            known = facts.nodes.find(back.node)
            if known != facts.nodes.end():
                found |= dereference(known).second
            elif seen.find(back.node) < 0:
                seen.insert(back.node, 0)
                work.push_back(back.node)
        head += 1
    found &= ~<uint64_t>A_TERMINAL
    if not core.index.deadline.passed:
        facts.nodes[start] = found
    return found


cdef uint64_t thread_boundaries(Core* core, const Thread& thread) noexcept nogil:
    # Those that a thread may come to.
    cdef RestFacts* facts = facts_of(core)
    cdef DottedItem* local
    cdef uint64_t found = 0
    cdef Item item
    for item in core.program.states[thread.parser].items:
        local = core.program.locals[item.local]
        if not facts.plain.empty():
            found |= kind_facts(core.program, facts, local.kind, local.index)
        found |= node_boundaries(core, item.node)
    return found & ~<uint64_t>A_TERMINAL
