# The Python class of states of many texts (sets.pxi).

cdef enum:
    LEXED_COST = 50        # steps of a text that a walk of the trie from one thread takes


@cython.no_gc_clear
cdef class StateSets:
    """Numbered states of a compiled grammar, each of one text or of many.

    A state stands for what may follow; the numbers of states of one text are those of ``Matcher.state_id``.  -1 is
    the state that nothing may follow.  States of many texts are exact, except that they forget which key is under way in objects
    whose undeclared keys must differ, and the items of arrays whose items must differ: there they allow too much.  All methods raise ``LimitError`` when an
    operation exceeds the ``Limits`` of the grammar, and ``ValueError`` for a number that is no state.
    """

    cdef readonly CompiledCore compiled
    cdef Core* core
    cdef Sets* sets

    def __cinit__(self, CompiledCore compiled not None):
        if compiled.core == NULL:
            raise TypeError("state sets need a compiled grammar")
        if compiled.core.program.has_tokens:
            raise GrammarError("states of many texts know bytes only: the grammar has tokens that stand for themselves")
        self.compiled = compiled
        self.core = compiled.core
        self.sets = new Sets()
        self.sets.bottom = UNKNOWN
        self.sets.levels.resize(compiled.engine.longest + 1)

    def __dealloc__(self):
        if self.sets != NULL:
            sets_free(self.sets)

    cdef int check(self, int64_t state) except -1:
        # States are never dropped: what is one now stays one.
        cdef int64_t count
        with nogil:
            self.core.index.lock.lock_shared()
            count = <int64_t>(self.sets.states.size() if state >= SET_BASE else self.core.states.size())
            self.core.index.lock.unlock_shared()
        if not 0 <= (state - SET_BASE if state >= SET_BASE else state) < count:
            raise ValueError(f"{state} is no state")
        return 0

    @property
    def start(self):
        """The state of the empty text."""
        return self.compiled.start

    @property
    def exact(self):
        """Whether states of many texts are exact: no undeclared keys and no items must differ."""
        cdef size_t i
        if not self.core.tracker.guards.empty():
            return False
        for i in range(self.core.program.records.size()):
            if self.core.program.records[i].used != NULL:
                return False
        return True

    def is_accepting(self, int64_t state):
        """Whether one of the texts is complete."""
        cdef cbool accepting
        self.check(state)
        with nogil:
            self.core.index.lock.lock_shared()
            if state >= SET_BASE:
                accepting = self.sets.states[state - SET_BASE].accepting
            else:
                accepting = self.core.states[state].accepting
            self.core.index.lock.unlock_shared()
        return bool(accepting)

    cdef int32_t follow(self, int64_t state, int64_t token) except -4:
        cdef TokenIndex owner = self.compiled.engine.owner
        cdef int64_t length
        cdef int32_t target = UNKNOWN
        cdef Outcome outcome
        if not 0 <= token < self.compiled.engine.vocab_size:
            raise VocabularyError(
                f"token id {token} is outside the vocabulary (0 to {self.compiled.engine.vocab_size - 1})")
        length = owner.starts[token + 1] - owner.starts[token]
        if length == 0:
            return NO_STATE
        if state >= SET_BASE:
            return self.read(state, owner.data.data() + owner.starts[token], length)
        if self.core.index.lock.try_lock_shared():
            target = self.core.states[state].edges.find(<int32_t>token)
            self.core.index.lock.unlock_shared()
            if target != UNKNOWN:
                return target
        with nogil:
            outcome = edge_new(self.core, <int32_t>state, <int32_t>token, owner.data.data() + owner.starts[token],
                               length, &target)
        check_outcome(outcome, self.core)
        return target

    def cost(self, int64_t state):
        """What a step from a state costs at most, in steps of a text: it has many threads where stacks are not merged."""
        cdef int64_t size
        self.check(state)
        with nogil:
            self.core.index.lock.lock_shared()
            if state >= SET_BASE:
                size = <int64_t>self.sets.states[state - SET_BASE].parts.size()
            else:
                size = <int64_t>self.core.states[state].threads.size()
                if self.core.program.lexer != NULL:
                    size *= LEXED_COST
            self.core.index.lock.unlock_shared()
        return size

    cdef int32_t read(self, int64_t state, const uint8_t* data, int64_t length) except -4:
        # Behind some bytes, of a state of many texts.
        cdef int32_t target
        cdef Outcome outcome
        with nogil:
            core_enter(self.core)
            target = set_bytes(self.core, self.sets, <int32_t>state, data, length)
            outcome = core_leave(self.core)
        check_outcome(outcome, self.core)
        return target

    def next(self, int64_t state, int64_t token):
        """The state behind one token; -1 when it is not allowed or no text."""
        self.check(state)
        return self.follow(state, token)

    def next_bytes(self, int64_t state, bytes data):
        """The state behind some bytes; -1 when they are not allowed."""
        cdef const uint8_t* text = <const uint8_t*><const char*>data
        cdef int64_t length = len(data)
        cdef int32_t target
        cdef Outcome outcome
        self.check(state)
        if state >= SET_BASE:
            return self.read(state, text, length)
        with nogil:
            outcome = edge_new(self.core, <int32_t>state, -1, text, length, &target)
        check_outcome(outcome, self.core)
        return target

    def any(self, int64_t state):
        """The state behind any one token that is text (no EOS); -1 when there is none."""
        cdef int32_t target
        cdef Outcome outcome
        self.check(state)
        with nogil:
            core_enter(self.core)
            target = sets_any(self.core, self.sets, <int32_t>state)
            outcome = core_leave(self.core)
        check_outcome(outcome, self.core)
        return target

    def join(self, int64_t a, int64_t b):
        """The state of the texts of both; -1 has no texts."""
        cdef int32_t target
        cdef Outcome outcome
        if a != NO_STATE:
            self.check(a)
        if b != NO_STATE:
            self.check(b)
        with nogil:
            core_enter(self.core)
            target = sets_join(self.core, self.sets, <int32_t>a, <int32_t>b)
            outcome = core_leave(self.core)
        check_outcome(outcome, self.core)
        return target

    def covers(self, int64_t a, int64_t b):
        """True only if all that may follow ``b`` may follow ``a``; sound, but it misses some cases."""
        cdef cbool result
        cdef Outcome outcome
        self.check(a)
        self.check(b)
        with nogil:
            core_enter(self.core)
            result = sets_covers(self.core, self.sets, <int32_t>a, <int32_t>b)
            outcome = core_leave(self.core)
        check_outcome(outcome, self.core)
        return bool(result)

    def classes(self, int64_t state):
        """The tokens allowed in a state, by where they lead: a list of (state, int32 ids as bytes, ascending)."""
        cdef vector[int32_t] targets
        cdef unordered_map[int32_t, int32_t] order
        cdef vector[int32_t] ids
        cdef vector[vector[int32_t]] tokens
        cdef Outcome outcome
        cdef size_t i
        cdef int32_t previous = NO_STATE, group = 0
        self.check(state)
        with nogil:
            targets.resize(<size_t>self.compiled.engine.vocab_size, NO_STATE)
            core_enter(self.core)
            sets_classes(self.core, self.sets, <int32_t>state, targets)
            outcome = core_leave(self.core)
            for i in range(targets.size()):
                if targets[i] == NO_STATE:
                    continue
                if targets[i] != previous:
                    previous = targets[i]
                    found = order.find(previous)
                    if found == order.end():
                        order[previous] = <int32_t>ids.size()
                        ids.push_back(previous)
                        tokens.resize(ids.size())
                    group = order[previous]
                tokens[group].push_back(<int32_t>i)
        check_outcome(outcome, self.core)
        return [(ids[i], (<const char*>tokens[i].data())[:tokens[i].size() * sizeof(int32_t)])
                for i in range(ids.size())]

    def shortest_completion(self, int64_t state):
        """Token ids that spell the fewest bytes that make one of the texts complete, or None.

        Of a state of one text there is always one; it is exact then."""
        cdef vector[uint8_t] out
        cdef cbool found
        cdef Outcome outcome
        self.check(state)
        with nogil:
            core_enter(self.core)
            found = sets_shortest(self.core, self.sets, <int32_t>state, out)
            outcome = core_leave(self.core)
        check_outcome(outcome, self.core)
        return self.compiled.engine.segment((<const char*>out.data())[:out.size()]) if found else None
