"""Newlines with the indentation behind them: one automaton that tells the column."""

from __future__ import annotations

from maskwright.automata import Columns
from maskwright.determinize import product
from maskwright.limits import Limits
from maskwright.regular import Chars, Regular, alt, complement_ranges, repeat

_BREAK, _SPACE = Chars(((0x0A, 0x0A), (0x0C, 0x0C))), Chars(((0x20, 0x20),))
_REST = Chars(complement_ranges(((0x0A, 0x0A), (0x0C, 0x0C), (0x20, 0x20))))
_TEXT = repeat(alt(_BREAK, _SPACE, _REST), 0, None)


def column_automaton(newline: Regular, columns: int, limits: Limits) -> Columns:
    """The texts of ``newline`` by how many blanks follow the last line break, or form feed.

    One that ends otherwise, in a comment say, counts as column 0: only the end of the text can follow it.  With
    ``columns`` blanks or more it is a match of no terminal: fewer of them must not be taken for the column.
    """
    dfa = product([newline, _TEXT], all, [True, True], limits)
    minterms, rows, accepting = dfa.alphabet.minterms, dfa.rows, dfa.accepting
    breaks = {i for i, ranges in enumerate(minterms) if ranges[0][0] in (0x0A, 0x0C)}
    blanks = {i for i, ranges in enumerate(minterms) if ranges[0][0] == 0x20}
    found = Columns([], [])
    # -1: something else follows the line break.
    ids = {(0, -1): 0}
    work = [(0, -1)]
    for state, column in work:
        if accepting[state]:
            found.accepts.append((ids[state, column], None if column == columns else max(column, 0)))
        for minterm, target in rows[state].items():
            if minterm in breaks:
                after = 0
            elif minterm in blanks and column >= 0:
                after = min(column + 1, columns)
            else:
                after = -1
            if (target, after) not in ids:
                ids[target, after] = len(ids)
                work.append((target, after))
            found.edges.append((ids[state, column], Chars(tuple(minterms[minterm])), ids[target, after]))
    return found
