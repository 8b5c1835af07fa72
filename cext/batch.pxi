# Masks of many sequences at once.
#
# Known masks are written by the threads of a pool, a chunk of rows at a time; new ones are computed
# after them, by the caller: they need the vocabulary's lock for themselves.

import os

cdef enum:
    CHUNK_ROWS = 16

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


cdef size_t _threads = 0


cdef size_t pool_threads() except? 0:
    if _threads == 0:
        set_threads()
    return _threads


def set_threads(count=None):
    """How many threads fill bitmasks of a batch and cut its logits (default: the CPUs that this process
    may use).  Raises ``ValueError`` for less than one."""
    global _threads
    if count is None:
        try:
            count = len(os.sched_getaffinity(0))
        except AttributeError:
            count = os.cpu_count() or 1
    if count < 1:
        raise ValueError(f"a pool needs at least one thread, not {count}")
    _threads = count


def fill_rows(list matchers, bitmask):
    """Write the mask of ``matchers[i]`` into row i; the caller has checked the number of rows."""
    cdef vector[BatchRow] rows
    cdef BatchRow row
    cdef Batch batch
    cdef Matcher matcher
    cdef Py_buffer view
    cdef Row first
    cdef Outcome outcome
    cdef int64_t stride
    cdef size_t i, threads = pool_threads()
    if not matchers:
        return
    for candidate in matchers:
        if not isinstance(candidate, Matcher):
            raise BitmaskError(f"a batch has a matcher for each row, not {type(candidate).__name__}")
    matcher = matchers[0]
    first = bitmask_row(bitmask, 0, matcher.core.words, &view)
    try:
        stride = view.strides[0] if view.ndim == 2 else 0
        for matcher in matchers:
            if matcher.core.words != first.words:
                raise BitmaskError("these matchers belong to vocabularies of different sizes")
            row.core = matcher.core
            row.state = matcher.history.back()
            row.data = <uint32_t*>(<char*>first.data + stride * <int64_t>rows.size())
            row.done = False
            rows.push_back(row)
        batch.rows = rows.data()
        batch.count = rows.size()
        with nogil:
            Pool.instance().run(&batch_chunk, &batch, (batch.count + CHUNK_ROWS - 1) // CHUNK_ROWS, threads)
        for i in range(rows.size()):
            if not rows[i].done:
                with nogil:
                    outcome = fill_new(rows[i].core, rows[i].state, rows[i].data)
                check_outcome(outcome, rows[i].core)
    finally:
        PyBuffer_Release(&view)
