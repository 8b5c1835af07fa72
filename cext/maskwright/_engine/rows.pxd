from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.trie cimport Trie
from maskwright._engine.vocabulary cimport Bits, Opening
from maskwright._engine.core cimport Core, Outcome
from maskwright._engine.token_index cimport TokenIndex

cdef enum:
    CHUNK_ROWS = 16                # of a bitmask that a thread takes at a time
    MOST_THREADS = 1 << 16

cdef struct Row:
    uint32_t* data
    size_t words

cdef cppclass Segments:
    # The fewest tokens that spell the rest of a text, by where that begins.
    vector[int64_t] count          # -1: none do
    vector[int32_t] token          # the first of them
    vector[int64_t] next           # where the second one begins
    vector[int32_t] before         # a token in front of all, which stands for nothing there

cdef cppclass Tree:
    Core* core
    int32_t root                   # the matcher's own state
    vector[int32_t] tokens
    vector[int32_t] parents        # earlier nodes; -1: the root
    vector[int32_t] states         # behind each node; NO_STATE where it is illegal
    char* rows                     # of the bitmask, or NULL
    int64_t row_bytes              # from one row to the next

cdef class BitmaskView:
    cdef Bits* bits
    cdef TokenIndex owner
    cdef Py_ssize_t shape[1]
    cdef Py_ssize_t strides[1]

cdef int64_t whole_number(object value, int64_t above) except? -1
cdef int64_t token_number(object token, int64_t vocab_size) except -1
cdef object numbers_of(object values, str name, type error)
cdef bytes bytes_of(object data)
cdef int32_t place_of(object place, size_t count, str what) except -1
cdef str shown_number(object number)
cdef int bitmask_open(object bitmask, Py_buffer* view) except -1
cdef int bitmask_check_words(const Py_buffer* view, size_t words) except -1
cdef Row bitmask_row(object bitmask, object row, size_t words, Py_buffer* view) except *
cdef size_t pool_threads() except? 0
cdef cbool segments_find(const Trie* trie, const Opening* opening, const uint8_t* text, int64_t n, double until,
                         Segments* best) noexcept nogil
cdef int tree_read(Tree* tree, object tokens, object parents, int64_t vocab_size) except -1
cdef int tree_into(Tree* tree, Py_buffer* view, size_t words) except -1
cdef Outcome tree_run(Tree* tree, size_t threads) noexcept nogil
cdef int64_t tree_legal(const Tree* tree) noexcept nogil
cdef object tree_flags(const Tree* tree)
