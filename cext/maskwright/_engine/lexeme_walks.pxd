from libc.stdint cimport int32_t, int64_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map

from maskwright._engine.trie cimport Trie
from maskwright._engine.vocabulary cimport Index
from maskwright._engine.lexemes cimport LexMask, LexState, MaskTable, ResidualView, Run

cdef void words_walk(LexMask* mask, LexState* start) noexcept nogil
cdef LexMask* lexmask_new(Index* index) noexcept nogil
cdef void lexmask_release(LexMask* mask) noexcept nogil
cdef void run_release(Run* run) noexcept nogil
cdef void masktable_free(void* freed) noexcept nogil
cdef void masktable_add(MaskTable* table, const string& key, LexMask* mask) noexcept nogil
cdef void lexmask_finish(LexMask* mask) noexcept nogil
cdef void lexmask_walk(LexMask* mask, LexState* start, uint32_t top) noexcept nogil
cdef string lexmask_key(LexState* state, int32_t longest) noexcept nogil
cdef void lexmask_forget_crossing(LexMask* mask, int32_t tag) noexcept nogil
cdef cbool lexmask_open(LexMask* mask, LexState* state) noexcept nogil
cdef ResidualView lexmask_residual(LexMask* mask, size_t number) noexcept nogil
cdef ResidualView lexmask_view(const LexMask* mask, size_t number, unordered_map[int64_t, Trie*]& known, int64_t key,
                               int64_t* bytes) noexcept nogil
cdef void self_loop_close(LexMask* mask, uint32_t node, int32_t tag) noexcept nogil
cdef void key_walk(LexMask* mask, LexState* start) noexcept nogil
