"""Texts that end in time: nothing dies of the budget, and weights stay those of p restricted to what fits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import jsonschema
import numpy as np
import pytest
from sampling_models import deviations, enumerate_target

import maskwright as mw
from maskwright import LimitError
from maskwright.sampling import CallableModel, GrammarConstraint, Monitor, Predicate, smc

TOKENS = [b"(", b")", b"a", b"b", b"a)", b"[", b"]]", b"]"]
EOS = len(TOKENS)
_random = np.random.default_rng(3)
FIRST = _random.dirichlet(np.full(EOS + 1, 4.0))
NEXT = _random.dirichlet(np.full(EOS + 1, 4.0), size=EOS)


def bigram(ids: Sequence[int]) -> np.ndarray:
    return NEXT[ids[-1]] if len(ids) else FIRST


def model() -> CallableModel:
    return CallableModel(lambda prefixes: np.log([bigram(ids) for ids in prefixes]), EOS + 1, EOS)


@cache
def nested() -> GrammarConstraint:
    """Texts that may need more with every token: a bracket of one kind opens one level, of the other kind two."""
    vocabulary = mw.Vocabulary.from_bytes([*TOKENS, b"</s>"], eos_ids=[EOS])
    return GrammarConstraint(
        mw.compile_gbnf('root ::= [ab]+ | "(" root ")" [ab]? | "[" root "]" root "]"', vocabulary)
    )


@pytest.mark.slow
@pytest.mark.parametrize("max_tokens", [2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("options", [{}, {"power": 2.0}, {"lookahead": 1}, {"rejuvenation": 1}])
def test_nothing_dies_and_weights_are_right(max_tokens: int, options: dict[str, Any]) -> None:
    constraint = nested()
    power = options.get("power", 1.0)
    target = enumerate_target(
        max_tokens,
        lambda p, ids: p**power,
        bigram,
        constraint.prefix,
        constraint.complete,
        [EOS],
    )
    found = smc(model(), constraint, 4, islands=2000, max_tokens=max_tokens, seed=9, **options)
    assert found.is_complete.all()
    assert max(map(len, found.sequences)) < max_tokens
    evidence, worst = deviations(found, target)
    assert abs(evidence) < 4 and worst < 4


def test_with_a_predicate_only_what_it_refuses_dies() -> None:
    def few(ids: Sequence[int]) -> bool:
        return list(ids).count(3) < 2

    constraint = nested() * Predicate(few)
    target = enumerate_target(
        6, distribution=bigram, prefix=constraint.prefix, complete=constraint.complete, eos=[EOS]
    )
    found = smc(model(), constraint, 4, islands=2000, max_tokens=6, seed=9)
    assert all(few(ids) for ids, ended in zip(found.sequences, found.is_complete, strict=True) if ended)
    evidence, worst = deviations(found, target)
    assert abs(evidence) < 4 and worst < 4


def test_a_budget_below_the_shortest_text_is_an_error() -> None:
    with pytest.raises(LimitError, match="the shortest text takes 2 tokens") as caught:
        smc(model(), nested(), 4, max_tokens=1)
    assert (caught.value.limit, caught.value.given, caught.value.allowed) == ("max_tokens", 2, 1)


SCHEMAS: dict[str, Any] = {
    "members": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["name", "tags"],
    },
    "large items": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {f"member{i}": {"type": "integer"} for i in range(8)},
            "required": [f"member{i}" for i in range(8)],
        },
    },
    "different items": {
        "type": "array",
        "items": {"enum": [1, 22, 333, "four"]},
        "uniqueItems": True,
        "minItems": 3,
    },
    "counted": {"type": "string", "minLength": 3, "maxLength": 12, "pattern": "^(ab|cde)*$"},
    "anything": True,
}


@cache
def bytes_and_pieces() -> mw.Vocabulary:
    pieces = [b'{"', b'":', b'"}', b'",', b'"member', b"]}", b"}]", b'":[', b"ab", b"cde", b"22", b'","']
    return mw.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [*pieces, b"</s>"], eos_ids=[268])


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("extra", [0, 1, 2, 7, 40])
def test_every_candidate_is_complete_whatever_the_budget(name: str, extra: int) -> None:
    """A model that knows nothing about JSON, with no more tokens than the shortest text takes, or a few more."""
    vocabulary = bytes_and_pieces()
    scores = np.random.default_rng(1).normal(size=(269, 269)) * 3
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    babbler = CallableModel(lambda prefixes: scores[[ids[-1] if ids else 268 for ids in prefixes]], 269, 268)
    constraint = GrammarConstraint(mw.compile_json_schema(SCHEMAS[name], vocabulary))
    least = constraint.needed(constraint.start()) + 1
    for seed in range(3):
        found = smc(babbler, constraint, 8, power=4.0, max_tokens=least + extra, seed=seed)
        assert found.is_complete.all() and np.isfinite(found.log_evidence)
        for ids in found.sequences:
            assert len(ids) < least + extra
            jsonschema.validate(json.loads(vocabulary.decode(ids)), SCHEMAS[name])


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_is_needed_shrinks_along_the_shortest_completion(name: str) -> None:
    """The promise behind ending in time: where the budget just suffices, there is a token behind which it does still."""
    constraint = GrammarConstraint(mw.compile_json_schema(SCHEMAS[name], bytes_and_pieces()))
    random = np.random.default_rng(5)
    for _ in range(40):
        state = constraint.start()
        for _ in range(int(random.integers(25))):
            bits = np.unpackbits(constraint.masks([state]).view(np.uint8), bitorder="little")
            going = [token for token in np.flatnonzero(bits).tolist() if token != 268]
            if not going:
                break
            state = constraint.advance(state, going[int(random.integers(len(going)))])
        for token in state.shortest_completion():
            before = constraint.needed(state)
            state = constraint.advance(state, token)
            assert constraint.needed(state) < before
        assert state.is_accepting


def test_log_probabilities_of_tokens() -> None:
    found = smc(model(), nested(), 6, max_tokens=7, seed=2)
    for ids, logprobs in zip(found.sequences, found.logprobs, strict=True):
        expected = [np.log(bigram(ids[:at])[token]) for at, token in enumerate([*ids, EOS])]
        assert logprobs == pytest.approx(expected)


def test_a_monitor_that_refuses_what_the_grammar_has_room_for() -> None:
    """Where only the shortest ways fit, tokens are measured before the monitor is asked about them."""
    vocabulary = mw.Vocabulary.from_bytes([b"a.", b"b", b"no", b";", b"a.no", b""], eos_ids=5)
    grammar = GrammarConstraint(mw.compile(mw.Lark('start: ("a." | "b" | "no")+ ";"'), vocabulary))
    monitor = Monitor(vocabulary, lambda text: ["b"] if text.endswith(".") else None, triggers=b".")
    model = CallableModel(lambda prefixes: np.full((len(prefixes), 6), -np.log(6)), 6, 5)
    for budget in (3, 4, 5):
        found = smc(model, grammar * monitor, 32, max_tokens=budget, seed=0)
        texts = {vocabulary.decode(ids) for ids in found.probabilities(tuple)}
        assert texts and all(b".no" not in text and text.endswith(b";") for text in texts)
