from maskwright.base.deadline cimport check_time
from maskwright.frontends.json_schema.algebra.groups cimport ArrayGroup, BooleanGroup, NumberGroup, ObjectGroup, StringGroup
from maskwright.frontends.json_schema.algebra.normalize cimport Normalizer
from maskwright.ir.grammar cimport Choice, Grammar, Import, Lexeme, Ref, Term

cdef class Emitter:
    cdef readonly Normalizer normalizer
    cdef readonly object options, marks, spelling, limits
    cdef readonly Grammar grammar
    cdef readonly object arrays, objects
    cdef public bint imports_any
    cdef readonly dict _rules, _bodies, _numbered, _made
    cdef readonly list _pending, _refusals
    cpdef Py_ssize_t rule(self, object conjunction)
    cpdef object group(self, object group)
    cpdef object refuse(self, object refusal)
    cdef object _body(self, object conjunction, tuple groups)
