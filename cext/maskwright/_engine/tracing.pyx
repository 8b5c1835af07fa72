# How a text is read, thread by thread: what maskwright.compiling.symbols makes derivations of.  Not for masks.
#
# Matchers join threads and know nothing of the past.  Here each thread is stepped alone, and where it completes a
# lexeme, the *event* says which: what a parser state needs to know to go on (state_goto), but as a value.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from maskwright._engine.containers cimport Interner
from maskwright._engine.sizes cimport bits_has
from maskwright._engine.lexemes cimport Automaton, LexState, NO_TAG
from maskwright._engine.lexeme_texts cimport LEX_DEAD
from maskwright._engine.lexeme_state cimport lex_goes_on, lex_keeps_text, lex_next
from maskwright._engine.longest_match cimport lexer_of, lexer_skips, lookahead_join, lookahead_step
from maskwright._engine.program cimport (
    INDENTED_BEFORE, INDENTED_DONE, INDENTED_INSIDE, DottedItem, LOCAL_INDENTED, NO_KEY, NO_STATE, ParserState
)
from maskwright._engine.rules cimport (
    dotted_waits, parse_advance, parse_expand, parse_guard, parse_local, parse_rule_start
)
from maskwright._engine.stacks cimport newline_column, state_goto, state_goto_guarded
from maskwright._engine.tracked cimport is_tracked, MEMORY_WRONG
from maskwright._engine.values cimport text_append
from maskwright._engine.tracker cimport tracker_open, tracker_read
from maskwright._engine.core cimport Core, Outcome, Thread, thread_at
from maskwright._engine.threads cimport thread_key, thread_used_key
from maskwright._engine.distinct cimport distinct_alive
from maskwright._engine.alive cimport thread_alive
from maskwright._engine.generations cimport check_outcome, core_enter, core_leave, core_lock
from maskwright._engine.tasks cimport core_let_go
from maskwright._engine.compiled cimport CompiledCore

cdef struct Event:
    const Automaton* automaton
    int32_t tag            # of a newline: that of all columns
    int32_t key
    int32_t guard
    int32_t column         # of the line behind a newline, else -1
    int32_t ignored        # 1: the parser state does not see it

cdef struct Traced:
    Thread thread
    Event event            # automaton NULL: no lexeme was completed


cdef void trace_add(const Thread& thread, const Event& event, vector[Traced]& out) noexcept nogil:
    cdef Traced traced
    traced.thread = thread
    traced.event = event
    out.push_back(traced)


cdef void trace_follow(Core* core, LexState* lex, const Thread& before, uint8_t byte, vector[Traced]& out) noexcept nogil:
    # Add the thread that has just read a byte, and those behind the lexeme that it completes.
    cdef Thread thread = before, behind
    cdef Event event
    cdef int32_t guard
    memset(&event, 0, sizeof(Event))
    if lex == LEX_DEAD:
        return
    thread.lex = lex
    thread.memory = 0
    if is_tracked(before.memory):
        thread.memory = tracker_read(&core.tracker, before.memory, byte)
        if thread.memory == MEMORY_WRONG:
            return
    elif lex_keeps_text(lex):
        thread.memory = text_append(&core.tracker.store.texts, before.memory, byte)
    if lex.tag == NO_TAG or lex_goes_on(lex):
        trace_add(thread, event, out)
    if lex.tag == NO_TAG:
        return
    event.automaton = lex.automaton
    event.tag = lex.tag
    event.key = thread_used_key(core, lex, before.memory, thread.memory)
    event.column = -1
    if lex.automaton.lexer != NULL:
        event.ignored = lexer_of(lex.automaton).ignored[lex.tag]
        event.column = newline_column(lexer_of(lex.automaton), lex.tag)
        if event.column >= 0:
            event.tag = lexer_of(lex.automaton).newline
    behind = thread_at(state_goto(core.program, thread.parser, lex.automaton, lex.tag, event.key), thread.lookahead)
    if behind.parser != NO_STATE:
        if lex.automaton == core.program.lexer:
            behind.lookahead = lookahead_join(thread.lookahead, lex)
        behind.memory = thread.memory if is_tracked(thread.memory) else 0
        trace_add(behind, event, out)
    for guard in core.program.states[thread.parser].guards:
        if core.tracker.guards[guard - 1].closed:
            continue
        behind = thread_at(state_goto_guarded(core.program, thread.parser, lex.automaton, lex.tag, guard), NULL)
        if behind.parser != NO_STATE:
            behind.memory = tracker_open(&core.tracker, thread.memory, guard)
            event.guard = guard
            trace_add(behind, event, out)


