"""``bench/diffusion_real.py``: which grammar an edited document gets, and how an edit is counted whose first filling takes long."""

from __future__ import annotations

import argparse
import json
from types import SimpleNamespace
from typing import Any

import pytest

import maskwright as mw

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("safetensors")

import diffusion_real as real

MODELS: Any = SimpleNamespace(
    vocabulary=mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256]),
    encode=lambda text: list(text.encode()),
    text=lambda ids: bytes(i for i in ids if i < 256).decode(),
    model=lambda before: None,
)
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


def accepts(grammar: mw.CompiledGrammar, text: str) -> bool:
    return real.is_accepted(grammar, MODELS.encode(text))


def test_the_order_of_members_is_that_of_the_document() -> None:
    kept, turned = '{"a": 1, "b": 2}', '{"b": 1, "a": 2}'
    in_order, any_order = (real.grammar_of(SCHEMA, text, MODELS) for text in (kept, turned))
    assert accepts(in_order, kept) and not accepts(in_order, turned) and not accepts(in_order, kept[:-1])
    assert accepts(any_order, kept) and accepts(any_order, turned)


def test_an_edit_past_the_default_limits_is_counted_and_made(monkeypatch: pytest.MonkeyPatch) -> None:
    head, span, tail = '{\n  "a": ', "1", ',\n  "b": 2\n}'
    edit = ("replace", "", head, span, tail, SCHEMA, lambda text: real.is_json_of(SCHEMA, text))
    asked = []

    def fill(model: Any, grammar: Any, canvas: Any, schedule: Any, criterion: str, **options: Any) -> Any:
        asked.append((criterion, options.get("limits", real.PATIENT)))
        if asked[-1] == ("exact", mw.Limits()):
            raise mw.LimitError("max_seconds", 6.0, 5.0)
        return [*(head + "7" + tail).encode()], 1

    monkeypatch.setattr(real, "edits", lambda count: iter([edit]))
    monkeypatch.setattr(real, "edited_documents", lambda count: [])
    monkeypatch.setattr(real, "fill", fill)
    rows = list(real.run_edits(argparse.Namespace(tasks=1, slots=12), MODELS, set()))
    assert asked == [("none", mw.Limits()), ("exact", mw.Limits()), ("exact", real.PATIENT)]
    assert [row["slow"] for row in rows] == [False, True] and all(row["valid"] for row in rows)
    found = real.sum_edits(json.loads(json.dumps(rows)))
    assert found["replace, exact"]["past the default limits"] == 1 and found["replace, exact"]["errors"] == 0
    assert found["replace, none"]["past the default limits"] == 0
