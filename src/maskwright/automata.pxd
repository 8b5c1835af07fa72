from maskwright.thompson cimport Thompson

cdef class _SetThompson(Thompson):
    pass
