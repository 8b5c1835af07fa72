from cpython.exc cimport PyErr_CheckSignals
from cpython.time cimport monotonic

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object)
    bint PyObject_IS_GC(object)

cdef double _soonest, _TURN_SECONDS, _turn, _COLLECTION_SECONDS, _collection, _REST_SECONDS, _PAUSE_SECONDS, _PAUSE_ALONE_SECONDS, _rest, _AT_ONCE_SECONDS, _at_once
cdef double _LONG_SECONDS, _WORKING_SHARE, _LONG_COLLECTION_SECONDS
cdef bint _collects_long
cdef Py_ssize_t _UNREAD, _unread
cdef object _python

cdef _take_turns(double now)
cdef _take_apart(list held)
cpdef check_time()
cpdef check_time_now()

cdef class _Clock:
    cdef public double end, seconds, long_at
    cdef public object cancellation

cdef class deadline:
    cdef double _seconds, _end, _end_before, _seconds_before, _long_before
    cdef _Clock _clock
    cdef object _outside
