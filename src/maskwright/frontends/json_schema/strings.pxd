from maskwright.frontends.json_schema.groups cimport StringGroup
from maskwright.ir.grammar cimport Lexeme, Keyset, Term, Choice

cpdef bint is_text(str value)
