from libc.stdint cimport int32_t

from maskwright._engine.core cimport Core, Mask

cdef Mask* mask_get(Core* core, int32_t id) noexcept nogil
cdef int32_t opening_state(Core* core) noexcept nogil


cdef inline int32_t opening_silent(const Core* core) noexcept nogil:
    # The state behind a token that stands for nothing at the very start.
    return core.opening if core.index.opening.stays else core.start
