from libc.stdint cimport int32_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.vocabulary cimport CodeRange, Index
from maskwright._engine.lexeme_ends cimport Ends
from maskwright._engine.lexemes cimport Automaton, DfaState, LexMask, LexState, MaskTable

cdef enum:
    SELF_LOOP_STATES = 32       # at most reached over C
    FEW_EXITS = 4          # so many times these are at most the nodes that a self-loop must spare
    NEAR_ENDS = 2          # characters to where the lexeme may be dead
    NEAR_COST = 4          # so many times the trie nodes behind such characters are at most those of all
    EXIT_COST = 8          # following an exit costs as much as walking so many nodes
    NOT_KNOWN = -2

cdef cppclass SelfLoop:
    vector[uint64_t] classes           # C, as a set of classes
    int32_t room                       # characters; negative: any number
    vector[DfaState*] states          # all that are reached over C; none: not known
    Ends ends                          # what of C ends the lexeme; without distances, nothing does
    cbool counting                     # then states[i] is reached over i characters
    vector[uint64_t] leaving           # classes outside C that may lead on from there
    cbool closing                      # whether a quote may close the text there
    int32_t tag                        # of plain text: what every text over C is accepted with, or NO_TAG
    int32_t mass                       # trie nodes in C
    int32_t exits                      # and in `leaving`

cdef LexMask* lexmask_get(LexState* state, Index* index) noexcept nogil
cdef LexMask* lexmask_borrow(LexState* state, Index* index) noexcept nogil
cdef cbool raw_in_text(const Automaton* automaton, int32_t point) noexcept nogil
cdef void self_loop_points(Automaton* automaton, const vector[uint64_t]& classes,
                      vector[CodeRange]& points) noexcept nogil
cdef LexState* self_loop_enter(LexState* start, const uint8_t* text, size_t end) noexcept nogil
cdef cbool evict_lexmask(LexMask* mask, cbool all_of_them) noexcept nogil
cdef void evict_lexstate(LexState* state, cbool all_of_them) noexcept nogil
cdef void masktable_evict(MaskTable* table, cbool all_of_them) noexcept nogil
