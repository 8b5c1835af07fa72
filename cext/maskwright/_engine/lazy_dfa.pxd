from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.limits cimport Deadline, deadline_heavy
from maskwright._engine.vocabulary cimport CodeRange
from maskwright._engine.lexemes cimport CodeAutomaton, CodeState, NO_CLASS

cdef CodeState* CODE_DEAD

cdef CodeAutomaton* codes_new(Deadline* deadline) noexcept nogil
cdef CodeAutomaton* codes_copy(const CodeAutomaton* other) noexcept nogil
cdef void codes_free(CodeAutomaton* codes) noexcept nogil
cdef void codes_classify(CodeAutomaton* codes, vector[vector[CodeRange]]& sets) noexcept nogil
cdef size_t codes_range_of(const CodeAutomaton* codes, int32_t code) noexcept nogil
cdef CodeState* code_intern(CodeAutomaton* codes, vector[uint64_t]& items) noexcept nogil
cdef CodeState* code_next_new(CodeAutomaton* codes, CodeState* state, int32_t cls) noexcept nogil
cdef cbool code_goes_on(CodeAutomaton* codes, CodeState* state) noexcept nogil
cdef const vector[uint64_t]* code_sustained(CodeAutomaton* codes, int32_t state) noexcept nogil
cdef int32_t code_span(CodeAutomaton* codes, CodeState* state, int32_t low, int32_t high,
                       CodeState** target) noexcept nogil
cdef cbool code_more_texts(CodeAutomaton* codes, CodeState* start, int64_t count) noexcept nogil


cdef inline void codes_grew(CodeAutomaton* codes, size_t bytes) noexcept nogil:
    # Too many bytes end an operation like too little time: nothing half-computed is kept.
    codes.held += <int64_t>bytes
    if codes.held > codes.deadline.most_bytes // 2:
        codes.deadline.swollen = True
    if codes.held > codes.deadline.most_bytes:
        deadline_heavy(codes.deadline, codes.held)


cdef inline void set_add(vector[uint64_t]& bits, int32_t cls) noexcept nogil:
    bits[<size_t>cls >> 6] |= (<uint64_t>1) << (cls & 63)


cdef inline cbool set_has(const vector[uint64_t]& bits, int32_t cls) noexcept nogil:
    return (bits[<size_t>cls >> 6] >> (cls & 63)) & 1


cdef inline int32_t codes_class(const CodeAutomaton* codes, int32_t code) noexcept nogil:
    if code < 128:
        return codes.ascii_class[code]
    return codes.range_class[codes_range_of(codes, code)]


cdef inline CodeState* code_next(CodeAutomaton* codes, CodeState* state, int32_t cls) noexcept nogil:
    cdef CodeState* known
    if cls == NO_CLASS:
        return CODE_DEAD
    known = state.next[cls]
    return known if known != NULL else code_next_new(codes, state, cls)
