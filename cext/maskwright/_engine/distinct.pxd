from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.core cimport Core, Thread

cdef enum:
    # what a search looks for; each is also reached where the outermost array ends
    SEARCH_ALIVE = 0       # a thread that is known to be alive
    SEARCH_OUT = 1         # nothing else: the way out of the array
    SEARCH_APART = 2       # the same, with all threads told apart
    SEARCH_TEXT = 3        # a whole text, taking nothing for granted
    HEAD_START = 40        # what being like an earlier item is worth, in bytes
    LONG_STRING = 8        # characters of a string that came, before it counts that it is long
    SEARCH_SHORT = 2000    # states of one that may as well fail

cdef struct TextPlace:
    int32_t set
    int32_t at

cdef cbool distinct_endless(Core* core, const Thread& thread) noexcept nogil
cdef cbool distinct_alive(Core* core, const Thread& thread) noexcept nogil
cdef cbool distinct_careless(Core* core, const Thread& thread) noexcept nogil
cdef void distinct_clean(Core* core, vector[Thread]& threads) noexcept nogil
cdef cbool distinct_search(Core* core, const Thread* roots, size_t count, int32_t goal, int64_t most,
                           vector[uint8_t]* path) noexcept nogil
