cdef double _soonest

cpdef check_time()
