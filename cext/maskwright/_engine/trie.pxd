from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint8_t
from libcpp.vector cimport vector

cdef struct TrieNode:
    uint32_t end      # index after the last node of the subtree
    int32_t token     # index into Trie.tokens of the first token that ends here
    uint16_t depth    # bytes from the root
    uint8_t byte      # last byte on the way here
    uint8_t unused    # 0: nodes are written to files as they are

cdef cppclass Trie:
    vector[TrieNode] nodes
    vector[int32_t] tokens

cdef int64_t trie_size(const Trie* trie) noexcept nogil
cdef void trie_build(Trie* trie, const uint8_t* data, const int64_t* starts, const int32_t* ids,
                     int64_t count) noexcept nogil
cdef uint32_t trie_child(const Trie* trie, uint32_t node, uint8_t byte) noexcept nogil
cdef void trie_merge(const Trie* source, Trie* out, const vector[uint32_t]& group) noexcept nogil