cdef void trace_step(Core* core, const Thread& before, uint8_t byte, vector[Traced]& out) noexcept nogil:
    cdef Thread thread = before
    cdef ParserState* state
    cdef size_t i
    if not lookahead_step(&thread.lookahead, byte):
        return
    if thread.lex != NULL:
        trace_follow(core, lex_next(thread.lex, byte), thread, byte, out)
        return
    state = core.program.states[thread.parser]
    if bits_has(state.first, byte):
        if state.lexer != NULL:
            trace_follow(core, lex_next(state.lexer, byte), thread, byte, out)
        for i in range(state.starts.size()):
            trace_follow(core, lex_next(state.starts[i], byte), thread, byte, out)


cdef cbool trace_alive(Core* core, const Thread& thread) noexcept nogil:
    if core.program.lexer != NULL:
        return thread_alive(core, thread)
    return not is_tracked(thread.memory) or distinct_alive(core, thread)


cdef cbool trace_waits(const Core* core, const DottedItem* local, const Thread& thread) noexcept nogil:
    # Whether the lexeme under way may be one that the dotted item waits for.
    cdef size_t i
    if thread.lex == NULL:
        return dotted_waits(local)
    if thread.lex.automaton == core.program.lexer:
        return not local.terminals.empty() or lexer_skips(thread.lex)
    for i in range(local.terms.size()):
        if local.terms[i].automaton == thread.lex.automaton:
            return True
    return False


