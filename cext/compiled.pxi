# The Python classes of a grammar: its tables, and what they are linked into, which owns all that is computed for it.


@cython.no_gc_clear
cdef class Tables:
    """A grammar lowered to tables (see ``maskwright.lowering``) for one engine, to be linked into a ``CompiledCore``.

    Its numbers count from 0.  Rules from ``len(rules)`` on are the start rules of ``imports``.  What is
    computed for keys that must not come twice belongs to the tables, and to all grammars that they are linked into.
    """

    cdef readonly Engine engine
    cdef TokenIndex owner          # the collector may clear the engine first
    cdef list handles
    cdef readonly AutomatonHandle lexer        # or None
    cdef readonly list imports
    cdef readonly list names                   # of the rules
    cdef Rows[PlainTerm] plain_terms
    cdef Rows[Call] plain_calls
    cdef vector[uint8_t] plain_final
    cdef vector[int32_t] plain_guard
    cdef vector[Guard] guards
    cdef vector[RuleStart] rules
    cdef vector[RepeatedDef] repeated
    cdef vector[RecordDef] records
    cdef vector[int32_t] indented
    cdef int32_t start_rule
    cdef public object reader      # of captures, or None (maskwright.captures)

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
        for entries in plain_terms:
            terms.clear()
            for term.automaton, term.target, term.tag in entries:
                terms.push_back(term)
            self.plain_terms.push_back(terms)
        for entries in plain_calls:
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
        for rule.kind, rule.index, rule.nullable in rules:
            self.rules.push_back(rule)
        for rep.first, rep.rest, rep.low, rep.high in repeated:
            self.repeated.push_back(rep)
        for record in records:
            self.add_record(*record)

    def add_record(self, list keys, list sorts, list values, list absent, list key_bytes, list required, int32_t least,
                   int32_t most, uint32_t goals, bint ordered, bint unique, bint bare,
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
            for value.rule, value.goals in ways:
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
        record.goals = goals
        record.simple = least == 0 and most < 0 and goals == 0
        record.ordered = ordered
        record.bare = bare
        record.used = NULL
        if unique and len(values) > len(key_bytes):
            record.used = new UsedKeys()
            record.used.sets.resize(1)
            for i in keys:
                if i >= 0:
                    handle = self.handles[i]
                    handle.automaton.used = record.used
        record.open = open_
        record.close_empty = close_empty
        record.colon = colon
        record.comma = comma
        record.close = close
        self.records.push_back(move(record))

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.records.size()):
            if self.records[i].used != NULL:
                del self.records[i].used

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

    @property
    def used_keys(self):
        """Keys that must not come again, and sets of them, that were met so far, here and in what is imported."""
        cdef int64_t total = 0
        cdef Tables each
        cdef size_t i
        for each in self.all_tables():
            for i in range(each.records.size()):
                if each.records[i].used != NULL:
                    total += each.records[i].used.keys.size() + each.records[i].used.sets.size()
        return total

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


cdef void link_tables(Program* program, vector[Guard]* guards, Tables tables, const vector[int32_t]& imports):
    # Append tables to a program; `imports`: the rules that those from its own number on are.
    cdef int32_t automata = <int32_t>program.automata.size(), plain = <int32_t>program.plain_terms.size()
    cdef int32_t repeated = <int32_t>program.repeated.size(), records = <int32_t>program.records.size()
    cdef int32_t first = <int32_t>program.rules.size(), own = <int32_t>tables.rules.size()
    cdef int32_t indented = <int32_t>program.indented.size()
    cdef AutomatonHandle handle
    cdef RuleStart rule
    cdef RepeatedDef rep
    cdef size_t i, j
    for handle in tables.handles:
        program.automata.push_back(handle.automaton)
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


