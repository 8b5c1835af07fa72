from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from maskwright._engine.lexemes cimport Automaton, LexState, NO_TAG
from maskwright._engine.lexeme_state cimport lex_next
from maskwright._engine.longest_match cimport Lexer

cdef void lexer_again(Automaton* fresh, const Automaton* other) noexcept nogil
cdef void lexer_prepare(Automaton* automaton) noexcept nogil
