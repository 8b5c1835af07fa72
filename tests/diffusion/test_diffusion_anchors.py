"""Phrases first, and the rest from coarse to fine, on models with random logits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import maskwright as mw
from maskwright.diffusion import Gap, MaskedDiffusionModel, Schedule, Step, decode, infill, infill_smc
from maskwright.diffusion.anchors import middles
from maskwright.errors import CanvasError, UnsatisfiableError

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
    monkeypatch.setattr(decode, "middles", lambda slots: slots[:1])
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
