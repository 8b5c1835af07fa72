# A mask as a read-only buffer.

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
