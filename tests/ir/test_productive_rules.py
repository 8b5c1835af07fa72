"""Which rules derive a text: the answers of a naive fixpoint, and each rule is looked at few times."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import toys

import maskwright as mw
from maskwright._core import CompiledCore, Matcher
from maskwright.ir import prune
from maskwright.ir.grammar import (
    FAIL,
    Body,
    Choice,
    Distinct,
    Expr,
    Grammar,
    Lexeme,
    Member,
    OtherMembers,
    Record,
    Ref,
    Repeated,
    Seq,
    Term,
)
from maskwright.regular.expressions import Lit

A = Term(Lexeme("a", Lit("a")))


def expression(rng: random.Random, rules: int, depth: int) -> Expr:
    kind = rng.randrange(4 if depth else 2)
    if kind == 0:
        return rng.choice((A, FAIL))
    if kind == 1:
        return Ref(rng.randrange(rules))
    items = tuple(expression(rng, rules, depth - 1) for _ in range(rng.randint(1, 3)))
    return Seq(items) if kind == 2 else Choice(items)


def body(rng: random.Random, rules: int) -> Body:
    if rng.random() < 0.2:
        return Repeated(rng.randrange(rules), rng.randrange(rules), rng.randint(0, 2), rng.choice((None, 2)))
    return expression(rng, rules, 2)


def derives(rule: Body | None, good: set[int]) -> bool:
    if isinstance(rule, Ref):
        return rule.rule in good
    if isinstance(rule, Seq):
        return all(derives(item, good) for item in rule.items)
    if isinstance(rule, Choice):
        return any(derives(item, good) for item in rule.items)
    if isinstance(rule, Repeated):
        needed = {rule.first, rule.rest} if rule.min > 1 else {rule.first} if rule.min else set()
        return needed <= good
    return True


def naive(grammar: Grammar) -> list[bool]:
    good: set[int] = set()
    for _ in grammar.rules:
        good |= {i for i, rule in enumerate(grammar.rules) if derives(rule, good)}
    return [i in good for i in range(len(grammar.rules))]


def test_random_grammars() -> None:
    for seed in range(2000):
        rng = random.Random(seed)
        size = rng.randint(1, 14)
        bodies = [body(rng, size) for _ in range(size)]
        grammar = Grammar(rules=list(bodies), names=[str(i) for i in range(size)])
        assert prune.productive_rules(grammar) == naive(grammar)


def values(rng: random.Random, obligations: int) -> tuple[tuple[int, int], ...]:
    """Ways to write a value: a rule out of three, and the obligations that it reaches."""
    return tuple((rng.randrange(3), rng.randrange(1 << obligations)) for _ in range(rng.randint(0, 3)))


def record(rng: random.Random) -> Record:
    owed = rng.randint(0, 3)
    members = tuple(
        Member(str(i), values(rng, owed), rng.random() < 0.3, rng.randrange(1 << owed))
        for i in range(rng.randint(0, 4))
    )
    others = tuple(OtherMembers(None, values(rng, owed)) for _ in range(rng.randint(0, 2)))
    least = rng.randint(0, 4)
    most = rng.choice((None, least, least + 1, least + 3))
    return Record(members, others, A, A, A, A, A, least, most, owed)


def can_be_written(of: Record, good: list[bool]) -> bool:
    """All choices of members and of the ways to write them, one by one."""
    choices = [
        [(1, bits) for rule, bits in member.values if good[rule]]
        + ([] if member.required else [(0, member.absent)])
        for member in of.members
    ]
    more = [bits for other in of.others for rule, bits in other.values if good[rule]]
    # So many undeclared ones are enough for each obligation and for the least number.
    for declared in itertools.product(*choices):
        for several in range(1 + (of.obligations + of.min if more else 0)):
            count = several + sum(number for number, _ in declared)
            if count < of.min or (of.max is not None and count > of.max):
                continue
            for undeclared in itertools.combinations_with_replacement(sorted(set(more)), several):
                reached = 0
                for bits in (*(bits for _, bits in declared), *undeclared):
                    reached |= bits
                if reached == (1 << of.obligations) - 1:
                    return True
    return False


def test_random_records() -> None:
    answers = []
    for seed in range(3000):
        rng = random.Random(seed)
        of, good = record(rng), [rng.random() < 0.7 for _ in range(3)]
        answers.append(can_be_written(of, good))
        assert prune.is_completable(of, good) == answers[-1], of
    assert 500 < sum(answers) < 2500


def test_long_chains() -> None:
    """Each rule refers to the one before, or to the one behind: the last one settles last."""
    for step in (-1, 1):
        rules: list[Body | None] = [Seq((A, Ref((i + step) % 3000))) for i in range(3000)]
        rules[1500] = A
        grammar = Grammar(rules=rules, names=[str(i) for i in range(3000)])
        assert prune.productive_rules(grammar) == [True] * 3000


def test_a_rule_that_waits_for_many_is_looked_at_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    original = prune.is_completable
    monkeypatch.setattr(
        prune, "is_completable", lambda record, good: calls.append(record) or original(record, good)
    )
    known = {"type": "object", "properties": {"v": {"type": "string"}}, "required": ["v"]}
    member = {"type": "object", "properties": {"x": {"$ref": "#/$defs/known"}}, "required": ["x"]}
    members = {f"p{i}": {**member, "title": str(i)} for i in range(60)}
    schema = {
        "$defs": {"known": known},
        "type": "object",
        "properties": {"first": {"$ref": "#/$defs/known"}, **members},
        "additionalProperties": False,
        "minProperties": 61,
    }
    vocabulary = mw.Vocabulary([bytes([i]) for i in range(256)] + [b""], (256,))
    mw.compile_json_schema(schema, vocabulary)
    assert 0 < len(calls) <= 6


@pytest.mark.parametrize(("first", "rest"), [*itertools.product((A, FAIL), (toys.term("b"), FAIL))])
def test_items_that_derive_nothing_end_a_repetition(first: Expr, rest: Expr) -> None:
    for least, most in itertools.product((0, 1, 2), (None, 0, 1, 2, 3)):
        source = toys.grammar(Repeated(1, 2, least, most), first, rest)
        items = 5 if rest is not FAIL else 1
        expected = {
            b"a" + b"b" * (count - 1) if count else b""
            for count in range(least, 1 + min(items if first is not FAIL else 0, 5 if most is None else most))
        }
        try:
            core = toys.compile_ir(source, toys.byte_vocabulary())
        except mw.UnsatisfiableError:
            assert not expected
            continue
        texts = {b"", *(b"a" + b"b" * count for count in range(5))}
        assert {text for text in texts if accepts(core, text)} == expected, (least, most)


def accepts(core: CompiledCore, text: bytes) -> bool:
    matcher = Matcher(core)
    return (not text or matcher.accept_bytes(text)) and matcher.is_accepting


def test_an_array_of_different_items_without_those_that_derive_nothing() -> None:
    # What is left of it: the second kind of items, of which nobody said that there are always more.
    array = Choice((Seq((A, Ref(1))), Seq((A, Ref(2)))))
    rules: list[Body | None] = [Distinct(array, free=2, provided=(1,)), FAIL, A]
    grammar = Grammar(rules=rules, names=["array", "none", "some"])
    (pruned, _, _) = prune.prune(grammar).rules
    assert isinstance(pruned, Distinct)
    assert (pruned.array, pruned.free, pruned.provided) == (Choice((Seq((A, Ref(2))),)), None, ())
    assert prune.is_satisfiable(grammar)
    assert not prune.is_satisfiable(Grammar(rules=[FAIL], names=["none"]))
