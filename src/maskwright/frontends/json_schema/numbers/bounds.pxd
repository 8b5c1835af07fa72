cimport cython

@cython.no_gc
cdef class Bound:
    cdef readonly object value
    cdef readonly bint exclusive
