from maskwright.frontends.json_schema.read.dialects cimport Dialect

cdef class Resource:
    cdef public str uri
    cdef readonly str pointer
    cdef readonly object value
    cdef readonly Dialect dialect
    cdef readonly Resource root
    cdef readonly dict embedded
    cdef public object ignored
    cdef public bint special
    cdef readonly dict anchors, dynamic
    cdef public tuple binds
    cdef readonly dict targets
    cdef public dict repeated

cdef class Node:
    cdef readonly str pointer
    cdef readonly object value
    cdef readonly Resource base
    cdef readonly bint is_value, negated
    cdef readonly tuple scope
    cdef public dict held
    cdef Node _opposite
    cpdef Node subschema(self, str pointer, object value)
    cpdef Node negation(self)
    cpdef Node alike(self)

cpdef bint says_any(dict schema, frozenset keywords)
cpdef str escape(str key)
cpdef Node node_in(Resource resource, str pointer, object value, tuple scope)
