"""Blocks at the ends of grammar symbols: where they end, and that the target stays what it is."""

from __future__ import annotations

import numpy as np
import pytest
import sampling_models as toy

import maskwright as mw
from maskwright.compiling.symbols import Symbols
from maskwright.sampling import CallableModel, GrammarConstraint, SymbolEnds, smc

TOKENS = [b"a", b"b", b"+", b"(", b")", b"+(", b"b)", b""]
EOS = 7
VOCABULARY = mw.Vocabulary.from_bytes(TOKENS, eos_ids=[EOS])
GRAMMAR = """
    start: term ("+" term)*
    term: NAME | "(" start ")"
    NAME: /[ab]+/
"""
NEXT = np.random.default_rng(5).dirichlet(np.full(8, 0.8), size=8)


def distribution(ids: list[int] | tuple[int, ...]) -> np.ndarray:
    return NEXT[ids[-1]] if len(ids) else NEXT[EOS]


def model() -> CallableModel:
    return CallableModel(lambda prefixes: np.log([distribution(ids) for ids in prefixes]), 8, EOS)


@pytest.fixture(scope="module")
def grammar() -> mw.CompiledGrammar:
    return mw.compile_lark(GRAMMAR, VOCABULARY)


def test_where_blocks_end(grammar: mw.CompiledGrammar) -> None:
    ends = SymbolEnds(grammar, "term")
    ids = [0, 1, 5, 0, 6, 2, 1]  # ab+(ab)+b
    assert [ends(ids[:i]) for i in range(len(ids) + 1)] == [
        False,
        False,
        False,
        True,
        False,
        True,
        False,
        False,
    ]
    # The same when asked for one text only.
    assert SymbolEnds(grammar, ["term"])(ids[:3]) and not SymbolEnds(grammar, ["term"])(ids[:4])
    with pytest.raises(mw.GrammarError, match="no symbol"):
        SymbolEnds(grammar, "nosuch")


def test_few_readings_are_kept(grammar: mw.CompiledGrammar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwright.sampling.blocks._KEPT", 2)
    ends = SymbolEnds(grammar, "term")
    ids = [0, 2, 1, 2, 0, 2, 1]
    assert [ends(ids[:i]) for i in (2, 6, 4, 7)] == [True, True, True, False]
    assert len(ends._known) <= 2


@pytest.mark.parametrize("symbol", ["term", "NAME"])
def test_the_target_stays_what_it_is(grammar: mw.CompiledGrammar, symbol: str) -> None:
    constraint = GrammarConstraint(grammar)
    target = toy.enumerate_target(
        6,
        lambda p, ids: p * (3.0 if 5 in ids else 1.0),
        distribution,
        constraint.prefix,
        constraint.complete,
        (EOS,),
    )
    assert len(target) > 50
    found = smc(
        model(),
        constraint,
        n_particles=4,
        ess_threshold=0.9,
        reward=lambda ids: 3.0 if 5 in ids else 1.0,
        max_tokens=6,
        seed=11,
        block=SymbolEnds(grammar, symbol),
        islands=3000,
    )
    evidence, cells = toy.deviations(found, target)
    assert abs(evidence) < 4 and cells < 4.5
    # It is resampled, and only behind symbols: fewer times than there are tokens.
    assert 0 < len(found.genealogy) < 6
    assert any((ancestors != np.arange(len(ancestors))).any() for ancestors in found.genealogy)


def test_blocks_of_json_values() -> None:
    vocabulary = mw.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], eos_ids=[256])
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}},
        "required": ["a", "b"],
    }
    compiled = mw.compile_json_schema(schema, vocabulary, additional_properties=False)
    names = ["/properties/a", "/properties/b"]
    ends = SymbolEnds(compiled, names)
    text = b'{"a":12,"b":"x"}'
    found = [i for i in range(1, len(text) + 1) if ends(list(text[:i]))]
    assert found == [text.index(b",") + 1, text.index(b'"x"') + 3]
    assert set(names) <= set(Symbols(compiled).names)
