# Draft trees: which nodes are legal, and what may follow each.
#
# Speculative decoding guesses several ways to go on at once, as a tree of tokens.  States are numbers, so the tree is followed
# node by node from the state of its parent, and no matcher is moved or copied.  All of it is one operation: what is known
# already is read and written under one shared lock, anything else is computed under one exclusive lock.  Rows are written
# when every mask is there, so an operation that fails has written none.

cdef enum:
    MOST_NODES = 1 << 20

cdef cppclass Tree:
    Core* core
    int32_t root                   # the matcher's own state
    vector[int32_t] tokens
    vector[int32_t] parents        # earlier nodes; -1: the root
    vector[int32_t] states         # behind each node; NO_STATE where it is illegal
    char* rows                     # of the bitmask, or NULL
    int64_t row_bytes              # from one row to the next


# --- what callers give

cdef object tree_numbers(object values, str name, type error):
    # An iterator over a list or an array.
    if isinstance(values, (str, bytes, bytearray)):
        raise error(f"{name} of a tree: expected a list of integers, got {type(values).__name__}")
    try:
        # Items of tensors are tensors, which take a hundred times as long to read.
        return iter(values.tolist() if hasattr(values, "tolist") else values)
    except (TypeError, RuntimeError) as reason:
        raise error(f"{name} of a tree: expected a list of integers, got {type(values).__name__}: {reason}") from None


cdef int tree_read(Tree* tree, object tokens, object parents, int64_t vocab_size) except -1:
    cdef int64_t i = 0, count, parent
    tree.rows = NULL
    for each in tree_numbers(tokens, "tokens", VocabularyError):
        tree.tokens.push_back(<int32_t>token_number(each, vocab_size))
        if tree.tokens.size() > MOST_NODES:
            raise LimitError("tree_nodes", MOST_NODES + 1, MOST_NODES,
                             message=f"a draft tree has at most {MOST_NODES} nodes: ask for it in parts")
    count = <int64_t>tree.tokens.size()
    tree.states.resize(count)
    for each in tree_numbers(parents, "parents", MaskwrightError):
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
        Pool.instance().run_or_alone(&tree_chunk, tree, (tree.tokens.size() + CHUNK_ROWS - 1) // CHUNK_ROWS, threads)


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
