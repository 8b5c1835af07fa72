from cpython.exc cimport PyErr_CheckSignals
from cpython.time cimport monotonic

cdef double _soonest

cpdef check_time()
