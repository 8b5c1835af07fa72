from maskwright.deadline cimport check_time
from maskwright.frontends.json_schema.groups cimport Keys, ObjectGroup, StringGroup
from maskwright.frontends.json_schema.nodes cimport Node

cdef class KeyMap:
    cdef readonly ObjectGroup group
    cdef readonly object normalizer
    cdef readonly dict _by_name
    cdef readonly list general, declared
    cpdef object value(self, str name)
    cpdef bint holds(self, Keys keys, str name)

cpdef bint is_false(object value)