@cython.no_gc_clear
cdef class CompiledCore:
    """A grammar on one engine, made of its ``Tables`` and those that they import; what is computed for it."""

    cdef Core* core
    cdef readonly Engine engine
    cdef TokenIndex owner          # the collector may clear the engine first
    cdef list tables
    cdef Costs costs
    cdef int32_t start             # the state in which matchers begin

    def __cinit__(self):
        self.core = NULL

    def __init__(self, Tables tables, int64_t max_states, int64_t max_lexer_states, int64_t max_search,
                 int64_t max_set_bytes, double max_seconds):
        cdef Program* program = new Program()
        program.column = new Column()
        cdef vector[int32_t] imports
        cdef Outcome outcome
        cdef Tables each
        cdef int64_t rules = 0
        self.core = new Core()
        self.core.program = program
        self.core.costs = &self.costs
        self.costs.settled = False
        program.index = tables.owner.index
        program.lexer = NULL
        program.has_tokens = False
        program.held = 0
        self.core.index = tables.owner.index
        self.core.edges = 0
        self.core.words = tables.owner.index.words
        self.engine = tables.engine
        self.owner = tables.owner
        for eos in self.engine.eos_ids:
            self.core.eos.push_back(eos)
        self.tables = tables.all_tables()
        starts = {}
        for each in self.tables:
            starts[id(each)] = rules + each.start_rule
            rules += <int64_t>each.rules.size()
        for each in self.tables:
            imports.clear()
            for imported in each.imports:
                imports.push_back(starts[id(imported)])
            link_tables(program, &self.core.tracker.guards, each, imports)
        program.start_rule = tables.start_rule
        self.find_tokens()
        if tables.lexer is not None:
            program.lexer = tables.lexer.automaton
        self.core.set_states = 0
        self.core.walks = False
        self.core.bottom = UNKNOWN
        self.core.opening = UNKNOWN
        self.core.max_states = max_states
        self.core.max_lexer_states = max_lexer_states
        self.core.max_search = max_search
        self.core.max_set_bytes = max_set_bytes
        self.core.max_seconds = max_seconds
        self.core.stack.resize(self.engine.longest + 1)
        with nogil:
            core_enter(self.core)
            self.core.index.cores.push_back(self.core)
            if program.lexer != NULL:
                terminals_begin(program)
            self.start = self.core.start = matcher_start(self.core)
            if self.start != NO_STATE and self.core.index.opening != NULL:
                self.start = self.core.opening = opening_state(self.core)
            outcome = core_leave(self.core)
        check_outcome(outcome, self.core)
        if self.start == NO_STATE:
            raise UnsatisfiableError("the grammar matches nothing")

    cdef int find_tokens(self) except -1:
        # Whether tokens stand for themselves; then no text may have the byte that marks them in completions.
        cdef Program* program = self.core.program
        cdef cbool marked = False
        cdef size_t i, j
        for i in range(program.automata.size()):
            program.has_tokens = program.has_tokens or program.automata[i].kind == KIND_TOKENS
        for i in range(program.automata.size() if program.has_tokens else 0):
            for j in range(program.automata[i].word_data.size()):
                marked = marked or program.automata[i].word_data[j] == TOKEN_MARK
        if marked:
            raise GrammarError("texts with the byte 0xFF and tokens that stand for themselves cannot be in one grammar")
        return 0

    @property
    def reader(self):
        """What reads captures of the first tables, or None."""
        cdef Tables first = self.tables[0]
        return first.reader

    @property
    def has_tokens(self):
        """Whether some tokens stand for themselves, and not for their bytes."""
        return self.core.program.has_tokens

    def unfillable_rules(self):
        """The rules of the first tables whose arrays can never have as many different items as they need (see
        ``Distinct``).

        Arrays contain others: one after another is found to have a text, out of those that are known to."""
        cdef Program* program = self.core.program
        cdef Tables first = self.tables[0]
        cdef int32_t rule, guard
        cdef cbool good, changed = True
        cdef Outcome outcome
        open_rules = {}
        for rule in range(<int32_t>first.rules.size() if first.has_guards else 0):
            guard = program.plain_guard[program.rules[rule].index] if program.rules[rule].kind == LOCAL_PLAIN else 0
            if guard and not guard_free(&self.core.tracker.guards[guard - 1], 0):
                open_rules[rule] = guard
                self.core.tracker.guards[guard - 1].closed = 1
        while changed and open_rules:
            changed = False
            for rule, guard in list(open_rules.items()):
                with nogil:
                    core_enter(self.core)
                    good = distinct_fillable(self.core, rule, guard)
                    outcome = core_leave(self.core)
                check_outcome(outcome, self.core)
                if good:
                    self.core.tracker.guards[guard - 1].closed = 0
                    del open_rules[rule]
                    changed = True
        return list(open_rules)

    def __dealloc__(self):
        cdef Index* index
        cdef size_t i
        if self.core == NULL:
            return
        index = self.core.index
        with nogil:
            index.lock.lock()
            for i in range(index.cores.size()):
                if index.cores[i] == self.core:
                    index.cores[i] = index.cores.back()
                    index.cores.pop_back()
                    break
            index.lock.unlock()
            Reaper.instance().take(index, self.core, core_free)

    @property
    def clashes(self):
        """``AutomatonHandle.clashes`` of the grammar's lexer, if it has one."""
        return list(self.core.program.lexer.lexer.clashes) if self.core.program.lexer != NULL else []

    @property
    def rule_names(self):
        """The name of each rule, those of imported grammars included."""
        cdef Tables each
        return [name for each in self.tables for name in each.names]

    @property
    def terminal_names(self):
        """The names of the lexer's terminals; empty without a lexer."""
        cdef Tables first = self.tables[0]
        return list(first.lexer.names) if first.lexer is not None else []

    def rule_places(self):
        """The number of the rule that each place (kind, index) is in."""
        return rule_places(self.core.program)

    def waits(self, int32_t parser):
        """What a parser state (of ``Matcher.threads``) waits for: (kind, index, stack node, whether a lexeme that is no
        terminal of the lexer may come, terminals of the lexer that may)."""
        cdef vector[int32_t] found
        cdef size_t at = 0, i
        if not 0 <= parser < <int32_t>self.core.program.states.size():
            raise ValueError(f"there is no parser state {parser}")
        with nogil:
            explain_items(self.core, parser, found)
        items = []
        while at < found.size():
            terminals = [found[at + 5 + i] for i in range(<size_t>found[at + 4])]
            items.append((found[at], found[at + 1], found[at + 2], found[at + 3] != 0, terminals))
            at += 5 + <size_t>found[at + 4]
        return items

    def callers(self, int32_t node):
        """Where a stack node (of ``waits``) returns to: (kind, index, stack node), or None for the end of the text."""
        cdef vector[int32_t] found
        cdef size_t i
        if not 0 <= node < <int32_t>self.core.program.nodes.size():
            raise ValueError(f"there is no stack node {node}")
        with nogil:
            explain_returns(self.core, node, found)
        return [
            (found[3 * i], found[3 * i + 1], found[3 * i + 2]) if found[3 * i] != ACCEPT else None
            for i in range(found.size() // 3)
        ]

    @property
    def state_count(self):
        """Matcher, parser and tracker states."""
        return self.core.states.size() + self.core.program.states.size() + self.core.tracker.states.size()

    @property
    def used_keys(self):
        """That of its tables."""
        return self.tables[0].used_keys

    def renewed(self):
        """The same grammar with the same limits, without what was computed for it."""
        return CompiledCore(self.tables[0], self.core.max_states, self.core.max_lexer_states, self.core.max_search,
                            self.core.max_set_bytes, self.core.max_seconds)

    @property
    def statistics(self):
        """Counts of interned things, and bytes cached by all grammars on this vocabulary."""
        Reaper.instance().finish(self.core.index)
        return {
            "matcher_states": self.core.states.size(),
            "parser_states": self.core.program.states.size(),
            "stack_nodes": self.core.program.nodes.size(),
            "tracker_states": self.core.tracker.states.size(),
            "token_edges": self.core.edges,
            "cached_bytes": self.core.index.bytes.value(),
        }


cdef void terminals_begin(Program* program) noexcept nogil:
    cdef vector[int32_t] one
    cdef size_t i
    for i in range(program.lexer.lexer.first.size()):
        one.assign(1, <int32_t>i)
        program.terminal_starts.push_back(lexer_begin(program.lexer, one))


cdef int check_outcome(Outcome outcome, const Core* core) except -1:
    if outcome.kind == OUTCOME_INTERRUPTED:
        raise KeyboardInterrupt
    if outcome.kind == OUTCOME_PARSER_STATES:
        raise LimitError("max_parser_states", outcome.given, core.max_states)
    if outcome.kind == OUTCOME_LEXER_STATES:
        raise LimitError("max_lexer_states", outcome.given, core.max_lexer_states)
    if outcome.kind == OUTCOME_SEARCH:
        raise LimitError("max_search", outcome.given, core.max_search)
    if outcome.kind == OUTCOME_SET_BYTES:
        raise LimitError("max_set_bytes", outcome.given, core.max_set_bytes)
    if outcome.kind == OUTCOME_MEMORY:
        raise LimitError("max_set_bytes", outcome.given, core.max_set_bytes,
                         message=f"there is no memory for more than {outcome.given:.0f} bytes of sets of texts; "
                                 "lower Limits(max_set_bytes=...)")
    if outcome.kind == OUTCOME_SETS_GONE:
        raise LimitError("max_set_bytes", outcome.given, core.max_set_bytes,
                         message="these sets of texts were dropped to make room (max_set_bytes): take new ones")
    if outcome.kind == OUTCOME_LATE:
        raise LimitError("max_seconds", outcome.given, core.max_seconds)
    return 0
