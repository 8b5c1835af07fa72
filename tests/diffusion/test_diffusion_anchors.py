"""Phrases first, and the rest from coarse to fine, on models with random logits."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.diffusion import (
    Gap,
    MaskedDiffusionModel,
    Schedule,
    Step,
    anchors,
    infill,
    infill_smc,
    steps,
)  # fmt: skip
from maskwright.diffusion.anchors import _read_behind, middles
from maskwright.errors import CanvasError, LimitError, UnsatisfiableError

TOKENS = [bytes([c]) for c in b'abcdehimorstu ,."{}:[]'] + [
    b"storm",
    b" storm",
    b"harb",
    b"our",
    b"sto",
    b"rm",
]
MASK, EOS = len(TOKENS), len(TOKENS) + 1
VOCABULARY = mw.Vocabulary.from_bytes([*TOKENS, b"", b""], eos_ids=[EOS], special_ids=[MASK])


class Random(MaskedDiffusionModel):
    mask_id, eos_ids = MASK, (EOS,)

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.calls = 0

    def logits(self, canvas: list[int]) -> np.ndarray:
        self.calls += 1
        rng = np.random.default_rng([self.seed, *canvas])
        return rng.normal(size=(len(canvas), VOCABULARY.vocab_size)).astype(np.float32) * 2


class Preferring(Random):
    """Likes ``storm`` in one slot."""

    def logits(self, canvas: list[int]) -> np.ndarray:
        out = super().logits(canvas)
        out[7, TOKENS.index(b" storm")] = 40
        return out


MIDDLE = Schedule(score="middle")
SENTENCE = mw.Regex(r"[a-z][a-z ]*\.")


def text_of(ids: list[int]) -> str:
    return b"".join(VOCABULARY.tokens[i] for i in ids if i != EOS).decode()


def test_the_middle_of_every_run() -> None:
    assert middles([0, 1, 2, 3, 4]) == [2]
    assert middles([0, 1, 4, 6, 7, 8]) == [0, 4, 7]
    assert middles([]) == []


@pytest.mark.parametrize("slots", [1, 2, 5, 16, 31, 32])
def test_rounds_are_logarithmic(slots: int) -> None:
    model = Random(slots)
    grammar = mw.compile(mw.Regex("[a-z .,]*"), VOCABULARY)
    found = infill(model, grammar, [None] * slots, schedule=MIDDLE, seed=1)
    assert len(found) == slots
    assert model.calls == math.ceil(math.log2(slots + 1))


@pytest.mark.parametrize("seed", range(8))
def test_anchors_are_in_texts_of_the_language(seed: int) -> None:
    phrases = ["storm", "harbour"]
    grammar = mw.compile(SENTENCE & mw.Contains(phrases), VOCABULARY)
    steps: list[Step] = []
    model = Random(seed)
    found = infill(
        model, grammar, [None] * 24, schedule=MIDDLE, anchors=phrases, seed=seed, on_step=steps.append
    )
    text = text_of(found)
    matcher = grammar.matcher()
    assert matcher.accept_tokens([i for i in found if i != EOS]) == len([i for i in found if i != EOS])
    assert matcher.is_accepting
    assert all(phrase in text for phrase in phrases)
    # The phrases fill their slots first, then each round the middles of what is open.
    first = text_of([token for token in steps[0].tokens if token >= 0])
    assert all(phrase in first for phrase in phrases)
    assert len(steps) == model.calls <= 1 + math.ceil(math.log2(24 + 1))


def test_an_anchor_goes_where_the_model_likes_it() -> None:
    grammar = mw.compile(SENTENCE, VOCABULARY)
    found = infill(Preferring(3), grammar, [None] * 16, schedule=MIDDLE, anchors=["storm"])
    assert found[7] == TOKENS.index(b" storm")


def test_fixed_text_gaps_and_schemas() -> None:
    schema = {
        "type": "object",
        "properties": {"m": {"type": "string"}},
        "required": ["m"],
        "additionalProperties": False,
    }
    grammar = mw.compile(mw.JsonSchema(schema) & mw.Contains(["storm"]), VOCABULARY)
    found = infill(Random(5), grammar, ['{"m": "', Gap(6, 12), '"}'], schedule=MIDDLE, anchors=["storm"])
    text = text_of(found)
    assert "storm" in text
    assert text.startswith('{"m": "')
    assert text.endswith('"}')


def test_from_left_to_right_takes_more_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "middles", lambda slots: slots[:1])
    model = Random(1)
    infill(model, mw.compile(mw.Regex("[a-z .,]*"), VOCABULARY), [None] * 31, schedule=MIDDLE)
    assert model.calls == 31


def test_bad_anchors() -> None:
    grammar = mw.compile(SENTENCE, VOCABULARY)
    model = Random(0)
    with pytest.raises(CanvasError, match="list of phrases"):
        infill(model, grammar, [None] * 4, anchors="storm")
    with pytest.raises(CanvasError, match="exact criterion"):
        infill(model, grammar, [None] * 4, anchors=["storm"], criterion="prefix")
    with pytest.raises(UnsatisfiableError, match="no place is left for 'a,b'"):
        infill(model, grammar, [None] * 8, anchors=["a,b"])
    with pytest.raises(UnsatisfiableError, match="no place is left"):
        infill(model, grammar, [None] * 3, anchors=["storm", "harbour"])
    with pytest.raises(CanvasError, match="infill"):
        infill_smc(model, grammar, [None] * 4, schedule=MIDDLE)


def test_a_canvas_without_an_open_slot_must_have_the_anchors() -> None:
    grammar = mw.compile(mw.Regex("[ab ]*(storm)?"), VOCABULARY)
    a, b, storm = (TOKENS.index(text) for text in (b"a", b"b", b"storm"))
    model = Random(0)
    for canvas in ([a], ["a"], [a, EOS]):
        with pytest.raises(
            UnsatisfiableError, match="anchors: no slot is open, and the fixed text has no 'b'"
        ):
            infill(model, grammar, canvas, anchors=["a", "b"])
    for canvas, anchor in (
        ([a, b], "ab"),
        (["ab"], "b"),
        ([a, storm, EOS], "storm"),
        (["a st", "orm"], "storm"),
    ):
        assert text_of(infill(model, grammar, canvas, anchors=[anchor])).endswith(anchor)
    assert model.calls == 0
    with pytest.raises(UnsatisfiableError, match="no place is left for 'bb'"):
        infill(model, grammar, [a, None], anchors=["bb"])


@pytest.mark.parametrize("anchors", [None, 5, ["\ud800"], [b"storm"], [""]])
def test_anchors_that_are_no_phrases(anchors: object) -> None:
    model = Random(0)
    with pytest.raises(CanvasError, match="anchors"):
        infill(model, mw.compile(SENTENCE, VOCABULARY), [None] * 8, anchors=anchors)  # type: ignore[arg-type]
    assert model.calls == 0


def test_anchors_are_spelled_before_the_model_is_asked() -> None:
    tokens = [b"a", b"b", b" c", b"", b""]
    vocabulary = mw.Vocabulary.from_bytes(tokens, eos_ids=[4], special_ids=[3])

    class Small(Random):
        mask_id, eos_ids = 3, (4,)

        def logits(self, canvas: list[int]) -> np.ndarray:
            self.calls += 1
            return np.zeros((len(canvas), 5), dtype=np.float32)

    grammar = mw.compile(mw.Regex("[ab]( c|[ab])*"), vocabulary)
    # One way to write it will do: behind a blank, or without one.
    for anchor, ids in (("ba", [1, 0]), ("c", [2])):
        found = infill(Small(0), grammar, [None] * 5, anchors=[anchor], schedule=MIDDLE)
        assert any(found[i : i + len(ids)] == ids for i in range(5))
    model = Small(0)
    with pytest.raises(UnsatisfiableError, match="no tokens spell 'd'"):
        infill(model, grammar, [None] * 5, anchors=["d"])
    assert model.calls == 0


# --- whether there is a place, against all fillings

SMALL = [b"a", b"b", b"c", b"ab", b"bca", b" ", b""]
SMALL_END, SMALL_MASK = 6, 7
SMALL_VOCABULARY = mw.Vocabulary.from_bytes([*SMALL, b""], eos_ids=[SMALL_END], special_ids=[SMALL_MASK])
PATTERNS = ["[abc ]*", "(ab|c)*", "[ab]*c? ?[abc]*", "a(b|ca)*", "(bca| a)*b?"]


class SmallRandom(Random):
    mask_id, eos_ids = SMALL_MASK, (SMALL_END,)

    def logits(self, canvas: list[int]) -> np.ndarray:
        self.calls += 1
        rng = np.random.default_rng([self.seed, *canvas])
        return rng.normal(size=(len(canvas), len(SMALL) + 1)).astype(np.float32) * 3


def small_text(ids: Iterable[int]) -> str:
    return b"".join(SMALL[token] for token in ids).decode()


def fillings(canvas: list[Any], pattern: str) -> Iterator[str]:
    """The texts of all fillings of a canvas of ids, None and ``Gap(0, 1)``."""
    every = range(SMALL_END + 1)
    choices = [
        every if part is None else [*every, None] if isinstance(part, Gap) else [part] for part in canvas
    ]
    for ids in itertools.product(*choices):
        held = [token for token in ids if token is not None]
        count = held.index(SMALL_END) if SMALL_END in held else len(held)
        text = small_text(held[:count])
        if set(held[count:]) <= {SMALL_END} and re.fullmatch(pattern, text):
            yield text


def mistakes(cases: int) -> int:
    """How many random canvases get no filling with their anchors, or another one, where one has them."""
    grammars = [(pattern, mw.compile(mw.Regex(pattern), SMALL_VOCABULARY)) for pattern in PATTERNS]
    wrong = answers = 0
    for seed in range(cases):
        rng = np.random.default_rng([17, seed])
        pattern, grammar = grammars[rng.integers(len(grammars))]
        kinds = rng.choice(9, size=rng.integers(1, 5))
        canvas = [int(kind) if kind < 3 else Gap(0, 1) if kind == 3 else None for kind in kinds]
        phrases = [
            "".join(rng.choice(list("abc "), size=rng.integers(1, 4), p=[0.35, 0.3, 0.25, 0.1]))
            for _ in range(rng.integers(1, 4))
        ]
        exists = any(all(phrase in text for phrase in phrases) for text in fillings(canvas, pattern))
        answers += exists
        try:
            found = small_text(infill(SmallRandom(seed), grammar, canvas, anchors=phrases, schedule=MIDDLE))
        except UnsatisfiableError:
            wrong += exists
        else:
            wrong += (
                not exists
                or found not in set(fillings(canvas, pattern))
                or not all(phrase in found for phrase in phrases)
            )
    assert cases / 5 < answers < cases * 4 / 5
    return wrong


def test_anchors_have_a_place_where_some_filling_has_them() -> None:
    assert mistakes(300) == 0


def _never_back(original: Any) -> Any:
    """Ways of which the first that the canvas takes is the only one."""

    def ways(self: Any, phrases: list[str], begin: Any) -> Iterator[Any]:
        entered: list[bool] = []

        def enter(go_on: Any) -> Any:
            entered.append(True)
            return go_on()

        for tokens, go_on in original(self, phrases, begin):
            yield tokens, functools.partial(enter, go_on)
            if entered:
                return

    return ways


def _from_a_tokens_start(phrase: bytes, read: int, data: bytes) -> list[int]:
    begins = read or phrase.startswith(data) or data.startswith(phrase)
    return _read_behind(phrase, read, data) if begins else []


@pytest.mark.parametrize("variant", ["only as spelled", "never taken back", "from a token's start"])
def test_wrong_searches_for_places_are_caught(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    search: Any = anchors._Search
    if variant == "only as spelled":
        monkeypatch.setattr(search, "in_any_tokens", search.spelled)
    elif variant == "never taken back":
        for name in ("in_any_tokens", "spelled"):
            monkeypatch.setattr(search, name, _never_back(getattr(search, name)))
    else:
        monkeypatch.setattr(anchors, "_read_behind", _from_a_tokens_start)
    assert mistakes(300) > 0


def test_places_that_the_model_spells_come_first() -> None:
    """What is wanted twice is written once, and as little is put down as the fixed text asks for."""
    grammar = mw.compile(mw.Regex("[abc]*"), SMALL_VOCABULARY)
    for canvas, phrases, most in (
        ([0, 1, None], ["ab"], 1),
        ([0, None], ["ab"], 1),
        ([None] * 3, ["bc", "abc"], 2),
        ([None] * 2, ["aba"], 2),
        ([None], ["bc", "ca"], 1),
        ([3, None], ["b"], 1),
        ([None] * 2, ["ab", "ab"], 2),
    ):
        model = SmallRandom(2)
        text = small_text(
            i for i in infill(model, grammar, canvas, anchors=phrases, schedule=MIDDLE) if i != SMALL_END
        )
        assert all(phrase in text for phrase in phrases) and model.calls <= most, (canvas, phrases, text)


def test_a_search_that_ends_too_soon_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = mw.compile(SENTENCE, VOCABULARY)
    with pytest.raises(LimitError, match="search_budget is 0"):
        infill(Random(0), grammar, [None] * 8, anchors=["storm", "harbour"], search_budget=0)
    monkeypatch.setattr(anchors, "MAX_TRIES", 3)
    with pytest.raises(
        LimitError, match=r"max_tries is 3, .* place for 'storm', 'harbour'; .*mw\.Contains"
    ) as caught:
        infill(Random(0), grammar, [None] * 3, anchors=["storm", "harbour"])
    assert caught.value.limit == "max_tries"


def test_models_that_edit_leave_anchors_as_they_are() -> None:
    class Editing(SmallRandom):
        kind = "editing"

        def logits(self, canvas: list[int]) -> np.ndarray:
            out = super().logits(canvas)
            if self.calls > 1:
                out[:, 2] = 50
            return out

    grammar = mw.compile(mw.Regex("[abc]*"), SMALL_VOCABULARY)
    found = small_text(infill(Editing(1), grammar, [None] * 6, anchors=["ba"], schedule=MIDDLE))
    assert "ba" in found and found.replace("ba", "").strip("c") == ""
