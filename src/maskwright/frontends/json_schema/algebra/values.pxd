from maskwright.frontends.json_schema.algebra.groups cimport ArrayGroup, Contained, NumberGroup, ObjectGroup, StringGroup
from maskwright.frontends.json_schema.algebra.keys cimport KeyMap

cdef class ValueCounts:
    cdef readonly object normalizer, limits
    cdef dict _known
