cimport cython
from maskwright.base.deadline cimport check_time
@cython.no_gc
cdef class PlainState:
    cdef public list terms, calls
    cdef public bint final
    cdef public Py_ssize_t guard
    cpdef add(self, PlainState other)
    cpdef add_all(self, object others)
