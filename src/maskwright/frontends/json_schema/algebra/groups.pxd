cimport cython
from maskwright.base.deadline cimport check_time
from maskwright.frontends.json_schema.numbers.bounds cimport Bound
from maskwright.frontends.json_schema.read.nodes cimport Node

@cython.no_gc
cdef class Either:
    cdef readonly str pointer
    cdef readonly tuple alternatives

@cython.no_gc
cdef class Neither:
    cdef readonly str pointer
    cdef readonly tuple alternatives

@cython.no_gc
cdef class NullGroup:
    pass

@cython.no_gc
cdef class BooleanGroup:
    cdef readonly tuple values

@cython.no_gc
cdef class NumberGroup:
    cdef readonly object integral
    cdef readonly Bound low, high
    cdef readonly tuple multiples, non_multiples, values, excluded
    cdef readonly object plain

@cython.no_gc
cdef class StringGroup:
    cdef readonly tuple patterns, formats
    cdef readonly object min_length, max_length
    cdef readonly tuple values, not_patterns, not_formats, excluded, avoided

@cython.no_gc
cdef class Contained:
    cdef readonly tuple items
    cdef readonly object low, high
    cdef readonly object start, stop

@cython.no_gc
cdef class ArrayGroup:
    cdef readonly tuple prefix, rest
    cdef readonly object min_items, max_items
    cdef readonly tuple contained
    cdef readonly str unique, repeated

@cython.no_gc
cdef class Keys:
    cdef readonly tuple names, patterns, schemas
    cdef readonly bint outside

@cython.no_gc
cdef class Some:
    cdef readonly Keys keys
    cdef readonly tuple value

@cython.no_gc
cdef class Absent:
    cdef readonly str name

@cython.no_gc
cdef class ObjectGroup:
    cdef readonly tuple rules, required
    cdef readonly object min_members, max_members
    cdef readonly tuple clauses

cpdef tuple conjoin(tuple a, tuple b)
cpdef tuple conjoin_all(tuple first, list others)
cpdef check_members(ObjectGroup group)
cpdef object meet(object a, object b)
cdef tuple _joined(tuple a, tuple b)
cdef tuple _common(tuple a, tuple b)
cdef tuple _without(tuple a, tuple b)
cdef object _quickly_searched(tuple a, tuple b)
cdef NumberGroup _meet_numbers(NumberGroup a, NumberGroup b)
cdef StringGroup _meet_strings(StringGroup a, StringGroup b)
cdef ArrayGroup _meet_arrays(ArrayGroup a, ArrayGroup b)
cdef ObjectGroup _meet_objects(ObjectGroup a, ObjectGroup b)
