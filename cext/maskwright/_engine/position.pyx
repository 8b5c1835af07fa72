# Where a matcher is: in which generation of its grammar, behind which tokens, and who is at work there.
#
# What is known already is looked up under a shared lock, without letting go of the interpreter; what
# has to be computed runs without it, under the exclusive lock.

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport _Py_REFCNT
from libc.stdint cimport uint8_t
from libcpp.atomic cimport memory_order_relaxed

from maskwright.errors import MaskwrightError

from maskwright._engine.vocabulary cimport Index
from maskwright._engine.program cimport UNKNOWN
from maskwright._engine.core cimport Outcome
from maskwright._engine.generations cimport check_outcome, core_away, core_enter, core_leave, core_meet_others, edge_known, edge_new
from maskwright._engine.tasks cimport core_let_go, Mover, mover_of
from maskwright._engine.moves cimport core_fetch, FETCHED, past_begin, past_cut, past_mark, past_push
from maskwright._engine.rows cimport whole_number


@cython.no_gc_clear
cdef class Position:
    # What `Matcher` stands on; Python code sees that one alone.

    def __cinit__(self, CompiledCore compiled not None, max_rollback=None):
        if compiled.core == NULL:
            raise TypeError("a matcher needs a compiled grammar")
        try:
            self.window = -1 if max_rollback is None else whole_number(max_rollback, <int64_t>1 << 60)
        except TypeError:
            raise MaskwrightError(f"max_rollback is a number of tokens, not {max_rollback!r}") from None
        if max_rollback is not None and self.window < 0:
            raise MaskwrightError(f"max_rollback is a number of tokens from 0 on, not {max_rollback}")
        self.compiled = compiled
        self.enter(compiled.core)
        past_begin(&self.past, self.core.begin, 0)
        self.given = {}

    def __dealloc__(self):
        if self.core != NULL:
            self.leave()

    cdef void enter(self, Core* core) noexcept:
        self.core = core
        core.generation.holders += 1
        self.before = NULL
        self.behind = core.generation.matchers
        if core.generation.matchers != NULL:
            (<Position>core.generation.matchers).before = <void*>self
        core.generation.matchers = <void*>self

    cdef void leave(self) noexcept:
        if self.before != NULL:
            (<Position>self.before).behind = self.behind
        else:
            self.core.generation.matchers = self.behind
        if self.behind != NULL:
            (<Position>self.behind).before = self.before
        core_let_go(self.core)

    cdef int alone(self) except -1:
        # To be called before the history changes.
        if self.busy:
            raise MaskwrightError("this matcher is in use, by another thread or for what it is just being given: take a fork of it")
        return 0

    cdef int begin(self) except -1:
        # To be called before anything is computed: on in the present generation of the grammar.
        cdef Index* index = self.core.index
        if not self.busy:
            if (index.cache.largest.load(memory_order_relaxed)
                    > self.compiled.core.generation.look_above.load(memory_order_relaxed)):
                self.meet_others()
            if self.compiled.core.generation.overgrown.load(memory_order_relaxed):
                self.compiled.renew()
            if self.core != self.compiled.core and self.busy == 0:
                self.move()
            if not self.compiled.left.empty():
                fetch_matchers(self.compiled)
        while self.moving:
            # Another thread asks the same matcher, and has the lock as long as it moves.
            with nogil:
                index.lock.lock_shared()
                index.lock.unlock_shared()
        return 0

    cdef int meet_others(self) except -1:
        cdef Core* core = self.compiled.core
        core.generation.holders += 1
        with nogil:
            core_meet_others(core)
        core_let_go(core)
        return 0

    cdef int move(self) except -1:
        # Towards the present generation, or there: what a long text needs takes some operations.
        cdef Mover* mover = mover_of(self.core, self.compiled.core)
        cdef Core* fresh = mover.fresh
        cdef cbool moved
        fresh.generation.holders += 1
        mover.users += 1
        self.busy += 1
        self.moving = True
        with nogil:
            core_enter(fresh)
            moved = core_fetch(mover, &self.past)
            core_leave(fresh)
        mover.users -= 1
        if moved:
            self.leave()
            self.enter(fresh)
        core_let_go(fresh)
        self.moving = False
        self.busy -= 1
        return 0

    cdef int32_t follow(self, int32_t state, int64_t token) except -4:
        # The state behind a token, or NO_STATE.
        cdef int32_t target = UNKNOWN
        cdef const int64_t* starts = self.core.index.token_starts
        cdef Outcome outcome
        cdef cbool new = False, looked = self.core.index.lock.try_lock_shared()
        if looked:
            target = edge_known(self.core, state, <int32_t>token)
            self.core.index.lock.unlock_shared()
            if target != UNKNOWN:
                return target
        self.busy += 1
        with nogil:
            if not looked:
                self.core.index.lock.lock_shared()
                target = edge_known(self.core, state, <int32_t>token)
                self.core.index.lock.unlock_shared()
            if target == UNKNOWN:
                new = True
                outcome = edge_new(self.core, state, <int32_t>token, self.core.index.token_data + starts[token],
                                   starts[token + 1] - starts[token], &target)
        self.busy -= 1
        if new:
            check_outcome(outcome, self.core)
        return target

    cdef int32_t read(self, int32_t state, bytes data) except -4:
        # The state behind some bytes, or NO_STATE.
        cdef const uint8_t* text = <const uint8_t*><const char*>data
        cdef int64_t length = len(data)
        cdef int32_t target
        cdef Outcome outcome
        self.busy += 1
        with nogil:
            outcome = edge_new(self.core, state, -1, text, length, &target)
        self.busy -= 1
        check_outcome(outcome, self.core)
        return target

    cdef cbool accepts(self, int32_t state) noexcept:
        cdef cbool accepting
        self.busy += 1
        with nogil:
            self.core.index.lock.lock_shared()
            accepting = self.core.states[state].accepting
            self.core.index.lock.unlock_shared()
        self.busy -= 1
        return accepting

    cdef int read_again(self, int64_t position) except -1:
        # Back to a position of which the state is not known.
        cdef Past past
        cdef size_t i = past_mark(&self.past, position)
        cdef int64_t at = self.past.marks[i].position, base = self.past.marks[0].position
        cdef int32_t token
        past_begin(&past, self.past.marks[i].state, at)
        while at < position:
            token = self.past.tokens[<size_t>(at - base)]
            past_push(&past, self.follow(past.states.back(), token) if token >= 0 else self.read(past.states.back(), self.given[at]),
                      token, -1)
            at += 1
        self.past.states.swap(past.states)
        self.past.first = past.first
        self.past.marks.resize(i + 1)
        past_cut(&self.past, position)
        return 0


