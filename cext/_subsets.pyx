# distutils: language = c++
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: embedsignature=True, freethreading_compatible=False
"""Minterms, and deterministic automata in C++ (see ``subsets.hpp``), for ``maskwright.determinize``.

A row of a state is a dict from symbols (minterms) to states; a symbol that is missing leads nowhere.
"""

from libc.stdint cimport int32_t, int64_t
from libcpp.pair cimport pair
from libcpp.vector cimport vector

from bisect import bisect_right

from maskwright.errors import LimitError

cdef int64_t MAX_CODE = 0x7FFFFFFF

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
        size_t size()
    cdef cppclass View:
        View(Subsets* automaton, vector[vector[int32_t]] finer)
    cdef cppclass Product:
        vector[DfaRow] rows
        vector[int32_t] kinds
        vector[vector[int32_t]] accepting
        int64_t exceeded
    void c_explore "maskwright::explore"(vector[View]& automata, const vector[char]& needed,
                                         int64_t max_states, Product& out) except +
    void c_trim "maskwright::trim"(Rows& dfa) except +
    void c_minimise "maskwright::minimise"(Rows& dfa) except +


cdef class Alphabet:
    """The minterms of some sets of code points, as a partition of the ``universe``.

    A set is a tuple of ranges (low, high): sorted, disjoint, both ends included.  A minterm is a largest part
    of the universe that no set tells apart; ``minterms`` has the ranges of each.
    """

    cdef readonly list minterms
    cdef dict index, known
    cdef list signs
    cdef list points

    def __init__(self, universe, sets):
        cdef Py_ssize_t i
        cdef int64_t low, high, at, point
        cdef object inside, bit
        cdef dict toggles = {}, minterms = {}
        self.index = {universe: 0}
        self.known = {}
        for ranges in sets:
            self.index.setdefault(ranges, len(self.index))
        for ranges, i in self.index.items():
            bit = 1 << <object>i
            for low, high in ranges:
                toggles[low] = toggles.get(low, 0) ^ bit
                toggles[high + 1] = toggles.get(high + 1, 0) ^ bit
        inside, at = 0, 0
        for point in sorted(toggles):
            if inside & 1:
                found = minterms.get(inside)
                if found is None:
                    found = minterms[inside] = []
                (<list>found).append((at, point - 1))
            inside ^= toggles[point]
            at = point
        self.minterms = list(minterms.values())
        self.signs = list(minterms)

    def members(self, ranges):
        """The minterms that make up one of the sets given."""
        cdef Py_ssize_t i
        found = self.known.get(ranges)
        if found is None:
            bit = 1 << <object>self.index[ranges]
            members = []
            for i in range(len(self.signs)):
                if self.signs[i] & bit:
                    members.append(i)
            found = self.known[ranges] = tuple(members)
        return found

    def finer(self, Alphabet other):
        """By minterm, the minterms of another alphabet that it is made of; the other one is of more sets."""
        cdef list out = [[] for _ in self.minterms]
        cdef Py_ssize_t i
        for i in range(len(other.minterms)):
            out[self.minterm_of(other.minterms[i][0][0])].append(i)
        return out

    def minterm_of(self, int64_t code):
        """The minterm of a code point; None outside the universe."""
        cdef int64_t low, high
        if self.points is None:
            self.points = sorted(
                [(low, high, i) for i, ranges in enumerate(self.minterms) for low, high in ranges])
        at = bisect_right(self.points, (code, MAX_CODE)) - 1
        if at < 0 or code > self.points[at][1]:
            return None
        return self.points[at][2]

    cpdef tuple union(self, minterms):
        """The ranges of several minterms."""
        cdef int64_t low, high, from_ = -2, to = -2
        cdef list parts = [], out = []
        for i in minterms:
            parts += <list>self.minterms[i]
        if len(minterms) > 1:
            parts.sort()
        for low, high in parts:
            if low == to + 1:
                to = high
                continue
            if to >= 0:
                out.append((from_, to))
            from_, to = low, high
        if to >= 0:
            out.append((from_, to))
        return tuple(out)

    def edges(self, list rows):
        """One (source, ranges, target) for each pair of states; ``rows``: by state, targets by minterm."""
        cdef list out = []
        cdef dict unions = {}, together
        cdef Py_ssize_t state
        for state in range(len(rows)):
            together = {}
            for minterm, target in (<dict>rows[state]).items():
                found = together.get(target)
                if found is None:
                    together[target] = [minterm]
                else:
                    (<list>found).append(minterm)
            for target, minterms in together.items():
                key = tuple(minterms)
                ranges = unions.get(key)
                if ranges is None:
                    ranges = unions[key] = self.union(key)
                out.append((state, ranges, target))
        return out


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

    def __len__(self):
        """The states known so far."""
        return self.subsets.size()

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


def combine(list automata, list finer, list needed, accept, int64_t max_states):
    """Rows and accepting flags of the minimal automaton of a boolean combination; no rows for no text.

    ``finer``: by automaton and symbol, the symbols of the combination that it is made of.  ``accept``: from a tuple, which automata accept, to whether the combination does.  States where an
    automaton is dead that is ``needed`` are not explored.  Raises ``LimitError``.
    """
    cdef vector[View] parts
    cdef SubsetAutomaton automaton
    cdef vector[vector[int32_t]] symbols
    cdef Product product
    cdef Rows dfa
    cdef vector[char] need, kinds
    cdef size_t i
    for automaton, each in zip(automata, finer):
        symbols = each
        parts.push_back(View(automaton.subsets, symbols))
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
