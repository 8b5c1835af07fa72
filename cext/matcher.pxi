# The Python class of a sequence: a history of matcher states.
#
# What is known already is looked up under a shared lock, without letting go of the interpreter; what
# has to be computed runs without it, under the exclusive lock.

cdef int64_t whole_number(object value, int64_t above) except? -1:
    # A number as `operator.index` takes it, which C's conversion does not: that cuts what is behind a point.  TypeError for
    # anything else, and for what is true or false.
    # What C cannot hold becomes `above`, which the caller knows to be too large, or the least number.
    cdef int overflow = 0
    if isinstance(value, bool):
        raise TypeError("true and false are no numbers")
    cdef int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow)
    return number if overflow == 0 else above if overflow > 0 else -above


cdef int64_t token_number(object token, int64_t vocab_size) except -1:
    # The number of a token; VocabularyError for what is none.
    cdef int64_t number
    try:
        number = whole_number(token, vocab_size)
    except TypeError:
        raise VocabularyError(f"a token id is an integer, not {token!r} ({type(token).__name__})") from None
    if not 0 <= number < vocab_size:
        raise VocabularyError(f"token id {shown_number(token)} is outside the vocabulary (0 to {vocab_size - 1})")
    return number


cdef str shown_number(object number):
    # For messages.  Python writes no decimals of very large integers.
    number = PyNumber_Index(number)
    return str(number) if number.bit_length() <= 128 else f"{number:#x}"[:40] + "..."


cdef cbool fill_known(Core* core, int32_t id, uint32_t* row) noexcept nogil:
    # Write a mask that exists already, under a shared lock; False when there is none.
    cdef int32_t t
    if id == TERMINATED:
        memset(row, 0, core.words * 4)
        for t in core.eos:
            row[t >> 5] |= (<uint32_t>1) << (t & 31)
        return True
    if core.states[id].mask == NULL:
        return False
    core.states[id].used = True
    mask_write(core, core.states[id].mask, row)
    return True


cdef Outcome fill_new(Core* core, int32_t id, uint32_t* row) noexcept nogil:
    cdef Mask* mask
    core_enter(core)
    mask = mask_get(core, id)
    if mask != NULL:
        mask_write(core, mask, row)
    return core_leave(core)


cdef Outcome edge_new(Core* core, int32_t state, int32_t token, const uint8_t* data, int64_t length,
                      int32_t* target) noexcept nogil:
    # As `edge_make`, as an operation.
    core_enter(core)
    target[0] = edge_make(core, state, token, data, length)
    return core_leave(core)


cdef int32_t edge_make(Core* core, int32_t state, int32_t token, const uint8_t* data, int64_t length) noexcept nogil:
    # The state behind the bytes of a token (-1: behind any bytes).
    cdef int32_t target = UNKNOWN if token < 0 else core.states[state].edges.find(token)
    cdef cbool text = length > 0
    if token < 0 and length == 0:
        return state
    if target == UNKNOWN:
        if token >= 0 and state == core.opening and opening_marks(core.index, token):
            data = core.index.opening.data.data() + core.index.opening.starts[token]
            length = core.index.opening.starts[token + 1] - core.index.opening.starts[token]
        if text and length == 0 and not state_waits_for(core, state, token):
            target = opening_silent(core)
        elif token >= 0 and core.program.has_tokens:
            target = matcher_step_token(core, state, token, text, data, length)
        else:
            target = matcher_step_bytes(core, state, data, length)
        if token >= 0 and not core.index.deadline.passed:
            edge_add(core, state, token, target)
    return target


