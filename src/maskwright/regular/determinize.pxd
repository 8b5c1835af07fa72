from maskwright.base.deadline cimport check_time
from maskwright.regular.thompson cimport Thompson
from maskwright.regular.expressions cimport Chars, Lit, Machine

cdef class _CodeThompson(Thompson):
    cdef readonly object alphabet
