# A grammar as tables, and how tables are linked into a program.
#
# What a program is made of are numbers: of rules, places, records, automata.  Each tables' own count from 0.  So linking some behind
# others adds to each number how many of its kind were there before.

cimport cython
from libc.stdint cimport uint32_t
from libcpp.utility cimport move

from maskwright.base.deadline import in_time

from maskwright._engine.program cimport LOCAL_INDENTED, LOCAL_PLAIN, LOCAL_REPEATED, RecordValue
from maskwright._engine.tracker cimport guard_free

cdef enum:
    MANY_ENTRIES = 4096     # of one kind


@cython.no_gc_clear
cdef class Tables:
    """A grammar lowered to tables (see ``maskwright.compiling.lowering``) for one engine, to be linked into a ``CompiledCore``.

    Its numbers count from 0.  Rules from ``len(rules)`` on are the start rules of ``imports``.
    """

    def __init__(self, Engine engine, list automata, AutomatonHandle lexer, list plain_terms, list plain_calls,
                 bytes plain_final, list plain_guard, list guards, list rules, list repeated, list records, list indented, int32_t start_rule,
                 list imports, list names):
        cdef vector[PlainTerm] terms
        cdef vector[Call] calls
        cdef PlainTerm term
        cdef Call call
        cdef RuleStart rule
        cdef RepeatedDef rep
        cdef Guard guard
        self.engine = engine
        self.owner = engine.owner
        self.handles = automata
        self.lexer = lexer
        self.imports = imports
        self.names = names
        self.start_rule = start_rule
        self.indented = indented
        self.tokens = {}
        # Of many, others have their turns meanwhile.
        patiently = in_time if len(plain_terms) + len(records) > MANY_ENTRIES else iter
        self.records.reserve(len(records))
        for entries in patiently(plain_terms):
            terms.clear()
            for term.automaton, term.target, term.tag in entries:
                terms.push_back(term)
            self.plain_terms.push_back(terms)
        for entries in patiently(plain_calls):
            calls.clear()
            for call.rule, call.back in entries:
                calls.push_back(call)
            self.plain_calls.push_back(calls)
        for byte in plain_final:
            self.plain_final.push_back(byte)
        self.plain_guard = plain_guard
        guard.closed = 0
        for guard.free, guard.least, guard.repeats, guard.most, guard.first, guard.second in guards:
            self.guards.push_back(guard)
        for rule.kind, rule.index, rule.nullable in patiently(rules):
            self.rules.push_back(rule)
        for rep.first, rep.rest, rep.low, rep.high in patiently(repeated):
            self.repeated.push_back(rep)
        for record in patiently(records):
            self.add_record(*record)

    def add_record(self, list keys, list sorts, list values, list absent, list key_bytes, list required, int32_t least,
                   int32_t most, uint32_t obligations, bint ordered, bint unique, bint bare,
                   int32_t open_, int32_t close_empty, int32_t colon,
                   int32_t comma, int32_t close):
        cdef RecordDef record
        cdef RecordValue value
        cdef AutomatonHandle handle
        cdef vector[RecordValue] values_of
        cdef int32_t i, next_required, total = 0
        record.keys = keys
        record.sorts = sorts
        record.count = <int32_t>len(key_bytes)
        for ways in values:
            values_of.clear()
            for value.rule, value.obligations in ways:
                values_of.push_back(value)
            record.values.push_back(values_of)
        record.absent = absent
        record.key_bytes = key_bytes
        record.next_required.resize(record.count + 1)
        record.required_from.resize(record.count + 1)
        next_required = record.count
        for i in range(record.count, -1, -1):
            if i < record.count and required[i]:
                next_required = i
                total += 1
            record.next_required[i] = next_required
            record.required_from[i] = total
        record.least = least
        record.most = most
        record.obligations = obligations
        record.simple = least == 0 and most < 0 and obligations == 0
        record.ordered = ordered
        record.bare = bare
        record.unique = unique and len(values) > len(key_bytes)
        for i in keys if record.unique else ():
            if i >= 0:
                handle = self.handles[i]
                handle.automaton.keyset.unique = True
        record.open = open_
        record.close_empty = close_empty
        record.colon = colon
        record.comma = comma
        record.close = close
        record.held = NULL
        self.records.push_back(move(record))

    @property
    def nullable(self):
        """Whether the start rule matches the empty text."""
        return self.rules[self.start_rule].nullable != 0

    @property
    def has_guards(self):
        """Whether there are arrays of different items."""
        return not self.guards.empty()

    @property
    def unproved(self):
        """Whether it is not known of all of them that they can be filled (``CompiledCore.unfillable_rules``)."""
        cdef size_t i
        for i in range(self.guards.size()):
            if not guard_free(&self.guards[i], 0):
                return True
        return False

    def all_tables(self):
        """These tables and all that they import, each once."""
        order = [self]
        if not self.imports:
            return order
        seen = {id(self)}
        for tables in order:
            for imported in tables.imports:
                if id(imported) not in seen:
                    seen.add(id(imported))
                    order.append(imported)
        return order


