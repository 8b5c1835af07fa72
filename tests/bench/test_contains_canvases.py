"""The part of ``bench/contains.py`` that fills canvases: its measures are right, and what it counts as good is."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import pytest

from maskwright.diffusion import MaskedDiffusionModel

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("safetensors")

import contains
from diffusion_adapt import weights_path

SIZE, MASK, END = 12, 11, 10


class OfNeighbours(MaskedDiffusionModel):
    """A slot has most likely the token that is left of it; asked about one canvas after another, or several at once."""

    mask_id, eos_ids = MASK, [END]

    def logits(self, canvas: list[int]) -> Any:
        rows = np.zeros((len(canvas), SIZE), dtype=np.float32)
        for at in range(1, len(canvas)):
            rows[at, canvas[at - 1]] = 2.0
        return rows


def test_the_pseudo_log_likelihood_masks_each_slot_by_itself() -> None:
    other = -np.log(SIZE - 1 + np.exp(2.0))
    # The first slot has no neighbour; then ten with the token of theirs, and one without.  What is behind the end does not count.
    ids = [3] * 11 + [4, END, END]
    expected = (-np.log(SIZE) + 10 * (2.0 + other) + other) / 12
    assert contains.pseudo_log_likelihood(OfNeighbours(), ids, 12) == pytest.approx(expected, rel=1e-5)
    assert contains.pseudo_log_likelihood(OfNeighbours(), [END], 0) == 0.0


def test_differences_are_of_the_same_text() -> None:
    base, more = [
        [
            {"pseudo_log_likelihood_a_token": x, "judge_log_probability_a_token": 2 * x, "success": 1.0}
            for x in values
        ]
        for values in ((-3.0, -2.0, -1.0, -9.0), (-2.0, -1.0, -3.0, 0.0))
    ]
    more[3] = {"success": 0.0}
    found = contains.differences(more, base)
    assert found["pseudo_log_likelihood_a_token"] == pytest.approx([0.0, 1.0])
    assert found["judge_log_probability_a_token"] == pytest.approx([0.0, 2.0])


@pytest.mark.slow
def test_all_ways_but_the_first_take_few_calls() -> None:
    options = argparse.Namespace(model="demo", weights=weights_path(), examples=6, slots=24)
    found = contains.canvases(options)
    assert found["requests"] == 1
    assert found["means"].keys() == contains.ways(16, "word").keys()
    for name, [row] in found["runs"].items():
        assert row["success"] == 1.0 and row["word"] in row["text"]
        assert json.loads(row["text"]).keys() == {"name", "children"}
        assert row["rounds"] <= (row["slots"] if name == "slot by slot" else 6)
        assert row["pseudo_log_likelihood_a_token"] < 0 and row["judge_log_probability_a_token"] < 0
