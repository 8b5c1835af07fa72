"""What the shipped grammars were lowered to when the package was built: equal to what reading them gives, and never out of date."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import toys

import maskwright as mw
from maskwright.compiling import build_tables, compiler, shipped_tables
from maskwright.compiling.shipped import examples

NAMES = mw.shipped_grammars()


@pytest.fixture(autouse=True)
def no_other_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE_DIR", "")


def unread(*_: object) -> None:
    pytest.fail("the grammar was read")


def vocabulary() -> mw.Vocabulary:
    return mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


def masks(name: str, text: str) -> list[set[int]]:
    matcher = mw.compile(mw.shipped_grammar(name), vocabulary()).matcher()
    found = []
    for byte in text.encode():
        found.append(toys.allowed(matcher))
        assert matcher.accept_token(byte)
    assert matcher.is_accepting
    return found


@pytest.mark.slow
def test_nobody_waits_for_a_shipped_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_lowered", unread)
    monkeypatch.setitem(sys.modules, "lark", None)
    for name in NAMES:
        grammar = mw.compile(mw.shipped_grammar(name), vocabulary())
        for text in examples(name)["accept"]:
            matcher = grammar.matcher()
            assert matcher.accept_bytes(text.encode()) and matcher.is_accepting, (name, text)


def test_limits_of_operations_change_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = mw.Limits(max_search=3_000_000, max_seconds=60.0)
    with monkeypatch.context() as patched:
        patched.setattr(compiler, "_lowered", unread)
        mw.compile(mw.shipped_grammar("sql"), vocabulary(), limits=limits)
    # Another limit may be an error, which reading tells.
    with pytest.raises(mw.LimitError, match="max_expansion"):
        mw.compile(mw.shipped_grammar("sql"), vocabulary(), limits=mw.Limits(max_expansion=10))


def test_a_file_that_is_damaged_or_out_of_date_is_as_good_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = examples("csv")["accept"][0]
    expected = masks("csv", text)
    name = build_tables.make("csv")
    good = (shipped_tables.FOLDER / name).read_bytes()
    monkeypatch.setattr(shipped_tables, "FOLDER", tmp_path)
    read = []
    lowered = compiler._lowered
    monkeypatch.setattr(compiler, "_lowered", lambda *given: read.append(1) or lowered(*given))
    (tmp_path / name).write_bytes(good)
    assert masks("csv", text) == expected and not read
    for at in range(0, len(good), len(good) // 9):
        (tmp_path / name).write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        assert masks("csv", text) == expected and read
        read.clear()
    (tmp_path / name).write_bytes(good)
    monkeypatch.setattr(shipped_tables, "sources_digest", lambda: "of other code")
    assert masks("csv", text) == expected and read


@pytest.mark.parametrize(
    "names", [["sql", "json", "csv"], pytest.param(NAMES, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_they_are_what_reading_gives(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = shipped_tables.FOLDER
    for module in (shipped_tables, build_tables):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    for name in names:
        file = build_tables.make(name)
        assert (tmp_path / file).read_bytes() == (built / file).read_bytes(), name
