from maskwright.ir.grammar cimport Lexeme, Words

cpdef bytes canonical_spelling(object name)
