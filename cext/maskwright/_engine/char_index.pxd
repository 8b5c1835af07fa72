from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.sizes cimport set_has
from maskwright._engine.trie cimport Trie
from maskwright._engine.vocabulary cimport Bits, CodeRange, Exit, Index, TallNode

cdef enum:
    MOVE_STEPS = 500       # that a mover makes in one operation
    EVICT_ROOM = 32        # eviction makes room for this part of the budget
    EXITS_ENTRY = 64       # bytes of an entry of `Slice.exits`, without exits
    LONGEST_TEXT = 32      # bytes before a character, and its own, that are kept in `Index.char_texts`

cdef struct CharPlace:
    # A character under way on a path of the trie; none where no byte is missing.
    int32_t point          # its code point, as far as it was read
    int32_t span           # its bytes behind the first one,
    int32_t left           # and those of them that are missing

cdef Bits* bits_new(Index* index) noexcept nogil
cdef void bits_release(Index* index, Bits* bits) noexcept nogil
cdef Bits* bits_owned(Index* index, Bits* bits) noexcept nogil
cdef void bits_subtract(Bits* bits, const Bits* other) noexcept nogil
cdef void bits_unite(Bits* bits, const Bits* other) noexcept nogil
cdef cbool bits_within(const Bits* some, const Bits* others) noexcept nogil
cdef cbool char_step(CharPlace* place, uint8_t byte, CodeRange* possible) noexcept nogil
cdef void index_build(Index* index, const Trie* trie, size_t words) noexcept nogil
cdef uint32_t index_child_from(const Index* index, uint32_t low, uint32_t high, uint8_t byte) noexcept nogil
cdef void index_free(Index* index) noexcept nogil
cdef void index_forget_slices(Index* index) noexcept nogil
cdef size_t index_first(const Index* index, int32_t point) noexcept nogil
cdef int32_t index_count(const Index* index, int32_t low, int32_t high) noexcept nogil
cdef size_t index_first_below(const Index* index, int32_t point, uint32_t top) noexcept nogil
cdef size_t index_first_part(const Index* index, uint32_t top) noexcept nogil
cdef void index_clear_below(const Index* index, Bits* bits, uint32_t node) noexcept nogil
cdef int32_t text_point(const uint8_t* text, size_t end, size_t* at) noexcept nogil


cdef inline int64_t exits_size(const vector[Exit]& exits) noexcept nogil:
    return <int64_t>(exits.size() * sizeof(Exit) + EXITS_ENTRY)


cdef inline Bits* bits_hold(Bits* bits) noexcept nogil:
    bits.holders.add(1)
    return bits


cdef inline void bits_add(Bits* bits, int32_t token) noexcept nogil:
    bits.words[<size_t>token >> 5] |= (<uint32_t>1) << (token & 31)


cdef inline void bits_remove(Bits* bits, int32_t token) noexcept nogil:
    bits.words[<size_t>token >> 5] &= ~((<uint32_t>1) << (token & 31))


cdef inline cbool bits_hold_token(const Bits* bits, int32_t token) noexcept nogil:
    return (bits.words[<size_t>token >> 5] >> (token & 31)) & 1


cdef inline cbool index_escapes(const Index* index, uint32_t node) noexcept nogil:
    # Whether a token at a trie node, or below, has a quote or a backslash behind what comes before the node.
    return set_has(index.by_char.escaping, node)


cdef inline const uint8_t* index_text(const Index* index, uint32_t node) noexcept nogil:
    # The bytes from the root to a node, which are those of any token there or below, at their start.
    return index.token_data + index.token_starts[index.trie.tokens[index.trie.nodes[node].token]]


cdef inline const uint8_t* index_char_text(const Index* index, size_t position) noexcept nogil:
    # The same to the node of a character.  Most lie one behind another: where tokens lie, each one would miss the cache.
    if index.by_char.char_starts[position] < index.by_char.char_starts[position + 1]:
        return index.by_char.char_texts.data() + index.by_char.char_starts[position]
    return index_text(index, index.by_char.chars[position].node)


cdef inline int32_t tall_least(int32_t kind) noexcept nogil:
    # Bytes from the parent of a node in such a list to the end of the longest token below: 4, 8, 16.
    return 4 << kind


cdef int32_t tall_kind(int32_t bytes) noexcept nogil
cdef size_t tall_below(const vector[TallNode]* tall, uint32_t node) noexcept nogil
