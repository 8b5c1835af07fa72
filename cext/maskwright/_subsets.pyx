"""Minterms, and deterministic automata in C++ (see ``subsets.hpp``), for ``maskwright.regular.determinize``.

A row of a state is a dict from symbols (minterms) to states; a symbol that is missing leads nowhere.
"""

from libc.stdint cimport int32_t, int64_t
from libcpp.pair cimport pair
from libcpp.utility cimport move as c_move
from libcpp.vector cimport vector

from maskwright.base.deadline import check_time, out_of_time, seconds_left
from maskwright.errors import LimitError

from maskwright._engine.edges cimport Edge, Edges as EdgeList
from maskwright._engine.edges import Edges  # no-cython-lint

ctypedef pair[int32_t, int32_t] Step  # from, to

cdef extern from "rows.hpp" namespace "maskwright" nogil:
    cdef cppclass Span[T]:
        size_t size()
        T& operator[](size_t)
    cdef cppclass Csr[T]:
        size_t size()
        size_t items()
        Span[T] operator[](size_t)
        void push_back(const vector[T]&)

cdef extern from "subsets.hpp" namespace "maskwright" nogil:
    cdef int32_t kDead
    cdef char kRefuses, kAccepts, kEither
    cdef struct Move:
        int32_t symbol, target
    cdef cppclass Graph:
        Csr[Move] rows
        vector[char] accepting
    cdef cppclass Numbering:
        size_t size()
        Span[const int32_t] key(int32_t id)
    cdef cppclass Subsets:
        Subsets(size_t symbols, int32_t states, int32_t accept, int64_t max_states) except +
        void add_set(const vector[int32_t]& symbols) except +
        void add_edge(int32_t source, int32_t set, int32_t target) except +
        void add_epsilon(int32_t source, int32_t target) except +
        void start(int32_t state) except +
        bint accepting(int32_t state)
        void expand(int32_t state) except +
        size_t members(int32_t state)
        Span[const Move] row(int32_t state)
        int64_t exceeded()
        size_t size()
        size_t bytes()
    cdef cppclass View:
        View(Subsets* automaton, vector[int32_t] coarser, size_t symbols) except +
    cdef cppclass Product:
        Csr[Move] rows
        vector[char] accepted
        vector[int32_t] kinds
        Numbering accepting
        int64_t exceeded
    cdef cppclass Explorer:
        Explorer(vector[View]& automata, const vector[char]& wanted, int64_t max_states, double seconds) except +
        void all(Product& out) except +
        int64_t shortest() except +
        int64_t exceeded()
        bint late()

cdef extern from "alphabet.hpp" namespace "maskwright" nogil:
    cdef cppclass Range:
        int32_t low, high
    cdef struct Part "maskwright::Partition::Part":
        int32_t low, high, symbol
    cdef cppclass Partition:
        Partition()
        Partition(const Csr[Range]& sets) except +
        Partition(const vector[const Partition*]& each, vector[vector[int32_t]]& coarser) except +
        size_t size()
        Span[const Part] parts()
        Span[const int32_t] members(size_t set)
        int32_t symbol_of(int32_t code)
        vector[Range] ranges(const vector[int32_t]& symbols) except +

cdef extern from "minimal.hpp" namespace "maskwright" nogil:
    cdef struct TableEdge "maskwright::Table::Edge":
        int32_t label, target
    cdef cppclass CTable "maskwright::Table":
        Partition alphabet
        Csr[TableEdge] edges
        vector[char] accepting
        Numbering labels
        vector[int32_t] distances() except +
        int64_t least() except +
        size_t ranges(const Partition& symbols) except +
    CTable c_table_of "maskwright::table_of"(Graph& dfa, const Partition& alphabet) except +
    vector[char] c_between "maskwright::between"(size_t states, const vector[Step]& steps, const vector[int32_t]& starts,
                                                 const vector[int32_t]& accepts) except +


cdef enum:
    MANY_MEMBERS = 500     # of a set of states
    ROW_BYTES = 500        # of a row that Python sees


