from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.atomic cimport memory_order_relaxed
from libcpp.vector cimport vector

from maskwright._engine.limits cimport Deadline, deadline_heavy
from maskwright._engine.vocabulary cimport CodeRange
from maskwright._engine.lexemes cimport LazyDfa, DfaState, NO_CLASS

cdef DfaState* DFA_DEAD

cdef LazyDfa* dfa_new(Deadline* deadline) noexcept nogil
cdef LazyDfa* dfa_copy(const LazyDfa* other) noexcept nogil
cdef void dfa_free(LazyDfa* dfa) noexcept nogil
cdef void dfa_classify(LazyDfa* dfa, vector[vector[CodeRange]]& sets) noexcept nogil
cdef size_t dfa_range_of(const LazyDfa* dfa, int32_t dfa_state) noexcept nogil
cdef DfaState* dfa_intern(LazyDfa* dfa, vector[uint64_t]& items) noexcept nogil
cdef DfaState* dfa_next_new(LazyDfa* dfa, DfaState* state, int32_t cls) noexcept nogil
cdef cbool dfa_goes_on(LazyDfa* dfa, DfaState* state) noexcept nogil
cdef const vector[uint64_t]* dfa_sustained(LazyDfa* dfa, int32_t state) noexcept nogil
cdef int32_t dfa_span(LazyDfa* dfa, DfaState* state, int32_t low, int32_t high,
                       DfaState** target) noexcept nogil
cdef cbool dfa_has_any(LazyDfa* dfa, DfaState* state) noexcept nogil
cdef cbool dfa_more_texts(LazyDfa* dfa, DfaState* start, int64_t count) noexcept nogil


cdef inline void dfa_grew(LazyDfa* dfa, size_t bytes) noexcept nogil:
    # Too many bytes end an operation like too little time: nothing half-computed is kept.
    cdef int64_t held = dfa.held.load(memory_order_relaxed) + <int64_t>bytes
    dfa.held.store(held, memory_order_relaxed)
    dfa.deadline.grown.fetch_add(<int64_t>bytes, memory_order_relaxed)
    if held > dfa.deadline.most_bytes // 2:
        dfa.deadline.swollen = True
    if held > dfa.deadline.most_bytes:
        deadline_heavy(dfa.deadline, held)


cdef inline int32_t dfa_class(const LazyDfa* dfa, int32_t dfa_state) noexcept nogil:
    if dfa_state < 128:
        return dfa.ascii_class[dfa_state]
    return dfa.range_class[dfa_range_of(dfa, dfa_state)]


cdef inline DfaState* dfa_next(LazyDfa* dfa, DfaState* state, int32_t cls) noexcept nogil:
    cdef DfaState* known
    if cls == NO_CLASS:
        return DFA_DEAD
    known = state.next[cls]
    return known if known != NULL else dfa_next_new(dfa, state, cls)
