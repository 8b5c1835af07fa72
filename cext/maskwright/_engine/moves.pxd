from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.tasks cimport Mover

cdef enum:
    PAST_STATES = 8        # that a matcher takes along when it moves
    PAST_MARKS = 8         # at most, besides these
    FETCHED = 2            # matchers that move along with another one's operation
    PAST_GAIN = 64         # bytes that its core has grown by, for each step more that a mover makes
    PAST_SLACK = 64        # tokens beyond a window that may be kept: they are forgotten many at a time

cdef struct Mark:
    int64_t position       # tokens before it
    int32_t state

cdef cppclass Past:
    vector[int32_t] states         # from position `first` on; the last one is current
    int64_t first
    vector[Mark] marks             # ascending, before or at `first`; the first one is as far as it can go back
    vector[int32_t] tokens         # accepted ids from there on, EOS included; -1: bytes
    int64_t reached                # the most tokens that there ever were

cdef void past_begin(Past* past, int32_t state, int64_t position) noexcept nogil
cdef size_t past_mark(const Past* past, int64_t position) noexcept nogil
cdef void past_push(Past* past, int32_t state, int32_t token, int64_t window) noexcept nogil
cdef void past_cut(Past* past, int64_t position) noexcept nogil
cdef cbool core_fetch(Mover* mover, Past* past) noexcept nogil


cdef inline int64_t past_count(const Past* past) noexcept nogil:
    # Accepted tokens.
    return past.first + <int64_t>past.states.size() - 1


cdef inline int64_t past_known(const Past* past, int64_t window) noexcept nogil:
    # How many tokens can be taken back.
    return past_count(past) - (max(past.reached - window, <int64_t>0) if window >= 0 else 0)
