from maskwright.base.deadline cimport check_time
from maskwright.frontends.json_schema.algebra.discriminators cimport Discriminators
from maskwright.frontends.json_schema.read.dialects cimport Dialect
from maskwright.frontends.json_schema.read.document cimport Document
from maskwright.frontends.json_schema.algebra.groups cimport Either, Keys, Neither, ObjectGroup, meet
from maskwright.frontends.json_schema.algebra.trivially_empty cimport TriviallyEmpty, remember
from maskwright.frontends.json_schema.read.keywords cimport is_hidden
from maskwright.frontends.json_schema.read.nodes cimport Node, says_any
from maskwright.frontends.json_schema.algebra.typed cimport TypedKeywords

cdef class Normalizer:
    cdef readonly Document document
    cdef readonly object options, limits
    cdef readonly list clashes
    cdef readonly TypedKeywords typed
    cdef readonly TriviallyEmpty trivially_empty
    cdef Discriminators _discriminators
    cdef object _unevaluated
    cdef dict _known, _conjunctions, _listed
    cdef list _open
    cdef object _max_depth
    cdef Py_ssize_t _lowest, _deepest, _self_references, _outside
    cpdef tuple groups(self, tuple conjunction)
    cpdef tuple meet_all(self, object a, object b, str pointer)
    cpdef tuple inside(self, tuple conjunction)
    cdef bint _overlap_any(self, object group, tuple others, object known)
    cpdef bint overlap(self, object a, object b)
    cpdef tuple expand(self, object literal)
    cpdef tuple own(self, Node node)
    cdef tuple _expand_node(self, Node node)
    cdef tuple _expand_not(self, Node node)
