from maskwright.frontends.json_schema.algebra.groups cimport StringGroup
from maskwright.ir.grammar cimport Lexeme, Keyset, Term, Choice

cpdef bint is_text(str value)
