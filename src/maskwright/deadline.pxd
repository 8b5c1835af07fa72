from cpython.exc cimport PyErr_CheckSignals
from cpython.time cimport monotonic

cdef double _soonest, _TURN_SECONDS, _turn

cpdef check_time()
