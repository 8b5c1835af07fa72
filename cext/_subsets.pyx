# distutils: language = c++
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: embedsignature=True, freethreading_compatible=False
"""Minterms, and deterministic automata in C++ (see ``subsets.hpp``), for ``maskwright.determinize``.

A row of a state is a dict from symbols (minterms) to states; a symbol that is missing leads nowhere.
"""

from libc.stdint cimport int32_t, int64_t
from libcpp.pair cimport pair
from libcpp.utility cimport move as c_move
from libcpp.vector cimport vector

from bisect import bisect_right

from maskwright.errors import LimitError

cdef int64_t MAX_CODE = 0x7FFFFFFF
ctypedef pair[int32_t, int32_t] Step  # from, to

cdef extern from "rows.hpp" namespace "maskwright" nogil:
    cdef cppclass Strip[T]:
        size_t size()
        T& operator[](size_t)
    cdef cppclass Rows[T]:
        size_t size()
        Strip[T] operator[](size_t)
        void push_back(const vector[T]&)

cdef extern from "subsets.hpp" namespace "maskwright" nogil:
    cdef struct Move:
        int32_t symbol, target
    cdef cppclass Graph:
        Rows[Move] rows
        vector[char] accepting
    cdef cppclass Numbering:
        size_t size()
        Strip[const int32_t] key(int32_t id)
    cdef cppclass Subsets:
        Subsets(int32_t states, int32_t accept, int64_t max_states)
        void add_set(const vector[int32_t]& symbols)
        void add_edge(int32_t source, int32_t set, int32_t target)
        void add_epsilon(int32_t source, int32_t target)
        void start(int32_t state)
        bint accepting(int32_t state)
        void expand(int32_t state)
        Strip[const Move] row(int32_t state)
        int64_t exceeded()
        size_t size()
    cdef cppclass View:
        View(Subsets* automaton, const vector[vector[int32_t]]& finer)
    cdef cppclass Product:
        Rows[Move] rows
        vector[int32_t] kinds
        Numbering accepting
        int64_t exceeded
    cdef cppclass Explorer:
        Explorer(vector[View]& automata, const vector[char]& needed, int64_t max_states) except +
        void all(Product& out) except +
        int64_t shortest(const vector[int32_t]& wanted) except +
        int64_t exceeded()

cdef extern from "minimal.hpp" namespace "maskwright" nogil:
    cdef struct TableEdge "maskwright::Table::Edge":
        int32_t label, target
    cdef cppclass CTable "maskwright::Table":
        Rows[TableEdge] edges
        vector[char] accepting
        Numbering labels
    CTable c_table_of "maskwright::table_of"(Graph& dfa) except +
    vector[char] c_between "maskwright::between"(size_t states, const vector[Step]& steps, const vector[int32_t]& starts,
                                                 const vector[int32_t]& accepts) except +


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


cdef class SubsetAutomaton:
    """The deterministic automaton of an NFA, by lazy subset construction; state 0 is the start.

    ``sets``: symbols that edges are labelled with; ``edges``: (source, set, target); ``epsilons``:
    (source, target).  Raises ``LimitError`` above ``max_states`` states, or when the sets that stand for
    them become too large.
    """

    cdef Subsets* subsets
    cdef readonly int64_t max_states
    cdef dict rows

    def __init__(self, int32_t n_states, int32_t start, int32_t accept, list sets, list edges, list epsilons,
                 int64_t max_states):
        cdef int32_t source, label, target
        self.make(n_states, accept, max_states)
        for symbols in sets:
            self.subsets.add_set(symbols)
        for source, label, target in edges:
            self.subsets.add_edge(source, label, target)
        for source, target in epsilons:
            self.subsets.add_epsilon(source, target)
        self.begin(start)

    cdef void make(self, int32_t n_states, int32_t accept, int64_t max_states):
        self.max_states = max_states
        self.rows = {}
        self.subsets = new Subsets(n_states, accept, max_states)

    cdef int begin(self, int32_t start) except -1:
        self.subsets.start(start)
        return self.check()

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
        cdef Strip[const Move] row
        cdef size_t i
        cdef dict made
        known = self.rows.get(state)
        if known is None:
            self.subsets.expand(state)
            self.check()
            row = self.subsets.row(state)
            made = {}
            for i in range(row.size()):
                made[row[i].symbol] = row[i].target
            known = self.rows[state] = made
        return known


