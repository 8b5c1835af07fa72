from libc.stdint cimport int32_t, uint32_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.string cimport string

from maskwright._engine.tracked cimport Frame, Guard, tracked_state, Tracker

cdef void tracker_free(Tracker* tracker) noexcept nogil
cdef cbool guard_free(const Guard* guard, int32_t count) noexcept nogil
cdef int32_t frame_intern(Tracker* tracker, const Frame& content) noexcept nogil
cdef int32_t tracker_state(Tracker* tracker, int32_t frame, int32_t mode, int32_t text, int32_t escape,
                           uint32_t value) noexcept nogil
cdef int32_t tracker_open(Tracker* tracker, int32_t memory, int32_t guard) noexcept nogil
cdef int32_t tracker_read(Tracker* tracker, int32_t memory, uint8_t byte) noexcept nogil
cdef cbool tracker_compatible(Tracker* tracker, int32_t memory) noexcept nogil
cdef int32_t tracker_missing(Tracker* tracker, int32_t memory) noexcept nogil
cdef cbool tracker_free_behind(const Tracker* tracker, int32_t memory) noexcept nogil
cdef cbool tracker_easy(Tracker* tracker, int32_t memory) noexcept nogil
cdef cbool tracker_any(Tracker* tracker, int32_t memory) noexcept nogil
cdef cbool tracker_alive(Tracker* tracker, int32_t memory) noexcept nogil
cdef int32_t tracker_unknown(Tracker* tracker, int32_t memory) noexcept nogil
cdef cbool tracker_doubtful(Tracker* tracker, int32_t memory) noexcept nogil
cdef void tracker_ahead(Tracker* tracker, int32_t memory, uint64_t* ahead) noexcept nogil
cdef string tracker_quoted(const Tracker* tracker, int32_t memory) noexcept nogil
cdef cbool tracker_seeks(Tracker* tracker, int32_t memory) noexcept nogil
cdef int32_t tracker_spelled(Tracker* tracker, int32_t memory) noexcept nogil
cdef cbool tracker_lost(const Tracker* tracker, int32_t memory, cbool compatible) noexcept nogil


cdef inline void frame_begin(Frame* content) noexcept nogil:
    # What `frame_intern` finds out is not known yet.
    content.owes = content.tied = 0
    content.twin = content.must_differ = content.outside_free = content.has_goals = False


cdef inline int32_t tracker_owes(const Tracker* tracker, int32_t memory) noexcept nogil:
    return tracker.frames[tracker.states[tracked_state(memory)].frame].owes
