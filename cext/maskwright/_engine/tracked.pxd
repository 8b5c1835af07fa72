# The data of arrays of different items: values as numbers, and what has been read of an array.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from maskwright._engine.containers cimport BlockPool, Edges, Interner, SegmentedVector, TextSets

cdef enum:
    VALUE_NULL = 0
    VALUE_FALSE = 1
    VALUE_TRUE = 2
    VALUE_NUMBER = 3
    VALUE_STRING = 4
    VALUE_ARRAY = 5
    VALUE_OBJECT = 6
    VALUE_UNKNOWN = 7  # some string, unlike all earlier ones that matter (distinct_mask)
    GREATEST_EXPONENT = 1000000000
    DIGEST_SIZE = 16

cdef enum:
    # what comes next
    TRACK_VALUE = 0        # a value, or the end of an empty array
    TRACK_KEY = 1          # a key, or the end of an empty object
    TRACK_COLON = 2
    TRACK_AFTER = 3        # behind a value
    TRACK_STRING = 4       # the rest of a string
    TRACK_NUMBER = 5
    TRACK_LITERAL = 6
    MEMORY_WRONG = -0x7FFFFFFF # of a thread: no item may be like this
    ANY_COUNT = 0x3FFFFFFF

cdef cppclass Texts:
    # Texts by number, each the one before it and a byte; the empty text is 0.
    SegmentedVector[int32_t] before
    SegmentedVector[uint8_t] byte
    BlockPool[Edges[int32_t]] after   # by text, over bytes

cdef cppclass Value:
    int32_t kind
    string text                # of a number (see number_text) or a string (its canonical spelling)
    vector[int32_t] items      # of an array; of an object, by key
    vector[int32_t] keys       # of an object, sorted
    cbool unknown              # or something in it
    uint8_t digest[DIGEST_SIZE]    # of an array or object: by its content, in any core (digest.hpp)

cdef struct Cell:
    # A list of values, its last one first.  Sets are sorted by key: equal sets are one list.
    int32_t before             # -1: none
    int32_t key
    int32_t value

cdef cppclass Values:
    Texts texts
    BlockPool[Value] values
    Interner ids
    SegmentedVector[Cell] cells
    Interner cell_ids
    int64_t held                   # bytes of what values refer to

cdef cppclass Frame:
    int32_t parent             # -1: the outermost one
    cbool is_object
    int32_t guard              # 0: items may repeat; else one more than the number of what is demanded
    int32_t count              # items or members
    int32_t cells              # values; of an object, a set of members; of the outermost array, only if two places are tied
    int32_t items              # of an array with a guard where none are, the same as a set (item_groups.pyx)
    int32_t key                # read, and its value has not been; or -1
    int32_t size               # different items, of an array with a guard
    int32_t owes               # of this array and those around it, how many still need two equal items
    int32_t tied               # and of how many of these it is known which two
    cbool twin                 # the next item is the second of these two, or in it
    cbool must_differ          # items must be different, or those of an array around it
    cbool outside_free         # whatever comes, the arrays around this one can be completed
    cbool unknown              # some value in it is not known
    cbool doubtful             # an array with a guard around it has such a value: its next item may be equal to that
    int32_t arrays             # of an array with a guard, the items that are arrays, and those that are objects, as groups
    int32_t objects            # (item_groups.pyx), in the order in which they came here first
    vector[int32_t] candidates
    vector[int32_t] groups     # of more candidates
    cbool has_goals
    vector[int32_t] goals      # what candidates have where this frame is
    vector[int32_t] indices    # and those in groups

cdef struct Guard:
    # What is demanded of the items of an array (see Distinct).
    int32_t free               # -1: not known
    int32_t least
    int32_t repeats
    int32_t most               # -1: any number
    int32_t first              # the places of the two items that must be equal; -1: any two
    int32_t second
    int32_t closed             # no such array may begin, while it is not known whether any can be filled

cdef struct TrackerState:
    int32_t frame
    int32_t mode               # TRACK_*
    int32_t text               # read of a scalar: canonical spelling, digits, letters
    int32_t escape             # see KeyPosition
    uint32_t value
    char compatible            # 0 not known, 1 yes, 2 no

cdef struct Group:
    # Of arrays or objects that came (item_groups.pyx).
    int32_t before             # the same without the last one; 0: none
    int32_t value              # the last one
    int32_t count
    int64_t parts              # one for each value, and one for each member
    int64_t listed             # how many values were looked at, of this group and those before it
    int32_t entry              # the last index that was made of it, or 0

cdef struct IndexEntry:
    int32_t group
    int32_t place
    int32_t set
    int32_t next               # the one of this group before, or 0

cdef cppclass Tracker:
    vector[Guard] guards
    Values store
    BlockPool[Frame] frames
    Interner frame_ids
    SegmentedVector[TrackerState] states
    Interner state_ids
    BlockPool[Edges[int32_t]] moves               # by state, over bytes: the memory behind, as tracked_state has it
    TextSets items                             # and indices of groups
    SegmentedVector[Group] groups
    Interner group_ids
    Interner index_ids
    SegmentedVector[IndexEntry] entries                 # indices that were made; the first one is none
    int64_t listed                             # candidates that were looked at one by one
    int64_t held                               # bytes of what frames refer to
    int32_t moved                              # the values that came from another core are before this one
    int64_t remade                             # bytes of indices of such values


# What a thread remembers of the bytes that it has read (`Thread.memory`): nothing (0); of a key that must not come again, its text so far
# (a number of `Texts`, above 0); of an array of different items, a state of the tracker (below 0).

cdef inline cbool is_tracked(int32_t memory) noexcept nogil:
    return memory < 0


cdef inline int32_t tracked_state(int32_t memory) noexcept nogil:
    # Its number in `Tracker.states`.
    return -1 - memory


cdef inline int32_t memory_of_state(int32_t number) noexcept nogil:
    return -1 - number
