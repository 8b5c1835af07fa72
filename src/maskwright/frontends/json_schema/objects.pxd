from maskwright.frontends.json_schema.groups cimport Absent, Keys, ObjectGroup, StringGroup
from maskwright.frontends.json_schema.keys cimport KeyMap, is_false
from maskwright.frontends.json_schema.strings cimport is_text
from maskwright.grammar cimport Lexeme, Member, OtherMembers, Record, Ref

cdef class ObjectRules:
    cdef object emitter, options, limits, normalizer, hollow
