# The Python classes.
#
# Engine: a vocabulary's trie and the automata that grammars share.  CompiledCore: one grammar on
# one engine.  Matcher: a history of matcher states; everything else is in the compiled core, so
# a fork copies a few numbers.

from maskwright.errors import (
    BitmaskError, GrammarError, LimitError, UnsatisfiableError, VocabularyError,
)

cdef enum:
    TERMINATED = -2


cdef cbool epsilons_count(Automaton* automaton) noexcept nogil:
    # Whether some epsilon enters or leaves a counted loop.
    cdef size_t i, j
    for i in range(automaton.epsilons.size()):
        for j in range(automaton.epsilons[i].size()):
            if automaton.epsilons[i][j].op != EPSILON_PLAIN:
                return True
    return False


cdef void mark_loops(Automaton* automaton) noexcept nogil:
    # in_loop: everything between entering a loop and leaving it.
    cdef vector[int32_t] work
    cdef size_t i, j
    cdef int32_t q, loop
    automaton.in_loop.assign(automaton.edges.size(), 0)
    for i in range(automaton.epsilons.size()):
        for j in range(automaton.epsilons[i].size()):
            if automaton.epsilons[i][j].op != EPSILON_ENTER:
                continue
            loop = automaton.epsilons[i][j].loop + 1
            work.push_back(automaton.epsilons[i][j].target)
            while not work.empty():
                q = work.back()
                work.pop_back()
                if automaton.in_loop[q] != 0 or q == <int32_t>i:
                    continue
                automaton.in_loop[q] = loop
                mark_neighbours(automaton, q, work)


cdef void mark_neighbours(Automaton* automaton, int32_t q, vector[int32_t]& work) noexcept nogil:
    cdef size_t i
    for i in range(automaton.edges[q].size()):
        work.push_back(automaton.edges[q][i].target)
    for i in range(automaton.epsilons[q].size()):
        if automaton.epsilons[q][i].op == EPSILON_PLAIN:
            work.push_back(automaton.epsilons[q][i].target)


cdef class AutomatonHandle:
    """A lexeme's automaton; keeps the C++ object alive."""

    cdef Automaton* automaton
    cdef object base

    def __dealloc__(self):
        if self.automaton != NULL:
            lex_free(self.automaton)

    def explore(self, int32_t limit):
        """Determinise all states (at most ``limit``), breadth first; the number of states."""
        cdef size_t at = 0
        while at < self.automaton.states.size() and <int32_t>self.automaton.states.size() <= limit:
            lex_first(self.automaton.states[at])
            at += 1
        return self.automaton.states.size()


