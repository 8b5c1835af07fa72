from cpython.time cimport monotonic

cdef double _soonest

cpdef check_time()
