from maskwright.frontends.json_schema.read.nodes cimport Node
from maskwright.frontends.json_schema.algebra.groups cimport Absent, Either, Keys, Neither, ObjectGroup, conjoin
from maskwright.frontends.json_schema.algebra.trivially_empty cimport TriviallyEmpty
from maskwright.frontends.json_schema.algebra.keys cimport KeyMap, is_false

cdef bint _excluded(TriviallyEmpty trivially_empty, list wanted, object value)
cdef bint _is_one(Keys keys)
cdef bint _is_opposite(object literal)
cdef object _about_one_member(KeyMap keys, tuple clause)
cdef bint _holds_always(KeyMap keys, tuple clause, dict required)
cdef bint _implied(KeyMap keys, str name, tuple value)
