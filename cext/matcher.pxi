# The Python classes.
#
# CompiledCore: one grammar on one engine.  Matcher: a history of matcher states; everything else
# is in the compiled core, so a fork copies a few numbers.

cdef enum:
    TERMINATED = -2


cdef class CompiledCore:
    """A grammar lowered to tables (see ``maskwright.lowering``) on one engine."""

    cdef Core* core
    cdef readonly Engine engine
    cdef list handles
    cdef Costs costs
    cdef int32_t start
    cdef int64_t max_states
    cdef int64_t max_lexer_states

    def __cinit__(self):
        self.core = NULL

    def __init__(self, Engine engine, list automata, list plain_terms, list plain_calls, bytes plain_final,
                 list rules, list repeated, list records, int32_t start_rule, int64_t max_states,
                 int64_t max_lexer_states):
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
        self.core.index = engine.owner.index
        self.core.words = engine.owner.index.words
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
        self.max_lexer_states = max_lexer_states
        self.core.stack.resize(engine.longest + 1)
        self.start = matcher_start(self.core)
        self.check_limits()
        if self.start == NO_STATE:
            raise UnsatisfiableError("the grammar matches nothing")

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
        if self.engine.largest > self.max_lexer_states:
            for handle in self.handles:
                states = lex_size(handle.automaton)
                if states > self.max_lexer_states:
                    raise LimitError("max_lexer_states", states, self.max_lexer_states)
        return 0

    @property
    def statistics(self):
        """Counts of interned things and bytes of cached masks."""
        return {
            "matcher_states": self.core.states.size(),
            "parser_states": self.core.program.states.size(),
            "stack_nodes": self.core.program.nodes.size(),
            "token_edges": self.core.token_edges.size(),
            "cached_bytes": self.core.index.bytes,
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
        cdef TokenIndex owner = self.compiled.engine.owner
        cdef int64_t length
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
        length = owner.starts[token + 1] - owner.starts[token]
        if length == 0:
            return NO_STATE
        target = matcher_step_bytes(self.core, state, owner.data.data() + owner.starts[token], length)
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
