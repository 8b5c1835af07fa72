from maskwright.frontends.json_schema.algebra.groups cimport (
    BooleanGroup, Keys, NullGroup, NumberGroup, ObjectGroup, Some, StringGroup
)

cdef class Discriminators:
    cdef object normalizer
    cdef dict _settled, _values, _listed
    cpdef settle(self, object group)
    cpdef object settled(self, object group)
    cpdef bint apart(self, ObjectGroup settled, ObjectGroup other)
    cpdef bint implies(self, ObjectGroup settled, ObjectGroup other)
    cdef bint _all_satisfy(self, ObjectGroup settled, str name, tuple conjunction)
    cdef object _values_of(self, ObjectGroup settled, str name)
    cdef object _listed_values(self, tuple conjunction)

cdef bint _is_one(Keys keys)
