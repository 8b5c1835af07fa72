from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from maskwright._engine.tracked cimport Frame, Tracker, TrackerState

cdef enum:
    # letters of kinds, by VALUE_*
    ITEM_NUMBER = 110
    ITEM_STRING = 115
    ITEM_POINT = 46
    LETTERS_OF = 4             # bytes of a digest that are two letters each

cdef int32_t group_with(Tracker* tracker, int32_t group, int32_t value) noexcept nogil
cdef int64_t indices_bytes(const Tracker* tracker) noexcept nogil
cdef void index_know(Tracker* tracker, int32_t group, int32_t place, int32_t set) noexcept nogil
cdef void frame_came(Tracker* tracker, Frame* frame, int32_t value) noexcept nogil
cdef void frame_nested(Tracker* tracker, int32_t id, int32_t kind, Frame* nested) noexcept nogil
cdef void frame_filter(Tracker* tracker, const Frame* frame, int32_t value, Frame* after) noexcept nogil
cdef void frame_targets(Tracker* tracker, int32_t id, vector[int32_t]& out) noexcept nogil
cdef void frame_sets(Tracker* tracker, int32_t id, vector[int32_t]& out) noexcept nogil
cdef void frame_scalars(Tracker* tracker, int32_t id, int32_t kind, vector[int32_t]& out) noexcept nogil
cdef cbool frame_fewer(Tracker* tracker, Frame* frame, size_t count) noexcept nogil
cdef string item_text(const Tracker* tracker, int32_t id) noexcept nogil
cdef cbool items_step(const Tracker* tracker, int32_t* set, int32_t* at, const string& text) noexcept nogil
cdef cbool items_compatible(Tracker* tracker, int32_t items, const TrackerState& at, const string& read) noexcept nogil
cdef void items_ahead(const Tracker* tracker, int32_t items, const string& read, uint64_t* ahead) noexcept nogil
cdef int32_t frame_twin(const Tracker* tracker, const Frame* frame) noexcept nogil


cdef inline cbool frame_agrees(const Frame* frame) noexcept nogil:
    # Whether there are candidates.
    return not frame.candidates.empty() or not frame.groups.empty()


cdef inline cbool frame_tied(const Tracker* tracker, const Frame* frame) noexcept nogil:
    # Whether two items at known places must be equal, and the second has not come.
    return frame.guard != 0 and tracker.guards[frame.guard - 1].second >= 0
