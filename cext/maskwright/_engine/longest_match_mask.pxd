from maskwright._engine.vocabulary cimport Index
from maskwright._engine.lexemes cimport LexMask, LexState

cdef LexMask* lexer_mask(LexState* lex, LexState* start, Index* index) noexcept nogil
cdef LexMask* lexer_behind(LexMask* mask, size_t number, LexState* start) noexcept nogil
