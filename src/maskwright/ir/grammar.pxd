# The types of the attributes, with which the compiled module keeps them in C structures.

cimport cython

@cython.no_gc
cdef class Lexeme:
    cdef readonly object key, regular, spelling

@cython.no_gc
cdef class Keyset:
    cdef readonly tuple names
    cdef readonly object other, spelling

@cython.no_gc
cdef class Words:
    cdef readonly bytes data
    cdef readonly object key, starts, tags

@cython.no_gc
cdef class Tokens:
    cdef readonly tuple names, ids
    cdef readonly object excluded, place

@cython.no_gc
cdef class Term:
    cdef readonly object lexeme

@cython.no_gc
cdef class Ref:
    cdef readonly Py_ssize_t rule

@cython.no_gc
cdef class Seq:
    cdef readonly tuple items

@cython.no_gc
cdef class Choice:
    cdef readonly tuple items

@cython.no_gc
cdef class Switch:
    cdef readonly object lexemes
    cdef readonly tuple cases

cdef class Import:
    cdef readonly object key, make
    cdef readonly bint keep, stored

@cython.no_gc
cdef class Repeated:
    cdef readonly Py_ssize_t first, rest
    cdef readonly object min, max

@cython.no_gc
cdef class Member:
    cdef readonly object name
    cdef readonly tuple values
    cdef readonly bint required
    cdef readonly object absent

@cython.no_gc
cdef class OtherMembers:
    cdef readonly Lexeme keys
    cdef readonly tuple values

@cython.no_gc
cdef class Record:
    cdef readonly tuple members, others
    cdef readonly Term open, close_empty, colon, comma, close
    cdef readonly object min, max, obligations
    cdef readonly bint ordered, unique, bare
    cdef readonly object spelling

@cython.no_gc
cdef class Indented:
    cdef readonly Py_ssize_t rule

@cython.no_gc
cdef class Distinct:
    cdef readonly object array, free, least
    cdef readonly bint repeats
    cdef readonly object most
    cdef readonly tuple provided
    cdef readonly object tie

cdef class Lexing:
    cdef readonly tuple terminals, ignored, refused, names
    cdef readonly object newline, line_break, columns
    cdef readonly tuple early
    cdef readonly bint placed
    cdef readonly object lines, quote
    cdef readonly tuple of, parts, forbidden

@cython.no_gc
cdef class Capture:
    cdef readonly object name
    cdef readonly bint append
    cdef readonly object parts
    cdef readonly bint second

cdef class Grammar:
    cdef public list rules, names
    cdef public Py_ssize_t start
    cdef public object lexing
    cdef public dict captures
    cdef public object blank
    cdef public set helpers
    cpdef Py_ssize_t reserve(self, object name)
    cpdef Py_ssize_t add(self, object name, object body)
    cdef list _leaves(self, bint terms)
