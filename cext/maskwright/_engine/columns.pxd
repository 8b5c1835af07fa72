from libc.stdint cimport int32_t
from libcpp.vector cimport vector

from maskwright._engine.program cimport Column, Program, Return

cdef void returns_normalize(vector[Return]& returns) noexcept nogil
cdef int32_t node_intern(Program* program, vector[Return]& returns) noexcept nogil
cdef void column_push(Column* column, int32_t local, int32_t node) noexcept nogil
cdef void column_forget(Column* column) noexcept nogil
cdef void column_close(Program* program, Column* column) noexcept nogil
cdef int32_t cycle_intern(Program* program, const vector[int32_t]& rules, vector[vector[Return]]& contents) noexcept nogil
cdef void column_resolve(Program* program, Column* column) noexcept nogil
