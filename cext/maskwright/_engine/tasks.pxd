from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from maskwright._engine.containers cimport Interner, Renumbered
from maskwright._engine.lexemes cimport Automaton
from maskwright._engine.core cimport Core

ctypedef Automaton* AutomatonPointer

cdef enum:
    MOVE_KEYS = 0          # a set of keys
    MOVE_ITEMS = 1         # a set of items
    MOVE_INDEX = 2         # a set whose notes are groups
    MOVE_VALUE = 3
    MOVE_CELLS = 4
    MOVE_GROUP = 5
    MOVE_ENTRY = 6         # an index of a group at a place
    MOVE_INDICES = 7       # the last ones of a group and those before it
    MOVE_FRAME = 8
    MOVE_NODE = 9          # of a stack
    MOVE_KINDS = 10
    MOVE_SLICE = 64        # groups that one step looks at

cdef struct MoveTask:
    int32_t kind
    int32_t id
    int32_t root           # of indices, the group from which on they are looked for

cdef cppclass Mover:
    Core* old
    Core* fresh                    # a holder of it
    vector[MoveTask] work
    vector[Renumbered] known       # by MOVE_*: the number in the old core -> that in the new one, or that it was looked at
    Renumbered states              # the same of matchers, and so on
    Renumbered parsers
    Renumbered followed            # the same of parser states: whether what they need was added to the work
    Renumbered nodes
    Renumbered tracked             # states of the tracker
    Renumbered frames
    unordered_map[AutomatonPointer, AutomatonPointer] lexemes   # those of the old core that the new one has anew
    Interner places                  # of which an index was found, by group from which on they are looked for
    size_t entries                 # indices of the old core that were there the last time
    int64_t bytes                  # of the old core, then; -1: it did nothing yet
    cbool begun                    # and some of what a matcher needs is still to be moved
    int32_t users                  # operations under way without the interpreter

cdef void core_let_go(Core* core) noexcept
cdef Mover* mover_of(Core* old, Core* fresh) except NULL
cdef void mover_needs(Mover* mover, int32_t kind, int32_t id) noexcept nogil
cdef cbool mover_run(Mover* mover, int64_t* steps) noexcept nogil
cdef int32_t mover_whole(Mover* mover, int32_t kind, int32_t id) noexcept nogil
cdef void state_needs(Mover* mover, int32_t id) noexcept nogil
