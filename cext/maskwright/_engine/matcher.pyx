# The Python class of a sequence.  What its methods have in common is a `Position`.

cimport cython
from cpython.buffer cimport PyBuffer_Release
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright.base.deadline import check_time
from maskwright.errors import MaskwrightError, VocabularyError

from maskwright._engine.program cimport ACCEPT, NO_STATE, UNKNOWN
from maskwright._engine.core cimport Outcome, TERMINATED
from maskwright._engine.threads cimport TOKEN_MARK, TOKEN_SPELLED
from maskwright._engine.containers cimport seconds_now
from maskwright._engine.states cimport matcher_read
from maskwright._engine.completion cimport COMPLETION_LIMIT, forced_bytes, shortest_bytes
from maskwright._engine.generations cimport bits_of_state, check_outcome, core_enter_turns, core_leave, fill_known, fill_new
from maskwright._engine.moves cimport past_begin, past_count, past_cut, past_known, past_push, PAST_SLACK
from maskwright._engine.rows cimport (
    BitmaskView, bitmask_open, bitmask_row, bytes_of, numbers_of, place_of, pool_threads, Row, shown_number, token_number,
    tree_flags, tree_into, tree_legal, tree_read, tree_run, whole_number
)
from maskwright._engine.compiled cimport explain_items, explain_returns, explain_threads


