"""The conformance kit: the cases by other judges than engines, engines that are wrong on purpose, and crashes."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import conformance_engines
import pytest
import regex
import walks

from maskwright.cli import main
from maskwright.conformance import Case, ConformanceError, Tokens, load_cases, run
from maskwright.conformance.engines import ENGINES, factory_of
from maskwright.conformance.judge import Judge

CASES = load_cases()
JUDGED_BY_RUST_ONLY = {"pattern/letters by property"}


def group(*names: str) -> list[Case]:
    found = [case for case in CASES if case.group in names]
    assert found
    return found


def deep(work: Any) -> Any:
    """What a function returns on a stack for thousands of levels."""
    found: list[Any] = []
    before = sys.getrecursionlimit()
    threading.stack_size(512 << 20)
    thread = threading.Thread(target=lambda: found.append(work()))
    try:
        sys.setrecursionlimit(200_000)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(before)
        threading.stack_size(0)
    return found[0]


# --- the cases


def exact(text: str) -> int | Decimal:
    """``1.0`` is an integer, and 19.99 a multiple of 0.01."""
    value = Decimal(text)
    return int(value) if value == value.to_integral_value() else value


def is_valid(schema: Any, data: bytes) -> bool:
    """By Python's ``json``, which takes the last of equal keys, and ``jsonschema``."""

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is no JSON")

    try:
        value = json.loads(data.decode(), parse_constant=refuse, parse_float=exact)
    except ValueError:
        return False
    return bool(walks.validator_for(schema).is_valid(value))


@pytest.mark.parametrize("case", [c for c in CASES if c.kind == "json_schema"], ids=lambda case: case.id)
def test_verdicts_are_those_of_jsonschema(case: Case) -> None:
    pytest.importorskip("jsonschema")
    if case.id in JUDGED_BY_RUST_ONLY:
        return
    schema = json.loads(case.source, parse_float=exact)
    # Where practice says no, the specification has nothing against it.
    practice = case.basis == "practice"
    for data in case.valid:
        assert deep(lambda data=data: is_valid(schema, data)), data[:100]
    for data in case.invalid:
        assert deep(lambda data=data: is_valid(schema, data)) == practice, data[:100]


def test_verdicts_are_those_of_a_second_judge() -> None:
    """jsonschema-rs, for values that its reader takes; it knows patterns of ECMA-262, and no other formats."""
    rust = pytest.importorskip("jsonschema_rs")
    judged = 0
    for case in CASES:
        if case.kind != "json_schema" or case.group in ("duplicate keys", "format", "deep nesting"):
            continue
        schema = json.loads(case.source)
        validator = rust.validator_for(schema, validate_formats=True)
        for expected, texts in ((True, case.valid), (False, case.invalid)):
            for data in texts:
                try:
                    value = json.loads(data.decode())
                except ValueError:
                    assert not expected
                    continue
                if case.basis != "practice":
                    assert validator.is_valid(value) == expected, (case.id, data)
                    judged += 1
    assert judged > 800


@pytest.mark.parametrize("case", [c for c in CASES if c.kind == "regex"], ids=lambda case: case.id)
def test_languages_are_complete(case: Case) -> None:
    pattern = regex.compile(case.source)
    for data in (*case.valid, *(case.language or ())):
        assert pattern.fullmatch(data.decode())
    assert not any(pattern.fullmatch(data.decode()) for data in case.invalid)
    if case.language is None:
        return
    texts = {data.decode() for data in case.language}
    letters = sorted({*"".join(texts), *"xZ0\n é", *"\x00"})
    found, work = set(), [""]
    for before in work:
        if pattern.fullmatch(before):
            found.add(before)
        work += [before + c for c in letters if pattern.fullmatch(before + c, partial=True)]
        assert len(work) < 10_000
    assert found == texts


