"""What is kept of Lark grammars in files: equal masks from read and restored grammars, and bad files ignored."""

from __future__ import annotations

from pathlib import Path

import pytest
import toys

import maskwright as mw
from maskwright import compiler, table_cache
from maskwright.frontends.lark.reader import read
from maskwright.lowering import Lowered

GRAMMAR = """
start: (line | block)+
line: NAME "=" NUMBER _NEWLINE
block: "if" NAME ":" _NEWLINE _INDENT line+ _DEDENT
NAME: /(?!if\\b)[a-z]+/
NUMBER: /[0-9]+(?![a-z])/
_NEWLINE: /(\\n *)+/
%ignore " "
%declare _INDENT _DEDENT
"""
TEXT = "if a:\n  b = 12\n  c=3\nd = 4\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MASKWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def vocabulary() -> mw.Vocabulary:
    pieces = [bytes([i]) for i in range(256)]
    pieces += [b"if ", b"\n  ", b" = ", b"12", b":\n", b"ab", b"if", b"a="]
    return mw.Vocabulary.from_bytes([*pieces, None], eos_ids=[len(pieces)])


def masks(grammar: str = GRAMMAR) -> list[set[int]]:
    matcher = mw.compile_lark(grammar, vocabulary()).matcher()
    found = []
    for byte in TEXT.encode():
        found.append(toys.allowed(matcher))
        assert matcher.accept_token(byte)
    assert matcher.is_accepting
    return found


def unread(*_: object) -> None:
    pytest.fail("the grammar was read again")


def test_a_restored_grammar_is_the_same(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = masks()
    assert len(list(cache.glob("grammar-*.bin"))) == 1
    monkeypatch.setattr(compiler, "_lowered", unread)
    assert masks() == read


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_a_damaged_file_is_replaced(damage: str, cache: Path) -> None:
    read = masks()
    (file,) = cache.glob("grammar-*.bin")
    good = file.read_bytes()
    changed = good[:-1] + bytes([good[-1] ^ 1])
    file.write_bytes({"cut": good[: len(good) // 2], "changed": changed, "empty": b""}[damage])
    assert masks() == read
    assert file.read_bytes() == good


def test_what_differs_has_a_file_of_its_own(cache: Path) -> None:
    masks()
    masks(GRAMMAR + "// Another text.\n")
    mw.compile_lark(GRAMMAR, vocabulary(), limits=mw.Limits(max_search=10_000))
    assert len(list(cache.glob("grammar-*.bin"))) == 3


def test_only_plain_grammars_are_kept(cache: Path, tmp_path: Path) -> None:
    # What an imported file holds may change, and a schema's lexemes are more than terminals.
    (tmp_path / "part.lark").write_text('NAME: "a"\n')
    mw.compile_lark("%import .part.NAME\nstart: NAME", vocabulary(), import_paths=[str(tmp_path)])
    mw.compile_lark('start: "a" %json {"type": "null"}', vocabulary())
    mw.compile_lark('start: "a"', vocabulary(), lexer="dynamic")
    with pytest.raises(mw.GrammarError):
        mw.compile_lark("start: missing", vocabulary())
    assert not list(cache.glob("grammar-*.bin"))


def test_only_some_files_are_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_cache, "FILES_KEPT", 2)
    for i in range(4):
        mw.compile_lark(f'start: "{i}"', vocabulary())
    assert len(list(cache.glob("grammar-*.bin"))) == 2


def test_no_directory_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE_DIR", "")
    assert masks() == masks()


def test_imported_names_are_plain(cache: Path) -> None:
    text = "%import common (INT, WS)\n%ignore WS\nstart: INT+"
    mw.compile_lark(text, vocabulary())
    assert len(list(cache.glob("grammar-*.bin"))) == 1
    source = read(text, "start", ())
    names = [*source.ignored, *source.terminals, *source.rules]
    names += [
        name for expansions in source.rules.values() for expansion in expansions for name, _ in expansion
    ]
    assert {type(name) for name in names} == {str}


def test_what_cannot_be_written_is_not_kept(cache: Path) -> None:
    class Name(str):
        pass

    table_cache.save("grammar-x.bin", Lowered((), [], [], b"", [], [], [], 0, [Name("start")]))
    assert table_cache.load("grammar-x.bin") is None
