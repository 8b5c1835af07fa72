# The edges of automata under construction.

from libc.stdint cimport int32_t
from libcpp.vector cimport vector


cdef class Edges:
    """Edges (source, set, target) of an automaton that is being made, all of them numbers; in the order in which they came."""

    def __init__(self, edges=()):
        cdef Edge edge
        for edge.source, edge.set, edge.target in edges:
            self.items.push_back(edge)

    def __len__(self):
        return self.items.size()

    def __iter__(self):
        cdef size_t i
        for i in range(self.items.size()):
            yield self.items[i].source, self.items[i].set, self.items[i].target

    def append(self, int32_t source, int32_t set, int32_t target):
        self.items.push_back(Edge(source, set, target))

    def renumbered(self, list new):
        """The same between states with new numbers; without those at a state whose number is -1."""
        cdef Edges out = Edges.__new__(Edges)
        cdef vector[int32_t] number = new
        cdef Edge edge
        for edge in self.items:
            edge.source = number[edge.source]
            edge.target = number[edge.target]
            if edge.source >= 0 and edge.target >= 0:
                out.items.push_back(edge)
        return out

    def tobytes(self):
        """Three int32 for each edge."""
        return (<const char*>self.items.data())[:self.items.size() * sizeof(Edge)]
