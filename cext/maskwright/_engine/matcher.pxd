from maskwright._engine.position cimport Position
from maskwright._engine.rows cimport Tree

cdef class Matcher(Position):
    cdef int look_ahead(self, Tree* tree) except -1
    cdef bytes completion(self)
    cdef list completion_parts(self)
