# Rows of bitmasks: where callers want them, the numbers that they give, how rows are shared out, and draft trees.

cimport cython
from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.number cimport PyNumber_Index
from libcpp cimport bool as cbool

from maskwright.base.cpus import available_cpus
from maskwright.errors import BitmaskError, LimitError, MaskwrightError, VocabularyError

from maskwright._engine.containers cimport seconds_now
from maskwright._engine.limits cimport pool_run_or_alone
from maskwright._engine.trie cimport trie_child
from maskwright._engine.char_index cimport bits_release
from maskwright._engine.program cimport NO_STATE, UNKNOWN
from maskwright._engine.core cimport OUTCOME_GOOD
from maskwright._engine.masks cimport mask_get
from maskwright._engine.generations cimport core_close, core_enter, core_outcome, edge_known, edge_make, fill_known


# --- Rows of the caller's bitmask: int32 [batch, words], C order within a row, numpy or torch (CPU).

cdef int bitmask_open(object bitmask, Py_buffer* view) except -1:
    # A bitmask as its own memory has it, whatever its Python attributes say.  The caller releases `view` after writing.
    if not PyObject_CheckBuffer(bitmask):
        # torch tensors share memory through numpy
        if not hasattr(bitmask, "numpy"):
            raise BitmaskError(f"a bitmask must be a numpy array or a torch CPU tensor, not {type(bitmask).__name__}")
        try:
            bitmask = bitmask.numpy()
        except (TypeError, RuntimeError) as error:
            raise BitmaskError(f"this bitmask cannot be written from the CPU: {error}") from None
    try:
        PyObject_GetBuffer(bitmask, view, PyBUF_WRITABLE | PyBUF_FORMAT | PyBUF_STRIDES)
    except (BufferError, ValueError, TypeError) as error:
        raise BitmaskError(f"this bitmask cannot be written: {error}") from None
    try:
        if view.itemsize != 4 or view.format == NULL or view.format[0] not in (b"i", b"l"):
            found = (<bytes>view.format).decode() if view.format != NULL else "B"
            raise BitmaskError(f"a bitmask holds int32, not items of format {found!r}")
        if view.ndim not in (1, 2):
            raise BitmaskError(f"a bitmask has shape [batch, words], not {view.ndim} dimensions")
        if view.shape[view.ndim - 1] > 1 and view.strides[view.ndim - 1] != 4:
            raise BitmaskError("the words of a bitmask row must be contiguous")
        if <size_t>view.buf % 4 or (view.ndim == 2 and view.strides[0] % 4):
            raise BitmaskError("the words of a bitmask must be aligned to four bytes")
    except BaseException:
        PyBuffer_Release(view)
        raise
    return 0


cdef int bitmask_check_words(const Py_buffer* view, size_t words) except -1:
    if view.shape[view.ndim - 1] != <int64_t>words:
        raise BitmaskError(f"a row of this vocabulary has {words} words, the bitmask has {view.shape[view.ndim - 1]}")
    return 0


cdef Row bitmask_row(object bitmask, object row, size_t words, Py_buffer* view) except *:
    # One row; the caller releases `view` after writing.
    cdef Row out
    cdef int64_t rows, number
    bitmask_open(bitmask, view)
    try:
        bitmask_check_words(view, words)
        rows = view.shape[0] if view.ndim == 2 else 1
        try:
            number = whole_number(row, rows)
        except TypeError:
            raise BitmaskError(f"a row is an integer, not {row!r} ({type(row).__name__})") from None
        if not 0 <= number < rows:
            raise BitmaskError(f"row {shown_number(row)} is outside a bitmask of {rows} row(s)")
    except BaseException:
        PyBuffer_Release(view)
        raise
    out.data = <uint32_t*>(<char*>view.buf + (number * view.strides[0] if view.ndim == 2 else 0))
    out.words = words
    return out


@cython.no_gc_clear
cdef class BitmaskView:
    """The buffer behind ``Matcher.next_token_bitmask``."""

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


# --- Numbers that callers give: integers, and nothing that only looks like one.

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


cdef object numbers_of(object values, str name, type error):
    # An iterator over a list or an array.
    if isinstance(values, str):
        raise error(f"{name}: expected a list of integers, got {type(values).__name__}")
    try:
        # Items of tensors are tensors, which take a hundred times as long to read.
        return iter(values.tolist() if hasattr(values, "tolist") else values)
    except (TypeError, RuntimeError) as reason:
        raise error(f"{name}: expected a list of integers, got {type(values).__name__}: {reason}") from None


cdef bytes bytes_of(object data):
    # The bytes of a text; MaskwrightError for anything else.
    if not isinstance(data, bytes):
        advice = ": encode it as UTF-8" if isinstance(data, str) else ""
        raise MaskwrightError(f"a text is bytes here, not {type(data).__name__}{advice}")
    return data


cdef int32_t place_of(object place, size_t count, str what) except -1:
    # A place in a table of so many; MaskwrightError for what is none.
    cdef int64_t number
    try:
        number = whole_number(place, <int64_t>count)
    except TypeError:
        number = -1
    if not 0 <= number < <int64_t>count:
        raise MaskwrightError(f"there is no {what} {place!r}"[:100])
    return <int32_t>number


