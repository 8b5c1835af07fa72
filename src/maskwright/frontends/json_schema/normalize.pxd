from maskwright.deadline cimport check_time
from maskwright.frontends.json_schema.groups cimport Either, Keys, Neither, ObjectGroup
from maskwright.frontends.json_schema.keywords cimport is_hidden
from maskwright.frontends.json_schema.nodes cimport Node
from maskwright.frontends.json_schema.typed cimport TypedKeywords

cdef class Normalizer:
    cdef readonly object document, options, limits
    cdef readonly list clashes
    cdef readonly TypedKeywords typed
    cdef readonly object hollow
    cdef object _unevaluated
    cdef dict _known
    cdef list _open
    cdef Py_ssize_t _lowest, _deepest, _self_references, _outside
    cpdef tuple groups(self, object conjunction)
    cpdef tuple meet_all(self, object a, object b, str pointer)
    cpdef tuple inside(self, object conjunction)
    cpdef tuple expand(self, object literal)
    cpdef tuple own(self, Node node)
    cdef tuple _expand_node(self, Node node)
    cdef tuple _expand_not(self, Node node)
