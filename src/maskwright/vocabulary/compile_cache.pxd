cdef class CompileCache:
    cdef Py_ssize_t _most, _weight
    cdef dict _calls
    cdef public object most_bytes, held_bytes
    cdef readonly object _kept
