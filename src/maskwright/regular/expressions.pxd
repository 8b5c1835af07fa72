cimport cython
from maskwright.base.deadline cimport check_time

@cython.no_gc
cdef class Chars:
    cdef readonly tuple ranges

@cython.no_gc
cdef class Lit:
    cdef readonly object text

@cython.no_gc
cdef class _Inner:
    cdef object _hash
    cdef Py_ssize_t _weight

@cython.no_gc
cdef class Cat(_Inner):
    cdef readonly tuple parts

@cython.no_gc
cdef class Alt(_Inner):
    cdef readonly tuple parts

# Repeat is none of these: objects that hold each other without a tuple between them are freed by recursion,
# on the stack of C.
@cython.no_gc
cdef class Machine(_Inner):
    cdef readonly object n_states, start, moves
    cdef readonly tuple accepts
    cdef readonly object length

cpdef bint is_minimal(Machine machine)
cpdef object made_of(object node)
cpdef tuple children(object node)
cpdef bint is_nothing(object node)
