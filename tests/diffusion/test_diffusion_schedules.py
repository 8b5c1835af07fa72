"""Schedules mean what they say, and asking ahead changes the number of calls and nothing else."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from test_diffusion_infill import GRAMMARS, MASK, Random, is_valid

import maskwright as mw
import maskwright.diffusion.schedule as schedules
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.diffusion import (
    Gap,
    MaskedDiffusionModel,
    Schedule,
    infill,
    infill_smc,
    infill_steps,
    speculation,
)
from maskwright.diffusion.schedule import shared_steps
from maskwright.errors import CanvasError

LETTERS = mw.Vocabulary.from_bytes([b"a", b"b", b"c", b"", b""], eos_ids=[3])
"""Four ids that can be in a text or end it, and the mask."""


@pytest.fixture(scope="module")
def words() -> CompiledGrammar:
    return mw.compile_regex("[abc]{0,12}", LETTERS)


class Chain(MaskedDiffusionModel):
    """Each slot leans on its neighbours by ``strength``: with 0 all slots are independent."""

    mask_id = 4
    eos_ids = ()

    def __init__(self, strength: float) -> None:
        self.strength = strength
        self.calls = 0
        self.canvases = 0

    def logits(self, canvas: list[int]) -> Any:
        return self.logits_of([canvas])[0]

    def logits_of(self, canvases: list[list[int]]) -> Any:
        self.calls += 1
        self.canvases += len(canvases)
        out = np.zeros((len(canvases), len(canvases[0]), 5), dtype=np.float32)
        for row, canvas in zip(out, canvases, strict=True):
            for i in range(len(canvas)):
                row[i, :3] = np.random.default_rng(i).normal(size=3)
                for j in (i - 1, i + 1):
                    if 0 <= j < len(canvas) and canvas[j] < 3:
                        row[i, (canvas[j] + 1) % 3] += self.strength
        return out


@pytest.mark.parametrize("block", [None, 1, 2, 3, 5, 20])
@pytest.mark.parametrize("remask", [0, 1, 3])
@pytest.mark.parametrize("threshold", [None, 0.4])
def test_steps_are_a_bound(
    block: int | None, remask: int, threshold: float | None, words: CompiledGrammar
) -> None:
    for steps, seed in itertools.product((1, 2, 3, 5, 8, 12, 30), range(2)):
        schedule = Schedule(steps, block, threshold=threshold, remask=remask, temperature=1.0, score="random")
        model = Chain(1.0)
        blocks = -(-12 // (block or 12))
        if blocks > steps:
            with pytest.raises(CanvasError, match=rf"steps={steps}: there are {blocks} blocks"):
                infill(model, words, [None] * 12, schedule=schedule, seed=seed)
            assert model.calls == 0
            continue
        assert len(infill(model, words, [None] * 12, schedule=schedule, seed=seed)) == 12
        assert model.calls <= steps
        if not remask and threshold is None:
            assert model.calls == min(steps, 12)


def test_one_slot_a_step_is_the_default(words: CompiledGrammar) -> None:
    for block in (None, 1, 4, 5, 7):
        for step in infill_steps(Chain(0.5), words, ["ab", *[None] * 7, "c"], schedule=Schedule(block=block)):
            assert len(step.taken) == (step.number > 0)


def test_a_threshold_adds_to_what_a_step_takes(words: CompiledGrammar) -> None:
    """A model that is sure of nothing still ends within the steps."""
    never, always = Schedule(4, threshold=2.0), Schedule(4, threshold=0.0)
    taken = [len(step.taken) for step in infill_steps(Chain(0.0), words, [None] * 12, schedule=never)]
    assert taken == [0, 3, 3, 3, 3]
    taken = [len(step.taken) for step in infill_steps(Chain(0.0), words, [None] * 12, schedule=always)]
    assert taken == [0, 12]


def test_steps_are_shared_by_the_size_of_blocks() -> None:
    for sizes in ([12], [4, 4, 2], [1, 1, 1, 9], [7, 1]):
        for steps in range(len(sizes), 20):
            found = shared_steps(sizes, steps)
            assert sum(found) == min(steps, sum(sizes))
            assert all(1 <= n <= size for n, size in zip(found, sizes, strict=True))


def test_all_steps_for_every_block_is_caught(words: CompiledGrammar, monkeypatch: pytest.MonkeyPatch) -> None:
    """As loops have it that divide the steps only when there are blocks enough."""
    monkeypatch.setattr(schedules, "shared_steps", lambda sizes, steps: [min(steps, n) for n in sizes])
    with pytest.raises(AssertionError):
        test_steps_are_a_bound(5, 0, None, words)


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(block=2),
        Schedule(threshold=0.5),
        Schedule(remask=1),
        Schedule(ahead=2),
        Schedule(temperature=50.0),
        Schedule(score="middle"),
        Schedule(edit_threshold=0.1),
    ],
)
def test_what_means_nothing_is_refused(schedule: Schedule) -> None:
    class Uniform(Random):
        kind = "uniform"
        mask_id = None

    with pytest.raises(CanvasError, match="of kind uniform"):
        infill(Uniform("none"), GRAMMARS["expressions"](), [None] * 5, schedule=schedule)
    usual = Schedule(steps=2, temperature=0.0)
    assert len(infill(Uniform("none"), GRAMMARS["expressions"](), [None] * 5, schedule=usual)) == 5


def test_asking_ahead_where_it_means_nothing(words: CompiledGrammar) -> None:
    with pytest.raises(CanvasError, match="criterion exact"):
        infill(Chain(0.0), words, [None] * 3, schedule=Schedule(ahead=2), criterion="gaps")
    with pytest.raises(CanvasError, match="ahead"):
        infill_smc(Chain(0.0), words, [None] * 3, schedule=Schedule(ahead=2))
    with pytest.raises(CanvasError, match="ahead"):
        Schedule(ahead=0)

    class Forgetful(Chain):
        def logits_of(self, canvases: list[list[int]]) -> Any:
            return super().logits_of(canvases)[:1] if len(canvases) > 1 else super().logits_of(canvases)

    with pytest.raises(CanvasError, match="expected logits of 3 canvases, got 1"):
        infill(Forgetful(0.0), words, [None] * 6, schedule=Schedule(ahead=3))


SCHEDULES: list[dict[str, Any]] = [
    {},
    {"temperature": 1.0},
    {"temperature": 0.7, "score": "random"},
    {"score": "left_to_right", "temperature": 1.0},
    {"steps": 6, "temperature": 1.0, "remask": 1},
    {"block": 4, "temperature": 1.0, "score": "entropy"},
    {"threshold": 0.6, "temperature": 1.0},
]


@pytest.mark.slow
@pytest.mark.parametrize("options", SCHEDULES)
@pytest.mark.parametrize("strength", [0.0, 0.5, 5.0])
def test_asking_ahead_changes_no_text(
    options: dict[str, Any], strength: float, words: CompiledGrammar
) -> None:
    """Equal seeds give equal texts, so the distribution is the same, however much the model changes its mind."""
    calls = np.zeros(2)
    for seed in range(8):
        plain, ahead = Chain(strength), Chain(strength)
        canvas = ["a", *[None] * 9]
        expected = infill(plain, words, canvas, schedule=Schedule(**options), seed=seed)
        found = infill(ahead, words, canvas, schedule=Schedule(**options, ahead=4), seed=seed)
        assert found == expected
        assert ahead.canvases <= 4 * ahead.calls
        calls += plain.calls, ahead.calls
    assert calls[1] <= calls[0]
    if strength == 0.0:
        # Nothing is ever guessed wrong: one call for the first step, one for each four others.
        assert calls[1] <= 8 + (calls[0] - 8) / 4 + 8


@pytest.mark.parametrize("name", GRAMMARS)
def test_asking_ahead_inside_grammars(name: str) -> None:
    """Gaps, end tokens and refused proposals as well; every canvas has logits of its own, so guesses are mostly wrong."""
    compiled = GRAMMARS[name]()
    for trouble, seed in itertools.product(("hash", "some ends"), range(3)):
        canvas = [Gap(0, 3), *[MASK] * 14]

        class Fixed(Random):
            def logits(self, canvas: list[int]) -> Any:
                self.rng = np.random.default_rng(hash(tuple(canvas)) % 2**32)
                return super().logits(canvas)

        models = [Fixed(trouble, seed) for _ in range(2)]
        schedule: dict[str, Any] = {"temperature": 0.5 * (seed % 2), "steps": 9}
        texts = [
            infill(model, compiled, canvas, schedule=Schedule(**schedule, ahead=ahead), seed=seed)
            for model, ahead in zip(models, (1, 3), strict=True)
        ]
        assert texts[0] == texts[1] and is_valid(compiled, texts[0])


def test_calls_that_were_made_are_counted(words: CompiledGrammar) -> None:
    model = Chain(0.3)
    steps = list(infill_steps(model, words, [None] * 12, schedule=Schedule(temperature=1.0, ahead=4), seed=2))
    assert sum(step.calls for step in steps[1:]) == model.calls < 8 and len(steps) == 13


def test_believing_the_guess_is_caught(words: CompiledGrammar, monkeypatch: pytest.MonkeyPatch) -> None:
    """Taking the old logits for the new ones writes other texts."""
    plain = speculation.LookAhead.logits

    def trusting(self: Any) -> Any:
        logits, rows, calls, seconds = plain(self)
        for slot, row in rows.items():
            logits[row] = self.__dict__.setdefault("first", {}).setdefault(slot, logits[row])
        return logits, rows, calls, seconds

    schedule = Schedule(temperature=1.0, ahead=4)
    expected = [infill(Chain(2.0), words, [None] * 9, schedule=schedule, seed=seed) for seed in range(8)]
    monkeypatch.setattr(speculation.LookAhead, "logits", trusting)
    assert [
        infill(Chain(2.0), words, [None] * 9, schedule=schedule, seed=seed) for seed in range(8)
    ] != expected


class Spelling(Chain):
    def encode(self, text: str) -> list[int]:
        return [b"abc".index(byte) for byte in text.strip().encode()]


def test_phrases_take_a_step_of_the_bound(words: CompiledGrammar) -> None:
    with pytest.raises(CanvasError, match="anchors take a step of their own"):
        infill(Spelling(0.5), words, [None] * 9, schedule=Schedule(1), anchors=["bb"])
    for steps, ahead in itertools.product((2, 4), (1, 3)):
        model = Spelling(0.5)
        found = infill(model, words, [None] * 9, schedule=Schedule(steps, ahead=ahead), anchors=["bb"])
        assert model.calls <= steps and b"bb" in LETTERS.decode(found)
