from libcpp.vector cimport vector

from maskwright._engine.core cimport Core, Mask, Thread

cdef void plans_forget(Core* core) noexcept nogil
cdef void mask_lexed(Core* core, const vector[Thread]& threads, Mask* mask) noexcept nogil
