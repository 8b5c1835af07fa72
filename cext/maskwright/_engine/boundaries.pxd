from libcpp.vector cimport vector

from maskwright._engine.core cimport Core, Mask, Thread

cdef void mask_add_crossing(Core* core, const vector[Thread]& threads, Mask* mask) noexcept nogil