cdef class Table:
    """A minimal deterministic automaton, with one edge for each pair of states; state 0 is the start.

    It has no state when no text is accepted.
    """

    cdef CTable table

    def __len__(self):
        return self.table.edges.size()

    def accepting(self):
        """By state."""
        cdef size_t i
        return [bool(self.table.accepting[i]) for i in range(self.table.accepting.size())]

    def labels(self):
        """The sets of symbols that edges are labelled with, each in order."""
        cdef Strip[const int32_t] key
        cdef size_t i, j
        cdef list out = []
        for i in range(self.table.labels.size()):
            key = self.table.labels.key(i)
            out.append(tuple([key[j] for j in range(key.size())]))
        return out

    def edges(self, list labels):
        """(source, label, target) by source; ``labels``: what stands for each of ``labels()``."""
        cdef Strip[TableEdge] row
        cdef size_t source, i
        cdef list out = []
        for source in range(self.table.edges.size()):
            row = self.table.edges[source]
            for i in range(row.size()):
                out.append((source, labels[row[i].label], row[i].target))
        return out

    def rows(self):
        """By state, targets by symbol."""
        cdef Strip[TableEdge] row
        cdef Strip[const int32_t] key
        cdef size_t source, i, j
        cdef list out = []
        cdef dict made
        for source in range(self.table.edges.size()):
            row = self.table.edges[source]
            made = {}
            for i in range(row.size()):
                key = self.table.labels.key(row[i].label)
                for j in range(key.size()):
                    made[key[j]] = row[i].target
            out.append(made)
        return out

    def automaton(self, list members, int64_t max_states):
        """The automaton over another alphabet; ``members``: its symbols by label.  It must have a state."""
        cdef SubsetAutomaton out = SubsetAutomaton.__new__(SubsetAutomaton)
        cdef Strip[TableEdge] row
        cdef size_t source, i, n = self.table.edges.size()
        out.make(n + 1, n, max_states)
        for symbols in members:
            out.subsets.add_set(symbols)
        for source in range(n):
            row = self.table.edges[source]
            for i in range(row.size()):
                out.subsets.add_edge(source, row[i].label, row[i].target)
            if self.table.accepting[source]:
                out.subsets.add_epsilon(source, n)
        out.begin(0)
        return out


cdef Table made(Graph& dfa):
    out = Table()
    with nogil:
        out.table = c_table_of(dfa)
    return out


cdef class SideBySide:
    """Automata to be run side by side; ``finer``: by automaton and symbol, the common symbols that it is made of.

    States where an automaton is dead that is ``needed`` are not explored.
    """

    cdef list automata  # which the views are of
    cdef vector[View] views
    cdef vector[char] needed
    cdef int64_t max_states

    def __init__(self, list automata, list finer, list needed, int64_t max_states):
        cdef SubsetAutomaton automaton
        cdef vector[vector[int32_t]] symbols
        self.automata = automata
        for automaton, each in zip(automata, finer):
            symbols = each
            self.views.push_back(View(automaton.subsets, symbols))
        for flag in needed:
            self.needed.push_back(bool(flag))
        self.max_states = max_states

    cdef int check(self, int64_t exceeded) except -1:
        if exceeded:
            raise LimitError("max_regex_states", exceeded, self.max_states)
        return 0

    def combine(self, accept):
        """The minimal automaton of a boolean combination, as a table.

        ``accept``: from a tuple, which automata accept, to whether the combination does.  Raises ``LimitError``.
        """
        cdef Product product
        cdef Graph dfa
        cdef vector[char] kinds
        cdef Strip[const int32_t] inside
        cdef Explorer* explorer = new Explorer(self.views, self.needed, self.max_states)
        cdef size_t i, j
        try:
            with nogil:
                explorer.all(product)
        finally:
            del explorer
        self.check(product.exceeded)
        for i in range(product.accepting.size()):
            inside = product.accepting.key(i)
            kinds.push_back(bool(accept(tuple([bool(inside[j]) for j in range(inside.size())]))))
        for i in range(product.kinds.size()):
            dfa.accepting.push_back(kinds[product.kinds[i]])
        dfa.rows = c_move(product.rows)
        return made(dfa)

    def shortest(self, wanted):
        """The length of a shortest text that just those automata accept that are ``wanted``; None: there is none.

        Raises ``LimitError``.
        """
        cdef vector[int32_t] flags
        cdef int64_t length, exceeded
        cdef Explorer* explorer = new Explorer(self.views, self.needed, self.max_states)
        for flag in wanted:
            flags.push_back(bool(flag))
        try:
            with nogil:
                length = explorer.shortest(flags)
                exceeded = explorer.exceeded()
        finally:
            del explorer
        if length >= 0:
            return length
        self.check(exceeded)
        return None


def reduce(list rows, list accepting):
    """The minimal automaton of a deterministic one, as a table; ``rows``: by state, targets by symbol."""
    cdef Graph dfa
    cdef vector[Move] row
    cdef Move move
    for source in rows:
        row.clear()
        for move.symbol, move.target in (<dict>source).items():
            row.push_back(move)
        dfa.rows.push_back(row)
    for flag in accepting:
        dfa.accepting.push_back(bool(flag))
    return made(dfa)


def useful_states(int32_t n_states, list edges, list epsilons, list starts, list accepts):
    """The starts, and the states on a path from one to an accepting state, in order.

    ``edges`` and ``epsilons`` are tuples with a source in the first place; the target is the third of an edge and the
    second of an epsilon.
    """
    cdef vector[Step] steps
    cdef vector[char] useful
    cdef vector[int32_t] c_starts = starts, c_accepts = accepts
    cdef tuple edge
    cdef int32_t i
    steps.reserve(len(edges) + len(epsilons))
    for edge in edges:
        steps.push_back(Step(edge[0], edge[2]))
    for edge in epsilons:
        steps.push_back(Step(edge[0], edge[1]))
    with nogil:
        useful = c_between(n_states, steps, c_starts, c_accepts)
    return [i for i in range(n_states) if useful[i]]
