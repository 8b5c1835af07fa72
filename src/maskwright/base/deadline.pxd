from cpython.exc cimport PyErr_CheckSignals
from cpython.time cimport monotonic

cdef double _soonest, _TURN_SECONDS, _turn, _COLLECTION_SECONDS, _collection, _REST_SECONDS, _PAUSE_SECONDS, _rest, _AT_ONCE_SECONDS, _at_once
cdef Py_ssize_t _UNREAD, _unread
cdef object _python

cdef _take_turns(double now)
cpdef check_time()
cpdef check_time_now()

cdef class _Clock:
    cdef public double end, seconds
    cdef public object cancellation

cdef class deadline:
    cdef double _seconds, _end, _end_before, _seconds_before
    cdef _Clock _clock
