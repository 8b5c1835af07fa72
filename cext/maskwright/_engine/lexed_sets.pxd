from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from maskwright._engine.trie cimport Trie
from maskwright._engine.program cimport Program
from maskwright._engine.core cimport Core
from maskwright._engine.set_states cimport Sets

cdef cppclass EndsBuilder:
    # Of the ends under way: what is known already.
    unordered_map[int64_t, char] inside    # by lexer state and lookahead
    unordered_map[int64_t, char] ended     # by tag and lookahead
    unordered_map[int64_t, size_t] rests    # by tag and lookahead: its place

cdef void ends_free(Sets* sets) noexcept nogil
cdef int32_t lexed_any(Core* core, Sets* sets, int32_t id) noexcept nogil
cdef int32_t lexed_join(Core* core, int32_t a, int32_t b) noexcept nogil
cdef cbool lexed_covers(const Core* core, int32_t a, int32_t b) noexcept nogil
cdef void lexed_classes(Core* core, Sets* sets, int32_t id, const Trie* trie, vector[int32_t]& targets) noexcept nogil
