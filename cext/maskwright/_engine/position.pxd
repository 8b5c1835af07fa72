from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool
from libcpp.utility cimport move

from maskwright._engine.core cimport Core
from maskwright._engine.moves cimport Past
from maskwright._engine.compiled cimport CompiledCore

cdef class Position:
    cdef readonly CompiledCore compiled
    cdef Core* core                # the generation that it is in
    cdef Past past
    cdef int64_t window            # tokens that can be taken back; below zero: all
    cdef dict given                # bytes in place of tokens, by position
    cdef int32_t busy              # operations under way without the interpreter
    cdef cbool moving              # one of them takes it to another generation
    cdef void* before              # its neighbours among those that are in the core, or NULL
    cdef void* behind

    cdef void enter(self, Core* core) noexcept
    cdef void leave(self) noexcept
    cdef int alone(self) except -1
    cdef int begin(self) except -1
    cdef int meet_others(self) except -1
    cdef int move(self) except -1
    cdef int32_t follow(self, int32_t state, int64_t token) except -4
    cdef int32_t read(self, int32_t state, bytes data) except -4
    cdef cbool accepts(self, int32_t state) noexcept
    cdef int read_again(self, int64_t position) except -1
