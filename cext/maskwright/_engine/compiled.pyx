# The Python classes of a grammar: its tables, and what they are linked into, which owns all that is computed for it.

cimport cython
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint32_t
from libcpp.atomic cimport memory_order_relaxed
from libcpp.unordered_map cimport unordered_map
from libcpp.utility cimport move

from maskwright.base.deadline import check_time, in_time
from maskwright.errors import GrammarError, LimitError, UnsatisfiableError

from maskwright._engine.vocabulary cimport Index
from maskwright._engine.limits cimport deferred_free_finish
from maskwright._engine.lexemes cimport KIND_TOKENS, KIND_WORDS
from maskwright._engine.token_index cimport forks_passed
from maskwright._engine.longest_match cimport lexer_of
from maskwright._engine.program cimport (
    ACCEPT, DottedItem, LOCAL_INDENTED, LOCAL_PLAIN, LOCAL_REPEATED, NO_STATE, ParserState, RecordValue
)
from maskwright._engine.tracker cimport guard_free
from maskwright._engine.core cimport CoreLimits
from maskwright._engine.threads cimport TOKEN_MARK
from maskwright._engine.distinct_masks cimport distinct_fillable
from maskwright._engine.generations cimport check_outcome, core_bytes, core_enter, core_leave, core_new, core_open, lexeme_is_swollen
from maskwright._engine.tasks cimport core_let_go

cdef enum:
    MANY_ENTRIES = 4096


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


cdef void link_tables(Program* program, vector[Guard]* guards, Tables tables, list handles, const vector[int32_t]& imports):
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


