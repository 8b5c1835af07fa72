from maskwright.frontends.json_schema.algebra.groups cimport Absent, ArrayGroup, ObjectGroup, Some, StringGroup, conjoin
from maskwright.frontends.json_schema.algebra.keys cimport KeyMap

cpdef remember(dict memo, object key, object value)

cdef class TriviallyEmpty:
    cdef readonly object normalizer, limits
    cdef dict _known, _groups, _maps
    cdef KeyMap _last
    cdef Py_ssize_t _depth
    cpdef bint conjunction(self, tuple conjunction)
    cpdef bint group(self, object group)
    cdef bint _group(self, object group)
    cpdef bint apart(self, ObjectGroup a, ObjectGroup b)
    cdef bint _common_member(self, KeyMap left, KeyMap right, Some some)
    cdef KeyMap _keys_of_branch(self, ObjectGroup group)
    cpdef KeyMap keys(self, ObjectGroup group)
    cdef bint _object(self, ObjectGroup group)
    cdef bint _string(self, StringGroup group)
    cpdef tuple open_atoms(self, KeyMap keys, tuple clause)
    cdef bint _possible(self, KeyMap keys, object atom)
