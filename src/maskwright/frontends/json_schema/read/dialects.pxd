cdef class Dialect:
    cdef readonly str name
    cdef readonly object identifier
    cdef readonly tuple references
    cdef readonly bint ref_hides_siblings, anchors, list_items, boolean_exclusive, contains_evaluates
    cdef readonly bint plain_integers, nullable, punycode, asserts_formats
    cdef readonly object ignored, later_formats
