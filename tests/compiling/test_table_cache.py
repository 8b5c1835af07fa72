"""What is kept of Lark grammars in files: equal masks from read and restored grammars, and bad files ignored."""

from __future__ import annotations

from pathlib import Path

import pytest
import toys

import maskwright as mw
from maskwright.base import disk_cache
from maskwright.compiling import compiler, table_cache
from maskwright.frontends.lark.reader import read

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


def test_a_damaged_file_is_replaced(cache: Path) -> None:
    read = masks()
    (file,) = cache.glob("grammar-*.bin")
    good = file.read_bytes()
    for at in range(0, len(good), len(good) // 5):
        file.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        assert masks() == read
        assert file.read_bytes() == good


def test_what_differs_has_a_file_of_its_own(cache: Path) -> None:
    masks()
    masks(GRAMMAR + "// Another text.\n")
    mw.compile_lark(GRAMMAR, vocabulary(), limits=mw.Limits(max_search=10_000))
    assert len(list(cache.glob("grammar-*.bin"))) == 3


def test_grammars_of_any_kind_are_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [
        ('start: "a" %json {"type": "object", "required": ["b"]}', "contextual", b'a{"b":1}', {}),
        ('start: "a" | "ab" "c"', "dynamic", b"abc", {}),
        ('start: name "!"\nname[capture]: /[a-z]+/', "contextual", b"abc!", {"name": b"abc"}),
    ]
    for again in (False, True):
        if again:
            monkeypatch.setattr(compiler, "_lowered", unread)
        for text, lexer, output, captures in sources:
            matcher = mw.compile_lark(text, vocabulary(), lexer=lexer).matcher()
            assert matcher.accept_bytes(output) and matcher.is_accepting
            assert matcher.captures() == captures
        assert len(list(cache.glob("grammar-*.bin"))) == len(sources)
    with pytest.raises(mw.GrammarError):
        mw.compile_lark("start: missing", vocabulary())
    assert len(list(cache.glob("grammar-*.bin"))) == len(sources)


def test_tokens_are_looked_up_in_the_vocabulary_at_hand(cache: Path) -> None:
    text = 'start: "a" <end>'
    for place in (256, 257):
        pieces = [bytes([i]) for i in range(256)] + [b""] * 3
        tokens = mw.Vocabulary(pieces, 258, [place], special_tokens={"<end>": place})
        matcher = mw.compile_lark(text, tokens).matcher()
        assert matcher.accept_tokens([ord("a"), place]) == 2
        assert len(list(cache.glob("grammar-*.bin"))) == 1
    with pytest.raises(mw.GrammarError, match="no token '<end>'"):
        mw.compile_lark(text, vocabulary())


def test_a_file_that_was_forged_is_as_good_as_none(cache: Path) -> None:
    read = masks()
    (file,) = cache.glob("grammar-*.bin")
    good = file.read_bytes()
    for parts in ([], [b"[]"], [b"no json"], [b"[[]]", b"[]\n"]):
        disk_cache.write(file.name, *parts)
        assert masks() == read
        assert file.read_bytes() == good


@pytest.mark.parametrize("between", [" ", "\t ", " \\\n ", "\\\n"])
def test_an_imported_file_that_changes_is_read_again(
    between: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shared = vocabulary()
    text = f"%import{between}.part.NAME\nstart: NAME"
    for letter in "ab":
        (tmp_path / "part.lark").write_text(f'NAME: "{letter}"\n')
        for paths in ((), [str(tmp_path)]):
            matcher = mw.compile_lark(text, shared, import_paths=paths).matcher()
            assert toys.allowed(matcher) == {ord(letter)}
    assert not list(cache.glob("grammar-*.bin"))


def test_a_file_in_a_path_that_hides_one_of_the_package(cache: Path, tmp_path: Path) -> None:
    shared = vocabulary()
    text = "%import common.DIGIT\nstart: DIGIT"
    assert ord("7") in toys.allowed(mw.compile_lark(text, shared).matcher())
    (tmp_path / "common.lark").write_text('DIGIT: "x"\n')
    matcher = mw.compile_lark(text, shared, import_paths=[str(tmp_path)]).matcher()
    assert toys.allowed(matcher) == {ord("x")}


def test_other_code_has_other_files(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masks()
    monkeypatch.setattr(table_cache, "_code_digest", lambda: "other")
    masks()
    assert len(list(cache.glob("grammar-*.bin"))) == 2


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