@cython.no_gc_clear
cdef class Matcher(Position):
    """The state of one sequence over a compiled grammar.

    ``max_rollback``: how many tokens can be taken back, counted from the most that were ever accepted; with it, a long text
    takes no more memory than so many tokens do, and ``accepted_tokens`` has only those.  None: all, which are kept.

    A rejected token changes nothing.  All methods answer for the tokens accepted so far.  One matcher
    belongs to one thread at a time; matchers of one grammar may be used by many threads at once.
    What has to be computed runs without the interpreter's lock, and raises ``LimitError`` when it
    exceeds the ``Limits`` of the grammar; nothing changes then.  Whoever moves a matcher that another thread is just using gets
    ``MaskwrightError``.
    """

    def __copy__(self):
        return self.fork()

    def __deepcopy__(self, memo):
        return self.fork()

    # --- masks

    def fill_next_token_bitmask(self, bitmask, row=0):
        """Write which tokens may come next into ``bitmask[row]``.

        ``bitmask``: int32 [batch, ceil(V / 32)] (or one row), numpy or torch on the CPU; bit
        ``id % 32`` of word ``id // 32``, least significant first, 1 = allowed.  An EOS token is
        allowed exactly when the text is complete; after EOS only EOS is, so that rows that have ended can be drawn from, too
        (``accept_token`` takes none of these).
        Raises ``BitmaskError`` when it does not have that type, shape or row.
        """
        cdef Py_buffer view
        cdef Row out = bitmask_row(bitmask, row, self.core.words, &view)
        cdef int32_t state
        cdef Outcome outcome
        cdef cbool done = False
        try:
            self.begin()
            state = self.past.states.back()
            if self.core.index.lock.try_lock_shared():
                done = fill_known(self.core, state, out.data)
                self.core.index.lock.unlock_shared()
            if not done:
                self.busy += 1
                with nogil:
                    self.core.index.lock.lock_shared()
                    done = fill_known(self.core, state, out.data)
                    self.core.index.lock.unlock_shared()
                    if not done:
                        outcome = fill_new(self.core, state, out.data)
                        done = False
                self.busy -= 1
                if not done:
                    check_outcome(outcome, self.core)
        finally:
            PyBuffer_Release(&view)

    def next_token_bitmask(self):
        """The mask as a read-only view (int32 [ceil(V / 32)], a buffer), without a copy.

        It stays valid, and what it was, when the matcher moves on.
        """
        cdef BitmaskView view = BitmaskView.__new__(BitmaskView)
        cdef Outcome outcome
        cdef int32_t state
        self.begin()
        state = self.past.states.back()
        self.busy += 1
        with nogil:
            core_enter_turns(self.core)
            view.bits = bits_of_state(self.core, state)
            outcome = core_leave(self.core)
        self.busy -= 1
        view.owner = self.compiled.engine.owner
        check_outcome(outcome, self.core)
        view.shape[0] = <Py_ssize_t>self.core.words
        view.strides[0] = 4
        return memoryview(view)

    # --- moving

    def accept_token(self, token):
        """Advance by one token; False, and nothing changed, when it is not allowed.

        Raises ``VocabularyError`` for an id outside the vocabulary, and for what is no integer.
        """
        cdef int64_t number = token_number(token, self.compiled.engine.vocab_size)
        self.alone()
        return self.accepted(number, self.window)

    cdef bint accepted(self, int64_t token, int64_t window) except -1:
        # Advance by a token that is in the vocabulary, unless it is not allowed.
        cdef int32_t target
        self.begin()
        target = self.follow(self.past.states.back(), token)
        if target == NO_STATE:
            return False
        past_push(&self.past, target, <int32_t>token, window)
        return True

    def accept_tokens(self, ids):
        """Advance by the longest allowed prefix of ``ids``; its length.  Nothing changes when it raises.

        Raises ``VocabularyError`` for an id outside the vocabulary, and for what holds no integers."""
        cdef int64_t count = 0, number, length, reached
        each = numbers_of(ids, "ids", VocabularyError)
        self.alone()
        length = past_count(&self.past)
        reached = self.past.reached
        try:
            while True:
                # What makes the ids is a caller's code: it may look at this matcher, and not move it.
                self.busy += 1
                try:
                    number = token_number(next(each), self.compiled.engine.vocab_size)
                except StopIteration:
                    break
                finally:
                    self.busy -= 1
                # Kept without bound until the end: what goes wrong at last is taken back, however much it is.
                if not self.accepted(number, -1):
                    break
                count += 1
        except BaseException:
            self.back_to(length)
            self.past.reached = reached
            raise
        return count

    def validate_tokens(self, ids):
        """How many of ``ids`` could be accepted one after another; nothing changes."""
        cdef int32_t state
        cdef int64_t count = 0
        each = numbers_of(ids, "ids", VocabularyError)
        self.begin()
        state = self.past.states.back()
        self.busy += 1
        try:
            for token in each:
                state = self.follow(state, token_number(token, self.compiled.engine.vocab_size))
                if state == NO_STATE:
                    break
                count += 1
        finally:
            self.busy -= 1
        return count

    def accept_bytes(self, data):
        """Advance by bytes, as if they were one token; False and unchanged when not allowed."""
        cdef bytes text = bytes_of(data)
        cdef int32_t target, state
        self.alone()
        self.begin()
        state = self.past.states.back()
        if state == TERMINATED:
            return False
        target = self.read(state, text)
        if target == NO_STATE:
            return False
        self.given[past_count(&self.past)] = text
        past_push(&self.past, target, -1, self.window)
        if self.window >= 0 and <int64_t>len(self.given) > 2 * self.window + PAST_SLACK:
            self.given = {at: kept for at, kept in self.given.items() if at >= self.past.marks[0].position}
        return True

    def longest_prefix(self, data):
        """How many bytes of ``data`` can come next; nothing changes."""
        cdef bytes kept = bytes_of(data)
        cdef const uint8_t* text = <const uint8_t*><const char*>kept
        cdef int64_t length = len(kept), read
        cdef int32_t state
        cdef Outcome outcome
        self.begin()
        state = self.past.states.back()
        if state == TERMINATED:
            return 0
        self.busy += 1
        with nogil:
            core_enter_turns(self.core)
            read = matcher_read(self.core, state, text, length)
            outcome = core_leave(self.core)
        self.busy -= 1
        check_outcome(outcome, self.core)
        return read

    def rollback(self, count):
        """Take back the last ``count`` accepted tokens.  Raises ``MaskwrightError`` when there are fewer."""
        cdef int64_t taken
        try:
            taken = whole_number(count, <int64_t>1 << 62)
        except TypeError:
            raise MaskwrightError(f"a number of tokens is an integer, not {count!r} ({type(count).__name__})") from None
        if not 0 <= taken <= past_known(&self.past, self.window):
            raise MaskwrightError(f"cannot roll back {shown_number(count)} of {past_count(&self.past)} accepted tokens"
                                  + (f": max_rollback is {self.window}" if self.window >= 0 else ""))
        self.alone()
        self.back_to(past_count(&self.past) - taken)

    cdef int back_to(self, int64_t length) except -1:
        # Back to where so many tokens had been accepted.
        if length < self.past.first:
            self.begin()
            self.read_again(length)
        else:
            past_cut(&self.past, length)
        return 0

    def fork(self):
        """An independent matcher in the same state."""
        cdef Matcher other
        self.begin()
        other = Matcher.__new__(Matcher, self.compiled)
        if other.core != self.core:
            # This one is in use elsewhere, and could not move.
            other.leave()
            other.enter(self.core)
        other.past = self.past
        other.window = self.window
        other.given = dict(self.given)
        return other

    def reset(self):
        """Back to the start."""
        self.alone()
        self.begin()
        past_begin(&self.past, self.core.begin, 0)
        self.given = {}

    # --- drafts

    def fill_tree_bitmasks(self, tokens, parents, bitmask):
        """Write which tokens may follow each node of a draft tree into the rows of ``bitmask``; how many nodes are legal.

        ``tokens[i]`` hangs below node ``parents[i]``, an earlier one, or -1 for the matcher's own state: lists or integer
        arrays, numpy or torch.  ``bitmask``: as in ``fill_next_token_bitmask``, int32 [rows, ceil(V / 32)] with a row for
        each node at least.  Row i is what a matcher says that accepted all tokens down to node i, all zero where it would
        refuse one of them; further rows are left alone.  ``parents=range(-1, n - 1)``: a draft without branches.

        It is one operation (``Limits.max_seconds``) without the interpreter's lock.  Raises ``VocabularyError`` for an id
        outside the vocabulary, ``MaskwrightError`` for a parent that is no earlier node, ``BitmaskError`` for a wrong type or
        shape or too few rows, ``LimitError`` also for over a million nodes; nothing is written then.
        """
        cdef Tree tree
        cdef Py_buffer view
        tree_read(&tree, tokens, parents, self.compiled.engine.vocab_size)
        bitmask_open(bitmask, &view)
        try:
            tree_into(&tree, &view, self.core.words)
            self.look_ahead(&tree)
        finally:
            PyBuffer_Release(&view)
        return tree_legal(&tree)

    def validate_tree(self, tokens, parents):
        """Which nodes of a draft tree are legal: numpy bool [nodes].  Arguments and errors as ``fill_tree_bitmasks``."""
        cdef Tree tree
        tree_read(&tree, tokens, parents, self.compiled.engine.vocab_size)
        self.look_ahead(&tree)
        return tree_flags(&tree)

    cdef int look_ahead(self, Tree* tree) except -1:
        cdef Outcome outcome
        cdef size_t threads = pool_threads()
        self.begin()
        tree.core = self.core
        tree.root = self.past.states.back()
        self.busy += 1
        with nogil:
            outcome = tree_run(tree, threads)
        self.busy -= 1
        check_outcome(outcome, tree.core)
        return 0

    # --- looking

    @property
    def is_accepting(self):
        """Whether the text so far is complete (EOS is allowed)."""
        cdef int32_t state = self.past.states.back()
        return state == TERMINATED or bool(self.accepts(state))

    @property
    def is_terminated(self):
        """Whether EOS has been accepted."""
        return self.past.states.back() == TERMINATED

    @property
    def accepted_tokens(self):
        """The ids accepted so far (-1 stands for bytes given to ``accept_bytes``); with ``max_rollback``,
        those that can be taken back."""
        return list(self.past.tokens)[<int64_t>self.past.tokens.size() - past_known(&self.past, self.window):]

    def captures(self):
        """What was captured so far: by name, the text that was captured last (bytes), or a list of all of them.

        The text is read again, which takes time that grows with its length; masks know nothing of captures.  Which
        reading counts is said in ``docs/grammars.md``.  Empty for grammars without captures."""
        reader = self.compiled.reader
        if reader is None:
            return {}
        if self.past.marks[0].position > 0:
            raise MaskwrightError("captures need the whole text: max_rollback let go of its beginning")
        pieces = []
        opening = self.core.opening != UNKNOWN
        for i, token in enumerate(list(self.past.tokens)):
            text = self.given[i] if token < 0 else self.compiled.engine.token_bytes(token, opening)
            if text or token < 0 or not self.compiled.engine.token_bytes(token):
                pieces.append((token, text))
            # Only what stands for nothing there leaves a text at its very start.
            opening = opening and not text and (token < 0 or self.core.index.opening.stays)
        if self.past.states.back() == TERMINATED:
            pieces.pop()
        return reader.read(pieces, any([begun for _, begun in self.threads()]))

    @property
    def state_id(self):
        """Number of the interned state: equal numbers allow exactly the same continuations, among matchers of one grammar.

        What goes on alike may have other numbers when the grammar has begun anew with its states (``Vocabulary.state_budget``)."""
        cdef int32_t state = self.past.states.back()
        return state if state < 0 else (self.core.generation.number << 32) + state

    def threads(self):
        """The readings of the text so far: (parser state, whether a lexeme has begun there), in no order.

        ``waits`` and ``callers`` say what these are, until the matcher is asked for something else."""
        cdef vector[int32_t] found
        cdef size_t i
        cdef int32_t state = self.past.states.back()
        if state == TERMINATED:
            return []
        self.busy += 1
        with nogil:
            explain_threads(self.core, state, found)
        self.busy -= 1
        return [(found[2 * i], found[2 * i + 1] != 0) for i in range(found.size() // 2)]

    def waits(self, parser):
        """What a parser state (of ``Matcher.threads``) waits for: (kind, index, GSS node, whether a lexeme that is no
        terminal of the lexer may come, terminals of the lexer that may)."""
        cdef vector[int32_t] found
        cdef size_t at = 0, i
        cdef int32_t state = place_of(parser, self.core.program.states.size(), "parser state")
        self.busy += 1
        with nogil:
            explain_items(self.core, state, found)
        self.busy -= 1
        items = []
        while at < found.size():
            terminals = [found[at + 5 + i] for i in range(<size_t>found[at + 4])]
            items.append((found[at], found[at + 1], found[at + 2], found[at + 3] != 0, terminals))
            at += 5 + <size_t>found[at + 4]
        return items

    def callers(self, node):
        """Where a GSS node (of ``waits``) returns to: (kind, index, GSS node), or None for the end of the text."""
        cdef vector[int32_t] found
        cdef size_t i
        cdef int32_t place = place_of(node, self.core.program.nodes.size(), "GSS node")
        self.busy += 1
        with nogil:
            explain_returns(self.core, place, found)
        self.busy -= 1
        callers = []
        for i in range(found.size() // 3):
            if i & 1023 == 1023:
                check_time()
            callers.append((found[3 * i], found[3 * i + 1], found[3 * i + 2]) if found[3 * i] != ACCEPT else None)
        return callers

    def forced_bytes(self):
        """The bytes that every completion begins with (up to escaped spellings of equal keys)."""
        cdef vector[uint8_t] out
        cdef int32_t state
        cdef Outcome outcome
        self.begin()
        state = self.past.states.back()
        if state == TERMINATED:
            return b""
        self.busy += 1
        with nogil:
            core_enter_turns(self.core)
            forced_bytes(self.core, state, out)
            outcome = core_leave(self.core)
        self.busy -= 1
        check_outcome(outcome, self.core)
        return (<const char*>out.data())[:out.size()]

    cdef bytes completion(self):
        # The shortest completion; tokens that stand for themselves as `tokens_spell` has them.
        cdef vector[uint8_t] out
        cdef int32_t state
        cdef cbool found
        cdef Outcome outcome
        self.begin()
        state = self.past.states.back()
        if state == TERMINATED:
            return b""
        self.busy += 1
        with nogil:
            core_enter_turns(self.core)
            found = shortest_bytes(self.core, state, out)
            outcome = core_leave(self.core)
        self.busy -= 1
        check_outcome(outcome, self.core)
        if not found:
            # Some text can always follow.
            raise MaskwrightError(f"the shortest completion is longer than {COMPLETION_LIMIT} bytes")
        return (<const char*>out.data())[:out.size()]

    cdef list completion_parts(self):
        # The same: bytes, and ids of tokens that stand for themselves.
        cdef bytes data = self.completion()
        cdef bytes mark = bytes([TOKEN_MARK])
        if not self.core.program.has_tokens:
            return [data]
        parts = []
        before, found, rest = data.partition(mark)
        while found:
            parts += [before, int.from_bytes(rest[:TOKEN_SPELLED - 1], "big")]
            before, found, rest = rest[TOKEN_SPELLED - 1:].partition(mark)
        parts.append(before)
        return parts

    def shortest_completion_bytes(self):
        """The fewest bytes that make the text complete; inside an array whose items must be different, some that do.

        A token that stands for itself counts as five bytes, and adds its own (a special one none)."""
        engine = self.compiled.engine
        return b"".join([part if isinstance(part, bytes) else engine.token_bytes(part)
                         for part in self.completion_parts()])

    def shortest_completion(self):
        """Token ids (without EOS) that spell ``shortest_completion_bytes``.

        Raises ``VocabularyError`` when the vocabulary cannot spell them.
        """
        cdef double limit = self.core.limits.max_seconds
        # What is found just in time is spelled, too.
        cdef double until = seconds_now() + 1.1 * limit if limit > 0 else 0
        ids = []
        for part in self.completion_parts():
            opening = not ids and self.past.states.back() == self.core.opening
            found = self.compiled.engine.segment(part, opening, limit, until) if isinstance(part, bytes) else [part]
            if ids:
                ids += found
            else:
                ids = found
        return ids
