# Rows of the caller's bitmask: int32 [batch, words], C order within a row, numpy or torch (CPU).

from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)

cdef struct Row:
    uint32_t* data
    size_t words


cdef Row bitmask_row(object bitmask, int64_t row, size_t words, Py_buffer* view) except *:
    # The caller releases `view` after writing.
    cdef Row out
    cdef int64_t rows, columns, stride
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
            raise BitmaskError(f"a bitmask holds int32, not items of format {(<bytes>view.format).decode()!r}")
        if view.ndim not in (1, 2):
            raise BitmaskError(f"a bitmask has shape [batch, words], not {view.ndim} dimensions")
        rows = view.shape[0] if view.ndim == 2 else 1
        columns = view.shape[view.ndim - 1]
        stride = view.strides[0] if view.ndim == 2 else 0
        if columns != <int64_t>words:
            raise BitmaskError(f"a row of this vocabulary has {words} words, the bitmask has {columns}")
        if not 0 <= row < rows:
            raise BitmaskError(f"row {row} is outside a bitmask of {rows} row(s)")
        if columns > 1 and view.strides[view.ndim - 1] != 4:
            raise BitmaskError("the words of a bitmask row must be contiguous")
    except BaseException:
        PyBuffer_Release(view)
        raise
    out.data = <uint32_t*>(<char*>view.buf + row * stride)
    out.words = <size_t>columns
    return out
