"""Texts judged by the causal mode are those that it writes alone, in fewer calls (S2D2)."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from test_diffusion_infill import GRAMMARS, MASK, Random, is_valid
from test_diffusion_schedules import LETTERS, Chain

import maskwright as mw
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.diffusion import (
    EMPTY,
    Gap,
    MaskedDiffusionModel,
    Schedule,
    infill,
    infill_smc,
    infill_steps,
    speculation,
)
from maskwright.errors import CanvasError, ModelError

PATTERN = "a[bc]*a|c[ab]{2,4}|b(ab)*c"
END = 3
Text = tuple[int, ...]


@pytest.fixture(scope="module")
def language() -> CompiledGrammar:
    return mw.compile_regex(PATTERN, LETTERS)


class TwoModes(Chain):
    """Each slot leans on both neighbours in one mode, and on what is left of it in the other; they agree more or less."""

    eos_ids = (END,)

    def __init__(self, strength: float, agreement: float = 1.0, number: int = 0) -> None:
        super().__init__(strength)
        self.agreement = agreement
        self.number = number
        self.causal_calls = 0

    def causal_logits(self, canvas: list[int]) -> Any:
        self.causal_calls += 1
        out = np.zeros((len(canvas), 5), dtype=np.float32)
        for i in range(len(canvas)):
            # Rows of the other mode are those of its position, so they agree where nothing else is said.
            shared = np.random.default_rng(i).normal(size=3)
            own = np.random.default_rng((self.number, len(canvas[:i]))).normal(size=3)
            out[i, :3] = self.agreement * shared + (1 - self.agreement) * own
            out[i, END] = 0.3 * i - 1.5
            for back, weight in ((1, self.strength), (2, 0.5 * self.strength)):
                if i >= back and canvas[i - back] < 3:
                    out[i, (canvas[i - back] + 1) % 3] += weight
        return out


def fillings(canvas: list[int | None]) -> list[Text]:
    """Every way to fill it: a text of the language, and ends to the last slot."""
    return [
        ids
        for ids in itertools.product(range(4), repeat=len(canvas))
        if all(fixed in (None, token) for fixed, token in zip(canvas, ids, strict=True))
        and (END not in ids or set(ids[ids.index(END) :]) == {END})
        and re.fullmatch(PATTERN, "".join("abc"[token] for token in ids if token != END))
    ]


def exact_distribution(model: TwoModes, canvas: list[int | None], temperature: float) -> dict[Text, float]:
    """What the causal mode alone writes: slot by slot, of tokens behind which some filling is left."""
    left = fillings(canvas)
    found: dict[Text, float] = {(): 1.0}
    for slot, fixed in enumerate(canvas):
        longer: dict[Text, float] = {}
        for text, chance in found.items():
            row = model.causal_logits([*text, 4])[-1].astype(np.float64)
            able = sorted({ids[slot] for ids in left if ids[:slot] == text})
            weights = np.exp((row[able] - row[able].max()) / temperature)
            for token, weight in zip(able, weights / weights.sum(), strict=True):
                # Behind an end there is nothing to decide.
                share = 1.0 if fixed is not None or END in text else float(weight)
                longer[*text, token] = longer.get((*text, token), 0.0) + chance * share
        found = longer
    return found


CANVASES: list[list[int | None]] = [
    [None] * 5,
    [None, None, 1, None, None, None],
    [None, 0, None, 0, None, None],
    [2, None, None, None, END],
]


@pytest.mark.slow
@pytest.mark.parametrize("canvas", CANVASES)
def test_the_likeliest_text_is_that_of_the_causal_mode(
    canvas: list[int | None], language: CompiledGrammar
) -> None:
    for number, strength, agreement in itertools.product(range(6), (0.0, 1.0, 4.0), (0.0, 0.7)):
        model = TwoModes(strength, agreement, number)
        cold = exact_distribution(model, canvas, 1e-3)
        best = max(cold, key=lambda text: cold[text])
        for block in (None, 1, 2, 4):
            found = infill(model, language, canvas, schedule=Schedule(block=block, verify=True))
            assert tuple(found) == best, (number, strength, agreement, block)


@pytest.mark.slow
def test_texts_are_distributed_as_those_of_the_causal_mode(language: CompiledGrammar) -> None:
    canvas = CANVASES[0]
    exact = exact_distribution(TwoModes(1.0, 0.5), canvas, 0.8)
    assert abs(sum(exact.values()) - 1) < 1e-12 and len(exact) > 10
    assert _misfit(exact, language, canvas) < 4


def _misfit(exact: dict[Text, float], language: CompiledGrammar, canvas: list[int | None]) -> float:
    """Pearson's chi-square of 1,500 texts, in standard deviations from its mean; below 4 but once in some thousand draws."""
    schedule = Schedule(temperature=0.8, verify=True)
    count, seen = 1500, dict.fromkeys(exact, 0)
    model = TwoModes(1.0, 0.5)
    for seed in range(count):
        seen[tuple(infill(model, language, canvas, schedule=schedule, seed=seed))] += 1
    often = [text for text in exact if exact[text] * count >= 5]
    cells = [(exact[text] * count, seen[text]) for text in often]
    cells.append((count - sum(e for e, _ in cells), count - sum(s for _, s in cells)))
    found = sum((s - e) ** 2 / e for e, s in cells)
    return float((found - len(often)) / np.sqrt(2 * len(often)))


