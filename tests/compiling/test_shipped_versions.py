"""Later versions of a shipped grammar: what they add, and what the Python of that version says of it (``python3.12`` on PATH)."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import languages
import pytest
import stdlib
from byte_walks import BYTES
from byte_walks import accepts as holds

import maskwright as mw
from maskwright.compiling.shipped import examples

VERSIONS = ["3.12", "3.13"]
# What ``ast`` takes: the first is refused by the compiler, the second by 3.13 in some formats.
LEFT_OUT = ["class A[T = int, S]: pass\n", "f'{a:{{b}}}'\n"]


@cache
def compiled(version: str) -> mw.CompiledGrammar:
    # However busy the machine is.
    return mw.compile(mw.shipped_grammar("python", version), BYTES, limits=mw.Limits(max_seconds=60))


def judge_of(version: str) -> Any:
    """That of ``bench/languages.py``; skips where that Python is not there."""
    judge = languages.JUDGES[f"python-{version}"]
    if missing := judge.missing():
        pytest.skip(f"needs {' and '.join(missing)}: python{version} on PATH")
    return judge


def test_a_version_is_one_of_those_that_there_are() -> None:
    assert mw.shipped_grammar("python", version="3.11") == mw.shipped_grammar("python")
    assert "python-3.12" not in mw.shipped_grammars()
    with pytest.raises(
        mw.GrammarError, match=r"no version '3\.10' .*'python': it is one of 3\.11, 3\.12, 3\.13"
    ):
        mw.shipped_grammar("python", version="3.10")
    with pytest.raises(mw.GrammarError, match=r"no version '2' .*'sql': it comes in one only"):
        mw.shipped_grammar("sql", version="2")
    with pytest.raises(mw.GrammarError, match="version: expected str or None, got float"):
        mw.shipped_grammar("python", version=3.12)  # type: ignore[arg-type]
    with pytest.raises(mw.GrammarError, match=r"no shipped grammar 'python-3\.12'"):
        mw.shipped_grammar("python-3.12")


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_examples(version: str) -> None:
    texts = examples(f"python-{version}")
    assert [text for text in texts["accept"] if not holds(compiled(version), text)] == []
    assert [text for text in texts["reject"] if holds(compiled(version), text)] == []


@pytest.mark.slow
def test_a_later_version_takes_what_an_earlier_one_took() -> None:
    earlier = [*examples("python")["accept"], *examples("python-3.12")["accept"]]
    assert [text for text in earlier if not holds(compiled("3.13"), text)] == []
    old = mw.compile(mw.shipped_grammar("python"), BYTES)
    assert [text for text in examples("python-3.12")["accept"] if holds(old, text)] == []


@pytest.mark.parametrize("version", [VERSIONS[0], pytest.param(VERSIONS[1], marks=pytest.mark.slow)])
def test_walks_are_read_by_that_python(version: str) -> None:
    """``bench/languages.py`` asks more."""
    judge = judge_of(version)
    texts = examples(f"python-{version}")
    assert judge.wrong(texts["accept"]) == []
    refused = [text for text in texts["reject"] if text not in LEFT_OUT]
    assert all(judge.said(refused))
    rng = random.Random(5)
    assert judge.wrong([languages.walk(compiled(version), judge, rng) for _ in range(300)]) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_files_of_its_standard_library_are_python(version: str) -> None:
    """A few, and those that test what is new; ``bench/stdlib.py`` reads all of them."""
    judge_of(version)
    root = stdlib.standard_library(version)
    small = [file for file in sorted(root.glob("*.py")) if 1_000 < file.stat().st_size < 12_000]
    new = [root / "test" / f"test_{name}.py" for name in ("type_aliases", "type_params")]
    for file in [*random.Random(4).sample(small, 8), *(file for file in new if file.exists())]:
        text = stdlib.source_text(file, version)
        assert text is not None and holds(compiled(version), text), file.name


@pytest.mark.slow
def test_bash_reads_more_than_all_shells() -> None:
    bash = mw.compile(mw.shipped_grammar("shell", "bash"), BYTES, limits=mw.Limits(max_seconds=60))
    all_shells = mw.compile(mw.shipped_grammar("shell", "posix"), BYTES, limits=mw.Limits(max_seconds=60))
    assert mw.shipped_grammar("shell", "posix") == mw.shipped_grammar("shell")
    texts = examples("shell-bash")
    assert [text for text in [*texts["accept"], *examples("shell")["accept"]] if not holds(bash, text)] == []
    assert [text for text in texts["reject"] if holds(bash, text)] == []
    assert [text for text in texts["accept"] if holds(all_shells, text)] == []
    judge = languages.JUDGES["shell-bash"]
    if missing := judge.missing():
        pytest.skip(f"needs {' and '.join(missing)}")
    assert judge.wrong(texts["accept"]) == []
    assert all(judge.said(texts["reject"]))
    rng = random.Random(6)
    assert judge.wrong([languages.walk(bash, judge, rng) for _ in range(200)]) == []
