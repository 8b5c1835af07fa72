from maskwright.base.deadline cimport check_time
from maskwright.frontends.json_schema.numbers.bounds cimport Bound
from maskwright.frontends.json_schema.read.dialects cimport Dialect
from maskwright.frontends.json_schema.algebra.groups cimport (
    Absent, ArrayGroup, BooleanGroup, Contained, Keys, Neither, NullGroup, NumberGroup, ObjectGroup, Some, StringGroup,
    check_members,
)
from maskwright.frontends.json_schema.read.keywords cimport held
from maskwright.frontends.json_schema.read.nodes cimport Node, escape, says_any

cdef dict _ALL_OF

cdef class TypedKeywords:
    cdef readonly object options, limits
    cdef bint _closes, _plain
    cdef tuple _of_type(self, object name, Dialect dialect)
    cpdef tuple groups(self, Node node, object clashes)
    cpdef object _group(self, Node node, str name)
    cpdef bint _plain_integers(self, Node node)
    cpdef StringGroup _string_group(self, Node node)
    cpdef tuple violations(self, Node node)

cpdef ArrayGroup array_group(Node node)
cpdef ObjectGroup object_group(Node node)
cpdef tuple type_names(Node node)