cdef class Engine:
    """A vocabulary's token trie, and automata by content key.

    ``tokens``: bytes of each id, empty for ids that no text produces.
    """

    cdef Trie trie
    cdef size_t words
    cdef readonly int vocab_size
    cdef readonly tuple eos_ids
    cdef list tokens
    cdef dict automata
    cdef int32_t next_uid
    cdef cbool limit_passed
    cdef size_t longest            # token, in bytes

    def __init__(self, list tokens, tuple eos_ids, trie_arrays=None):
        self.vocab_size = len(tokens)
        self.words = (len(tokens) + 31) // 32
        self.longest = max(map(len, tokens), default=0)
        self.eos_ids = eos_ids
        self.tokens = tokens
        self.automata = {}
        if trie_arrays is None:
            self._build_trie()
        else:
            self._load_trie(*trie_arrays)

    def _build_trie(self):
        cdef list order = [i for i, token in enumerate(self.tokens) if token]
        order.sort(key=self.tokens.__getitem__)
        cdef list ordered = [self.tokens[i] for i in order]
        cdef bytes data = b"".join(ordered)
        cdef vector[int64_t] starts
        cdef vector[int32_t] ids
        cdef int64_t at = 0
        for token in ordered:
            starts.push_back(at)
            at += len(token)
        starts.push_back(at)
        for i in order:
            ids.push_back(i)
        trie_build(&self.trie, <const uint8_t*><const char*>data, starts.data(), ids.data(),
                   <int64_t>ids.size())

    def _load_trie(self, bytes nodes, bytes token_ids):
        self.trie.nodes.resize(len(nodes) // sizeof(TrieNode))
        memcpy(self.trie.nodes.data(), <const char*>nodes, len(nodes))
        self.trie.tokens.resize(len(token_ids) // sizeof(int32_t))
        memcpy(self.trie.tokens.data(), <const char*>token_ids, len(token_ids))

    def dump_trie(self):
        """The trie as two byte strings, for ``trie_arrays``."""
        return ((<const char*>self.trie.nodes.data())[:self.trie.nodes.size() * sizeof(TrieNode)],
                (<const char*>self.trie.tokens.data())[:self.trie.tokens.size() * sizeof(int32_t)])

    @property
    def trie_nodes(self):
        return self.trie.nodes.size()

    cdef AutomatonHandle new_automaton(self, int32_t kind, int64_t max_states):
        cdef AutomatonHandle handle = AutomatonHandle()
        handle.automaton = new Automaton()
        handle.automaton.kind = kind
        handle.automaton.uid = self.next_uid
        handle.automaton.max_states = max_states
        handle.automaton.limit_passed = &self.limit_passed
        handle.automaton.base = NULL
        handle.automaton.free = NULL
        handle.automaton.is_free = False
        handle.automaton.start = LEX_DEAD
        self.next_uid += 1
        return handle

    def get_automaton(self, key):
        """The automaton registered under ``key``, or None."""
        return self.automata.get(key)

    def add_automaton(self, key, int32_t n_states, int32_t start, list edges, list epsilons,
                      list loops, list accepts, int64_t max_states, cbool shared=True):
        """Register an NFA (see ``maskwright.automata.Nfa``) under a content key."""
        cdef AutomatonHandle handle = self.build_nfa(n_states, start, edges, epsilons, loops, accepts, max_states)
        if shared:
            self.automata[key] = handle
        return handle

    cdef AutomatonHandle build_nfa(self, int32_t n_states, int32_t start, list edges, list epsilons,
                                   list loops, list accepts, int64_t max_states):
        cdef AutomatonHandle handle = self.new_automaton(KIND_NFA, max_states)
        cdef AutomatonHandle free
        cdef Automaton* a = handle.automaton
        cdef NfaEdge edge
        cdef NfaEpsilon epsilon
        cdef vector[uint64_t] items
        cdef LexState* free_start = NULL
        cdef bint[257] cut
        cdef int32_t src, low, high, target, op, loop, byte
        a.edges.resize(n_states)
        a.epsilons.resize(n_states)
        a.accept.resize(n_states, NO_TAG)
        for byte in range(257):
            cut[byte] = False
        for src, low, high, target in edges:
            edge.low = <uint8_t>low
            edge.high = <uint8_t>high
            edge.target = target
            a.edges[src].push_back(edge)
            cut[low] = True
            cut[high + 1] = True
        for src, target, op, loop in epsilons:
            epsilon.target = target
            epsilon.op = op
            epsilon.loop = loop
            a.epsilons[src].push_back(epsilon)
        for low, high in loops:
            a.loop_min.push_back(low)
            a.loop_max.push_back(high)
        for src, target in accepts:
            a.accept[src] = target
        cut[0] = True
        for byte in range(256):
            if cut[byte]:
                a.class_byte.push_back(<uint8_t>byte)
            a.byte_class.push_back(<uint8_t>(a.class_byte.size() - 1))
        if loops:
            # Automata that differ in their bounds only share one free automaton.
            key = ("free", n_states, start, tuple(edges), tuple(epsilons), tuple(accepts))
            free = self.automata.get(key)
            if free is None:
                free = self.build_nfa(n_states, start, edges, epsilons, [], accepts, max_states)
                free.automaton.is_free = True
                mark_loops(free.automaton)
                items.push_back((<uint64_t>start) << 32)
                free.automaton.start = lex_intern_items(free.automaton, items, NULL)
                self.automata[key] = free
            handle.base = free
            a.free = free.automaton
            a.in_loop = free.automaton.in_loop
            free_start = free.automaton.start
            items.clear()
        items.push_back((<uint64_t>start) << 32)
        if not epsilons_count(a) or loops:
            a.start = lex_intern_items(a, items, free_start)
        return handle

    def add_keyset(self, list names, list tags, int32_t other_tag, AutomatonHandle base, int64_t max_states):
        """A set of quoted keys: canonical spellings (bytes, without quotes) and their tags."""
        cdef AutomatonHandle handle = self.new_automaton(KIND_KEYSET, max_states)
        cdef Automaton* a = handle.automaton
        cdef string name
        for spelled, tag in sorted(zip(names, tags)):
            name = spelled
            a.names.push_back(name)
            a.tags.push_back(tag)
        a.other_tag = other_tag
        if base is not None:
            a.base = base.automaton
            handle.base = base
        a.start = key_start(a, 0, <int32_t>0x7FFFFFFF, base is not None)
        return handle

    def dump_masks(self, AutomatonHandle handle):
        """The context-independent masks of an explored automaton, as one byte string a state."""
        cdef LexState* state
        cdef LexMask* mask
        cdef size_t i
        out = []
        for i in range(handle.automaton.states.size()):
            state = handle.automaton.states[i]
            mask = lexmask_get(state, &self.trie, self.words)
            out.append((
                (<const char*>mask.bits.data())[:mask.bits.size() * 4],
                (<const char*>mask.inside.data())[:mask.inside.size() * 4],
                (<const char*>mask.crossing.data())[:mask.crossing.size() * sizeof(Crossing)],
            ))
        return out

    def load_masks(self, AutomatonHandle handle, list dumped):
        """Take over what ``dump_masks`` of the same automaton on the same vocabulary gave."""
        cdef LexMask* mask
        cdef size_t i
        cdef bytes bits, inside, crossing
        if len(dumped) != <int64_t>handle.automaton.states.size():
            raise VocabularyError("cached masks do not belong to this automaton; delete the cache file")
        for i in range(handle.automaton.states.size()):
            bits, inside, crossing = dumped[i]
            mask = new LexMask()
            mask.ref = NULL
            mask.bits.resize(len(bits) // 4)
            memcpy(mask.bits.data(), <const char*>bits, len(bits))
            mask.inside.resize(len(inside) // 4)
            memcpy(mask.inside.data(), <const char*>inside, len(inside))
            mask.crossing.resize(len(crossing) // sizeof(Crossing))
            memcpy(mask.crossing.data(), <const char*>crossing, len(crossing))
            handle.automaton.states[i].mask = mask

    def segment(self, bytes data):
        """Ids of the fewest tokens that spell ``data``; VocabularyError when none do."""
        cdef const uint8_t* text = <const uint8_t*><const char*>data
        cdef int64_t n = len(data), i, j
        cdef vector[int32_t] count, token
        cdef vector[int64_t] step
        cdef uint32_t node
        count.resize(n + 1, -1)
        token.resize(n + 1, -1)
        step.resize(n + 1, 0)
        count[n] = 0
        for i in range(n - 1, -1, -1):
            node = 0
            for j in range(i, n):
                node = trie_child(&self.trie, node, text[j])
                if node == 0:
                    break
                if (self.trie.nodes[node].token < self.trie.nodes[node + 1].token and count[j + 1] >= 0
                        and (count[i] < 0 or count[j + 1] + 1 <= count[i])):
                    count[i] = count[j + 1] + 1
                    token[i] = self.trie.tokens[self.trie.nodes[node].token]
                    step[i] = j + 1 - i
        if count[0] < 0:
            raise VocabularyError(f"no sequence of tokens spells {data!r}: the vocabulary lacks a byte")
        out = []
        i = 0
        while i < n:
            out.append(token[i])
            i += step[i]
        return out


cdef class CompiledCore:
    """A grammar lowered to tables (see ``maskwright.lowering``) on one engine."""

    cdef Core* core
    cdef readonly Engine engine
    cdef list handles
    cdef Costs costs
    cdef int32_t start
    cdef int64_t max_states

    def __cinit__(self):
        self.core = NULL

    def __init__(self, Engine engine, list automata, list plain_terms, list plain_calls, bytes plain_final,
                 list rules, list repeated, list records, int32_t start_rule, int64_t max_states):
        cdef Program* program = new Program()
        cdef AutomatonHandle handle
        cdef vector[PlainTerm] terms
        cdef vector[Call] calls
        cdef PlainTerm term
        cdef Call call
        cdef RuleStart rule
        cdef RepeatedDef rep
        self.core = new Core()
        self.core.program = program
        self.core.trie = &engine.trie
        self.core.words = engine.words
        self.core.mask_bytes = 0
        for eos in engine.eos_ids:
            self.core.eos.push_back(eos)
        self.engine = engine
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
        for rule.kind, rule.index, rule.nullable in rules:
            program.rules.push_back(rule)
        for rep.first, rep.rest, rep.low, rep.high in repeated:
            program.repeated.push_back(rep)
        for record in records:
            self.add_record(*record)
        program.start_rule = start_rule
        self.max_states = max_states
        self.core.stack.resize(engine.longest + 1)
        self.start = matcher_start(self.core)
        self.check_limits()

    def add_record(self, int32_t keys, list values, list key_bytes, list required, int32_t other_value,
                   int32_t open_, int32_t close_empty, int32_t colon, int32_t comma, int32_t close):
        cdef RecordDef record
        cdef int32_t i, next_required = <int32_t>len(values)
        cdef vector[uint8_t] path
        cdef cbool found = False
        record.keys = keys
        record.count = <int32_t>len(values)
        for i in values:
            record.values.push_back(i)
        for i in key_bytes:
            record.key_bytes.push_back(i)
        record.next_required.resize(record.count + 1)
        for i in range(record.count, -1, -1):
            if i < record.count and required[i]:
                next_required = i
            record.next_required[i] = next_required
        record.other_value = other_value
        record.other_key_bytes = 0
        if other_value >= 0:
            lex_shortest(self.core.program.automata[keys].start, record.count, path, &found)
            record.other_key_bytes = <int32_t>path.size()
        record.open = open_
        record.close_empty = close_empty
        record.colon = colon
        record.comma = comma
        record.close = close
        self.core.program.records.push_back(record)

    def __dealloc__(self):
        if self.core != NULL:
            core_free(self.core)

    cdef int check_limits(self) except -1:
        # After the work: tables may overshoot by one operation, and results are always whole.
        cdef AutomatonHandle handle
        cdef int64_t states = max(self.core.program.states.size(), self.core.states.size())
        if states > self.max_states:
            raise LimitError("max_parser_states", states, self.max_states)
        if self.engine.limit_passed:
            for handle in self.handles:
                states = handle.automaton.states.size()
                if states > handle.automaton.max_states:
                    raise LimitError("max_lexer_states", states, handle.automaton.max_states)
        return 0

    @property
    def statistics(self):
        """Counts of interned things and bytes of cached masks."""
        return {
            "matcher_states": self.core.states.size(),
            "parser_states": self.core.program.states.size(),
            "stack_nodes": self.core.program.nodes.size(),
            "token_edges": self.core.token_edges.size(),
            "mask_bytes": self.core.mask_bytes,
        }


cdef class Matcher:
    """The state of one sequence over a compiled grammar.

    A rejected token changes nothing.  All methods answer for the tokens accepted so far.
    """

    cdef readonly CompiledCore compiled
    cdef Core* core
    cdef vector[int32_t] history   # states; the last one is current
    cdef vector[int32_t] tokens    # accepted ids, EOS included

    def __init__(self, CompiledCore compiled):
        self.compiled = compiled
        self.core = compiled.core
        self.history.push_back(compiled.start)

    # --- masks

    def fill_next_token_bitmask(self, bitmask, int64_t row=0):
        """Write which tokens may come next into ``bitmask[row]``.

        ``bitmask``: int32 [batch, ceil(V / 32)] (or one row), numpy or torch on the CPU; bit
        ``id % 32`` of word ``id // 32``, least significant first, 1 = allowed.  An EOS token is
        allowed exactly when the text is complete; after EOS only EOS is.
        Raises ``BitmaskError`` when it does not have that type, shape or row.
        """
        cdef Py_buffer view
        cdef Row out = bitmask_row(bitmask, row, self.core.words, &view)
        cdef int32_t t
        try:
            if self.history.back() == TERMINATED:
                memset(out.data, 0, out.words * 4)
                for t in self.core.eos:
                    out.data[t >> 5] |= (<uint32_t>1) << (t & 31)
            else:
                mask_write(self.core, mask_get(self.core, self.history.back()), out.data)
        finally:
            PyBuffer_Release(&view)
        self.compiled.check_limits()

    # --- moving

    cdef int32_t follow(self, int32_t state, int64_t token) except -3:
        # The state behind a token, or NO_STATE.
        cdef int64_t edge
        cdef int32_t target
        cdef bytes data
        if not 0 <= token < self.compiled.engine.vocab_size:
            raise VocabularyError(
                f"token id {token} is outside the vocabulary (0 to {self.compiled.engine.vocab_size - 1})")
        if state == TERMINATED:
            return NO_STATE
        edge = (<int64_t>state << 32) | token
        found = self.core.token_edges.find(edge)
        if found != self.core.token_edges.end():
            return dereference(found).second
        if token in self.compiled.engine.eos_ids:
            return TERMINATED if self.core.states[state].accepting else NO_STATE
        data = self.compiled.engine.tokens[token]
        if not data:
            return NO_STATE
        target = matcher_step_bytes(self.core, state, <const uint8_t*><const char*>data, len(data))
        self.compiled.check_limits()
        self.core.token_edges[edge] = target
        return target

    def accept_token(self, int64_t token):
        """Advance by one token; False, and nothing changed, when it is not allowed.

        Raises ``VocabularyError`` for an id outside the vocabulary.
        """
        cdef int32_t target = self.follow(self.history.back(), token)
        if target == NO_STATE:
            return False
        self.history.push_back(target)
        self.tokens.push_back(<int32_t>token)
        return True

    def accept_tokens(self, ids):
        """Advance by the longest allowed prefix of ``ids``; its length."""
        cdef int64_t count = 0
        for token in ids:
            if not self.accept_token(token):
                break
            count += 1
        return count

    def validate_tokens(self, ids):
        """How many of ``ids`` could be accepted one after another; nothing changes."""
        cdef int32_t state = self.history.back()
        cdef int64_t count = 0
        for token in ids:
            state = self.follow(state, token)
            if state == NO_STATE:
                break
            count += 1
        return count

    def accept_bytes(self, bytes data):
        """Advance by bytes, as if they were one token; False and unchanged when not allowed."""
        cdef int32_t target
        if self.history.back() == TERMINATED:
            return False
        target = matcher_step_bytes(self.core, self.history.back(), <const uint8_t*><const char*>data, len(data))
        self.compiled.check_limits()
        if target == NO_STATE:
            return False
        self.history.push_back(target)
        self.tokens.push_back(-1)
        return True

    def longest_prefix(self, bytes data):
        """How many bytes of ``data`` can come next; nothing changes."""
        cdef vector[Thread] threads, after
        cdef int64_t i
        if self.history.back() == TERMINATED:
            return 0
        threads = self.core.states[self.history.back()].threads
        for i in range(len(data)):
            threads_step(self.core, threads, <uint8_t>data[i], after)
            if after.empty():
                self.compiled.check_limits()
                return i
            threads.swap(after)
        return len(data)

    def rollback(self, int64_t count):
        """Take back the last ``count`` accepted tokens.  Raises ``ValueError`` when there are fewer."""
        if not 0 <= count < <int64_t>self.history.size():
            raise ValueError(f"cannot roll back {count} of {self.history.size() - 1} accepted tokens")
        self.history.resize(self.history.size() - <size_t>count)
        self.tokens.resize(self.history.size() - 1)

    def fork(self):
        """An independent matcher in the same state."""
        cdef Matcher other = Matcher.__new__(Matcher)
        other.compiled = self.compiled
        other.core = self.core
        other.history = self.history
        other.tokens = self.tokens
        return other

    def reset(self):
        """Back to the start."""
        self.rollback(self.history.size() - 1)

    # --- looking

    @property
    def is_accepting(self):
        """Whether the text so far is complete (EOS is allowed)."""
        cdef int32_t state = self.history.back()
        return state == TERMINATED or bool(self.core.states[state].accepting)

    @property
    def is_terminated(self):
        """Whether EOS has been accepted."""
        return self.history.back() == TERMINATED

    @property
    def accepted_tokens(self):
        """The ids accepted so far (-1 stands for bytes given to ``accept_bytes``)."""
        return list(self.tokens)

    @property
    def state_id(self):
        """Number of the interned state: equal numbers allow exactly the same continuations."""
        return self.history.back()

    def forced_bytes(self):
        """The bytes that every completion begins with (up to escaped spellings of equal keys)."""
        cdef vector[uint8_t] out
        if self.history.back() == TERMINATED:
            return b""
        forced_bytes(self.core, self.history.back(), out)
        self.compiled.check_limits()
        return (<const char*>out.data())[:out.size()]

    def shortest_completion_bytes(self):
        """The fewest bytes that make the text complete."""
        cdef vector[uint8_t] out
        if self.history.back() == TERMINATED:
            return b""
        if not shortest_bytes(self.core, &self.compiled.costs, self.history.back(), out):
            self.compiled.check_limits()
            raise UnsatisfiableError("no completion was found from this state")
        return (<const char*>out.data())[:out.size()]

    def shortest_completion(self):
        """Token ids (without EOS) that spell the fewest bytes that make the text complete.

        Raises ``VocabularyError`` when the vocabulary cannot spell them.
        """
        return self.compiled.engine.segment(self.shortest_completion_bytes())
