cimport cython

from maskwright.base.deadline cimport check_time
from maskwright.frontends.json_schema.read.dialects cimport Dialect
from maskwright.frontends.json_schema.read.document cimport Document
from maskwright.frontends.json_schema.read.nodes cimport Node, escape

cdef int _TYPE, _NUMBERS, _CHECKED, _DEMANDED, _HOLDER, _REFERENCE, _TELLING
cdef dict _KINDS

cpdef bint is_hidden(Node node)
cpdef list held(Node node, str keyword)

@cython.locals(what=int)
cdef tuple _reached(Document document)