def test_every_keyword_has_a_case() -> None:
    specifications = pytest.importorskip("jsonschema_specifications")
    keywords = {
        name
        for uri in specifications.REGISTRY
        if "2020-12/meta/" in uri
        for name in specifications.REGISTRY.contents(uri).get("properties", ())
    }
    assert len(keywords) > 50
    used = set()

    def collect(schema: Any) -> None:
        if isinstance(schema, dict):
            used.update(schema)
        for below in (
            schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
        ):
            collect(below)

    for case in CASES:
        if case.kind == "json_schema":
            collect(json.loads(case.source))
    # That of metaschemas, and that of the value within a string.
    assert keywords - used == {"$vocabulary", "contentSchema"}


def test_names_are_unique() -> None:
    assert max(Counter(case.id for case in CASES).values()) == 1


def test_tokens_are_spelled() -> None:
    tokens = Tokens((b"a", b"ab", b"b", b"ab", b""), {4: "</s>"}, 8)
    assert tokens.encode(b"abbaab") == [1, 2, 0, 1]


# --- engines, in this process


def judged(factory: Any, cases: list[Case]) -> dict[str, str]:
    judge = Judge(factory)
    return {case.id: judge.judge(case).outcome for case in cases}


def test_ours_passes() -> None:
    failed = {
        name: outcome
        for name, outcome in judged(factory_of("maskwright"), CASES).items()
        if outcome != "pass"
    }
    assert not failed


@pytest.mark.slow
def test_an_exact_engine_passes_what_it_takes() -> None:
    regular = [case for case in CASES if case.kind == "regex" and case.group != "deep nesting"]
    assert set(judged(conformance_engines.Naive, regular).values()) == {"pass"} and len(regular) > 12
    assert set(judged(conformance_engines.Naive, group("type")).values()) == {"refused"}


# Engine: (group, outcome) of a group in which it must fail.
WRONG = {
    "EndsAnywhere": ("end tokens", "too loose"),
    "FirstEndOnly": ("several end ids", "too strict"),
    "AllowsPadding": ("padding ids", "too loose"),
    "AllowsHoles": ("padding ids", "too loose"),
    "OneIdOfEachText": ("equal tokens", "too strict"),
    "NoNamesOfEnds": ("end tokens", "too strict"),
    "NoLetters": ("masks", "too strict"),
    "AcceptsAll": ("masks", "too loose"),
    "ForgetsTheEnd": ("rollback", "too loose"),
    "StaysBehind": ("rollback", "too loose"),
    "NoRollback": ("rollback", "refused"),
    "Raises": ("const", "crash"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_engines_are_found(name: str) -> None:
    where, outcome = WRONG[name]
    found = judged(getattr(conformance_engines, name), group(where))
    assert outcome in found.values(), found
    assert set(judged(conformance_engines.Wrong, group(where)).values()) == {"pass"}


def test_an_empty_language_may_be_refused_and_must_not_be_written() -> None:
    (case,) = (case for case in CASES if case.id == "boolean schemas/false")
    assert case.is_empty and judged(conformance_engines.Naive, [case]) == {case.id: "pass"}

    class Anything(conformance_engines.Wrong):
        def compile(self, language: Any, source: str) -> Any:
            return super().compile(language, "true")

    assert judged(Anything, [case]) == {case.id: "too loose"}


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "maskwright"])
def test_adapters_of_other_engines(name: str) -> None:
    pytest.importorskip(name.replace("-", "_"))
    found = judged(factory_of(name), group("enum", "padding ids", "several end ids"))
    assert Counter(found.values())["pass"] > len(found) / 2
    assert "crash" not in found.values()