cdef class Alphabet:
    """The minterms of some sets of code points, as a partition of the ``universe``.

    A set is a tuple of ranges (low, high): sorted, disjoint, both ends included.  A minterm is a largest part
    of the universe that no set tells apart; they are numbered in the order of their least code points.
    """

    cdef Partition parts
    cdef dict index, known

    def __init__(self, universe, sets):
        cdef Csr[Range] c_sets
        self.index = {universe: 0}
        self.known = {}
        for ranges in sets:
            self.index.setdefault(ranges, len(self.index))
        for ranges in self.index:
            c_sets.push_back(read_ranges(ranges))
        self.parts = Partition(c_sets)

    def __len__(self):
        return self.parts.size()

    def members(self, ranges):
        """The minterms that make up one of the sets given."""
        cdef Span[const int32_t] symbols
        cdef size_t i
        found = self.known.get(ranges)
        if found is None:
            symbols = self.parts.members(self.index[ranges])
            found = self.known[ranges] = tuple([symbols[i] for i in range(symbols.size())])
        return found

    cpdef tuple union(self, minterms):
        """The ranges of several minterms."""
        cdef vector[int32_t] symbols
        cdef int32_t symbol
        for symbol in minterms:
            symbols.push_back(symbol)
        return written_ranges(self.parts.ranges(symbols))


cdef Alphabet alphabet_of_parts(Partition& parts):
    # The minterms of a partition, which is taken.
    cdef Alphabet out = Alphabet.__new__(Alphabet)
    out.index = {}
    out.known = {}
    out.parts = c_move(parts)
    return out


cdef vector[Range] read_ranges(tuple ranges) except *:
    cdef vector[Range] out
    cdef Range each
    for each.low, each.high in ranges:
        out.push_back(each)
    return out


cdef tuple written_ranges(const vector[Range]& ranges):
    cdef size_t i
    return tuple([(ranges[i].low, ranges[i].high) for i in range(ranges.size())])


def useful_states(int32_t n_states, EdgeList edges, list epsilons, list starts, list accepts):
    """The starts, and the states on a path from one to an accepting state, in order.

    ``epsilons`` are tuples that begin with source and target.
    """
    cdef vector[Step] steps
    cdef vector[char] useful
    cdef vector[int32_t] c_starts = starts, c_accepts = accepts
    cdef tuple epsilon
    cdef Edge edge
    cdef int32_t i
    steps.reserve(edges.items.size() + len(epsilons))
    for edge in edges.items:
        steps.push_back(Step(edge.source, edge.target))
    for epsilon in epsilons:
        steps.push_back(Step(epsilon[0], epsilon[1]))
    with nogil:
        useful = c_between(n_states, steps, c_starts, c_accepts)
    return [i for i in range(n_states) if useful[i]]


