# Compiled, for it is on the way of every new source.

cdef class Job:
    cdef readonly object part, limits, explain, otherwise