cdef str shown_number(object number):
    # For messages.  Python writes no decimals of very large integers.
    number = PyNumber_Index(number)
    return str(number) if number.bit_length() <= 128 else f"{number:#x}"[:40] + "..."


# --- How many threads the pool has (limits.pyx), and how rows are shared out.

cdef size_t _threads = 0


cdef size_t pool_threads() except? 0:
    if _threads == 0:
        set_threads()
    return _threads


def set_threads(count=None):
    """How many threads fill bitmasks of a batch and cut its logits (default: the CPUs that this process
    may use, see ``maskwright.base.cpus``); fewer where the process cannot have so many.  Raises ``MaskwrightError`` for what is no integer
    from 1 on."""
    global _threads
    cdef int64_t number
    if count is None:
        count = available_cpus()
    try:
        number = whole_number(count, MOST_THREADS)
    except TypeError:
        raise MaskwrightError(f"a number of threads is an integer, not {count!r} ({type(count).__name__})") from None
    if number < 1:
        raise MaskwrightError(f"a pool needs at least one thread, not {shown_number(count)}")
    _threads = <size_t>min(number, <int64_t>MOST_THREADS)


# --- The fewest tokens that spell a text.

cdef void segments_extend(const Trie* trie, const uint8_t* text, int64_t n, int64_t at, const Opening* without,
                          Segments* best) noexcept nogil:
    # The tokens of a trie (without those that an opening marks) that the text from `at` on may begin with.
    cdef uint32_t node = 0
    cdef int64_t j
    cdef int32_t t, token
    for j in range(at, n):
        node = trie_child(trie, node, text[j])
        if node == 0:
            return
        if best.count[j + 1] < 0 or 0 <= best.count[at] < best.count[j + 1] + 1:
            continue
        for t in range(trie.nodes[node].token, trie.nodes[node + 1].token):
            token = trie.tokens[t]
            if without == NULL or not (without.marked[<size_t>token >> 5] >> (token & 31)) & 1:
                best.count[at] = best.count[j + 1] + 1
                best.token[at] = token
                best.next[at] = j + 1
                break


cdef void segments_open(const Trie* trie, const Opening* opening, const uint8_t* text, int64_t n,
                        Segments* best) noexcept nogil:
    # The first token of a text stands for what it does there; or for nothing, and the second one for its own.
    cdef Segments behind
    segments_extend(trie, text, n, 0, opening, best)
    segments_extend(&opening.trie, text, n, 0, NULL, best)
    if opening.silent.empty() or opening.stays:
        return
    behind = best[0]
    behind.count[0] = -1
    segments_extend(trie, text, n, 0, NULL, &behind)
    if behind.count[0] >= 0 and (best.count[0] < 0 or behind.count[0] + 1 < best.count[0]):
        best[0] = behind
        best.before.push_back(opening.silent[0])


cdef cbool segments_find(const Trie* trie, const Opening* opening, const uint8_t* text, int64_t n, double until,
                         Segments* best) noexcept nogil:
    # From the end on; `opening`: of the text's very start, or NULL.  False when it is later than `until` (0: never is).
    cdef int64_t i
    best.count.resize(n + 1, -1)
    best.token.resize(n + 1, -1)
    best.next.resize(n + 1, n)
    best.count[n] = 0
    for i in range(n - 1, -1, -1):
        if until > 0 and i & 4095 == 0 and seconds_now() > until:
            return False
        if i > 0 or opening == NULL:
            segments_extend(trie, text, n, i, NULL, best)
        else:
            segments_open(trie, opening, text, n, best)
    return True


# --- Draft trees: which nodes are legal, and what may follow each.
#
# Speculative decoding guesses several ways to go on at once, as a tree of tokens.  States are numbers, so the tree is followed
# node by node from the state of its parent, and no matcher is moved or copied.  All of it is one operation: what is known
# already is read and written under one shared lock, anything else is computed under one exclusive lock.  Rows are written
# when every mask is there, so an operation that fails has written none.

cdef enum:
    MOST_NODES = 1 << 20


cdef int tree_read(Tree* tree, object tokens, object parents, int64_t vocab_size) except -1:
    cdef int64_t i = 0, count, parent
    tree.rows = NULL
    for each in numbers_of(tokens, "tokens of a tree", VocabularyError):
        tree.tokens.push_back(<int32_t>token_number(each, vocab_size))
        if tree.tokens.size() > MOST_NODES:
            raise LimitError("tree_nodes", MOST_NODES + 1, MOST_NODES,
                             message=f"a draft tree has at most {MOST_NODES} nodes: ask for it in parts")
    count = <int64_t>tree.tokens.size()
    tree.states.resize(count)
    for each in numbers_of(parents, "parents of a tree", MaskwrightError):
        if i == count:
            raise MaskwrightError(f"a tree has a parent for each token: there are {count} token(s), and more parents")
        try:
            parent = whole_number(each, MOST_NODES)
        except TypeError:
            raise MaskwrightError(f"parents[{i}]: a parent is the number of a node, or -1, not {each!r} "
                                  f"({type(each).__name__})") from None
        if not -1 <= parent < i:
            earlier = f"an earlier node (0 to {i - 1}), or " if i else ""
            raise MaskwrightError(f"parents[{i}]: expected {earlier}-1 for the matcher's own state, got {shown_number(each)}")
        tree.parents.push_back(<int32_t>parent)
        i += 1
    if i < count:
        raise MaskwrightError(f"a tree has a parent for each token: there are {count} token(s), but {i} parent(s)")
    return 0


