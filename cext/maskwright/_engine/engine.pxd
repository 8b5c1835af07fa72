from libc.stdint cimport int32_t, int64_t

from maskwright._engine.token_index cimport TokenIndex
from maskwright._engine.lexemes cimport Automaton, MaskTable

cdef class AutomatonHandle:
    cdef Automaton* automaton
    cdef TokenIndex owner
    cdef object base               # of a keyset: the handle of the automaton for other keys
    cdef MaskTableHandle counted
    cdef readonly tuple names      # of a lexer: its terminals
    cdef int64_t used              # when it was last: a count of uses
    cdef int64_t made_of           # what its texts or edges take (bytes, about)
    cdef object __weakref__


cdef class MaskTableHandle:
    cdef MaskTable* table
    cdef TokenIndex owner
    cdef object __weakref__


cdef class Engine:
    cdef TokenIndex owner
    cdef readonly int vocab_size
    cdef readonly tuple eos_ids
    cdef dict recent               # automata used last, by content key
    cdef object automata           # others, as long as a grammar uses them
    cdef object tables             # masks of counted automata, by content without bounds
    cdef int64_t remembered        # how often one was used
    cdef int64_t grown             # `grown_bytes` when all were counted
    cdef int32_t next_uid
    cdef size_t longest            # token, in bytes
    cdef public dict special_tokens    # ids by name
    cdef public frozenset special_ids

    cdef AutomatonHandle new_automaton(self, int32_t kind, const Automaton* texts = *)
    cdef int remember(self, key, AutomatonHandle handle) except -1
    cdef int64_t forget_oldest(self) except -1
    cdef AutomatonHandle fresh_automaton(self, AutomatonHandle handle, AutomatonHandle base)

cdef int64_t handle_bytes(AutomatonHandle handle, bint states) except -1
