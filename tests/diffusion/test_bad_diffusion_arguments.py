"""Arguments of the diffusion interface: a typed error before the first model call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from toys import byte_vocabulary

import maskwright as mw
from maskwright.diffusion.between import complete_between
from maskwright.diffusion.canvas import Canvas
from maskwright.diffusion.decode import infill
from maskwright.diffusion.model import MaskedDiffusionModel
from maskwright.diffusion.particles import infill_smc
from maskwright.diffusion.schedule import Schedule
from maskwright.diffusion.slots import Gap
from maskwright.errors import CanvasError, MaskwrightError

BYTES = mw.Vocabulary.from_bytes([*byte_vocabulary().tokens, b""], eos_ids=byte_vocabulary().eos_ids)
GRAMMAR = mw.compile_regex("a+", BYTES)
TRIE = mw.compile_choice([[97]], BYTES)


class Model(MaskedDiffusionModel):
    mask_id = BYTES.vocab_size - 1
    eos_ids: Any = BYTES.eos_ids

    def logits(self, canvas: list[int]) -> Any:
        raise AssertionError("the model is asked before the arguments are checked")


def test_a_guess_of_another_length() -> None:
    canvas = Canvas(GRAMMAR, [None] * 4)
    before = canvas.witness()
    for guess in ([97], [97] * 5):
        with pytest.raises(CanvasError, match="4 slots"):
            canvas.suggest(guess)
    assert canvas.witness() == before


@pytest.mark.parametrize(
    "options",
    [
        {"schedule": 5},
        {"search_budget": "a"},
        {"search_budget": float("nan")},
        {"seed": -1},
        {"seed": "a"},
        {"seed": 1.5},
    ],
)
def test_options(options: dict[str, Any]) -> None:
    for fill in (infill, infill_smc):
        with pytest.raises(CanvasError, match=next(iter(options))):
            fill(Model(), GRAMMAR, [None] * 4, **options)  # type: ignore[operator]


def test_canvases_and_grammars() -> None:
    for fill in (infill, infill_smc):
        with pytest.raises(CanvasError, match="surrogate"):
            fill(Model(), GRAMMAR, ["\ud800", None])  # type: ignore[operator]
        for grammar in (TRIE, None):
            with pytest.raises(CanvasError, match="CompiledGrammar"):
                fill(Model(), grammar, [None] * 4)  # type: ignore[operator]
    with pytest.raises(CanvasError, match="CompiledGrammar"):
        Canvas(TRIE, [None])  # type: ignore[arg-type]
    with pytest.raises(CanvasError, match="CompiledGrammar"):
        complete_between(TRIE, "", "")  # type: ignore[arg-type]
    with pytest.raises(CanvasError, match="surrogate"):
        complete_between(GRAMMAR, "\ud800", "")


@pytest.mark.parametrize("eos_ids", [5, None, [1.5], ["a"]])
def test_ends_of_a_model(eos_ids: Any) -> None:
    model = Model()
    model.eos_ids = eos_ids
    for fill in (infill, infill_smc):
        with pytest.raises(CanvasError, match="eos_ids"):
            fill(model, GRAMMAR, [None] * 4)  # type: ignore[operator]
    if eos_ids is not None:
        with pytest.raises(MaskwrightError, match="eos_ids"):
            Canvas(GRAMMAR, [None], eos_ids=eos_ids)


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 1.5},
        {"block": True},
        {"remask": 0.5},
        {"remask": None},
        {"temperature": "a"},
        {"threshold": "a"},
        {"edit_threshold": None},
    ],
)
def test_schedules(options: dict[str, Any]) -> None:
    with pytest.raises(CanvasError, match=next(iter(options))):
        Schedule(**options)
    assert Schedule(steps=np.int64(3), threshold=np.float32(0.5)).steps == 3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.try_commit(1, -3), "-3 is outside"),
        (lambda c: c.try_commit(1, 2**70), "1180591620717411303424 is outside"),
        (lambda c: c.try_commit(1, None), "token"),
        (lambda c: c.try_commit(1, "a"), "token"),
        (lambda c: c.replace(1, -3), "-3 is outside"),
        (lambda c: c.may_follow(1, 1.5), "token"),
        (lambda c: c.may_follow(1, -3), "-3 is outside"),
        (lambda c: c.allowed("x"), "position"),
        (lambda c: c.allowed(1.0), "position"),
        (lambda c: c.allowed(2**70), "position"),
        (lambda c: c.is_optional(4), "position"),
        (lambda c: c.fill(-1), "position"),
        (lambda c: c.delete(None), "position"),
        (lambda c: c.insert("a"), "position"),
        (lambda c: c.insert(1, 1.5), "count"),
        (lambda c: c.insert(1, 0), "count"),
        (lambda c: c.insert(1, 2**70), "at most 65536"),
        (lambda c: c.insert(1, 70_000), "at most 65536"),
        (lambda c: c.uncommit(1), "positions"),
        (lambda c: c.uncommit([1, "a"]), "position"),
        (lambda c: c.suggest(["x"] * 4), "guess"),
        (lambda c: c.suggest([2**70] * 4), "guess"),
        (lambda c: c.suggest([97, 97, 97, -3]), "-3 is outside"),
    ],
)
def test_operations_of_a_canvas(call: Any, message: str) -> None:
    canvas = Canvas(GRAMMAR, [None] * 4)
    before = canvas.tokens, canvas.witness()
    with pytest.raises(MaskwrightError, match=message):
        call(canvas)
    assert (canvas.tokens, canvas.witness()) == before


def test_integers_of_other_types() -> None:
    canvas = Canvas(GRAMMAR, [None] * 4)
    assert canvas.try_commit(np.int64(1), np.array(97))  # type: ignore[arg-type]
    assert canvas.try_commit(3, np.int64(BYTES.eos_ids[0]))  # type: ignore[arg-type]
    assert all(type(token) is int for token in canvas.tokens)
    assert canvas.insert(np.int64(0), np.int64(2))  # type: ignore[arg-type]
    assert complete_between(GRAMMAR, "", "", max_tokens=np.int64(3)).max_tokens == 3  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [10**12, 2**70])
def test_gaps_without_measure(most: int) -> None:
    with pytest.raises(CanvasError, match="at most 65536"):
        Canvas(GRAMMAR, [Gap(0, most)])


def test_what_is_no_model() -> None:
    for fill in (infill, infill_smc):
        with pytest.raises(CanvasError, match="model: expected MaskedDiffusionModel"):
            fill("x", GRAMMAR, [None] * 4)  # type: ignore[operator]
