# The Python class of a grammar: it owns everything that was computed for it.


@cython.no_gc_clear
cdef class CompiledCore:
    """A grammar lowered to tables (see ``maskwright.lowering``) on one engine."""

    cdef Core* core
    cdef readonly Engine engine
    cdef TokenIndex owner          # the collector may clear the engine first
    cdef list handles
    cdef int32_t start

    def __cinit__(self):
        self.core = NULL

    def __init__(self, Engine engine, list automata, list plain_terms, list plain_calls, bytes plain_final,
                 list plain_guard, list guards, list rules, list repeated, list records, int32_t start_rule, int64_t max_states,
                 int64_t max_lexer_states, int64_t max_search_steps, double max_seconds):
        cdef Program* program = new Program()
        cdef AutomatonHandle handle
        cdef vector[PlainTerm] terms
        cdef vector[Call] calls
        cdef PlainTerm term
        cdef Call call
        cdef RuleStart rule
        cdef RepeatedDef rep
        cdef Guard guard
        cdef Outcome outcome
        self.core = new Core()
        self.core.program = program
        self.core.index = engine.owner.index
        self.core.costs = new Costs()
        self.core.edges = 0
        self.core.words = engine.owner.index.words
        for eos in engine.eos_ids:
            self.core.eos.push_back(eos)
        self.engine = engine
        self.owner = engine.owner
        self.handles = automata
        for handle in automata:
            program.automata.push_back(handle.automaton)
        for entries in plain_terms:
            terms.clear()
            for term.automaton, term.target in entries:
                terms.push_back(term)
            program.plain_terms.push_back(terms)
        for entries in plain_calls:
            calls.clear()
            for call.rule, call.back in entries:
                calls.push_back(call)
            program.plain_calls.push_back(calls)
        for byte in plain_final:
            program.plain_final.push_back(byte)
        program.plain_guard = plain_guard
        guard.closed = 0
        for guard.free, guard.least, guard.repeats in guards:
            self.core.tracker.guards.push_back(guard)
        program.has_guards = bool(guards)
        for rule.kind, rule.index, rule.nullable in rules:
            program.rules.push_back(rule)
        for rep.first, rep.rest, rep.low, rep.high in repeated:
            program.repeated.push_back(rep)
        for record in records:
            self.add_record(*record)
        program.start_rule = start_rule
        self.core.max_states = max_states
        self.core.max_lexer_states = max_lexer_states
        self.core.max_search_steps = max_search_steps
        self.core.max_seconds = max_seconds
        self.core.stack.resize(engine.longest + 1)
        with nogil:
            core_enter(self.core)
            self.core.index.cores.push_back(self.core)
            self.start = matcher_start(self.core)
            outcome = core_leave(self.core)
        check_outcome(outcome, self.core)
        if self.start == NO_STATE:
            raise UnsatisfiableError("the grammar matches nothing")

    def add_record(self, list keys, list sorts, list values, list absent, list key_bytes, list required, int32_t least,
                   int32_t most, uint32_t goals, bint ordered, bint unique, bint bare,
                   int32_t open_, int32_t close_empty, int32_t colon,
                   int32_t comma, int32_t close):
        cdef RecordDef record
        cdef RecordValue value
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
                    self.core.program.automata[i].used = record.used
        record.open = open_
        record.close_empty = close_empty
        record.colon = colon
        record.comma = comma
        record.close = close
        self.core.program.records.push_back(record)

    def unfillable_rules(self):
        """The rules whose arrays can never have as many different items as they need (see ``Distinct``).

        Arrays contain others: one after another is found to have a text, out of those that are known to."""
        cdef Program* program = self.core.program
        cdef int32_t rule, guard
        cdef cbool good, changed = True
        cdef Outcome outcome
        open_rules = {}
        for rule in range(<int32_t>program.rules.size() if program.has_guards else 0):
            guard = program.plain_guard[program.rules[rule].index] if program.rules[rule].kind == LOCAL_PLAIN else 0
            if guard and self.core.tracker.guards[guard - 1].free > 0:
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
            core_free(self.core)
            index.lock.unlock()

    @property
    def statistics(self):
        """Counts of interned things, and bytes cached by all grammars on this vocabulary."""
        return {
            "matcher_states": self.core.states.size(),
            "parser_states": self.core.program.states.size(),
            "stack_nodes": self.core.program.nodes.size(),
            "tracker_states": self.core.tracker.states.size(),
            "token_edges": self.core.edges,
            "cached_bytes": self.core.index.bytes,
        }


cdef int check_outcome(Outcome outcome, const Core* core) except -1:
    if outcome.kind == OUTCOME_PARSER_STATES:
        raise LimitError("max_parser_states", outcome.given, core.max_states)
    if outcome.kind == OUTCOME_LEXER_STATES:
        raise LimitError("max_lexer_states", outcome.given, core.max_lexer_states)
    if outcome.kind == OUTCOME_SEARCH:
        raise LimitError("max_search_steps", outcome.given, core.max_search_steps)
    if outcome.kind == OUTCOME_LATE:
        raise LimitError("max_seconds", outcome.given, core.max_seconds)
    return 0