@cython.no_gc_clear
cdef class Tracer:
    """The parts of a grammar by number, for reading texts symbol by symbol (see ``maskwright.compiling.symbols``).

    *Threads* and *events* are numbered here, *locals* (places in rules) and rules by the grammar.  What is
    numbered stays so.  Methods raise ``IndexError`` for numbers that were never given out, and
    ``LimitError`` as a matcher does.
    """

    cdef CompiledCore compiled
    cdef Core* core
    cdef vector[Thread] threads
    cdef Interner thread_ids
    cdef vector[Event] events
    cdef Interner event_ids

    def __init__(self, CompiledCore compiled not None):
        # The start of a text is one thread.
        cdef Thread start
        with nogil:
            self.core.index.lock.lock_shared()
            start = self.core.states[self.core.begin].threads[0]
            self.core.index.lock.unlock_shared()
        self.thread_number(start)

    def __cinit__(self, CompiledCore compiled not None):
        # Its numbers are those of one generation.
        self.compiled = compiled
        self.core = compiled.core
        self.core.generation.holders += 1

    def __dealloc__(self):
        if self.core != NULL:
            core_let_go(self.core)

    cdef int32_t thread_number(self, const Thread& thread):
        cdef string key = thread_key(thread)
        cdef int32_t known = self.thread_ids.find(key)
        if known < 0:
            known = <int32_t>self.threads.size()
            self.thread_ids.insert(key, known)
            self.threads.push_back(thread)
        return known

    cdef int32_t event_number(self, const Event& event):
        cdef string key
        cdef int32_t known
        if event.automaton == NULL:
            return -1
        key.assign(<const char*>&event, sizeof(Event))
        known = self.event_ids.find(key)
        if known < 0:
            known = <int32_t>self.events.size()
            self.event_ids.insert(key, known)
            self.events.push_back(event)
        return known

    cdef int check(self, int64_t number, size_t count, str what) except -1:
        if not 0 <= number < <int64_t>count:
            raise IndexError(f"there is no {what} {number}")
        return 0

    def step(self, int32_t thread, uint8_t byte):
        """The threads behind a byte: (thread, event that led there, or -1 inside a lexeme)."""
        cdef vector[Traced] found
        cdef Thread before
        cdef size_t i
        cdef Outcome outcome
        self.check(thread, self.threads.size(), "thread")
        before = self.threads[thread]
        with nogil:
            core_enter(self.core)
            trace_step(self.core, before, byte, found)
            outcome = core_leave(self.core)
        check_outcome(outcome, self.core)
        return [(self.thread_number(found[i].thread), self.event_number(found[i].event)) for i in range(found.size())]

    def boundaries(self, int32_t thread):
        """The threads behind the boundaries that one is at: (thread, event that led there)."""
        cdef Thread before
        cdef Event event
        cdef LexState* boundary
        cdef vector[Traced] found
        cdef size_t i
        cdef int32_t parser
        cdef Outcome outcome
        self.check(thread, self.threads.size(), "thread")
        before = self.threads[thread]
        memset(&event, 0, sizeof(Event))
        event.column = -1
        if before.lex != NULL or not self.core.program.has_boundaries:
            return []
        with nogil:
            core_enter(self.core)
            for boundary in self.core.program.states[before.parser].boundaries:
                event.automaton = boundary.automaton
                parser = state_goto(self.core.program, before.parser, boundary.automaton, 0, NO_KEY)
                if parser != NO_STATE:
                    trace_add(thread_at(parser, NULL), event, found)
            outcome = core_leave(self.core)
        check_outcome(outcome, self.core)
        return [(self.thread_number(found[i].thread), self.event_number(found[i].event)) for i in range(found.size())]

    def thread(self, int32_t thread):
        """(whether it can be completed, whether it is inside a lexeme, whether that may be an ignored one)."""
        cdef cbool alive, skips
        cdef Thread at
        cdef Outcome outcome
        self.check(thread, self.threads.size(), "thread")
        at = self.threads[thread]
        with nogil:
            core_enter(self.core)
            alive = trace_alive(self.core, at)
            skips = at.lex != NULL and at.lex.automaton == self.core.program.lexer and lexer_skips(at.lex)
            outcome = core_leave(self.core)
        check_outcome(outcome, self.core)
        return bool(alive), at.lex != NULL, bool(skips)

    def event(self, int32_t event):
        """(the lexer's terminal, or -1; the column of the line behind it, or -1; whether it is ignored)."""
        cdef Event found
        self.check(event, self.events.size(), "event")
        found = self.events[event]
        return found.tag if found.automaton == self.core.program.lexer else -1, found.column, found.ignored != 0

    def waits(self, int32_t local, int32_t thread):
        """Whether the dotted item waits for the lexeme that the thread is in, or may be in next."""
        cdef cbool found
        cdef Thread at
        self.check(thread, self.threads.size(), "thread")
        self.check(local, self.core.program.locals.size(), "dotted item")
        at = self.threads[thread]
        with nogil:
            core_lock(self.core)
            found = trace_waits(self.core, parse_expand(self.core.program, local), at)
            self.core.index.lock.unlock()
        return bool(found)

    def place(self, int32_t local):
        """(whether its rule may end, whether it waits for a lexeme, calls as (rule, local behind), column of its block
        or -1)."""
        cdef DottedItem* found
        cdef size_t i
        self.check(local, self.core.program.locals.size(), "dotted item")
        with nogil:
            core_lock(self.core)
            found = parse_expand(self.core.program, local)
            self.core.index.lock.unlock()
        return (
            bool(found.final),
            bool(dotted_waits(found)),
            [(found.calls[i].rule, found.calls[i].back) for i in range(found.calls.size())],
            found.count if found.kind == LOCAL_INDENTED else -1,
        )

    def rule(self, int32_t rule):
        """(its first dotted item, whether it matches the empty text)."""
        cdef int32_t first
        self.check(rule, self.core.program.rules.size(), "rule")
        with nogil:
            core_lock(self.core)
            first = parse_rule_start(self.core.program, rule)
            self.core.index.lock.unlock()
        return first, self.core.program.rules[rule].nullable != 0

    def advance(self, int32_t local, int32_t event):
        """The dotted items behind an event."""
        cdef vector[int32_t] found
        cdef Event read
        self.check(local, self.core.program.locals.size(), "dotted item")
        self.check(event, self.events.size(), "event")
        read = self.events[event]
        with nogil:
            core_lock(self.core)
            if parse_guard(self.core.program, local) == read.guard:
                parse_advance(self.core.program, local, read.automaton, read.tag, read.key, found)
            self.core.index.lock.unlock()
        return found

    def ends_lines(self, int32_t local):
        """Whether a dotted item waits for what may end a line in any column: a quote around a text of lines, or a boundary."""
        cdef DottedItem* found
        cdef int32_t terminal
        cdef cbool ends
        self.check(local, self.core.program.locals.size(), "dotted item")
        with nogil:
            core_lock(self.core)
            found = parse_expand(self.core.program, local)
            ends = not found.boundaries.empty()
            for terminal in found.terminals:
                ends = ends or terminal == lexer_of(self.core.program.lexer).quote
            self.core.index.lock.unlock()
        return bool(ends)

    def line(self, int32_t local, int32_t column, int32_t indent):
        """A dotted item that waits behind a newline, its block being in column ``indent``: (where it is in a line in
        ``column``, or -1; whether it waits there)."""
        cdef DottedItem* found
        cdef int32_t target = -1
        cdef cbool kept = False
        self.check(local, self.core.program.locals.size(), "dotted item")
        with nogil:
            core_lock(self.core)
            found = self.core.program.locals[local]
            if found.kind != LOCAL_INDENTED:
                kept = indent == column
                target = local if kept else -1
            elif found.phase == INDENTED_BEFORE:
                if indent < column:
                    target = parse_local(self.core.program, LOCAL_INDENTED, found.index, INDENTED_INSIDE, column)
            elif column < found.count:
                target = parse_local(self.core.program, LOCAL_INDENTED, found.index, INDENTED_DONE, 0)
            self.core.index.lock.unlock()
        return target, bool(kept)

    @property
    def start_rule(self):
        """The rule that the whole text must match."""
        return self.core.program.start_rule
