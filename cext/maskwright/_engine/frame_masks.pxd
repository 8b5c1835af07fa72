from libc.stdint cimport int32_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from maskwright._engine.lexemes cimport LexState
from maskwright._engine.core cimport Core, Mask, Thread

cdef void framemasks_forget(Core* core) noexcept nogil
cdef void mask_join_thread(Core* core, const vector[Thread]& threads, Mask* mask, LexState* lex,
                           int32_t parser, cbool alone) noexcept nogil
