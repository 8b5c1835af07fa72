from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.string cimport string

from maskwright._engine.tracked cimport Texts, Value, VALUE_FALSE, VALUE_NULL, VALUE_TRUE, Values

cdef enum:
    UNKNOWN_TEXT = 0x7FFFFFFF      # some text, of several that are possible (sets.pyx)

cdef void values_free(Values* store) noexcept nogil
cdef int32_t text_append(Texts* texts, int32_t text, uint8_t byte) noexcept nogil
cdef string text_bytes(const Texts* texts, int32_t text) noexcept nogil
cdef int64_t text_characters(const Texts* texts, int32_t text) noexcept nogil
cdef void number_digits(const string& text, string& digits, cbool* negative, cbool* scientific, int64_t* power) noexcept nogil
cdef string number_text(const string& text) noexcept nogil
cdef int32_t value_scalar(Values* store, int32_t kind, const string& text) noexcept nogil
cdef int32_t value_list(Values* store, cbool is_object, int32_t cells) noexcept nogil
cdef int32_t value_member(const Value* value, int32_t key) noexcept nogil
cdef int32_t cell_intern(Values* store, int32_t before, int32_t key, int32_t value) noexcept nogil
cdef int32_t cell_insert(Values* store, int32_t cells, int32_t key, int32_t value) noexcept nogil
cdef int32_t number_append(Texts* texts, int32_t text, uint8_t byte) noexcept nogil
cdef cbool string_compatible(const Value* value, const string& text, int32_t escape, uint32_t half) noexcept nogil
cdef cbool exponent_compatible(int64_t exponent, const string& text) noexcept nogil
cdef cbool number_compatible(const Value* value, const string& text) noexcept nogil
cdef int32_t number_length(const Value* value) noexcept nogil
cdef int64_t mantissa_power(const string& text) noexcept nogil
cdef cbool number_plain(const Value* value, const string& text) noexcept nogil


cdef inline cbool is_blank(uint8_t byte) noexcept nogil:
    return byte == 32 or byte == 10 or byte == 13 or byte == 9


cdef inline int32_t literal_kind(uint8_t byte) noexcept nogil:
    return VALUE_NULL if byte == 110 else VALUE_TRUE if byte == 116 else VALUE_FALSE
