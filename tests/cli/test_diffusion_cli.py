"""``maskwright infill`` with the demo masked-diffusion model."""

from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import pytest
from tiny_model import REQUESTS

from maskwright.cli import main
from maskwright.demo import demo_diffusion_path

pytest.importorskip("torch")
pytest.importorskip("transformers")

CASE = REQUESTS["weather"]


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(CASE["schema"]))
    return str(path)


def run(schema: str, *options: str) -> int:
    return main(["infill", "--schema", schema, "--prompt", CASE["request"], "--slots", "48", *options])


def test_the_text_validates_and_the_canvas_is_shown(schema: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(schema, "--steps", "6", "--live", "always") == 0
    shown = capsys.readouterr()
    jsonschema.validate(json.loads(shown.out), CASE["schema"])
    lines = shown.err.splitlines()
    assert lines[0].split() == ["0", "░" * 48]
    assert "░" not in lines[-2]
    assert "model calls" in lines[-1]


def test_fixed_text_on_both_sides(schema: str, capsys: pytest.CaptureFixture[str]) -> None:
    first = next(iter(CASE["schema"]["properties"]))
    assert run(schema, "--prefix", f'{{"{first}":', "--suffix", "}", "--steps", "4") == 0
    out = capsys.readouterr().out
    assert out.startswith(f'{{"{first}":') and out.endswith("}\n")
    jsonschema.validate(json.loads(out), CASE["schema"])


@pytest.mark.slow
def test_the_prompt_from_standard_input(
    schema: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(schema) == 0
    text = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CASE["request"].encode()), encoding="utf-8"))
    assert run(schema, "--prompt", "-") == 0
    assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--slots", "3"], 1, "too few or too many"),
        (["--slots", "0"], 1, "no slot"),
        (["--slots", "-1"], 2, "slots"),
        (["--steps", "0"], 2, "steps"),
        (["--temperature", "-1"], 2, "temperature"),
        (["--model", "/nowhere/at/all"], 2, "cannot be loaded"),
        (["--schema", "/nowhere/at/all"], 2, "No such file"),
    ],
)
def test_bad_options(
    schema: str, options: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(schema, *options) == code
    assert message in capsys.readouterr().err


def test_the_demo_model_is_small_and_says_what_it_is() -> None:
    files = list(demo_diffusion_path().iterdir())
    assert sum(path.stat().st_size for path in files) < 6_000_000
    assert "demo" in (demo_diffusion_path() / "README.md").read_text().lower()
