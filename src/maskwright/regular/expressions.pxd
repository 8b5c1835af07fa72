from maskwright.base.deadline cimport check_time

cdef class Chars:
    cdef readonly tuple ranges

cdef class Lit:
    cdef readonly object text

cdef class _Inner:
    cdef object _hash

cdef class Cat(_Inner):
    cdef readonly tuple parts

cdef class Alt(_Inner):
    cdef readonly tuple parts

# Repeat is none of these: objects that hold each other without a tuple between them are freed by recursion,
# on the stack of C.
cdef class Machine(_Inner):
    cdef readonly object n_states, start, moves
    cdef readonly tuple accepts
    cdef readonly object length

cpdef bint is_minimal(Machine machine)
cpdef object made_of(object node)
cpdef tuple children(object node)
cpdef bint is_nothing(object node)
