"""Whether what follows an inline schema competes with the same terminals once texts are taken from the schemas.

    start: x "a" "b" | y "ab" "c"       x: %json {"enum": [1, 11]}      y: %json {"enum": [1, 111]}

What follows one schema competes by longest match; what follows another one does not.  So "1ab" is a text: behind the 1 of ``x`` there is
only "a".  In what begins with a single 1, both schemas are the same number, one lexeme for the engine, and "ab" would win behind it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from maskwright.algebra.inexact import Inexact
from maskwright.algebra.rule_places import SCHEMAS, RulePlaces
from maskwright.base.deadline import check_time
from maskwright.ir.adjacency import Adjacency, Places, members
from maskwright.ir.grammar import Grammar


def check_schemas(grammar: Grammar) -> None:
    """Raises ``Inexact`` where a parser may wait for two inline schemas, and not for the same things behind both."""
    lexing = grammar.lexing
    assert lexing is not None
    schemas: dict[Hashable, int] = {}
    made = RulePlaces(grammar, schemas=schemas)
    if len(schemas) < 2:
        return
    places, count = made.places, len(lexing.terminals)
    _take_in(places)
    alike = _alike(places)
    # Each schema and what follows it is waited for like ignored text: it tells a state from others, and leads nowhere.
    pairs: dict[tuple[int, int], int] = {}
    for place, terms in enumerate(places.terms):
        places.ignored[place] = [
            count + pairs.setdefault((each, alike[behind]), len(pairs))
            for each, behind in terms
            if each <= SCHEMAS
        ]
    found = Adjacency(places, made.start).states()
    if found is None:
        raise Inexact("it is too large to tell whether two of its inline schemas may begin at one place")
    listed = list(pairs)
    for last, waits in found:
        behind: dict[int, set[int]] = {}
        for number in members(waits >> count):
            schema, place = listed[number]
            behind.setdefault(schema, set()).add(place)
        if len({frozenset(each) for each in behind.values()}) > 1:
            where = f"behind {lexing.names[last]}" if lexing.names and last >= 0 else "at some place"
            raise Inexact(
                f"{where} two of its inline schemas may begin, and different text may follow them: write a text before one of "
                "them, or one schema with anyOf"
            )


def _take_in(places: Places) -> None:
    """Where a rule is called that is one schema, wait for the schema itself."""
    ways: dict[int, tuple[Sequence[int], Sequence[int]]] = {}
    for rule, start in enumerate(places.starts):
        check_time()
        terms, calls = places.terms[start], places.calls[start]
        ends = {to for _, to in (*terms, *calls)}
        if terms and all(places.final[end] and not places.terms[end] + places.calls[end] for end in ends):
            if all(number <= SCHEMAS for number, _ in terms):
                ways[rule] = [number for number, _ in terms], [called for called, _ in calls]
    for place, calls in enumerate(places.calls):
        check_time()
        # One step: such a rule may call itself.
        kept: list[tuple[int, int]] = []
        for rule, back in calls:
            numbers, called = ways.get(rule, ((), (rule,)))
            places.terms[place] += [(number, back) for number in numbers]
            kept += [(each, back) for each in called]
        places.calls[place] = kept


def _alike(places: Places) -> list[int]:
    """By place, the first one from which the same ways lead on to the same ends."""
    found = list(range(len(places.final)))
    while True:
        check_time()
        firsts: dict[Hashable, int] = {}
        again = []
        for place, (terms, calls) in enumerate(zip(places.terms, places.calls, strict=True)):
            on = frozenset([(each, found[to]) for each, to in terms])
            back = frozenset([(rule, found[to]) for rule, to in calls])
            # The ends of two rules lead back to different callers.
            ways = place if places.final[place] else (on, back)
            again.append(firsts.setdefault(ways, place))
        if again == found:
            return found
        found = again
