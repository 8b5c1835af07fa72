"""The grammars that come with the package: their examples, Lark's opinion of them, and random walks."""

from __future__ import annotations

import ast
import importlib
import ipaddress
import json
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import time
import warnings
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import lark
import pytest
import toys
from byte_walks import BYTES
from byte_walks import accepts as holds
from places import ROOT

import maskwright as mw
from maskwright.check.grammars import compile_for_bytes
from maskwright.compiling import lexer_automaton, lowering
from maskwright.compiling.shipped import examples, shipped_grammar, shipped_grammars

NAMES = ["arithmetic", "c", "csv", "dates", "email", "gbnf", "html", "javascript", "json", "jsonl", "lark", "markdown", "pddl", "python",
         "regex", "shell", "smiles", "sql", "typescript", "url", "verilog", "yaml"]  # fmt: skip
# Lark needs a postlexer for indentation, and knows no modes.
NOT_FOR_LARK = {"html", "javascript", "python", "typescript", "yaml"}

# What a reader takes, and the grammar leaves out.
LEFT_OUT = {
    # Extensions of GNU C, and what C had before 1999.
    "c": ["", "x = 1;", "struct { };", "int f() { return &&a; }"],
    "html": ["<p>", "<x></x>", "<ul>x</ul>", "<P></P>"],
    "shell": ["x=$((1 + ))", "((a))", "[[ a ]]"],
    "typescript": ["type = string", "interface A extends { }", "@a class B {}", "<T>x"],
    # SystemVerilog, and what slang's parser leaves to its elaboration.
    "verilog": [
        "module m; endmodule;",
        "module m; initial i++; endmodule",
        "module m; logic a; endmodule",
        "module m; always_ff @(posedge clk) q <= d; endmodule",
        "module m; u(.a(b), c); endmodule",
        "module m; x u(.a(b), .c(d),); endmodule",
        "module m; function f; f = 1; endfunction endmodule",
        "module m; `timescale 1ns/1ps\nendmodule",
        "assign a = b;",
    ],
}


@cache
def compiled(name: str) -> mw.CompiledGrammar:
    # However busy the machine is.
    return mw.compile(shipped_grammar(name), BYTES, limits=mw.Limits(max_seconds=60))


def accepts(name: str, text: str) -> bool:
    return holds(compiled(name), text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["c", "html", "javascript", "markdown", "python", "sql", "typescript", "verilog"]
)
def test_lexers_are_safe(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No rows of terminals clash that cannot be avoided: new masks would cost ten times as much."""
    made = []

    def add(*given: Any) -> Any:
        made.append(lexer_automaton.add_lexer(*given))
        return made[-1]

    source = mw.shipped_grammar(name)
    monkeypatch.setattr(lowering, "add_lexer", add)
    unknown = mw.Lark(f"{source.text}\n// {time.time_ns()}: not in any cache\n")
    compile_for_bytes(unknown, mw.Limits(max_seconds=100.0))
    named = [tuple(made[-1].names[i] for i in clash if i >= 0) for clash in made[-1].clashes]
    assert not named


def test_names() -> None:
    assert shipped_grammars() == NAMES
    with pytest.raises(mw.GrammarError, match="sql"):
        shipped_grammar("sqk")


@pytest.mark.parametrize("name", NAMES)
def test_examples(name: str) -> None:
    texts = examples(name)
    assert texts["accept"] and texts["reject"]
    assert [text for text in texts["accept"] if not accepts(name, text)] == []
    assert [text for text in texts["reject"] if accepts(name, text)] == []


def mutations(texts: list[str], rng: random.Random) -> list[str]:
    alphabet = sorted(set("".join(texts)))
    found = []
    for text in texts:
        for _ in range(3):
            at = rng.randrange(len(text) + 1)
            kind = rng.randrange(3)
            middle = "" if kind == 0 else rng.choice(alphabet)
            found.append(text[:at] + middle + text[at + (kind != 1) :])
    return found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in {"shell", "sql", "verilog"} else name
        for name in sorted({*NAMES} - NOT_FOR_LARK)
    ],
)
def test_lark_agrees(name: str) -> None:
    """What we accept, Lark accepts as well; it may accept more, for its dynamic lexer knows no longest match."""
    parser = lark.Lark(shipped_grammar(name).text, parser="earley")
    texts = examples(name)

    def read(text: str) -> bool:
        try:
            parser.parse(text)
        except (lark.exceptions.LarkError, AssertionError):
            return False
        return True

    assert [text for text in texts["accept"] if not read(text)] == []
    short = [text for text in texts["accept"] if len(text) < 80]
    for text in mutations(short, random.Random(1))[:40]:
        if accepts(name, text):
            assert read(text), text


def walk(name: str, rng: random.Random, steps: int) -> str:
    matcher = compiled(name).matcher()
    for _ in range(rng.randrange(1, steps)):
        allowed = sorted(toys.allowed(matcher) - {*BYTES.eos_ids})
        if not allowed:
            break
        letters = [i for i in allowed if 32 <= i < 127 or i == 10]
        assert matcher.accept_token(rng.choice(letters or allowed))
    ids = [i for i in matcher.accepted_tokens if i < 256]
    text = bytes(ids) + b"".join(BYTES.tokens[i] or b"" for i in matcher.shortest_completion())
    return text.decode()


@pytest.mark.parametrize("name", NAMES)
def test_random_walks_end_in_the_language(name: str) -> None:
    rng = random.Random(2)
    for _ in range(15):
        text = walk(name, rng, 60)
        assert accepts(name, text), text


def test_files_of_the_standard_library_are_python() -> None:
    """A few."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    small = [file for file in files if 1_000 < file.stat().st_size < 12_000]
    for file in random.Random(4).sample(small, 12):
        text = file.read_text(encoding="utf-8")
        assert accepts("python", text if text.endswith("\n") else text + "\n"), file.name


@pytest.mark.slow
def test_many_files_of_the_standard_library_are_python() -> None:
    """That ``ast`` accepts; in processes of their own, as whole files make many states.  ``bench/stdlib.py`` alone reads all of them."""
    run = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "stdlib.py"), "--files", "400"],
        capture_output=True,
        text=True,
        check=False,
    )
    last = run.stdout.splitlines()[-1]
    found = re.fullmatch(r"(\d+) of (\d+) files accepted .*", last)
    assert found is not None and found[1] == found[2] and int(found[2]) > 300, run.stdout + run.stderr


