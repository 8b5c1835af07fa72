from libc.stdint cimport int32_t, uint32_t, uint64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from maskwright._engine.containers cimport TextSets
from maskwright._engine.lexemes cimport Automaton, KeyPlace, KeyPosition, LexState

cdef enum:
    # what a byte of a backslash sequence spells
    ESCAPE_OPEN = -1               # nothing yet
    ESCAPE_BAD = -2

cdef cbool key_needs_escape(const Automaton* keys, const KeyPosition* at) noexcept nogil
cdef void key_narrow(const Automaton* keys, KeyPosition* at, uint8_t byte) noexcept nogil
cdef string key_spelling(int32_t c) noexcept nogil
cdef int32_t key_code_point(const string& name, size_t at) noexcept nogil
cdef cbool key_escape_fits(int32_t spelling, int32_t c, int32_t escape, uint32_t value) noexcept nogil
cdef string key_escape_rest(int32_t c, int32_t escape) noexcept nogil
cdef cbool texts_escape_alive(const TextSets* texts, int32_t spelling, int32_t escape, uint32_t value, int32_t set, int32_t at,
                              string begun) noexcept nogil
cdef int32_t escape_read(int32_t* escape, uint32_t* value, uint8_t byte) noexcept nogil
cdef void escape_ahead(int32_t escape, uint64_t* ahead) noexcept nogil
cdef LexState* key_intern(Automaton* keys, const KeyPlace& place) noexcept nogil
cdef int32_t key_filter_intern(Automaton* keys, const vector[char]& filter) noexcept nogil
cdef LexState* key_start(Automaton* keys, int32_t low, int32_t high, cbool other,
                         const vector[char]* allowed, int32_t used, cbool pending) noexcept nogil
cdef cbool key_may_run_out(const LexState* start) noexcept nogil
cdef cbool key_move(Automaton* keys, KeyPlace* place, uint8_t byte) noexcept nogil
cdef LexState* key_next(LexState* state, uint8_t byte) noexcept nogil
cdef void key_fill_first(LexState* state) noexcept nogil
cdef string key_text(const string& quoted) noexcept nogil


cdef inline cbool key_allows(const Automaton* keys, const KeyPosition* at, int32_t tag) noexcept nogil:
    return at.low <= tag <= at.high and (at.filter == 0 or keys.keyset.filters[at.filter][tag] != 0)


cdef inline KeyPlace key_place(const LexState* state) noexcept nogil:
    cdef KeyPlace place
    place.at = state.key
    place.base = state.base
    return place
