"""Whether ignored text can be said by rules, where modes of a lexer ignore different things.

Reading ignored text leaves a parser where it is, with all that it waits for:

    start: "a" c? "b"       c[mode=other]: "c"      %ignore " "     (the other mode ignores nothing)

Behind "a" a blank may come, as the main mode waits there for "b".  So "a cb" is a text, though nothing is ignored before "c".  A
rule that reads the blank before "b" would leave "c" behind.  Where all that is waited for has the same ignored text before it, rules
say it, and that is what is found out here: for all states of the parser, as far as these are known without the stack (``Adjacency``).
"""

from __future__ import annotations

from maskwright.algebra.inexact import Inexact
from maskwright.algebra.rule_places import IgnoredSet, RulePlaces
from maskwright.ir.adjacency import Adjacency
from maskwright.ir.grammar import Grammar


def check_alike(grammar: Grammar, ignored: IgnoredSet) -> None:
    """Raises ``Inexact`` where a parser may wait for two things before which different text is ignored (``Lexing.placed``)."""
    lexing = grammar.lexing
    assert lexing is not None
    made = RulePlaces(grammar, ignored)
    places, count = made.places, len(lexing.terminals)
    numbers: dict[IgnoredSet, int] = {}
    for place, terms in enumerate(places.terms):
        if terms:
            before = made.before.get(place, frozenset())
            places.ignored[place] = [count + numbers.setdefault(before, len(numbers))]
    found = Adjacency(places, made.start).states()
    if found is None:
        raise Inexact("it is too large to tell whether its modes ignore the same text wherever they meet")
    for last, waits in found:
        if (waits >> count).bit_count() > 1:
            where = f"behind {lexing.names[last]}" if lexing.names and last >= 0 else "at some place"
            raise Inexact(
                f"what it ignores depends on the mode of its lexer, and {where} two modes wait together: let a mode begin and end with "
                "terminals of its own"
            )
