# Rows of the caller's bitmask: int32 [batch, words], C order within a row, numpy or torch (CPU).

from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)

cdef struct Row:
    uint32_t* data
    size_t words


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
