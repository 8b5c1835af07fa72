from maskwright.base.deadline cimport check_time
from maskwright.frontends.json_schema.algebra.groups cimport Keys, ObjectGroup, StringGroup, conjoin_all
from maskwright.frontends.json_schema.read.nodes cimport Node

cdef class KeyMap:
    cdef readonly ObjectGroup group
    cdef readonly object normalizer
    cdef dict _by_name, _listed, _values
    cdef list _declared, _listing
    cdef bint _general_last
    cdef readonly list general
    cdef dict _names(self)
    cpdef tuple value(self, str name)
    cpdef tuple candidates(self, Keys keys)
    cpdef bint holds(self, Keys keys, str name)

cpdef bint is_false(object value)
