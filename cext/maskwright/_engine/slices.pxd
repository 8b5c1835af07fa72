from libc.stdint cimport int32_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.vocabulary cimport Bits, CodeRange, Exit, Index, PartNode, Slice

cdef cbool points_hold(const vector[CodeRange]& points, int32_t first, int32_t last) noexcept nogil
cdef Slice* index_slice(Index* index, const vector[CodeRange]& points) noexcept nogil
cdef Bits* slice_limited(Index* index, Slice* slice, int32_t count) noexcept nogil
cdef cbool slice_left_inside(const Index* index, const Slice* slice, const PartNode& part, uint32_t top) noexcept nogil
cdef cbool slice_exit(const Index* index, const Slice* slice, size_t position, uint32_t top, Exit* exit) noexcept nogil
cdef const vector[Exit]* slice_exits(Index* index, Slice* slice, int32_t point, uint32_t top) noexcept nogil
cdef Bits* slice_below(Index* index, Slice* slice, uint32_t top) noexcept nogil
cdef void slice_cut_below(const Index* index, Bits* bits, const Bits* below, uint32_t top, int32_t count) noexcept nogil
