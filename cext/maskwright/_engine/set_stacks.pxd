from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.limits cimport deadline_passed
from maskwright._engine.lexemes cimport LexSet, LexState
from maskwright._engine.core cimport Core, Outcome
from maskwright._engine.set_states cimport Part, Reach, Sets

ctypedef void (*Attempted)(void*) noexcept nogil

cdef enum:
    MERGE_DEPTH = 500      # levels of stacks
    UNDER_WAY = -5

cdef void parts_compact(Core* core, Sets* sets, vector[Part]& parts) noexcept nogil
cdef int32_t set_intern(Core* core, Sets* sets, vector[Part]& parts) noexcept nogil
cdef void set_leave(Core* core, LexState* lex, int32_t parser, vector[int32_t]& joined) noexcept nogil
cdef vector[LexSet*]* set_starts(Core* core, Sets* sets, int32_t parser) noexcept nogil
cdef void parts_join(Core* core, Sets* sets, vector[int32_t]& joined, vector[Part]& out) noexcept nogil
cdef int64_t sets_bytes(const Core* core, const Sets* sets) noexcept nogil
cdef cbool sets_full(Core* core, Sets* sets) noexcept nogil
cdef Outcome sets_attempt(Core* core, Sets* sets, Attempted function, void* argument) noexcept nogil
cdef int32_t parsers_merge(Core* core, Sets* sets, vector[int32_t]& ids) noexcept nogil
cdef void reaches_free(vector[Reach*]& reaches) noexcept nogil


cdef inline cbool sets_stop(Core* core, Sets* sets) noexcept nogil:
    # To be asked in every loop that makes states or stacks.
    return sets_full(core, sets) or deadline_passed(&core.index.deadline)
