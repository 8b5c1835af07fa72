# The Python class of states of many texts (sets.pyx).

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset
from libcpp cimport bool as cbool
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from maskwright.errors import GrammarError

from maskwright._engine.program cimport NO_STATE, UNKNOWN
from maskwright._engine.core cimport Core, Outcome
from maskwright._engine.longest_match cimport lexer_of
from maskwright._engine.set_states cimport SET_BASE, Sets
from maskwright._engine.set_stacks cimport Attempted, sets_attempt, sets_bytes
from maskwright._engine.sets cimport (
    MIXED_BASE, sets_free, sets_shortest, state_any, state_classes, state_covers, state_join, state_others,
    state_read
)
from maskwright._engine.rows cimport token_number
from maskwright._engine.token_index cimport TokenIndex
from maskwright._engine.generations cimport check_outcome
from maskwright._engine.compiled cimport CompiledCore

cdef enum:
    LEXED_COST = 50        # steps of a text that a walk of the trie from one thread takes

cdef struct SetTask:
    # What an operation is asked, and its answer.
    Core* core
    Sets* sets
    int32_t a
    int32_t b
    int32_t token          # -1: any bytes
    const uint8_t* data
    int64_t length
    vector[int32_t]* targets
    vector[uint8_t]* text
    int32_t answer


cdef void task_read(void* argument) noexcept nogil:
    cdef SetTask* task = <SetTask*>argument
    task.answer = state_read(task.core, task.sets, task.a, task.token, task.data, task.length)


cdef void task_any(void* argument) noexcept nogil:
    cdef SetTask* task = <SetTask*>argument
    task.answer = state_any(task.core, task.sets, task.a)


cdef void task_join(void* argument) noexcept nogil:
    cdef SetTask* task = <SetTask*>argument
    task.answer = state_join(task.core, task.sets, task.a, task.b)


cdef void task_covers(void* argument) noexcept nogil:
    cdef SetTask* task = <SetTask*>argument
    task.answer = state_covers(task.core, task.sets, task.a, task.b)


cdef void task_classes(void* argument) noexcept nogil:
    cdef SetTask* task = <SetTask*>argument
    state_classes(task.core, task.sets, task.a, task.targets[0])


cdef void task_shortest(void* argument) noexcept nogil:
    cdef SetTask* task = <SetTask*>argument
    task.core.index.deadline.searched = task.length
    task.answer = sets_shortest(task.core, task.sets, task.a, task.text[0])


