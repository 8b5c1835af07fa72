from maskwright.regular.thompson cimport Thompson

cdef class _SetThompson(Thompson):
    pass
