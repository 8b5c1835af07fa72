"""Newlines with the indentation behind them: one automaton that tells the column."""

from __future__ import annotations

from maskwright.limits import Limits
from maskwright.regular.automata import Columns
from maskwright.regular.determinize import minimal_dfa
from maskwright.regular.expressions import Chars, Regular, complement_ranges, intersect_ranges

_BREAK, _FEED, _SPACE = ((0x0A, 0x0A),), ((0x0C, 0x0C),), ((0x20, 0x20),)
_REST = complement_ranges(((0x0A, 0x0A), (0x0C, 0x0C), (0x20, 0x20)))


def column_automaton(newline: Regular, columns: int, limits: Limits) -> Columns:
    """The texts of ``newline`` by how many blanks follow the last line break, or form feed.

    One that ends otherwise, in a comment say, counts as column 0: only the end of the text can follow it.  With
    ``columns`` blanks or more it is a match of no terminal: fewer of them must not be taken for the column.
    """
    dfa = minimal_dfa(newline, limits)
    accepting, leaving = dfa.accepting, dfa.leaving()
    found = Columns([], [])
    # -1: nothing was read, -2: something else follows the line break.
    ids = {(0, -1): 0}
    work = [(0, -1)]
    for state, column in work:
        if accepting[state]:
            found.accepts.append((ids[state, column], None if column == columns else max(column, 0)))
        behind_blank = min(column + 1, columns) if column >= 0 else column
        # In a comment it is a character as any other.
        behind_feed = -2 if column == -2 else 0
        for label, target in leaving[state]:
            for some, after in (_BREAK, 0), (_FEED, behind_feed), (_SPACE, behind_blank), (_REST, -2):
                ranges = intersect_ranges(label.ranges, some)
                if not ranges:
                    continue
                if (target, after) not in ids:
                    ids[target, after] = len(ids)
                    work.append((target, after))
                found.edges.append((ids[state, column], Chars(ranges), ids[target, after]))
    return found