cdef void link_tables(Program* program, vector[Guard]* guards, Tables tables, list handles, const vector[int32_t]& imports) except *:
    # Append tables to a program; `handles`: of their automata, `imports`: the rules that those from its own number on are.
    cdef int32_t automata = <int32_t>program.automata.size()
    cdef AutomatonHandle handle
    for handle in handles:
        program.given.push_back(handle.automaton)
        program.automata.push_back(handle.automaton)
    if tables.rules.size() > MANY_ENTRIES:
        with nogil:
            link_entries(program, guards, tables, automata, imports)
    else:
        link_entries(program, guards, tables, automata, imports)


cdef void link_entries(Program* program, vector[Guard]* guards, Tables tables, int32_t automata, const vector[int32_t]& imports) noexcept nogil:
    # All but the automata, which begin at this number.
    cdef int32_t plain = <int32_t>program.plain_terms.size()
    cdef int32_t repeated = <int32_t>program.repeated.size(), records = <int32_t>program.records.size()
    cdef int32_t first = <int32_t>program.rules.size(), own = <int32_t>tables.rules.size()
    cdef int32_t indented = <int32_t>program.indented.size()
    cdef RuleStart rule
    cdef RepeatedDef rep
    cdef size_t i, j
    program.plain_terms.append(tables.plain_terms)
    program.plain_calls.append(tables.plain_calls)
    program.plain_final.insert(program.plain_final.end(), tables.plain_final.begin(), tables.plain_final.end())
    program.plain_guard.insert(program.plain_guard.end(), tables.plain_guard.begin(), tables.plain_guard.end())
    for i in range(<size_t>plain, program.plain_guard.size()):
        if program.plain_guard[i] > 0:
            program.plain_guard[i] += <int32_t>guards.size()
    guards.insert(guards.end(), tables.guards.begin(), tables.guards.end())
    for i in range(<size_t>plain, program.plain_terms.size()):
        for j in range(program.plain_terms[i].size()):
            # What is negative is a terminal of the lexer.
            if program.plain_terms[i][j].automaton >= 0:
                program.plain_terms[i][j].automaton += automata
            program.plain_terms[i][j].target += plain
        for j in range(program.plain_calls[i].size()):
            program.plain_calls[i][j].back += plain
            link_rule(&program.plain_calls[i][j].rule, first, own, imports)
    # Changed before they are copied: what `back()` gives would be changed in vain.
    for rule in tables.rules:
        if rule.kind == LOCAL_INDENTED:
            rule.index += indented
        else:
            rule.index += plain if rule.kind == LOCAL_PLAIN else repeated if rule.kind == LOCAL_REPEATED else records
        program.rules.push_back(rule)
    for rep in tables.repeated:
        link_rule(&rep.first, first, own, imports)
        link_rule(&rep.rest, first, own, imports)
        program.repeated.push_back(rep)
    program.indented.insert(program.indented.end(), tables.indented.begin(), tables.indented.end())
    for i in range(<size_t>indented, program.indented.size()):
        link_rule(&program.indented[i], first, own, imports)
    program.records.insert(program.records.end(), tables.records.begin(), tables.records.end())
    for i in range(<size_t>records, program.records.size()):
        link_record(&program.records[i], automata, first, own, imports)
        program.records[i].held = &program.held


cdef inline void link_rule(int32_t* rule, int32_t first, int32_t own, const vector[int32_t]& imports) noexcept nogil:
    rule[0] = rule[0] + first if rule[0] < own else imports[rule[0] - own]


cdef void link_record(RecordDef* record, int32_t automata, int32_t first, int32_t own,
                      const vector[int32_t]& imports) noexcept nogil:
    cdef size_t i, j
    for i in range(record.keys.size()):
        if record.keys[i] >= 0:
            record.keys[i] += automata
    for i in range(record.values.size()):
        for j in range(record.values[i].size()):
            link_rule(&record.values[i][j].rule, first, own, imports)
    record.open += automata
    record.close_empty += automata
    record.colon += automata
    record.comma += automata
    record.close += automata
