# distutils: language = c++
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: embedsignature=True, freethreading_compatible=False
"""Deterministic automata in C++ (see ``subsets.hpp``), for ``maskwright.determinize``.

A row of a state is a dict from symbols (minterms) to states; a symbol that is missing leads nowhere.
"""

from libc.stdint cimport int32_t, int64_t
from libcpp.pair cimport pair
from libcpp.vector cimport vector

from maskwright.errors import LimitError

cdef extern from "subsets.hpp" namespace "maskwright" nogil:
    ctypedef vector[pair[int32_t, int32_t]] DfaRow
    cdef cppclass Rows:
        vector[DfaRow] rows
        vector[char] accepting
    cdef cppclass Subsets:
        Subsets(int32_t states, int32_t accept, int64_t max_states)
        void add_set(const vector[int32_t]& symbols)
        void add_edge(int32_t source, int32_t set, int32_t target)
        void add_epsilon(int32_t source, int32_t target)
        void start(int32_t state)
        bint accepting(int32_t state)
        const DfaRow& row(int32_t state)
        int64_t exceeded()
    cdef cppclass Product:
        vector[DfaRow] rows
        vector[int32_t] kinds
        vector[vector[int32_t]] accepting
        int64_t exceeded
    void c_explore "maskwright::explore"(vector[Subsets*]& automata, const vector[char]& needed,
                                         int64_t max_states, Product& out) except +
    void c_trim "maskwright::trim"(Rows& dfa) except +
    void c_minimise "maskwright::minimise"(Rows& dfa) except +


cdef dict row_dict(const DfaRow& row):
    cdef size_t i
    out = {}
    for i in range(row.size()):
        out[row[i].first] = row[i].second
    return out


cdef tuple rows_lists(Rows& dfa):
    cdef size_t i
    return ([row_dict(dfa.rows[i]) for i in range(dfa.rows.size())],
            [bool(dfa.accepting[i]) for i in range(dfa.rows.size())])


cdef class SubsetAutomaton:
    """The deterministic automaton of an NFA, by lazy subset construction; state 0 is the start.

    ``sets``: symbols that edges are labelled with; ``edges``: (source, set, target); ``epsilons``:
    (source, target).  Raises ``LimitError`` above ``max_states`` states, or when the sets that stand for
    them become too large.
    """

    cdef Subsets* subsets
    cdef readonly int64_t max_states
    cdef dict rows

    def __cinit__(self, int32_t n_states, int32_t start, int32_t accept, list sets, list edges, list epsilons,
                  int64_t max_states):
        cdef int32_t source, label, target
        self.max_states = max_states
        self.rows = {}
        self.subsets = new Subsets(n_states, accept, max_states)
        for symbols in sets:
            self.subsets.add_set(symbols)
        for source, label, target in edges:
            self.subsets.add_edge(source, label, target)
        for source, target in epsilons:
            self.subsets.add_epsilon(source, target)
        self.subsets.start(start)
        self.check()

    def __dealloc__(self):
        del self.subsets

    cdef int check(self) except -1:
        if self.subsets.exceeded():
            raise LimitError("max_regex_states", self.subsets.exceeded(), self.max_states)
        return 0

    def accepting(self, int32_t state):
        return self.subsets.accepting(state)

    def row(self, int32_t state):
        """Target states by symbol; not to be changed."""
        cdef const DfaRow* row
        known = self.rows.get(state)
        if known is None:
            row = &self.subsets.row(state)
            self.check()
            known = self.rows[state] = row_dict(row[0])
        return known


def combine(list automata, list needed, accept, int64_t max_states):
    """Rows and accepting flags of the minimal automaton of a boolean combination; no rows for no text.

    ``accept``: from a tuple, which automata accept, to whether the combination does.  States where an
    automaton is dead that is ``needed`` are not explored.  Raises ``LimitError``.
    """
    cdef vector[Subsets*] parts
    cdef SubsetAutomaton automaton
    cdef Product product
    cdef Rows dfa
    cdef vector[char] need, kinds
    cdef size_t i
    for automaton in automata:
        parts.push_back(automaton.subsets)
    for flag in needed:
        need.push_back(bool(flag))
    with nogil:
        c_explore(parts, need, max_states, product)
    if product.exceeded:
        raise LimitError("max_regex_states", product.exceeded, max_states)
    for i in range(product.accepting.size()):
        kinds.push_back(bool(accept(tuple([bool(flag) for flag in product.accepting[i]]))))
    with nogil:
        dfa.rows.swap(product.rows)
        for i in range(product.kinds.size()):
            dfa.accepting.push_back(kinds[product.kinds[i]])
        c_trim(dfa)
        c_minimise(dfa)
    return rows_lists(dfa)


def reduce(list rows, list accepting):
    """Rows and accepting flags of the minimal automaton of a deterministic one."""
    cdef Rows dfa
    cdef DfaRow row
    cdef pair[int32_t, int32_t] move
    for source in rows:
        row.clear()
        for move.first, move.second in sorted(source.items()):
            row.push_back(move)
        dfa.rows.push_back(row)
    for flag in accepting:
        dfa.accepting.push_back(bool(flag))
    with nogil:
        c_trim(dfa)
        c_minimise(dfa)
    return rows_lists(dfa)