cdef void fetch_matchers(CompiledCore compiled) noexcept:
    # Some of those that are still in the earliest generations, and that nobody is using, or a part of what one of them needs.  The
    # interpreter is kept meanwhile, so that nobody begins to use them; so nobody is waited for, either.
    cdef Index* index = compiled.owner.index
    cdef Core* old
    cdef Core* fresh
    cdef Mover* mover
    cdef Position position
    cdef void* each
    cdef cbool ready
    cdef size_t looks = compiled.left.size()
    cdef int32_t moved = 0
    # Letting go of a core lets other threads in, which may do the same.
    while moved < FETCHED and looks > 0 and not compiled.left.empty():
        old = compiled.left.front()
        each = old.generation.matchers
        # One that is being freed has no references: what its subclass has goes first, which may let us in.
        while each != NULL and (_Py_REFCNT(<PyObject*>each) == 0 or (<Position>each).busy):
            each = (<Position>each).behind
        if each == NULL:
            # Nobody is in it any more, or only those that are at work or never move.
            looks -= 1
            compiled.left.erase(compiled.left.begin())
            if old.generation.holders == 1:
                core_let_go(old)
            else:
                compiled.left.push_back(old)
            continue
        if not index.lock.try_lock():
            return
        position = <Position>each
        mover = mover_of(old, compiled.core)
        fresh = mover.fresh
        # Not into the tables of one who has let us in.
        ready = not core_away(fresh)[0] and core_fetch(mover, &position.past)
        index.lock.unlock()
        if not ready:
            return
        position.leave()
        position.enter(fresh)
        moved += 1
