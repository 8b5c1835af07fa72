from maskwright.base.deadline cimport check_time
from maskwright.frontends.json_schema.emit.emitter cimport Emitter
from maskwright.frontends.json_schema.algebra.groups cimport ArrayGroup, Contained, StringGroup, conjoin
from maskwright.frontends.json_schema.algebra.trivially_empty cimport TriviallyEmpty
from maskwright.ir.grammar cimport Choice, Distinct, Grammar, OtherMembers, Record, Ref, Repeated, Seq, Term

cdef class ArrayRules:
    cdef readonly Emitter emitter
    cdef readonly Grammar grammar
    cdef readonly object marks, values
    cdef dict _separated
    cpdef Py_ssize_t separated(self, tuple conjunction)

cdef class CountedItems:
    cdef readonly ArrayRules rules
    cdef readonly ArrayGroup group
    cdef readonly TriviallyEmpty trivially_empty
    cdef readonly object limits
    cdef readonly tuple contained
    cdef readonly Py_ssize_t alike
    cdef dict _known
    cdef list _work
    cdef dict _ways
    cdef Py_ssize_t _rule(self, tuple state) except -1
    cdef bint _complete(self, tuple state)
    cdef list _next(self, tuple state)
    cdef list _items(self, object index)
    cdef list _split_by(self, tuple item, tuple counting)
    cdef list _split(self, list ways, Contained contained, bint counts)