cdef class Matcher:
    """The state of one sequence over a compiled grammar.

    A rejected token changes nothing.  All methods answer for the tokens accepted so far.  One matcher
    belongs to one thread at a time; matchers of one grammar may be used by many threads at once.
    What has to be computed runs without the interpreter's lock, and raises ``LimitError`` when it
    exceeds the ``Limits`` of the grammar; nothing changes then.  Whoever moves a matcher that another thread is just using gets
    ``MaskwrightError``.
    """

    cdef readonly CompiledCore compiled
    cdef Core* core
    cdef vector[int32_t] history   # states; the last one is current
    cdef vector[int32_t] tokens    # accepted ids, EOS included; -1: bytes, which `given` has by position
    cdef dict given
    cdef int32_t busy              # operations under way without the interpreter

    def __cinit__(self, CompiledCore compiled not None):
        if compiled.core == NULL:
            raise TypeError("a matcher needs a compiled grammar")
        self.compiled = compiled
        self.core = compiled.core
        self.history.push_back(compiled.start)
        self.given = {}

    def __reduce__(self):
        raise TypeError("a matcher belongs to its process and cannot be pickled or copied: use fork() for a copy, and in another "
                        "process compile there and accept `accepted_tokens`")

    cdef int alone(self) except -1:
        # To be called before the history changes.
        if self.busy:
            raise MaskwrightError("another thread is using this matcher: give each thread its own (fork)")
        return 0

    # --- masks

    def fill_next_token_bitmask(self, bitmask, row=0):
        """Write which tokens may come next into ``bitmask[row]``.

        ``bitmask``: int32 [batch, ceil(V / 32)] (or one row), numpy or torch on the CPU; bit
        ``id % 32`` of word ``id // 32``, least significant first, 1 = allowed.  An EOS token is
        allowed exactly when the text is complete; after EOS only EOS is.
        Raises ``BitmaskError`` when it does not have that type, shape or row.
        """
        cdef Py_buffer view
        cdef Row out = bitmask_row(bitmask, row, self.core.words, &view)
        cdef int32_t state = self.history.back()
        cdef Outcome outcome
        cdef cbool done = False
        try:
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
        cdef int32_t state = self.history.back()
        self.busy += 1
        with nogil:
            core_enter(self.core)
            view.bits = bits_of_state(self.core, state)
            outcome = core_leave(self.core)
        self.busy -= 1
        view.owner = self.compiled.engine.owner
        check_outcome(outcome, self.core)
        view.shape[0] = <Py_ssize_t>self.core.words
        view.strides[0] = 4
        return memoryview(view)

    # --- moving

    cdef int32_t follow(self, int32_t state, int64_t token) except -4:
        # The state behind a token, or NO_STATE.
        cdef int64_t length
        cdef int32_t target = UNKNOWN, t
        cdef TokenIndex owner = self.compiled.engine.owner
        cdef Outcome outcome
        if state == TERMINATED:
            return NO_STATE
        if self.core.index.lock.try_lock_shared():
            target = self.core.states[state].edges.find(<int32_t>token)
            self.core.index.lock.unlock_shared()
            if target != UNKNOWN:
                return target
        length = owner.starts[token + 1] - owner.starts[token]
        if length == 0 and not self.waits_for(state, <int32_t>token):
            for t in self.core.eos:
                if t == token:
                    return TERMINATED if self.accepts(state) else NO_STATE
            return NO_STATE
        self.busy += 1
        with nogil:
            outcome = edge_new(self.core, state, <int32_t>token, owner.data.data() + owner.starts[token], length, &target)
        self.busy -= 1
        check_outcome(outcome, self.core)
        return target

    cdef cbool waits_for(self, int32_t state, int32_t token) noexcept:
        cdef cbool waits = False
        if self.core.program.has_tokens:
            self.busy += 1
            with nogil:
                self.core.index.lock.lock_shared()
                waits = state_waits_for(self.core, state, token)
                self.core.index.lock.unlock_shared()
            self.busy -= 1
        return waits

    cdef cbool accepts(self, int32_t state) noexcept:
        cdef cbool accepting
        self.busy += 1
        with nogil:
            self.core.index.lock.lock_shared()
            accepting = self.core.states[state].accepting
            self.core.index.lock.unlock_shared()
        self.busy -= 1
        return accepting

    def accept_token(self, token):
        """Advance by one token; False, and nothing changed, when it is not allowed.

        Raises ``VocabularyError`` for an id outside the vocabulary, and for what is no integer.
        """
        cdef int64_t number = token_number(token, self.compiled.engine.vocab_size)
        cdef int32_t target
        self.alone()
        target = self.follow(self.history.back(), number)
        if target == NO_STATE:
            return False
        self.history.push_back(target)
        self.tokens.push_back(<int32_t>number)
        return True

    def accept_tokens(self, ids):
        """Advance by the longest allowed prefix of ``ids``; its length.  Nothing changes when it raises."""
        cdef int64_t count = 0
        try:
            for token in ids:
                if not self.accept_token(token):
                    break
                count += 1
        except BaseException:
            self.rollback(count)
            raise
        return count

    def validate_tokens(self, ids):
        """How many of ``ids`` could be accepted one after another; nothing changes."""
        cdef int32_t state = self.history.back()
        cdef int64_t count = 0
        for token in ids:
            state = self.follow(state, token_number(token, self.compiled.engine.vocab_size))
            if state == NO_STATE:
                break
            count += 1
        return count

    def accept_bytes(self, bytes data):
        """Advance by bytes, as if they were one token; False and unchanged when not allowed."""
        cdef int32_t target, state
        cdef const uint8_t* text = <const uint8_t*><const char*>data
        cdef int64_t length = len(data)
        cdef Outcome outcome
        self.alone()
        state = self.history.back()
        if state == TERMINATED:
            return False
        self.busy += 1
        with nogil:
            outcome = edge_new(self.core, state, -1, text, length, &target)
        self.busy -= 1
        check_outcome(outcome, self.core)
        if target == NO_STATE:
            return False
        self.history.push_back(target)
        self.given[self.tokens.size()] = data
        self.tokens.push_back(-1)
        return True

    def longest_prefix(self, bytes data):
        """How many bytes of ``data`` can come next; nothing changes."""
        cdef const uint8_t* text = <const uint8_t*><const char*>data
        cdef int64_t length = len(data), read
        cdef int32_t state = self.history.back()
        cdef Outcome outcome
        if state == TERMINATED:
            return 0
        self.busy += 1
        with nogil:
            core_enter(self.core)
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
        if not 0 <= taken < <int64_t>self.history.size():
            raise MaskwrightError(f"cannot roll back {shown_number(count)} of {self.history.size() - 1} accepted tokens")
        self.alone()
        self.history.resize(self.history.size() - <size_t>taken)
        self.tokens.resize(self.history.size() - 1)

    def fork(self):
        """An independent matcher in the same state."""
        cdef Matcher other = Matcher.__new__(Matcher, self.compiled)
        other.history = self.history
        other.tokens = self.tokens
        other.given = dict(self.given)
        return other

    def reset(self):
        """Back to the start."""
        self.rollback(self.history.size() - 1)

    # --- looking

    @property
    def is_accepting(self):
        """Whether the text so far is complete (EOS is allowed)."""
        cdef int32_t state = self.history.back()
        return state == TERMINATED or bool(self.accepts(state))

    @property
    def is_terminated(self):
        """Whether EOS has been accepted."""
        return self.history.back() == TERMINATED

    @property
    def accepted_tokens(self):
        """The ids accepted so far (-1 stands for bytes given to ``accept_bytes``)."""
        return list(self.tokens)

    def captures(self):
        """What was captured so far: by name, the text that was captured last (bytes), or a list of all of them.

        The text is read again, which takes time that grows with its length; masks know nothing of captures.  Which
        reading counts is said in ``docs/grammars.md``.  Empty for grammars without captures."""
        reader = self.compiled.reader
        if reader is None:
            return {}
        pieces = []
        history = list(self.history)
        for i, token in enumerate(list(self.tokens)):
            text = self.given[i] if token < 0 else self.compiled.engine.token_bytes(token, history[i] == self.core.opening)
            if text or token < 0 or not self.compiled.engine.token_bytes(token):
                pieces.append((token, text))
        if self.history.back() == TERMINATED:
            pieces.pop()
        return reader.read(pieces, any([begun for _, begun in self.threads()]))

    @property
    def state_id(self):
        """Number of the interned state: equal numbers allow exactly the same continuations, among a matcher and its forks."""
        return self.history.back()

    def threads(self):
        """The readings of the text so far: (parser state, whether a lexeme has begun there), in no order."""
        cdef vector[int32_t] found
        cdef size_t i
        cdef int32_t state = self.history.back()
        if state == TERMINATED:
            return []
        self.busy += 1
        with nogil:
            explain_threads(self.core, state, found)
        self.busy -= 1
        return [(found[2 * i], found[2 * i + 1] != 0) for i in range(found.size() // 2)]

    def forced_bytes(self):
        """The bytes that every completion begins with (up to escaped spellings of equal keys)."""
        cdef vector[uint8_t] out
        cdef int32_t state = self.history.back()
        cdef Outcome outcome
        if state == TERMINATED:
            return b""
        self.busy += 1
        with nogil:
            core_enter(self.core)
            forced_bytes(self.core, state, out)
            outcome = core_leave(self.core)
        self.busy -= 1
        check_outcome(outcome, self.core)
        return (<const char*>out.data())[:out.size()]

    cdef bytes completion(self):
        # The shortest completion; tokens that stand for themselves as `tokens_spell` has them.
        cdef vector[uint8_t] out
        cdef int32_t state = self.history.back()
        cdef cbool found
        cdef Outcome outcome
        if state == TERMINATED:
            return b""
        self.busy += 1
        with nogil:
            core_enter(self.core)
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
        ids = []
        for part in self.completion_parts():
            opening = not ids and self.history.back() == self.core.opening
            ids += self.compiled.engine.segment(part, opening) if isinstance(part, bytes) else [part]
        return ids


cdef Bits* bits_of_state(Core* core, int32_t id) noexcept nogil:
    # The mask of a state as one bitset, held once more; NULL when time is up.
    cdef Mask* mask
    cdef Bits* bits
    cdef int32_t t
    if id == TERMINATED:
        bits = bits_new(core.index)
        for t in core.eos:
            bits_add(bits, t)
        return bits
    mask = mask_get(core, id)
    if mask == NULL:
        return NULL
    if mask.bits == NULL or not (mask.base.empty() and mask.removed.empty() and mask.added.empty()):
        core.index.bytes.subtract(mask_size(mask))
        mask_flatten(core, mask)
        core.index.bytes.add(mask_size(mask))
    return bits_hold(mask.bits)


@cython.no_gc_clear
cdef class BitmaskView:
    """The buffer behind ``Matcher.next_token_bitmask``."""

    cdef Bits* bits
    cdef TokenIndex owner
    cdef Py_ssize_t shape[1]
    cdef Py_ssize_t strides[1]

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        if flags & PyBUF_WRITABLE:
            raise BufferError("a mask is read-only; copy it first")
        buffer.buf = self.bits.words.data()
        buffer.obj = self
        buffer.len = self.shape[0] * 4
        buffer.itemsize = 4
        buffer.readonly = 1
        buffer.ndim = 1
        buffer.format = b"i"
        buffer.shape = self.shape
        buffer.strides = self.strides
        buffer.suboffsets = NULL
        buffer.internal = NULL

    def __dealloc__(self):
        if self.bits != NULL:
            with nogil:
                self.owner.index.lock.lock()
                bits_release(self.owner.index, self.bits)
                self.owner.index.lock.unlock()
