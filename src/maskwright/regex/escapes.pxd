cdef class EscapeReader:
    cdef readonly str pattern
    cdef readonly bint python
    cdef readonly Py_ssize_t at
    cdef readonly frozenset flags
    cdef readonly Py_ssize_t agreed
    cdef readonly bint python_spaces
    cdef str place(self, Py_ssize_t at)
    cdef str case_rules(self)
    cdef tuple shorthand(self, str letter)
    cdef object escape(self, bint in_class)
    cdef object _ecma_letter(self, str c)
    cdef object _python_letter(self, str c, Py_ssize_t start)
    cdef object _digits(self, str c, Py_ssize_t start, bint in_class)
    cdef object _hex(self, Py_ssize_t count, Py_ssize_t start)
    cdef object _unicode_escape(self, Py_ssize_t start)
    cdef tuple _property(self, str c, Py_ssize_t start)
    cdef tuple _others(self, tuple ranges)
