cimport cython
from maskwright.base.deadline cimport check_time
from maskwright.regex.escapes cimport EscapeReader
from maskwright.regular.expressions cimport Chars

@cython.no_gc
cdef class Item:
    cdef readonly object tree, body, low, high
    cdef readonly bint lazy, fewest
    cdef readonly Group group
    cpdef repeated(self, object low, object high, bint lazy)

@cython.no_gc
cdef class Group:
    cdef readonly Py_ssize_t opened_at, agreed
    cdef readonly frozenset flags
    cdef readonly tuple look
    cdef readonly list alternatives, items
    cdef readonly bint quantifiable
    cdef push(self, object tree, bint quantifiable)
    cdef push_group(self, Group inner)
    cdef repeat_last(self, object low, object high, bint lazy)
    cdef list _parts(self)
    cdef object body(self)

cdef class Parser(EscapeReader):
    cdef readonly object limits
    cdef readonly frozenset outer_flags
    cdef readonly Group root
    cdef readonly list groups
    cpdef object parse(self)
    cdef object _character(self, Py_ssize_t code)
    cdef object _charset(self, tuple ranges)
    cdef tuple _dot(self)
    cdef tuple _line_ends(self)
    cdef object _anchor(self, str c)
    cdef _escape(self, Group group)
    cdef tuple _agreed_set(self, bint in_class)
    cdef tuple _agreement(self, tuple own, tuple others)
    cdef tuple _class(self)
    cdef object _class_atom(self)
    cdef _quantifier(self, Group group)
    cdef tuple _bounds(self)
    cdef object _bound(self, str digits)
    cdef _skip_verbose(self)
    cdef frozenset _leading_flags(self)
    cdef set _flag_letters(self, Py_ssize_t start, Py_ssize_t end)
    cdef str _flags_known(self)
    cdef Group _open(self, Py_ssize_t depth)
    cdef _group_name(self)
    cdef _other_group(self, Group group)
