# Small things that every layer needs: sets of bytes and of numbers, and what allocations take.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

cdef enum:
    ALLOCATION = 16        # what an allocation takes besides
    EDGES_ENTRY = 40       # the edges over bytes of one state, which mostly are two at most
    MAP_ENTRY = 48         # an entry of an unordered map of numbers, with its share of buckets


cdef inline void bits_set(uint64_t* bits, uint8_t byte) noexcept nogil:
    bits[byte >> 6] |= (<uint64_t>1) << (byte & 63)


cdef inline cbool bits_has(const uint64_t* bits, uint8_t byte) noexcept nogil:
    return (bits[byte >> 6] >> (byte & 63)) & 1


# The same of any numbers, in a vector with room for them.
cdef inline void set_add(vector[uint64_t]& bits, size_t number) noexcept nogil:
    bits[number >> 6] |= (<uint64_t>1) << (number & 63)


cdef inline cbool set_has(const vector[uint64_t]& bits, size_t number) noexcept nogil:
    return (bits[number >> 6] >> (number & 63)) & 1


cdef inline int64_t vector_bytes(size_t capacity, size_t item) noexcept nogil:
    return <int64_t>(capacity * item + ALLOCATION) if capacity else 0


cdef inline int64_t pair_key(int32_t a, int32_t b) noexcept nogil:
    return (<int64_t>a << 32) | <uint32_t>b


cdef inline cbool bits_meet(const uint64_t* a, const uint64_t* b) noexcept nogil:
    return ((a[0] & b[0]) | (a[1] & b[1]) | (a[2] & b[2]) | (a[3] & b[3])) != 0
