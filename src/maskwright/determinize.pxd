from maskwright.base.deadline cimport check_time
from maskwright.thompson cimport Thompson
from maskwright.regular cimport Chars, Lit, Machine

cdef class _CodeThompson(Thompson):
    cdef readonly object alphabet
