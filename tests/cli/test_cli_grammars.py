"""The command line on grammars: languages, standard input, formats, exit codes, sentences."""

from __future__ import annotations

import io
import json
import sys

import pytest

from maskwright.cli import main

LARK = 'start: "let" NAME "=" NUMBER\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\n%ignore " "\n'


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("g.lark", LARK, "start: a"),
        ("g.gbnf", 'root ::= "a"', "root ::= a"),
        ("g.ebnf", 'root ::= "a"', 'root ::= "a'),
        ("g.regex", "[a-z]{1,4}\n", "(a\n"),
        ("g.json", "true", "{"),
    ],
)
def test_each_language(name, good, bad, file, capsys):
    assert main(["check", file(name, good)]) == 0
    assert capsys.readouterr().out.startswith("all good")
    path = file(name, bad)
    assert main(["check", path]) == 1
    assert f"{path}:1:" in capsys.readouterr().out


def test_standard_input_and_usage(monkeypatch, file, capsys):
    def given(text, *arguments):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return main(["check", "-", *arguments])

    assert given(LARK, "--language", "lark") == 0
    assert given("root ::= b", "--language", "gbnf") == 1
    assert given('a ::= "b"', "--language", "gbnf", "--start", "a") == 0
    assert given("a.\\p{L}", "--language", "regex", "--flavour", "ecma") == 0
    assert given("grammar G;", "--start", "x") == 2
    assert given("a", "--language", "regex", "--profile", "openai-strict") == 2
    assert main(["check", file("g.g4", "grammar G;")]) == 2
    assert main(["check", file("g.lark", LARK), "--sample", "1", "--format", "sarif"]) == 2
    assert "not supported" in capsys.readouterr().err


def test_instances(file, capsys):
    grammar = file("g.lark", LARK)
    good, bad = file("good", "let x = 12\n"), file("bad", "let x 12\n")
    assert main(["check", grammar, "--instance", good]) == 0
    assert main(["check", grammar, "--instance", good, bad]) == 1
    out = capsys.readouterr().out
    assert f"{bad}:1:7: error: the text leaves the grammar here" in out
    assert 'expected "="' in out and "\n  let x 12\n        ^" in out


def test_formats(file, capsys):
    path = file("g.lark", 'start: "a"\nb: "x"\n')

    def run(form):
        assert main(["check", path, "--format", form]) == 0
        return capsys.readouterr().out

    (finding,) = json.loads(run("json"))["findings"]
    assert (finding["code"], finding["place"], finding["file"]) == ("unreachable-rule", "2:1", path)
    (result,) = json.loads(run("sarif"))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 2, "startColumn": 1}
    assert run("github").startswith(f"::warning file={path},line=2,col=1,title=unreachable-rule::")
    assert "\033" not in run("text")


def test_sentences(file, capsys):
    path = file("g.regex", "[a-c]{2,9}")
    assert main(["check", path, "--sample", "3", "--seed", "1"]) == 0
    summary, *lines = capsys.readouterr().out.splitlines()
    assert summary == "all good" and len(lines) == 3
    assert all(set(json.loads(line)) <= set("abc") for line in lines)
    assert main(["check", path, "--sample", "3", "--seed", "1", "--format", "json"]) == 0
    samples = json.loads(capsys.readouterr().out)["samples"]
    assert [json.dumps(each["text"]) for each in samples] == lines


def test_imports_are_found_beside_the_file(file, capsys):
    file("words.lark", "WORD: /[a-z]+/\n")
    assert main(["check", file("g.lark", "%import words.WORD\nstart: WORD\n")]) == 0


def test_mask(file, capsys):
    assert main(["mask", "--grammar", file("g.lark", LARK), "--prefix", "let x"]) == 0
    assert "expected NAME (behind 'x')" in capsys.readouterr().out
    assert main(["mask", "--grammar", file("g.gbnf", 'root ::= "a" "b"'), "--prefix", "b"]) == 1
    assert main(["mask", "--grammar", file("g.lark", "start: ("), "--prefix", ""]) == 1