def checked_tree(tokens, parents, int64_t vocab_size):
    """Tokens and parents of a draft tree as lists, if they are well formed; errors as ``Matcher.fill_tree_bitmasks``."""
    cdef Tree tree
    tree_read(&tree, tokens, parents, vocab_size)
    return list(tree.tokens), list(tree.parents)


cdef int tree_into(Tree* tree, Py_buffer* view, size_t words) except -1:
    # Where the masks go.
    cdef int64_t rows = view.shape[0] if view.ndim == 2 else 1
    bitmask_check_words(view, words)
    if rows < <int64_t>tree.tokens.size():
        raise BitmaskError(f"a tree of {tree.tokens.size()} nodes needs a row for each, the bitmask has {rows} row(s)")
    tree.rows = <char*>view.buf
    tree.row_bytes = view.strides[0] if view.ndim == 2 else 0
    return 0


# --- the operation
cdef inline int32_t tree_before(const Tree* tree, size_t i) noexcept nogil:
    # The state that a node hangs below.
    return tree.root if tree.parents[i] < 0 else tree.states[tree.parents[i]]


cdef cbool tree_known(Tree* tree) noexcept nogil:
    # Whether all of it is known already; under a shared lock.
    cdef Core* core = tree.core
    cdef size_t i
    for i in range(tree.tokens.size()):
        tree.states[i] = edge_known(core, tree_before(tree, i), tree.tokens[i])
        if tree.states[i] == UNKNOWN or (tree.rows != NULL and tree.states[i] >= 0 and core.states[tree.states[i]].mask == NULL):
            return False
    return True


cdef void tree_make(Tree* tree) noexcept nogil:
    # Compute what is missing, as far as time lasts.
    cdef Core* core = tree.core
    cdef const int64_t* starts = core.index.token_starts
    cdef int32_t before, token
    cdef size_t i
    for i in range(tree.tokens.size()):
        token = tree.tokens[i]
        before = tree_before(tree, i)
        tree.states[i] = edge_known(core, before, token)
        # A node is searched for as if it came alone.
        core.index.deadline.searched = 0
        if tree.states[i] == UNKNOWN:
            tree.states[i] = edge_make(core, before, token, core.index.token_data + starts[token], starts[token + 1] - starts[token])
        if tree.rows != NULL and tree.states[i] >= 0 and not core.index.deadline.passed:
            core.index.deadline.searched = 0
            mask_get(core, tree.states[i])
        if core.index.deadline.passed:
            return


cdef void tree_chunk(void* context, size_t chunk) noexcept nogil:
    cdef Tree* tree = <Tree*>context
    cdef size_t i
    for i in range(chunk * CHUNK_ROWS, min((chunk + 1) * CHUNK_ROWS, tree.tokens.size())):
        fill_known(tree.core, tree.states[i], <uint32_t*>(tree.rows + <int64_t>i * tree.row_bytes))


cdef void tree_write(Tree* tree, size_t threads) noexcept nogil:
    # The lock is held: whoever has the pool may be waiting for it.
    if tree.rows != NULL:
        pool_run_or_alone(&tree_chunk, tree, (tree.tokens.size() + CHUNK_ROWS - 1) // CHUNK_ROWS, threads)


cdef Outcome tree_run(Tree* tree, size_t threads) noexcept nogil:
    cdef Outcome outcome
    cdef cbool known
    outcome.kind = OUTCOME_GOOD
    outcome.given = 0
    tree.core.index.lock.lock_shared()
    known = tree_known(tree)
    if known:
        tree_write(tree, threads)
    tree.core.index.lock.unlock_shared()
    if known:
        return outcome
    core_enter(tree.core)
    tree_make(tree)
    outcome = core_outcome(tree.core)
    if outcome.kind == OUTCOME_GOOD:
        tree_write(tree, threads)
    core_close(tree.core)
    return outcome


cdef int64_t tree_legal(const Tree* tree) noexcept nogil:
    # How many nodes are legal.
    cdef int64_t count = 0
    cdef size_t i
    for i in range(tree.states.size()):
        count += tree.states[i] != NO_STATE
    return count


cdef object tree_flags(const Tree* tree):
    # Which they are.
    from numpy import zeros
    cdef Py_buffer view
    cdef size_t i
    legal = zeros(tree.states.size(), dtype=bool)
    PyObject_GetBuffer(legal, &view, PyBUF_WRITABLE)
    for i in range(tree.states.size()):
        (<uint8_t*>view.buf)[i] = tree.states[i] != NO_STATE
    PyBuffer_Release(&view)
    return legal
