# Masks of many sequences at once.
#
# Known masks are written by the threads of a pool, a chunk of rows at a time; new ones are computed
# after them, by the caller: they need the vocabulary's lock for themselves.

cdef struct BatchRow:
    Core* core
    int32_t state
    uint32_t* data
    cbool done

cdef struct Batch:
    BatchRow* rows
    size_t count


cdef void batch_chunk(void* context, size_t chunk) noexcept nogil:
    cdef Batch* batch = <Batch*>context
    cdef size_t i = chunk * CHUNK_ROWS, last = i + CHUNK_ROWS
    cdef Index* locked = NULL
    cdef BatchRow* row
    if last > batch.count:
        last = batch.count
    while i < last:
        row = &batch.rows[i]
        if row.core.index != locked:
            if locked != NULL:
                locked.lock.unlock_shared()
            locked = row.core.index
            locked.lock.lock_shared()
        row.done = fill_known(row.core, row.state, row.data)
        i += 1
    if locked != NULL:
        locked.lock.unlock_shared()


def fill_rows(list matchers, bitmask):
    """Write the mask of ``matchers[i]`` into row i.  The list is the caller's own: no other thread has it."""
    cdef vector[BatchRow] rows
    cdef BatchRow row
    cdef Batch batch
    cdef Matcher matcher
    cdef Py_buffer view
    cdef Outcome outcome
    cdef size_t i, begun = 0, threads = pool_threads()
    for candidate in matchers:
        if not isinstance(candidate, Matcher):
            raise BitmaskError(f"a batch has a matcher for each row, not {type(candidate).__name__}")
    bitmask_open(bitmask, &view)
    try:
        if view.ndim != 2 or view.shape[0] != len(matchers):
            raise BitmaskError(f"{len(matchers)} matchers need a bitmask [{len(matchers)}, words], not "
                               f"{[view.shape[i] for i in range(<size_t>view.ndim)]}")
        for matcher in matchers:
            matcher.begin()
        # From here on to where they are busy, no other thread has the interpreter.
        for matcher in matchers:
            bitmask_check_words(&view, matcher.core.words)
            row.core = matcher.core
            row.state = matcher.past.states.back()
            row.data = <uint32_t*>(<char*>view.buf + view.strides[0] * <int64_t>rows.size())
            row.done = False
            rows.push_back(row)
        batch.rows = rows.data()
        batch.count = rows.size()
        for matcher in matchers:
            matcher.busy += 1
        begun = rows.size()
        with nogil:
            Pool.instance().run(&batch_chunk, &batch, (batch.count + CHUNK_ROWS - 1) // CHUNK_ROWS, threads)
        for i in range(rows.size()):
            if not rows[i].done:
                with nogil:
                    outcome = fill_new(rows[i].core, rows[i].state, rows[i].data)
                check_outcome(outcome, rows[i].core)
    finally:
        for i in range(begun):
            matcher = matchers[i]
            matcher.busy -= 1
        PyBuffer_Release(&view)
