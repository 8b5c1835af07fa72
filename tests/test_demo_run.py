"""``python -m maskwright.demo`` in a process of its own, and its exit code when an output is wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("transformers", reason="the demo runs a transformers model")

from maskwright.demo import __main__ as demo
from maskwright.demo import demo_schemas


def test_all_cases_validate_without_a_terminal():
    run = subprocess.run(
        [sys.executable, "-m", "maskwright.demo"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    count = len(demo_schemas())
    assert f"{count} of {count} outputs validate" in run.stdout
    assert "in masks" in run.stdout
    assert all(case["title"] in run.stdout for case in demo_schemas().values())
    assert "\033" not in run.stdout


def test_an_output_that_does_not_validate_fails_the_run(monkeypatch, capsys):
    case = {"title": "One", "request": "x", "schema": {"type": "integer"}}
    monkeypatch.setattr(demo, "demo_schemas", lambda: {"one": case})
    monkeypatch.setattr(
        demo, "_run_case", lambda generator, case: {"text": '"x"', "tokens": 3, "mask_seconds": 0.0}
    )
    assert demo.main() == 1
    out = capsys.readouterr().out
    assert "INVALID: 'x' is not of type 'integer'" in out
    assert "0 of 1 outputs validate" in out