# --- engines in a process of their own


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Hangs", "no answer within 8 seconds"),
        ("Dies", "the process ended with code -6: last words"),
        ("Segfaults", "the process ended with code -11"),
        ("TakesAllMemory", "MemoryError"),
    ],
)
def test_crashes_are_outcomes(name: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    if os.name == "nt":
        pytest.skip("signals")
    before, failing, after = (
        next(case for case in CASES if case.id == wanted)
        for wanted in ("const/a number", "const/a string", "const/an object")
    )
    results = list(run(f"conformance_engines:{name}", [before, failing, after], seconds=8))
    assert [result.outcome for result in results] == ["pass", "crash", "pass"]
    assert said in results[1].problems[0]
    assert "last words" not in "".join(capfd.readouterr())


@pytest.mark.slow
def test_an_engine_that_is_not_there() -> None:
    for name, said in (
        ("nosuch", "no engine 'nosuch'; there are maskwright,"),
        ("no_such_module:factory", "No module named 'no_such_module'"),
        ("conformance_engines:Nothing", "Nothing"),
    ):
        with pytest.raises(ConformanceError, match=said):
            next(run(name, CASES))
    for name in ("llguidance", "xgrammar", "outlines-core"):
        if importlib.util.find_spec(name.replace("-", "_")) is None:
            with pytest.raises(ConformanceError, match=f"pip install {name}"):
                next(run(name, CASES))
    (result,) = run("conformance_engines:CannotStart", group("const")[:1])
    assert result.outcome == "refused" and "no licence" in result.problems[0]


@pytest.mark.parametrize(
    "more",
    [
        *({"tokens": wrong} for wrong in ({"ends": 9}, {"ends": "1"}, [1], {"twins": [1]}, {"foo": 1})),
        *({"rollback": "all"}, {"valid_texts": "abc"}, {"language": "ab"}),
    ],
)
def test_files_that_are_none(more: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([{"group": "g", "name": "n", "regex": "a", **more}]))
    with pytest.raises(ConformanceError, match="no file of cases: g/n"):
        load_cases([path])


# --- the command


@pytest.mark.slow
def test_the_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["conformance", "--engine", "maskwright", "--group", "const", "--group", "enum"]) == 0
    assert "2 groups without a failure" in capsys.readouterr().out
    (tmp_path / "own_engine.py").write_text("from conformance_engines import EndsAnywhere as Engine\n")
    monkeypatch.chdir(tmp_path)
    arguments = ["conformance", "--engine", "own_engine:Engine", "--engine", "maskwright", "--group", "const"]
    assert main([*arguments, "--verbose"]) == 1
    out = capsys.readouterr().out
    assert "too loose: const/a string\n    too loose: the end is allowed behind ''" in out
    assert out.rstrip().splitlines()[-1].split() == ["maskwright", "5", "5", "-", "-", "-", "-"]
    assert main([*arguments, "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["engines"]["maskwright"]["total"]["pass"] == 5
    assert data["engines"]["own_engine:Engine"]["groups"]["const"]["too loose"] == 5
    assert data["engines"]["own_engine:Engine"]["cases"][0]["case"] == "const/a string"


def test_own_cases_and_wrong_arguments(capsys: pytest.CaptureFixture[str], file: Any) -> None:
    case = {"group": "g", "name": "n", "regex": "a|b", "language": ["a", "b"], "exact": True}
    assert main(["conformance", "--engine", "maskwright", "--cases", file("c.json", json.dumps([case]))]) == 0
    wrong = {
        "no.json": "[",
        "field.json": json.dumps([{**case, "more": 1}]),
        "both.json": json.dumps([{**case, "schema": True}]),
        "neither.json": json.dumps([{"group": "g", "name": "n"}]),
        "list.json": json.dumps([3]),
        "deep.json": "[" * 100_000,
    }
    for name, text in wrong.items():
        assert main(["conformance", "--engine", "maskwright", "--cases", file(name, text)]) == 2
        assert f"{name}: no file of cases: " in capsys.readouterr().err
    for arguments in (["--engine", "nosuch"], ["--engine", "maskwright", "--group", "nosuch"]):
        assert main(["conformance", *arguments]) == 2
        assert "there are" in capsys.readouterr().err
    for option, value in (("--time-limit", "0"), ("--time-limit", "1e300"), ("--memory-limit", "1e300")):
        with pytest.raises(SystemExit, match="2"):
            main(["conformance", "--engine", "maskwright", "--group", "const", option, value])
