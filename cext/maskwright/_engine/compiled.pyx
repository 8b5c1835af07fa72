# A grammar on an engine: the Python class of what tables are linked into, which owns all that is computed for it.

cimport cython
from cpython.ref cimport Py_INCREF
from libcpp cimport bool as cbool
from libcpp.atomic cimport memory_order_relaxed
from libcpp.unordered_map cimport unordered_map

from maskwright.base.deadline import check_time
from maskwright.errors import GrammarError, LimitError, UnsatisfiableError

from maskwright._engine.vocabulary cimport Index
from maskwright._engine.limits cimport deferred_free_finish
from maskwright._engine.lexemes cimport KIND_BOUNDARY, KIND_TOKENS, KIND_WORDS
from maskwright._engine.token_index cimport forks_passed
from maskwright._engine.longest_match cimport lexer_of
from maskwright._engine.program cimport ACCEPT, DottedItem, LOCAL_PLAIN, NO_STATE, ParserState
from maskwright._engine.tracker cimport guard_free
from maskwright._engine.core cimport CoreLimits, Thread
from maskwright._engine.threads cimport threads_behind_boundaries, TOKEN_MARK
from maskwright._engine.distinct_masks cimport distinct_fillable
from maskwright._engine.generations cimport (
    check_outcome, core_bytes, core_enter_turns, core_leave, core_lock, core_new, core_open, lexeme_is_swollen
)
from maskwright._engine.tasks cimport core_let_go
from maskwright._engine.tables cimport Tables, link_tables

cdef enum:
    MANY_ENTRIES = 4096     # of one kind


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
            core.program.has_boundaries = old.program.has_boundaries
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
            program.has_boundaries = program.has_boundaries or program.automata[i].kind == KIND_BOUNDARY
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
                    core_enter_turns(self.core)
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
    # By thread, those behind boundaries included: parser state, whether a lexeme has begun.
    cdef vector[Thread] threads
    cdef size_t i
    core_lock(core)
    threads = core.states[id].threads
    threads_behind_boundaries(core, core.states[id].threads, threads)
    core.index.lock.unlock()
    for i in range(threads.size()):
        out.push_back(threads[i].parser)
        out.push_back(threads[i].lex != NULL)


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