cdef class SubsetAutomaton:
    """The deterministic automaton of an NFA, by lazy subset construction; state 0 is the start.

    ``sets``: symbols of the ``alphabet`` that edges are labelled with; ``epsilons``: (source, target).  Raises ``LimitError`` above
    ``max_states`` states, or when the sets that stand for them become too large.
    """

    cdef Subsets* subsets
    cdef readonly int64_t max_states
    cdef dict rows

    def __init__(self, Alphabet alphabet, int32_t n_states, int32_t start, int32_t accept, list sets, EdgeList edges,
                 list epsilons, int64_t max_states):
        cdef int32_t source, target
        cdef Edge edge
        self.make(alphabet, n_states, accept, max_states)
        for symbols in sets:
            self.subsets.add_set(symbols)
        for edge in edges.items:
            self.subsets.add_edge(edge.source, edge.set, edge.target)
        for source, target in epsilons:
            self.subsets.add_epsilon(source, target)
        self.begin(start)

    cdef int make(self, Alphabet alphabet, int32_t n_states, int32_t accept, int64_t max_states) except -1:
        self.max_states = max_states
        self.rows = {}
        self.subsets = new Subsets(alphabet.parts.size(), n_states, accept, max_states)
        return 0

    cdef int begin(self, int32_t start) except -1:
        self.subsets.start(start)
        return self.check()

    def __dealloc__(self):
        with nogil:
            del self.subsets

    cdef int check(self) except -1:
        if self.subsets.exceeded():
            raise LimitError("max_regex_states", self.subsets.exceeded(), self.max_states)
        return 0

    cdef int expand(self, int32_t state) except -1:
        if self.subsets.members(state) > MANY_MEMBERS:
            # It takes long.  An automaton belongs to one thread.
            with nogil:
                self.subsets.expand(state)
        else:
            self.subsets.expand(state)
        return self.check()

    def __len__(self):
        """The states known so far."""
        return self.subsets.size()

    def held_bytes(self):
        """About what it takes: the NFA, and what was determinised of it."""
        return self.subsets.bytes() + ROW_BYTES * len(self.rows)

    def accepting(self, int32_t state):
        return self.subsets.accepting(state)

    def row(self, int32_t state):
        """Target states by symbol; not to be changed."""
        cdef Span[const Move] row
        cdef size_t i
        cdef dict made
        known = self.rows.get(state)
        if known is None:
            self.expand(state)
            row = self.subsets.row(state)
            made = {}
            for i in range(row.size()):
                made[row[i].symbol] = row[i].target
            known = self.rows[state] = made
        return known

    def matches(self, Alphabet alphabet, str text):
        """Whether a text is in the language; ``alphabet``: the one that the symbols are of."""
        cdef Span[const Move] row
        cdef int32_t state = 0, after, symbol
        cdef size_t i
        cdef Py_UCS4 c
        for c in text:
            symbol = alphabet.parts.symbol_of(c)
            if symbol == kDead:
                return False
            self.expand(state)
            row = self.subsets.row(state)
            after = kDead
            for i in range(row.size()):
                if row[i].symbol == symbol:
                    after = row[i].target
                    break
            if after == kDead:
                return False
            state = after
        return self.subsets.accepting(state)


