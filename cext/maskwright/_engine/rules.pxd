from libc.stdint cimport int32_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.lexemes cimport Automaton, LexState
from maskwright._engine.program cimport Costs, DottedItem, LOCAL_PLAIN, Program, RecordDef, RecordRegister, RecordValue

cdef struct RecordWeights:
    int32_t comma
    int32_t colon

cdef void parse_free(Program* program) noexcept nogil
cdef int32_t parse_local(Program* program, int32_t kind, int32_t index, int32_t phase,
                         int32_t count) noexcept nogil
cdef int32_t parse_rule_start(Program* program, int32_t rule) noexcept nogil
cdef Automaton* keyset_of(Program* program, int32_t place) noexcept nogil
cdef DottedItem* parse_expand(Program* program, int32_t id) noexcept nogil
cdef void parse_advance(Program* program, int32_t id, const Automaton* automaton, int32_t tag, int32_t key,
                        vector[int32_t]& out) noexcept nogil
cdef RecordRegister record_register(const RecordDef* record, int32_t id) noexcept nogil
cdef int32_t record_register_id(RecordDef* record, RecordRegister place) noexcept nogil
cdef int32_t record_taken_intern(RecordDef* record, const vector[char]& members) noexcept nogil
cdef cbool record_take(RecordDef* record, RecordRegister* place, const RecordValue& value) noexcept nogil
cdef void record_skip(const RecordDef* record, RecordRegister* place, int32_t to) noexcept nogil
cdef cbool record_complete(const RecordDef* record, RecordRegister place) noexcept nogil
cdef cbool record_key_alive(RecordDef* record, RecordRegister place, int32_t member) noexcept nogil
cdef int32_t record_search(RecordDef* record, RecordRegister place, const Costs* costs,
                           const RecordWeights* weights, cbool first) noexcept nogil


cdef inline int32_t parse_guard(const Program* program, int32_t id) noexcept nogil:
    # Of a dotted item before an array of different items; else 0.
    cdef const DottedItem* local = program.locals[id]
    return program.plain_guard[local.index] if local.kind == LOCAL_PLAIN else 0


cdef inline cbool dotted_waits(const DottedItem* local) noexcept nogil:
    return local.waits_for_line or not (local.terms.empty() and local.terminals.empty() and local.tokens.empty()
                                        and local.boundaries.empty())


cdef inline LexState* parse_term_start(const Program* program, int32_t term) noexcept nogil:
    return program.terminal_starts[-1 - term] if term < 0 else program.automata[term].start


cdef inline cbool record_is_keyless(const RecordDef* record) noexcept nogil:
    # An array: its members are values alone.
    return record.keys.empty()


cdef inline cbool record_has_others(const RecordDef* record) noexcept nogil:
    return <int32_t>record.values.size() > record.count
