from maskwright.base.deadline cimport check_time
from maskwright.regular.expressions cimport Alt, Cat, Chars, Lit, Machine

cdef class Thompson:
    cdef readonly object limits
    cdef readonly bint counting
    cdef readonly Py_ssize_t n_states
    cdef readonly object edges
    cdef readonly list epsilons, loops
    cdef readonly dict sets
    cdef dict _loop_index, _measured, _stripped, _numbers, _codes
    cdef list _roots, _stack
    cpdef tuple key_of(self, tuple ranges)
    cdef object index_of(self, tuple ranges)
    cpdef other_leaf(self, object node, object source, object target)
    cpdef leaf(self, object node, object source, object target)
    cdef object _index(self, Chars node)
    cpdef object new_state(self)
    cpdef place(self, object root, object source, object target)
    cdef _place_text(self, object text, object source, object target)
    cdef _plain(self, object source, object target)
    cdef _counted(self, object op, object source, object target, object low, object high)
    cdef object _loop(self, object low, object high)
    cdef _place_repeat(self, object node, object source, object target, bint counting)
    cdef _place_machine(self, Machine node, object source, object target, bint counting)
    cdef _place_table(self, Machine node, object source, object target)
    cdef _place_bounded_table(self, Machine node, object source, object target)
    cdef _measure(self, object root)
    cdef object _measure_repeat(self, object node)
    cdef object _measure_machine(self, Machine node)
