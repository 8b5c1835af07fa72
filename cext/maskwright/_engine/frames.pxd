from libc.stdint cimport int32_t
from libcpp.vector cimport vector

from maskwright._engine.lexemes cimport Automaton
from maskwright._engine.core cimport Core
from maskwright._engine.set_states cimport Part, Sets

cdef int32_t parser_narrow(Core* core, Sets* sets, int32_t parser, const Automaton* automaton) noexcept nogil
cdef int32_t frames_any(Core* core, Sets* sets, const vector[Part]& parts) noexcept nogil