def test_fewer_calls_for_the_same_texts(language: CompiledGrammar) -> None:
    """Token for token those of one slot a call, whatever was proposed."""
    words = mw.compile_regex("[abc]{15}", LETTERS)
    for agreement, most in ((1.0, 0.5), (0.5, 1.0), (0.0, 2.0)):
        calls = np.zeros(2)
        for seed in range(12):
            models = TwoModes(0.3, agreement), TwoModes(0.3, agreement)
            texts = [
                infill(
                    model,
                    words,
                    ["a", *[None] * 14],
                    schedule=Schedule(block=block, temperature=1.0, verify=True),
                    seed=seed,
                )
                for model, block in zip(models, (1, None), strict=True)
            ]
            assert texts[0] == texts[1]
            assert models[0].calls == 0 and models[1].calls <= models[1].causal_calls
            calls += [model.calls + model.causal_calls for model in models]
        assert calls[1] <= most * calls[0], agreement


@pytest.mark.parametrize("name", GRAMMARS)
def test_inside_grammars(name: str) -> None:
    """Gaps, end tokens and refused proposals; every text has logits of its own, so proposals are mostly wrong."""
    compiled = GRAMMARS[name]()

    class Both(Random):
        def logits(self, canvas: list[int]) -> Any:
            self.rng = np.random.default_rng(hash(tuple(canvas)) % 2**32)
            return super().logits(canvas)

        def causal_logits(self, canvas: list[int]) -> Any:
            return np.stack([self.logits(canvas[:i] or [MASK])[-1] for i in range(len(canvas))])

    for trouble, seed in itertools.product(("hash", "some ends"), range(2)):
        canvas = [Gap(0, 3), *[MASK] * 14]
        texts = [
            infill(
                Both(trouble, seed),
                compiled,
                canvas,
                schedule=Schedule(block=block, temperature=0.5 * seed, verify=True),
                seed=seed,
            )
            for block in (1, 5, None)
        ]
        assert texts[0] == texts[1] == texts[2] and is_valid(compiled, texts[0])


def test_a_slot_that_is_left_out_has_a_row(language: CompiledGrammar) -> None:
    """The model sees nothing of it, and decides on it by what is left of it."""
    for seed in range(20):
        texts = [
            infill(
                TwoModes(1.0, 0.5),
                language,
                [Gap(0, 4), "a", Gap(0, 2)],
                schedule=Schedule(block=block, temperature=1.5, verify=True),
                seed=seed,
            )
            for block in (1, None)
        ]
        assert texts[0] == texts[1] and EMPTY not in texts[0]


