from libc.stdint cimport int32_t, uint8_t
from libcpp.vector cimport vector

from maskwright._engine.containers cimport Csr
from maskwright._engine.program cimport Call, PlainTerm, Program, RecordDef, RepeatedDef, RuleStart
from maskwright._engine.tracked cimport Guard
from maskwright._engine.token_index cimport TokenIndex
from maskwright._engine.engine cimport AutomatonHandle, Engine

cdef class Tables:
    cdef readonly Engine engine
    cdef TokenIndex owner          # the collector may clear the engine first
    cdef list handles
    cdef readonly AutomatonHandle lexer        # or None
    cdef readonly list imports
    cdef readonly list names                   # of the rules
    cdef Csr[PlainTerm] plain_terms
    cdef Csr[Call] plain_calls
    cdef vector[uint8_t] plain_final
    cdef vector[int32_t] plain_guard
    cdef vector[Guard] guards
    cdef vector[RuleStart] rules
    cdef vector[RepeatedDef] repeated
    cdef vector[RecordDef] records
    cdef vector[int32_t] indented
    cdef int32_t start_rule
    cdef public object reader      # of captures, or None (maskwright.compiling.captures)
    cdef public object tokens      # which tokens stand for themselves (maskwright.ir.grammar.Tokens), by number of an automaton


cdef void link_tables(Program* program, vector[Guard]* guards, Tables tables, list handles, const vector[int32_t]& imports) except *