@cython.no_gc_clear
cdef class CompiledCore:
    """A grammar on one engine, made of its ``Tables`` and those that they import; what is computed for it."""

    def __cinit__(self):
        self.core = NULL
        self.renewing = -1

    def __init__(self, Tables tables, int64_t max_states, int64_t max_lexer_states, int64_t max_bytes, int64_t max_search,
                 int64_t max_set_bytes, double max_seconds, *, bint bounded=True):
        cdef Core* core
        self.engine = tables.engine
        self.owner = tables.owner
        self.tables = tables.all_tables()
        if bounded and self.owner.index.cache.largest.load(memory_order_relaxed) > max_lexer_states // 2:
            self.freshen(max_lexer_states, max_bytes)
        core = self.core = self.linked()
        core.limits.max_states = max_states
        core.limits.max_lexer_states = max_lexer_states
        core.limits.max_bytes = max_bytes
        core.limits.max_search = max_search
        core.limits.max_set_bytes = max_set_bytes
        core.limits.max_seconds = max_seconds
        core.generation.room = 1 if bounded else 0
        core.generation.number = 1
        core.generation.look_above.store(max_lexer_states // 2, memory_order_relaxed)
        self.find_tokens(core.program)
        self.open(core, NULL)

    cdef Core* linked(self) except NULL:
        # The tables as a program, in a core of its own.
        cdef Core* core = core_new(self.owner.index)
        cdef Tables first = self.tables[0], each
        cdef vector[int32_t] imports
        cdef int64_t rules = 0
        for eos in self.engine.eos_ids:
            core.eos.push_back(eos)
        starts = {}
        handles = []
        for each in self.tables:
            starts[id(each)] = rules + each.start_rule
            rules += <int64_t>each.rules.size()
        for each in self.tables:
            imports.clear()
            for imported in each.imports:
                imports.push_back(starts[id(imported)])
            own = [*each.handles]
            handles += own
            link_tables(core.program, &core.tracker.guards, each, own, imports)
        core.program.start_rule = first.start_rule
        if first.lexer is not None:
            core.program.lexer = first.lexer.automaton
            handles.append(first.lexer)
        Py_INCREF(handles)
        core.handles = <void*>handles
        core.scratch.stack.resize(self.engine.longest + 1)
        return core

    cdef int open(self, Core* core, const Core* before) except -1:
        # Make its first states.
        cdef Outcome outcome
        with nogil:
            outcome = core_open(core, before)
        check_outcome(outcome, core)
        if core.start == NO_STATE:
            raise UnsatisfiableError("the grammar matches nothing")
        return 0

    cdef int freshen(self, int64_t most_states, int64_t most_bytes) except -1:
        # Give the tables new automata for those lexemes of which texts have reached too many states; cores keep what they have.
        cdef Tables each
        cdef dict fresh = {}
        for each in self.tables:
            if each.lexer is not None:
                each.lexer = self.freshened(each.lexer, fresh, most_states, most_bytes)
            for i, handle in enumerate(each.handles):
                each.handles[i] = self.freshened(handle, fresh, most_states, most_bytes)
        return 0

    cdef AutomatonHandle freshened(self, AutomatonHandle handle, dict fresh, int64_t most_states, int64_t most_bytes):
        # A lexeme as the tables should have it; `fresh`: those that were looked at, by identity.
        cdef AutomatonHandle base = handle.base, found = fresh.get(id(handle))
        cdef Index* index = self.owner.index
        cdef cbool swollen
        if found is None:
            with nogil:
                index.lock.lock_shared()
                swollen = lexeme_is_swollen(handle.automaton, most_states, most_bytes)
                index.lock.unlock_shared()
            found = handle
            if swollen:
                if base is not None:
                    base = self.freshened(base, fresh, most_states, most_bytes)
                found = self.engine.fresh_automaton(handle, base)
            fresh[id(handle)] = found
        return found

    cdef int renew(self) except -1:
        # Begin another generation.
        cdef Core* old = self.core
        cdef Core* core = NULL
        if self.renewing == forks_passed():
            return 0
        self.renewing = forks_passed()
        try:
            self.freshen(old.limits.max_lexer_states, old.limits.max_bytes)
            core = self.linked()
            core.limits.max_states = old.limits.max_states
            core.limits.max_lexer_states = old.limits.max_lexer_states
            core.limits.max_bytes = old.limits.max_bytes
            core.limits.max_search = old.limits.max_search
            core.limits.max_set_bytes = old.limits.max_set_bytes
            core.limits.max_seconds = old.limits.max_seconds
            with nogil:
                old.index.lock.lock_shared()
                core.generation.room = old.generation.room
                old.index.lock.unlock_shared()
            core.generation.number = old.generation.number + 1
            core.generation.look_above.store(old.generation.look_above.load(memory_order_relaxed), memory_order_relaxed)
            core.program.has_tokens = old.program.has_tokens
            self.open(core, old)
            self.core = core
            core = NULL
            self.left.push_back(old)
        except LimitError:
            # It had no time: the old one will do for now.
            pass
        finally:
            self.renewing = -1
            if core != NULL:
                core_let_go(core)
        return 0

    cdef int find_tokens(self, Program* program) except -1:
        # Whether tokens stand for themselves; then no text may have the byte that marks them in completions.
        cdef cbool marked = False
        cdef size_t i, j
        for i in range(program.automata.size()):
            program.has_tokens = program.has_tokens or program.automata[i].kind == KIND_TOKENS
        for i in range(program.automata.size() if program.has_tokens else 0):
            for j in range(program.automata[i].texts.data.size() if program.automata[i].kind == KIND_WORDS else 0):
                marked = marked or program.automata[i].texts.data[j] == TOKEN_MARK
        if marked:
            raise GrammarError("texts with the byte 0xFF and tokens that stand for themselves cannot be in one grammar")
        return 0

    @property
    def first_tables(self):
        """Those that it was linked from."""
        return self.tables[0]

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
        cdef Core* core
        for core in self.left:
            core_let_go(core)
        if self.core != NULL:
            core_let_go(self.core)

    @property
    def clashes(self):
        """``AutomatonHandle.clashes`` of the grammar's lexer, if it has one."""
        return list(lexer_of(self.core.program.lexer).samples.clashes) if self.core.program.lexer != NULL else []

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

    @property
    def state_count(self):
        """Matcher, parser and tracker states."""
        cdef Core* core = self.core
        cdef size_t count
        core.generation.holders += 1
        with nogil:
            core.index.lock.lock_shared()
            count = core.states.size() + core.program.states.size() + core.tracker.states.size()
            core.index.lock.unlock_shared()
        core_let_go(core)
        return count

    def apart(self):
        """The same grammar with the same limits, without what was computed for it, and with any number of states."""
        cdef CoreLimits limits = self.core.limits
        return CompiledCore(self.tables[0], limits.max_states, limits.max_lexer_states, limits.max_bytes, limits.max_search,
                            limits.max_set_bytes, limits.max_seconds, bounded=False)

    @property
    def generation(self):
        """How often the grammar began anew with its states, from 1."""
        return self.core.generation.number

    @property
    def state_bytes(self):
        """What the states take in which matchers begin now (bytes)."""
        return self.statistics["state_bytes"]

    @property
    def statistics(self):
        """Counts and bytes of what is interned in this generation, and bytes cached by all grammars on this vocabulary."""
        cdef Core* core = self.core
        cdef int64_t states, parser_states, nodes, tracker_states, listed, edges, size
        deferred_free_finish(core.index)
        core.generation.holders += 1
        with nogil:
            core.index.lock.lock_shared()
            states, parser_states = <int64_t>core.states.size(), <int64_t>core.program.states.size()
            nodes, tracker_states = <int64_t>core.program.nodes.size(), <int64_t>core.tracker.states.size()
            listed, edges, size = core.tracker.listed, core.edges, core_bytes(core)
            core.index.lock.unlock_shared()
        found = {
            "matcher_states": states,
            "parser_states": parser_states,
            "stack_nodes": nodes,
            "tracker_states": tracker_states,
            "listed_items": listed,
            "token_edges": edges,
            "state_bytes": size,
            "generation": core.generation.number,
            "cached_bytes": core.index.cache.bytes.value(),
        }
        core_let_go(core)
        return found


# --- What a matcher waits for, in terms of the grammar: for messages, not for masks.
#
# A *place* is (kind, index) of a dotted item; `rule_places` says which rule it is in.

cdef void explain_threads(Core* core, int32_t id, vector[int32_t]& out) noexcept nogil:
    # By thread: parser state, whether a lexeme has begun.
    cdef size_t i
    core.index.lock.lock_shared()
    for i in range(core.states[id].threads.size()):
        out.push_back(core.states[id].threads[i].parser)
        out.push_back(core.states[id].threads[i].lex != NULL)
    core.index.lock.unlock_shared()


cdef void explain_items(Core* core, int32_t parser, vector[int32_t]& out) noexcept nogil:
    # By item: kind, index, GSS node, whether it waits for a lexeme that is no terminal, how many terminals, these.
    cdef Program* program = core.program
    cdef ParserState* state
    cdef DottedItem* local
    cdef size_t i, j
    core.index.lock.lock_shared()
    state = program.states[parser]
    for i in range(state.items.size()):
        local = program.locals[state.items[i].local]
        out.push_back(local.kind)
        out.push_back(local.index)
        out.push_back(state.items[i].node)
        out.push_back(not local.terms.empty())
        out.push_back(<int32_t>local.terminals.size())
        for j in range(local.terminals.size()):
            out.push_back(local.terminals[j])
    core.index.lock.unlock_shared()


cdef void explain_returns(Core* core, int32_t node, vector[int32_t]& out) noexcept nogil:
    # By return address: kind, index, GSS node; all of them ACCEPT for the end of the text.
    cdef Program* program = core.program
    cdef DottedItem* local
    cdef size_t i
    core.index.lock.lock_shared()
    for i in range(program.nodes[node].returns.size()):
        if program.nodes[node].returns[i].local == ACCEPT:
            out.insert(out.end(), 3, <int32_t>ACCEPT)
            continue
        local = program.locals[program.nodes[node].returns[i].local]
        out.push_back(local.kind)
        out.push_back(local.index)
        out.push_back(program.nodes[node].returns[i].node)
    core.index.lock.unlock_shared()


cdef dict rule_places(Program* program):
    # The rule of each place that one rule alone has.
    cdef size_t rule, i
    cdef int32_t at
    cdef vector[int32_t] work
    cdef unordered_map[int32_t, char] seen
    places = {}
    for rule in range(program.rules.size()):
        if rule % MANY_ENTRIES == MANY_ENTRIES - 1:
            check_time()
        if program.rules[rule].kind != LOCAL_PLAIN:
            places[program.rules[rule].kind, program.rules[rule].index] = rule
            continue
        seen.clear()
        work.push_back(program.rules[rule].index)
        while not work.empty():
            at = work.back()
            work.pop_back()
            if seen.count(at):
                continue
            seen[at] = 1
            if seen.size() % MANY_ENTRIES == 0:
                check_time()
            places.setdefault((LOCAL_PLAIN, at), rule)
            for i in range(program.plain_terms[at].size()):
                work.push_back(program.plain_terms[at][i].target)
            for i in range(program.plain_calls[at].size()):
                work.push_back(program.plain_calls[at][i].back)
    return places
