"""Which terminals are waited for together: the automaton of the rules' places, beside one that is made here from sets of places."""

from __future__ import annotations

import random

import pytest

from maskwright.ir import adjacency
from maskwright.ir.adjacency import Adjacency, Places

TERMINALS = 4
LEXEMES = (-1, -2, -3)


def random_places(rng: random.Random, lexemes: tuple[int, ...] = LEXEMES) -> Places:
    """A few rules of a few places that call each other."""
    places = Places()
    rules = rng.randint(1, 4)
    of_rule = [[places.add(rng.random() < 0.4) for _ in range(rng.randint(1, 4))] for _ in range(rules)]
    places.starts = [some[0] for some in of_rule]
    for some in of_rule:
        for place in some:
            for _ in range(rng.randint(0, 2)):
                terminal = rng.randrange(TERMINALS) if rng.random() < 0.7 else rng.choice(lexemes)
                places.terms[place].append((terminal, rng.choice(some)))
            if rng.random() < 0.4:
                places.calls[place].append((rng.randrange(rules), rng.choice(some)))
            if rng.random() < 0.3:
                places.ignored[place].append(rng.randrange(TERMINALS))
    return places


def waits_by_last(flat: Places, start: int, lexemes: bool) -> set[tuple[int, int]]:
    """(terminal or -1, the terminals that are waited for behind it), of all rows of lexemes; any lexeme may be one of a row (-1)."""
    letters = sorted({each for terms in flat.terms for each, _ in terms} | {-1})
    if not lexemes:
        letters = [each for each in letters if each >= -1]

    def closed(some: set[int]) -> frozenset[int]:
        work = list(some)
        while work:
            for _, target in flat.calls[work.pop()]:
                if target not in some:
                    some.add(target)
                    work.append(target)
        return frozenset(some)

    def reads(edge: int, letter: int) -> bool:
        return edge == letter or (letter < 0 and (edge == -1 or (not lexemes and edge < 0)))

    found = set()
    seen = {(-1, closed({start}))}
    for last, state in (work := list(seen)):
        awaited = 0
        for place in state:
            awaited |= flat.awaited(place)
        found.add((last, awaited))
        for letter in letters:
            targets = {to for place in state for edge, to in flat.terms[place] if reads(edge, letter)}
            pair = max(letter, -1), closed(targets)
            if targets and pair not in seen:
                seen.add(pair)
                work.append(pair)
    return {each for each in found if each[1]}


@pytest.mark.parametrize("lexemes", [False, True])
def test_sets_are_those_of_all_rows_of_lexemes(lexemes: bool) -> None:
    rng = random.Random(3)
    sizes = set()
    for _ in range(1_500):
        places = random_places(rng)
        rules = Adjacency(places, 0)
        flat = adjacency._flat(places)
        found = rules._sets(flat, lexemes)
        assert found is not None
        assert set(found) == waits_by_last(flat, flat.starts[0], lexemes)
        sizes.add(len(found))
    assert len(sizes) > 10


def test_what_leads_to_no_end_is_waited_for_as_well() -> None:
    """A rule without an end: nothing of it may be left out."""
    places = Places()
    for _ in range(3):
        places.add()
    places.terms[0], places.terms[1] = [(0, 1)], [(1, 2)]
    places.starts = [0]
    assert Adjacency(places, 0).contexts(2) == [(-1, 0b01), (0, 0b10)]


def test_too_many_sets_are_those_of_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    rules = [Adjacency(random_places(rng), 0) for _ in range(200)]
    fine = [each.contexts(TERMINALS) for each in rules]
    for name in ("_MANY_STATES", "_MUCH_WORK"):
        monkeypatch.setattr(adjacency, name, 2)
        for each, sets in zip(rules, fine, strict=True):
            many = each._sets(adjacency._flat(each.places)) is None
            follow = [
                (i if i < TERMINALS else -1, some) for i, some in enumerate(each.follow(TERMINALS)) if some
            ]
            assert each.contexts(TERMINALS) == (follow if many else sets)
        assert sum(each._sets(adjacency._flat(each.places)) is None for each in rules) > 50
        monkeypatch.undo()


def opens_by_stack(places: Places) -> set[int]:
    """Terminals behind which a lexeme that is none may come, with calls inside each other up to a depth."""
    found = set()
    seen = {((places.starts[0],), -1)}
    for stack, last in (work := list(seen)):
        *below, place = stack
        if last >= 0 and any(terminal < 0 for terminal, _ in places.terms[place]):
            found.add(last)
        ways = [((*below, to), max(terminal, -1)) for terminal, to in places.terms[place]]
        if len(stack) < 5:
            ways += [((*below, back, places.starts[rule]), last) for rule, back in places.calls[place]]
        if below and places.final[place]:
            ways.append((tuple(below), last))
        for way in ways:
            if way not in seen:
                seen.add(way)
                work.append(way)
    return found


def test_terminals_behind_which_other_lexemes_come() -> None:
    rng = random.Random(5)
    equal = []
    for _ in range(500):
        places = random_places(rng)
        found, expected = set(Adjacency(places, 0).opens(TERMINALS)), opens_by_stack(places)
        assert expected <= found
        equal += [len(found)] if expected == found else []
    # There may be more where rules have no end, which pruned grammars do not have.
    assert len(equal) > 400
    assert set(equal) == {0, 1, 2, 3, 4}
