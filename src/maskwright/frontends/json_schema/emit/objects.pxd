cimport cython
from maskwright.base.deadline cimport check_time
from maskwright.frontends.json_schema.emit.emitter cimport Emitter
from maskwright.frontends.json_schema.algebra.groups cimport Absent, Keys, ObjectGroup, Some, StringGroup, conjoin
from maskwright.frontends.json_schema.algebra.trivially_empty cimport TriviallyEmpty
from maskwright.frontends.json_schema.algebra.keys cimport KeyMap, is_false
from maskwright.frontends.json_schema.algebra.strings cimport is_text
from maskwright.ir.grammar cimport Member, OtherMembers, Record, Ref

@cython.no_gc
cdef class Kind:
    cdef readonly object language
    cdef readonly frozenset within
    cdef readonly tuple atoms
    cpdef bint holds(self, Keys keys)
    cpdef tuple value(self, KeyMap keys)
    cpdef list wanted(self, tuple clauses)

cdef class Within:
    cdef object _matches
    cdef dict _known
    cpdef bint holds(self, str name)

cdef class ObjectRules:
    cdef Emitter emitter
    cdef object options, limits, normalizer
    cdef TriviallyEmpty trivially_empty
    cdef dict _within, _disputed
    cdef _absent(self, KeyMap keys, str name)
    cdef list _wanted_of(self, KeyMap keys, str name)

cdef list _atoms(Keys keys)