cdef class Table:
    """The minimal deterministic automaton of a language, with one edge for each pair of states; state 0 is the start.

    It has no state when no text is accepted.  Equal languages have equal tables.
    """

    cdef CTable table
    cdef readonly Alphabet alphabet
    cdef bytes known_content

    def __len__(self):
        return self.table.edges.size()

    def weight(self):
        """About how many small objects Python makes of its edges, their labels and the sets of its alphabet."""
        return self.table.edges.items() + 3 * (self.table.ranges(self.alphabet.parts) + sum(map(len, self.alphabet.index)))

    def accepting(self):
        """By state."""
        cdef size_t i
        return [bool(self.table.accepting[i]) for i in range(self.table.accepting.size())]

    def labels(self):
        """The sets that edges are labelled with."""
        cdef size_t i
        return [written_ranges(self.alphabet.parts.ranges(self.label(i))) for i in range(self.table.labels.size())]

    cdef vector[int32_t] label(self, size_t i):
        # Its symbols.
        cdef Span[const int32_t] key = self.table.labels.key(i)
        cdef vector[int32_t] symbols
        cdef size_t j
        for j in range(key.size()):
            symbols.push_back(key[j])
        return symbols

    def edges(self, list labels):
        """(source, label, target) by source; ``labels``: what stands for each of ``labels()``."""
        cdef Span[TableEdge] row
        cdef size_t source, i
        cdef list out = []
        for source in range(self.table.edges.size()):
            if source & 255 == 255:
                check_time()
            row = self.table.edges[source]
            for i in range(row.size()):
                out.append((source, labels[row[i].label], row[i].target))
        return out

    def rows(self):
        """By state, targets by symbol of the ``alphabet``."""
        cdef Span[TableEdge] row
        cdef Span[const int32_t] key
        cdef size_t source, i, j
        cdef list out = []
        cdef dict made
        for source in range(self.table.edges.size()):
            if source & 255 == 255:
                check_time()
            row = self.table.edges[source]
            made = {}
            for i in range(row.size()):
                key = self.table.labels.key(row[i].label)
                for j in range(key.size()):
                    made[key[j]] = row[i].target
            out.append(made)
        return out

    def content(self):
        """The same for equal languages, and for no others."""
        cdef vector[int32_t] out
        cdef Span[const Part] parts
        cdef Span[TableEdge] row
        cdef Span[const int32_t] key
        cdef size_t i, j
        if self.known_content is None:
            parts = self.alphabet.parts.parts()
            for i in range(parts.size()):
                out.push_back(parts[i].low)
                out.push_back(parts[i].high)
                out.push_back(parts[i].symbol)
            for i in range(self.table.labels.size()):
                key = self.table.labels.key(i)
                out.push_back(~<int32_t>key.size())
                for j in range(key.size()):
                    out.push_back(key[j])
            for i in range(self.table.edges.size()):
                row = self.table.edges[i]
                out.push_back(~<int32_t>(2 * row.size() + self.table.accepting[i]))
                for j in range(row.size()):
                    out.push_back(row[j].label)
                    out.push_back(row[j].target)
            self.known_content = (<char*>out.data())[:out.size() * sizeof(int32_t)]
        return self.known_content

    def least_length(self):
        """Of a text; None: there is none."""
        cdef int64_t length = self.table.least()
        return None if length == kDead else length

    def place(self, int32_t source, int32_t target, int32_t fresh, list sets, EdgeList edges):
        """Add an edge for each one, between states of the caller's.

        The start is at ``source`` and the accepting state at ``target`` where they can be, others from ``fresh`` on.
        ``sets``: what stands for each of ``labels()``.  Returns the next fresh state, and pairs of states that an
        empty step must lead between.
        """
        cdef Span[TableEdge] row
        cdef size_t n = self.table.edges.size(), state, i
        cdef vector[char] entered
        cdef vector[int32_t] at
        cdef int32_t only = kDead, accepting = 0
        cdef list steps = []
        cdef vector[int32_t] set_of = sets
        entered.resize(n, 0)
        at.resize(n, kDead)
        for state in range(n):
            row = self.table.edges[state]
            for i in range(row.size()):
                entered[row[i].target] = 1
            if self.table.accepting[state]:
                accepting += 1
                only = state
        if n and not entered[0]:
            at[0] = source
        if accepting == 1 and only != 0 and not self.table.edges[only].size():
            at[only] = target
        for state in range(n):
            if at[state] == kDead:
                at[state] = fresh
                fresh += 1
        if n and at[0] != source:
            steps.append((source, at[0]))
        for state in range(n):
            row = self.table.edges[state]
            for i in range(row.size()):
                edges.items.push_back(Edge(at[state], set_of[row[i].label], at[row[i].target]))
            if self.table.accepting[state] and at[state] != target:
                steps.append((at[state], target))
        return fresh, steps

    def place_bounded(self, int32_t fresh, int64_t most, list sets, EdgeList edges):
        """Add an edge for each one that is on a way of at most ``most`` edges (-1: any number).

        State i is placed at ``fresh`` + i; its edges leave from states behind it, from which as many edges may be
        needed up to the end.  Returns (state, that behind it, edges needed) for these, the next fresh state, and where the
        accepting states are.  ``sets``: as for ``place``.
        """
        cdef vector[int32_t] needed = self.table.distances()
        cdef Span[TableEdge] row
        cdef size_t n = self.table.edges.size(), state, i
        cdef int32_t first = fresh, need
        cdef vector[int32_t] behind        # by number of edges needed: state + 1 of the caller's, of the current state
        cdef vector[int32_t] set_of = sets
        cdef list entries = []
        behind.resize(n + 1, 0)
        fresh += <int32_t>n
        for state in range(n):
            row = self.table.edges[state]
            for i in range(row.size()):
                need = needed[row[i].target] if most >= 0 else 0
                if most >= 0 and need >= most:
                    continue
                if behind[need] == 0:
                    entries.append((first + <int32_t>state, fresh, need))
                    fresh += 1
                    behind[need] = fresh
                edges.items.push_back(Edge(behind[need] - 1, set_of[row[i].label], first + row[i].target))
            for i in range(row.size()):
                behind[needed[row[i].target] if most >= 0 else 0] = 0
        return entries, fresh, [first + <int32_t>state for state in range(n) if self.table.accepting[state]]

    def automaton(self, int64_t max_states):
        """The automaton to be read, over the ``alphabet``.  It must have a state."""
        cdef SubsetAutomaton out = SubsetAutomaton.__new__(SubsetAutomaton)
        cdef Span[TableEdge] row
        cdef size_t source, i, n = self.table.edges.size()
        out.make(self.alphabet, n + 1, n, max_states)
        for i in range(self.table.labels.size()):
            out.subsets.add_set(self.label(i))
        for source in range(n):
            row = self.table.edges[source]
            for i in range(row.size()):
                out.subsets.add_edge(source, row[i].label, row[i].target)
            if self.table.accepting[source]:
                out.subsets.add_epsilon(source, n)
        out.begin(0)
        return out


