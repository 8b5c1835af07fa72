from maskwright.base.deadline cimport check_time
from maskwright.frontends.json_schema.read.dialects cimport Dialect
from maskwright.frontends.json_schema.read.nodes cimport Node, Resource, node_in

cdef class Document:
    cdef readonly object limits
    cdef readonly bint shares
    cdef readonly Node root
    cdef object _registry
    cdef readonly Py_ssize_t values
    cdef dict _resources, _dialects
    cdef set _indexed
    cdef bint _may_have_identifiers
    cdef Document _shadow
    cdef Resource _main
    cpdef Node resolve(self, Node node, str keyword=*)
    cdef Node _target(self, Node node, str keyword)
    cdef Node _find(self, Resource base, str reference, str place)

cdef bint _is_counted_only(object value)
