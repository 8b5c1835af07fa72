from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from maskwright._engine.program cimport Program
from maskwright._engine.core cimport Core, Outcome
from maskwright._engine.token_index cimport TokenIndex
from maskwright._engine.engine cimport AutomatonHandle, Engine

cdef class CompiledCore:
    cdef Core* core                # the generation in which matchers begin (generations.pyx)
    cdef readonly Engine engine
    cdef TokenIndex owner          # the collector may clear the engine first
    cdef list tables
    cdef public object limits      # those that it was linked with (maskwright.limits.Limits), or None
    cdef public object vocabulary  # or None, for whoever sends it to another process,
    cdef public object grammar     # and a weak reference to its CompiledGrammar
    cdef int64_t renewing          # another generation is being made: in the process after so many forks; else -1
    cdef vector[Core*] left        # earlier ones in which there still is somebody

    cdef Core* linked(self) except NULL
    cdef int open(self, Core* core, const Core* before) except -1
    cdef int freshen(self, int64_t most_states, int64_t most_bytes) except -1
    cdef AutomatonHandle freshened(self, AutomatonHandle handle, dict fresh, int64_t most_states, int64_t most_bytes)
    cdef int renew(self) except -1
    cdef int find_tokens(self, Program* program) except -1


cdef void explain_threads(Core* core, int32_t id, vector[int32_t]& out) noexcept nogil
cdef void explain_items(Core* core, int32_t parser, vector[int32_t]& out) noexcept nogil
cdef void explain_returns(Core* core, int32_t node, vector[int32_t]& out) noexcept nogil
