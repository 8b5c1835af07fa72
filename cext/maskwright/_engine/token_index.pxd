from libc.stdint cimport int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.trie cimport Trie
from maskwright._engine.vocabulary cimport Index, Opening

cdef int64_t forks_passed() noexcept

cdef class TokenIndex:
    cdef Trie trie
    cdef Index* index
    cdef vector[uint8_t] data      # token bytes, one token after another
    cdef vector[int64_t] starts    # by id: where they begin
    cdef Opening opening

    cdef int build(self, list tokens, trie_arrays) except -1
    cdef int build_opening(self, dict start_tokens, cbool stays) except -1
