# Masks of many sequences at once.
#
# Known masks are written by the threads of a pool, a chunk of rows at a time; new ones are computed
# after them, by the caller: they need the vocabulary's lock for themselves.

from cpython.buffer cimport PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright.errors import BitmaskError

from maskwright._engine.limits cimport pool_run
from maskwright._engine.vocabulary cimport Index
from maskwright._engine.core cimport Core, Outcome
from maskwright._engine.generations cimport check_outcome, fill_known, fill_new
from maskwright._engine.rows cimport bitmask_check_words, bitmask_open, CHUNK_ROWS, pool_threads
from maskwright._engine.matcher cimport Matcher

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
            pool_run(&batch_chunk, &batch, (batch.count + CHUNK_ROWS - 1) // CHUNK_ROWS, threads)
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


# --- Cutting logits on the CPU by rows of a bitmask.

cdef extern from "cut.hpp" namespace "maskwright" nogil:
    void cut_row_of(void* numbers, int bytes, int64_t step, size_t width, const uint32_t* mask, size_t words,
                    uint64_t lowest)

cdef struct Cut:
    char* numbers
    const char* masks
    int64_t row_bytes              # from one row to the next
    int64_t mask_bytes
    int64_t step                   # from one logit to the next, in logits
    int32_t bytes                  # of a logit
    size_t width
    size_t words
    uint64_t lowest                # the bits of minus infinity
    const int64_t* rows


cdef void cut_one(void* context, size_t i) noexcept nogil:
    cdef Cut* cut = <Cut*>context
    cdef int64_t row = cut.rows[i]
    cut_row_of(cut.numbers + row * cut.row_bytes, cut.bytes, cut.step, cut.width,
               <const uint32_t*>(cut.masks + row * cut.mask_bytes), cut.words, cut.lowest)


def cut_rows(logits, masks, uint64_t lowest, rows):
    """Set the logits of cleared bits to ``lowest`` (bits): buffers [batch, V] of numbers and [batch, words] of int32; ``rows``:
    which of them, or None for all.  ``BitmaskError`` where one does not fit the other."""
    cdef Cut cut
    cdef Py_buffer numbers, words
    cdef vector[int64_t] chosen
    cdef int64_t row, most
    cdef size_t threads = pool_threads()
    PyObject_GetBuffer(logits, &numbers, PyBUF_WRITABLE | PyBUF_STRIDES)
    try:
        PyObject_GetBuffer(masks, &words, PyBUF_STRIDES)
        try:
            if numbers.ndim != 2 or words.ndim != 2 or words.itemsize != 4 or words.strides[1] != 4:
                raise BitmaskError("logits and bitmasks are tables")
            if words.shape[1] > (numbers.shape[1] + 31) // 32:
                raise BitmaskError(f"{words.shape[1]} words speak about more than {numbers.shape[1]} logits")
            if rows is None and numbers.shape[0] != words.shape[0]:
                raise BitmaskError(f"{numbers.shape[0]} row(s) of logits, but {words.shape[0]} of the bitmask")
            most = min(numbers.shape[0], words.shape[0])
            chosen = rows if rows is not None else range(most)
            for row in chosen:
                if not 0 <= row < most:
                    raise BitmaskError(f"indices {rows}: there are {numbers.shape[0]} row(s) of logits, {words.shape[0]} of the bitmask")
            cut.numbers = <char*>numbers.buf
            cut.row_bytes = numbers.strides[0]
            cut.step = numbers.strides[1] // numbers.itemsize
            cut.bytes = <int32_t>numbers.itemsize
            cut.width = <size_t>numbers.shape[1]
            cut.lowest = lowest
            cut.rows = chosen.data()
            cut.masks = <const char*>words.buf
            cut.mask_bytes = words.strides[0]
            cut.words = <size_t>words.shape[1]
            with nogil:
                pool_run(&cut_one, &cut, chosen.size(), threads)
        finally:
            PyBuffer_Release(&words)
    finally:
        PyBuffer_Release(&numbers)