def test_calls_are_counted(language: CompiledGrammar) -> None:
    model = TwoModes(0.5, 0.5)
    schedule = Schedule(temperature=1.0, verify=True)
    steps = list(infill_steps(model, language, [None] * 6, schedule=schedule, seed=3))[1:]
    assert sum(step.calls for step in steps) == model.calls + model.causal_calls
    assert sorted(slot for step in steps for slot in step.taken) == list(range(6))


# --- wrong variants


@pytest.mark.slow
def test_a_model_that_judges_itself_is_caught(
    language: CompiledGrammar, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = exact_distribution(TwoModes(1.0, 0.5), CANVASES[0], 0.8)
    monkeypatch.setattr(TwoModes, "causal_logits", lambda self, canvas: self.logits(canvas))
    assert _misfit(exact, language, CANVASES[0]) > 20


@pytest.mark.slow
def test_going_on_behind_a_wrong_proposal_is_caught(
    language: CompiledGrammar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the causal mode said there was said of another text."""
    exact = exact_distribution(TwoModes(1.0, 0.5), CANVASES[0], 0.8)
    held: list[list[int]] = []
    proposed, decide = speculation._proposed, speculation._decide

    def remembered(*args: Any) -> Any:
        found, seconds = proposed(*args)
        held.append(found)
        return found, seconds

    def trusting(canvas: Any, slot: int, row: Any) -> None:
        decide(canvas, slot, row)
        held[-1][slot] = canvas.tokens[slot]

    monkeypatch.setattr(speculation, "_proposed", remembered)
    monkeypatch.setattr(speculation, "_decide", trusting)
    assert _misfit(exact, language, CANVASES[0]) > 20


# --- bad input


def test_what_verify_does_not_go_with(language: CompiledGrammar) -> None:
    for options in (
        {"steps": 3},
        {"score": "entropy"},
        {"threshold": 0.5},
        {"remask": 1},
        {"edit_threshold": 0.5},
        {"ahead": 2},
    ):
        with pytest.raises(CanvasError, match=f"{next(iter(options))}: with verify"):
            Schedule(verify=True, **options)  # type: ignore[arg-type]
    with pytest.raises(CanvasError, match="verify"):
        Schedule(verify=1)  # type: ignore[arg-type]
    model, schedule = TwoModes(0.0), Schedule(verify=True)
    with pytest.raises(CanvasError, match="the model has no causal_logits"):
        infill(Chain(0.0), language, [None] * 4, schedule=schedule)
    with pytest.raises(CanvasError, match="verify: only with the criterion exact"):
        infill(model, language, [None] * 4, schedule=schedule, criterion="gaps")
    with pytest.raises(CanvasError, match="verify: particles"):
        infill_smc(model, language, [None] * 4, schedule=schedule)
    assert model.calls == model.causal_calls == 0


def test_wrong_causal_logits(language: CompiledGrammar, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = Schedule(verify=True)
    good = TwoModes.causal_logits
    for change, error in (
        (lambda rows: rows[:-1], CanvasError),
        (lambda rows: rows * np.nan, ModelError),
        (lambda rows: "none", CanvasError),
    ):
        monkeypatch.setattr(
            TwoModes, "causal_logits", lambda self, canvas, change=change: change(good(self, canvas))
        )
        with pytest.raises(error, match="logits"):
            infill(TwoModes(0.0), language, [None] * 4, schedule=schedule)


class Editing(TwoModes):
    kind: Any = "editing"


def test_models_that_edit_have_no_text_of_the_causal_mode(language: CompiledGrammar) -> None:
    assert issubclass(Editing, MaskedDiffusionModel)
    with pytest.raises(CanvasError, match="kind absorbing"):
        infill(Editing(0.0), language, [None] * 4, schedule=Schedule(verify=True))
