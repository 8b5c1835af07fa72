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


def cut_rows(size_t numbers, tuple strides, int32_t item_bytes, size_t width, masks, uint64_t lowest, rows):
    """Set the logits of cleared bits to ``lowest`` (bits): an address and strides as numpy has them, and a buffer of
    int32 words by row, checked by the caller (``maskwright.bitmask``)."""
    cdef Cut cut
    cdef Py_buffer view
    cdef vector[int64_t] numbers_of_rows = rows
    cdef size_t threads = pool_threads()
    cut.numbers = <char*>numbers
    cut.row_bytes, cut.step = strides
    cut.bytes = item_bytes
    cut.width = width
    cut.lowest = lowest
    cut.rows = numbers_of_rows.data()
    PyObject_GetBuffer(masks, &view, PyBUF_STRIDES)
    cut.masks = <const char*>view.buf
    cut.mask_bytes = view.strides[0]
    cut.words = <size_t>view.shape[1]
    with nogil:
        Pool.instance().run(&cut_one, &cut, numbers_of_rows.size(), threads)
    PyBuffer_Release(&view)
