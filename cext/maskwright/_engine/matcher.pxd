from libc.stdint cimport int64_t

from maskwright._engine.position cimport Position
from maskwright._engine.rows cimport Tree

cdef class Matcher(Position):
    cdef bint accepted(self, int64_t token, int64_t window) except -1
    cdef int back_to(self, int64_t length) except -1
    cdef int look_ahead(self, Tree* tree) except -1
    cdef bytes completion(self)
    cdef list completion_parts(self)