@pytest.mark.parametrize("walks", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_walks_are_python(walks: int) -> None:
    rng = random.Random(walks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(walks):
            ast.parse(walk("python", rng, 60))


def test_walks_are_regular_expressions() -> None:
    """For Python, and where it is installed for node, with and without the flag u."""
    rng = random.Random(1)
    walks = [walk("regex", rng, 40) for _ in range(300)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in walks:
            re.compile(each)
    if shutil.which("node") is not None:
        code = "for (const each of JSON.parse(process.argv[1])) { new RegExp(each); new RegExp(each, 'u') }"
        ascii_only = json.dumps([each for each in walks if "\0" not in each])
        assert subprocess.run(["node", "-e", code, ascii_only], capture_output=True).stderr == b""


def test_walks_are_yaml() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML reads what was written")
    rng = random.Random(1)
    for _ in range(300):
        yaml.compose(walk("yaml", rng, 50))


def test_addresses_in_urls_are_those_of_ipv6() -> None:
    rng = random.Random(1)
    parts = ["1", "0", "ab", "12345", "ffff", "1.2.3.4", "1.2.3.256", "01.2.3.4"]
    taken = 0
    for _ in range(3000):
        pieces = rng.choices(parts[:3], k=rng.randint(0, 8)) + rng.choices([*parts, ""], k=rng.randint(0, 2))
        text = ":".join(pieces)
        if rng.random() < 0.7:
            at = rng.randint(0, len(text))
            text = f"{text[:at]}::{text[at:]}"
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            is_address = False
        else:
            is_address = True
        assert accepts("url", f"http://[{text}]/") == is_address, text
        taken += is_address
    assert taken > 300


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``bench/languages.py``: what reads a language anyway."""
    return importlib.import_module("languages")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["c", "html", "javascript", "markdown", "shell", "typescript", "verilog"])
def test_walks_are_read_by_what_reads_the_language(name: str, judges: Any) -> None:
    """``bench/languages.py`` asks more."""
    judge = judges.JUDGES[name]
    if missing := judge.missing():
        pytest.skip(f"needs {' and '.join(missing)}")
    rng = random.Random(3)
    walks = [judges.walk(compiled(name), judge, rng) for _ in range(200 if name == "c" else 60)]
    assert judge.wrong(walks) == []
    texts = examples(name)
    assert judge.wrong(texts["accept"]) == []
    if name == "markdown":
        # Every text is Markdown: what the judge sees of a text must be what the grammar calls it.
        structure = importlib.import_module("markdown_structure")
        assert structure.of_parser("# a\n\n- `b`") == {
            "heading": [("h1", "a")],
            "item": [("1", "`b`")],
            "code": [("b",)],
        }
        return
    read = [text for text, said in zip(texts["reject"], judge.said(texts["reject"]), strict=True) if not said]
    assert read == LEFT_OUT.get(name, [])


@pytest.mark.parametrize("walks", [60, pytest.param(500, marks=pytest.mark.slow)])
def test_walks_are_sql(walks: int) -> None:
    rng = random.Random(walks)
    with sqlite3.connect(":memory:") as connection:
        for _ in range(walks):
            text = walk("sql", rng, 60)
            try:
                connection.execute(text)
            except sqlite3.Error as error:
                # Tables and columns that are not there are no question of grammar.
                assert "syntax error" not in str(error) and "unrecognized" not in str(error), (text, error)


def test_only_ascii_letters_have_two_cases() -> None:
    """Unicode folds the long s to s, the Kelvin sign to k and dotless i to i; SQLite and readers of HTML do not."""
    sql, html = (mw.compile(mw.shipped_grammar(name), BYTES) for name in ("sql", "html"))

    def takes(grammar: mw.CompiledGrammar, text: str) -> bool:
        matcher = grammar.matcher()
        return matcher.accept_bytes(text.encode()) and matcher.is_accepting

    with closing(sqlite3.connect(":memory:")) as connection:
        for text in (
            "sElEcT 1",
            "\u017felect 1",
            "select 1 \u0130n (2)",
            "select 1 as \u017fet",
            "select 1 as \u212aey",
            "select 1 li\u212ae 2",
        ):
            try:
                connection.execute(text)
                is_right = True
            except sqlite3.Error:
                is_right = False
            assert takes(sql, text) == is_right, text
    page = "<!DOCTYPE html><html><head><title>a</title>%s</head><body></body></html>"
    assert takes(html, page % "<script>x</ScRiPt>") and takes(html, page % "<script>x</\u017fcript></script>")
    assert not takes(html, page % "<script>x</\u017fcript>") and not takes(
        html, page % "<style>x</\u017ftyle>"
    )
