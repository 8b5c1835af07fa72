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
