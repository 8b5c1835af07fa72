from libc.stdint cimport int32_t, uint32_t
from libcpp.vector cimport vector

from maskwright._engine.lexemes cimport DfaState, LazyDfa, LexMask, LexState

cdef enum:
    FAR_FROM_ENDS = 1 << 30

cdef cppclass Ends:
    # Where texts over some classes of characters end a lexeme.
    vector[int32_t] distances  # by the id of a DFA state: characters to where it may be dead, at least; 0 for states that are not measured
    vector[int32_t] classes
    vector[DfaState*] states   # those that are measured, and behind them those to which these lead
    vector[int32_t] moves      # by measured state and class: the position of the state behind, or DEAD_BEHIND

cdef void ends_measure(LazyDfa* dfa, DfaState* start, Ends* ends) noexcept nogil
cdef void ends_remove(LexMask* mask, LexState* start, uint32_t top, const Ends* ends) noexcept nogil
