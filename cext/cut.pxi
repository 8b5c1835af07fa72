# Cutting logits on the CPU by rows of a bitmask.

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
                Pool.instance().run(&cut_one, &cut, chosen.size(), threads)
        finally:
            PyBuffer_Release(&words)
    finally:
        PyBuffer_Release(&numbers)
