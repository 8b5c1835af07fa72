from libc.stdint cimport int32_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.core cimport Core, Thread
from maskwright._engine.lexemes cimport LexState

cdef void threads_step(Core* core, const vector[Thread]& threads, uint8_t byte,
                       vector[Thread]& out) noexcept nogil
cdef cbool core_search(Core* core, const vector[Thread]& start, cbool whole, vector[uint8_t]& out) noexcept nogil
cdef cbool thread_leaves(Core* core, const Thread& thread) noexcept nogil
cdef int32_t thread_known(Core* core, const Thread& thread) noexcept nogil
cdef cbool node_is_sure(Core* core, int32_t start) noexcept nogil
cdef cbool thread_is_embedded(Core* core, LexState* lex, int32_t parser) noexcept nogil
cdef cbool thread_alive(Core* core, const Thread& thread) noexcept nogil
cdef cbool threads_alive(Core* core, const vector[Thread]& threads) noexcept nogil
cdef void threads_keep_alive(Core* core, vector[Thread]& threads) noexcept nogil
cdef void tokens_without_end(Core* core, int32_t parser, vector[int32_t]& out) noexcept nogil
