from libc.stdint cimport int32_t
from libcpp.vector cimport vector

cdef struct Edge:
    int32_t source, set, target


cdef class Edges:
    cdef vector[Edge] items