cdef Table made(Graph& dfa, Alphabet alphabet):
    cdef Table out = Table.__new__(Table)
    cdef const Partition* parts = &alphabet.parts
    with nogil:
        out.table = c_table_of(dfa, parts[0])
    out.alphabet = alphabet_of_parts(out.table.alphabet)
    return out


cdef class SideBySide:
    """Automata to be run side by side, each over an alphabet of its own (all of one universe).

    ``wanted``: by automaton, whether it is to accept; None: either way.
    """

    cdef list automata  # which the views are of
    cdef Alphabet alphabet  # of all
    cdef vector[View] views
    cdef vector[char] wanted
    cdef int64_t max_states

    def __init__(self, list automata, list alphabets, list wanted, int64_t max_states):
        cdef SubsetAutomaton automaton
        cdef Alphabet alphabet
        cdef vector[const Partition*] each
        cdef vector[vector[int32_t]] coarser
        cdef Partition parts
        cdef size_t i
        self.automata = automata
        for alphabet in alphabets:
            each.push_back(&alphabet.parts)
        parts = Partition(each, coarser)
        self.alphabet = alphabet_of_parts(parts)
        for i in range(each.size()):
            automaton = automata[i]
            self.views.push_back(View(automaton.subsets, c_move(coarser[i]), each[i].size()))
        for flag in wanted:
            self.wanted.push_back(kEither if flag is None else kAccepts if flag else kRefuses)
        self.max_states = max_states

    cdef int check(self, int64_t exceeded, bint late) except -1:
        if late:
            out_of_time()
        if exceeded:
            raise LimitError("max_regex_states", exceeded, self.max_states)
        return 0

    cdef int explore(self, Product& product) except -1:
        cdef Explorer* explorer = new Explorer(self.views, self.wanted, self.max_states, seconds_left())
        cdef bint late
        try:
            with nogil:
                explorer.all(product)
                late = explorer.late()
        finally:
            del explorer
        return self.check(product.exceeded, late)

    def combine(self):
        """The minimal automaton of the texts with which all automata do what is wanted.  Raises ``LimitError``."""
        cdef Product product
        cdef Graph dfa
        self.explore(product)
        dfa.accepting = c_move(product.accepted)
        dfa.rows = c_move(product.rows)
        return made(dfa, self.alphabet)

    def divide(self):
        """By which automata accept (a byte for each, 1 or 0) the table of the texts that just those accept.  Raises ``LimitError``."""
        cdef Product product
        cdef Graph dfa
        cdef Span[const int32_t] inside
        cdef size_t kind, i
        cdef dict out = {}
        self.explore(product)
        for kind in range(product.accepting.size()):
            check_time()
            inside = product.accepting.key(kind)
            dfa.rows = product.rows
            dfa.accepting.clear()
            for i in range(product.kinds.size()):
                dfa.accepting.push_back(product.kinds[i] == <int32_t>kind)
            out[bytes([inside[i] != 0 for i in range(inside.size())])] = made(dfa, self.alphabet)
        return out

    def shortest(self):
        """The length of a shortest text with which all automata do what is wanted; None: there is none.

        Raises ``LimitError``.
        """
        cdef int64_t length, exceeded
        cdef bint late
        cdef Explorer* explorer = new Explorer(self.views, self.wanted, self.max_states, seconds_left())
        try:
            with nogil:
                length = explorer.shortest()
                exceeded = explorer.exceeded()
                late = explorer.late()
        finally:
            del explorer
        if length >= 0:
            return length
        self.check(exceeded, late)
        return None


def reduce(Alphabet alphabet, list rows, list accepting):
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
    return made(dfa, alphabet)