@cython.no_gc_clear
cdef class StateSets:
    """Numbered states of a compiled grammar, each of one text or of many.

    A state stands for what may follow; numbers are those of this object only.  -1 is
    the state that nothing may follow.  States of many texts are exact, except that they forget which key is under way in objects
    whose undeclared keys must differ, and the items of arrays whose items must differ: there they allow too much.  All methods raise
    ``LimitError`` when an operation exceeds the ``Limits`` of the grammar, and ``ValueError`` for a number that is no state.

    Everything is kept in a core of its own, linked from the grammar's tables, so that dropping the object frees it.  When it is
    full (``is_full``), what it knows can still be asked for as a rule; for anything else, take a new object.
    """

    cdef readonly CompiledCore compiled
    cdef Core* core                # that of `compiled`
    cdef Sets* sets

    def __cinit__(self, CompiledCore compiled not None):
        if compiled.core == NULL:
            raise TypeError("state sets need a compiled grammar")
        if compiled.core.program.has_tokens:
            raise GrammarError("states of many texts know bytes only: the grammar has tokens that stand for themselves")
        self.compiled = compiled.apart()
        self.core = self.compiled.core
        self.sets = new Sets()
        self.sets.full = False
        self.sets.gone = False
        self.sets.held = 0
        self.sets.opening_any = UNKNOWN
        self.sets.levels.resize(compiled.engine.longest + 1)
        with nogil:
            self.core.index.lock.lock()
            self.core.index.cache.set_holders.push_back(self.sets)
            self.core.index.lock.unlock()

    def __dealloc__(self):
        if self.sets != NULL:
            with nogil:
                self.core.index.lock.lock()
                sets_free(self.core.index, self.sets)
                self.core.index.lock.unlock()

    cdef int check(self, int64_t state) except -1:
        # States are never dropped: what is one now stays one.
        cdef int64_t count
        with nogil:
            self.core.index.lock.lock_shared()
            count = <int64_t>(MIXED_BASE + self.sets.mixed.size() if state >= MIXED_BASE
                              else SET_BASE + self.sets.states.size() if state >= SET_BASE else self.core.states.size())
            self.core.index.lock.unlock_shared()
        if not 0 <= state < count:
            raise ValueError(f"{state} is no state")
        return 0

    cdef int32_t others(self, int64_t state):
        # Of a mixed state: that of the texts that are not at their very start.
        cdef int32_t found
        with nogil:
            self.core.index.lock.lock_shared()
            found = state_others(self.core, self.sets, <int32_t>state)
            self.core.index.lock.unlock_shared()
        return found

    @property
    def start(self):
        """The state of the empty text."""
        return self.core.begin

    @property
    def terminal_samples(self):
        """A text of each terminal, where the grammar has a lexer; else none."""
        if self.core.program.lexer == NULL:
            return []
        return [sample for sample in lexer_of(self.core.program.lexer).samples.texts if sample.size() > 0]

    @property
    def exact(self):
        """Whether states of many texts are exact: no undeclared keys and no items must differ."""
        cdef size_t i
        if not self.core.tracker.guards.empty():
            return False
        for i in range(self.core.program.records.size()):
            if self.core.program.records[i].unique:
                return False
        return True

    def is_accepting(self, int64_t state):
        """Whether one of the texts is complete."""
        cdef cbool accepting
        self.check(state)
        if state >= MIXED_BASE:
            return self.is_accepting(self.core.opening) or self.is_accepting(self.others(state))
        with nogil:
            self.core.index.lock.lock_shared()
            if state >= SET_BASE:
                accepting = self.sets.states[state - SET_BASE].accepting
            else:
                accepting = self.core.states[state].accepting
            self.core.index.lock.unlock_shared()
        return bool(accepting)

    @property
    def held_bytes(self):
        """What it takes (bytes), token edges and sets of lexer states apart."""
        cdef int64_t size
        with nogil:
            self.core.index.lock.lock_shared()
            size = sets_bytes(self.core, self.sets)
            self.core.index.lock.unlock_shared()
        return size

    @property
    def shared_bytes(self):
        """What sets of lexer states take, of all grammars on this vocabulary (bytes)."""
        return self.core.index.cache.set_bytes

    @property
    def is_full(self):
        """Whether there is room for nothing new, because of ``max_set_bytes``."""
        return self.sets.gone or self.held_bytes + self.shared_bytes > self.core.limits.max_set_bytes

    @property
    def state_count(self):
        """Matcher and parser states."""
        return self.compiled.state_count

    cdef SetTask task(self, int64_t a, int64_t b):
        cdef SetTask task
        memset(&task, 0, sizeof(task))
        task.core = self.core
        task.sets = self.sets
        task.a = <int32_t>a
        task.b = <int32_t>b
        return task

    cdef int run(self, Attempted function, SetTask* task) except -1:
        cdef Outcome outcome
        with nogil:
            outcome = sets_attempt(self.core, self.sets, function, task)
        check_outcome(outcome, self.core)
        return 0

    cdef int32_t read(self, int64_t state, int64_t token, const uint8_t* data, int64_t length) except -4:
        cdef SetTask task = self.task(state, 0)
        task.token = <int32_t>token
        task.data = data
        task.length = length
        self.run(task_read, &task)
        return task.answer

    cdef int32_t follow(self, int64_t state, int64_t token) except -4:
        cdef TokenIndex owner = self.compiled.engine.owner
        cdef int64_t length
        cdef int32_t target = UNKNOWN
        length = owner.starts[token + 1] - owner.starts[token]
        if length == 0:
            return NO_STATE
        if state < SET_BASE and self.core.index.lock.try_lock_shared():
            target = self.core.states[state].edges.find(<int32_t>token)
            self.core.index.lock.unlock_shared()
            if target != UNKNOWN:
                return target
        return self.read(state, token, owner.data.data() + owner.starts[token], length)

    def cost(self, int64_t state):
        """What a step from a state costs at most, in steps of a text: it has many threads where stacks are not merged."""
        cdef int64_t size
        self.check(state)
        if state >= MIXED_BASE:
            return self.cost(self.core.opening) + self.cost(self.others(state))
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

    def next(self, int64_t state, token):
        """The state behind one token; -1 when it is not allowed or no text."""
        self.check(state)
        return self.follow(state, token_number(token, self.compiled.engine.vocab_size))

    def next_bytes(self, int64_t state, bytes data):
        """The state behind some bytes; -1 when they are not allowed."""
        self.check(state)
        return self.read(state, -1, <const uint8_t*><const char*>data, len(data))

    def any(self, int64_t state):
        """The state behind any one token that is text (no EOS); -1 when there is none."""
        cdef SetTask task
        self.check(state)
        task = self.task(state, 0)
        self.run(task_any, &task)
        return task.answer

    def join(self, int64_t a, int64_t b):
        """The state of the texts of both; -1 has no texts."""
        cdef SetTask task
        if a != NO_STATE:
            self.check(a)
        if b != NO_STATE:
            self.check(b)
        task = self.task(a, b)
        self.run(task_join, &task)
        return task.answer

    def covers(self, int64_t a, int64_t b):
        """True only if all that may follow ``b`` may follow ``a``; sound, but it misses some cases."""
        cdef SetTask task
        self.check(a)
        self.check(b)
        task = self.task(a, b)
        self.run(task_covers, &task)
        return task.answer != 0

    def classes(self, int64_t state):
        """The tokens allowed in a state, by where they lead: a list of (state, int32 ids as bytes, ascending)."""
        cdef vector[int32_t] targets
        cdef unordered_map[int32_t, int32_t] order
        cdef vector[int32_t] ids
        cdef vector[vector[int32_t]] tokens
        cdef SetTask task
        cdef size_t i
        cdef int32_t previous = NO_STATE, group = 0
        self.check(state)
        targets.resize(<size_t>self.compiled.engine.vocab_size, NO_STATE)
        task = self.task(state, 0)
        task.targets = &targets
        self.run(task_classes, &task)
        with nogil:
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
        return [(ids[i], (<const char*>tokens[i].data())[:tokens[i].size() * sizeof(int32_t)])
                for i in range(ids.size())]

    def shortest_completion(self, int64_t state, int64_t max_search=-1):
        """Token ids that spell the fewest bytes that make one of the texts complete, or None.

        Of a state of one text there is always one; it is exact then.  ``max_search``: the limit of this name, where it is to be smaller."""
        cdef vector[uint8_t] out
        cdef SetTask task
        self.check(state)
        if state >= MIXED_BASE:
            found = [self.shortest_completion(each, max_search) for each in (self.core.opening, self.others(state))]
            return min((each for each in found if each is not None), key=len, default=None)
        task = self.task(state, 0)
        task.text = &out
        task.length = max(0, self.core.limits.max_search - max_search) if max_search >= 0 else 0
        self.run(task_shortest, &task)
        if not task.answer:
            return None
        return self.compiled.engine.segment((<const char*>out.data())[:out.size()], state == self.core.opening)
