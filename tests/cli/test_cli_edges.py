"""The command line with several files, odd bytes, and every exit code in a process of its own."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_model import TINY

from maskwright.cli import main

INTEGER = '{"type": "integer"}'


@pytest.fixture
def write(tmp_path):
    def go(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return go


@pytest.fixture
def stdin(monkeypatch):
    def go(content: bytes):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return go


def test_several_instances_of_several_schemas(write, capsys):
    schemas = [write("a.json", INTEGER), write("b.json", '{"type": "number"}')]
    instances = [write("1.json", "5\r\n"), write("2.json", "-0.5 \n")]
    assert main(["check", *schemas, "--instance", *instances]) == 1
    assert capsys.readouterr().out.count("leaves the schema") == 1
    assert main(["check", schemas[1], "--instance", instances[0], "--instance", instances[1]]) == 0


def test_an_instance_on_standard_input_is_checked_by_every_schema(write, stdin, capsys):
    schemas = [write("a.json", INTEGER), write("b.json", '{"type": "null"}'), write("c.json", INTEGER)]
    stdin(b"77")
    assert main(["check", *schemas, "--instance", "-"]) == 1
    assert capsys.readouterr().out.count("-:1:1:") == 1


def test_standard_input_can_be_read_once(stdin, capsys):
    stdin(INTEGER.encode())
    for given in (
        ["check", "-", "--instance", "-"],
        ["explain", "--schema", "-", "--prefix-file", "-"],
        ["explain", "--schema", "-", "--prompt", "-", "--html", "out.html"],
        ["generate", "--schema", "-", "--prompt", "-", "--model", "missing"],
    ):
        stdin(INTEGER.encode())
        assert main(given) == 2
        assert "only once" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b'"\xff"', b"\xed\xa0\x80"])
def test_bytes_that_are_no_text(content, write, capsys):
    assert main(["check", write("s.json", content)]) == 2
    assert "not UTF-8" in capsys.readouterr().err
    assert main(["check", write("s.json", INTEGER), "--instance", write("i.json", content)]) == 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"type":\r\n\r\n  x}', ":3:3: error: malformed JSON: Expecting value\n    x}\n    ^"),
        ('{\t"a":\tx}', '  {\t"a":\tx}\n   \t    \t^'),
        ('{"type": "a\u2028b", }', "{"),
        ('{"a": 1,\n', ":2:1: error"),
        ("", ":1:1: error"),
        ("[" * 200_000, "nested too deeply"),
    ],
)
def test_malformed_schemas(text, shown, write, capsys):
    assert main(["check", write("s.json", text)]) == 1
    assert shown in capsys.readouterr().out


def test_carets_of_long_lines_stay_on_the_screen(write, capsys):
    schema = write("s.json", '{"type": "string"}')
    assert main(["check", schema, "--instance", write("i.json", '"' + "x" * 5000 + '"!')]) == 1
    _, line, caret, *_ = capsys.readouterr().out.split("\n")
    assert len(line) < 120
    assert line[caret.index("^")] == "!"


def test_carets_stand_below_their_place_behind_tabs(write, capsys):
    grammar = write("g.gbnf", 'root ::= "a\\t\\tb"')
    assert main(["check", grammar, "--instance", write("i.txt", "a\t\tc")]) == 1
    _, line, caret, *_ = capsys.readouterr().out.split("\n")
    assert line == "  a\t\tc" and caret.startswith("   \t\t^")


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_all_formats_of_a_clean_run(form, write, capsys):
    assert main(["check", write("s.json", INTEGER), "--format", form]) == 0
    out = capsys.readouterr().out
    if form == "json":
        assert json.loads(out)["findings"] == []
    if form == "sarif":
        (run,) = json.loads(out)["runs"]
        assert run["results"] == run["tool"]["driver"]["rules"] == []


def test_sarif_rules_cover_the_results(write, capsys):
    schema = write("s.json", '{"extends": {}, "properties": {"x": {"format": "odd", "uniqueItems": true}}}')
    assert main(["check", schema, "--format", "sarif"]) == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert {result["ruleId"] for result in run["results"]} == {
        rule["id"] for rule in run["tool"]["driver"]["rules"]
    }
    assert {result["level"] for result in run["results"]} <= {"error", "warning", "note"}
    for result in run["results"]:
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"] == Path(schema).as_uri()


def test_github_escapes(write, capsys):
    schema = write("s.json", '{"properties": {"100%\\n": {"extends": {}}}}')
    assert main(["check", schema, "--format", "github"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert "100%25" in line


def test_names_of_files_cannot_say_anything_else(write, capsys, monkeypatch, tmp_path):
    """In a workflow command, a new line begins another one; in a URI, a hash begins a fragment."""
    monkeypatch.chdir(tmp_path)
    for name, form, shown in (
        ("a\n::error::x,1%.json", "github", "file=a%0A%3A%3Aerror%3A%3Ax%2C1%25.json,line="),
        ("my schema#1,x=100%.json", "sarif", '"uri": "my%20schema%231%2Cx%3D100%25.json"'),
        ("\x1b]0;x\x07.json", "text", "\\x1b]0;x\\x07.json:/"),
    ):
        write(name, '{"properties": {"\\u001b]0;x\\u0007": {"type": "intger"}}}')
        assert main(["check", name, "--format", form]) == 1
        found = capsys.readouterr().out
        assert shown in found and "\n::error::x" not in found and "\x1b" not in found


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_names_that_are_no_text(form, write):
    schema = write("s.json", '{"properties": {"\\ud800": {"odd": 1}}}')
    run = subprocess.run(
        [sys.executable, "-m", "maskwright", "check", schema, "--verbose", "--format", form],
        capture_output=True,
        check=True,
    )
    assert rb"/properties/\ud800" in run.stdout
    assert not run.stderr


@pytest.mark.parametrize("command", ["mask", "explain", "explain --json", "check --json --instance"])
def test_output_in_other_encodings(command, write):
    schema = write("s.json", '{"const": "\u65e5\u672c\U0001f600\u00e9"}')
    name, *more = command.split()
    given = [schema, *more, write("i.json", '"\u65e5x"')] if name == "check" else ["--schema", schema, *more]
    run = subprocess.run(
        [sys.executable, "-m", "maskwright", name, *given],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert run.returncode == (name == "check") and b"Traceback" not in run.stderr
    assert rb"\u65e5" in run.stdout
    if "--json" in more:
        assert "\u65e5" in str(json.loads(run.stdout))


def test_sarif_in_other_encodings(write):
    bounds = {"type": "integer", "minimum": 5, "maximum": 3}
    schema = write("s.json", json.dumps({"properties": {"\U0001d11e": bounds}}))
    run = subprocess.run(
        [sys.executable, "-m", "maskwright", "check", schema, "--format", "sarif"],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=True,
    )
    assert "\U0001d11e" in str(json.loads(run.stdout))


def test_pages_are_utf_8(write):
    schema = write("s.json", '{"const": "\u65e5"}')
    run = subprocess.run(
        [sys.executable, "-m", "maskwright", "explain", "--schema", schema, "--html", "-"],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=True,
    )
    assert "\u65e5" in run.stdout.decode("utf-8")


def test_mask_lists_bytes(write, capsys):
    schema = write("s.json", INTEGER)
    assert main(["mask", "--schema", schema, "--limit", "2"]) == 0
    out = capsys.readouterr().out
    assert "allowed bytes: 11\n  b'-'\n  b'0'\n  ... and 9 more\n" in out
    assert main(["mask", "--schema", schema, "--limit", "0", "--prefix", "1"]) == 0
    assert "b'" not in capsys.readouterr().out
    for command in ("mask", "explain"):
        with pytest.raises(SystemExit) as found:
            main([command, "--schema", schema, "--limit", "-1"])
        assert found.value.code == 2 and "must not be negative" in capsys.readouterr().err


def test_a_prefix_on_standard_input(write, stdin, capsys):
    schema = write("s.json", '{"enum": ["ab", "ac"]}')
    for command in ("mask", "explain"):
        stdin(b'"a')
        assert main([command, "--schema", schema, "--prefix", "-", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["allowed"] == 2
    stdin(b"{}")
    assert main(["mask", "--schema", "-", "--prefix", "-"]) == 2
    assert "only once" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["- out.jsonl", "in.jsonl -", "in.jsonl out.jsonl --errors -"])
def test_batches_take_files_only(given, write, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write("in.jsonl", "")
    assert main(["batch", *given.split(), "--json"]) == 2
    assert "so it must be a file: name one" in capsys.readouterr().err
    assert not (tmp_path / "-").exists() and not (tmp_path / "out.jsonl").exists()


def test_prefixes_that_are_no_text(write, capsys):
    assert main(["mask", "--schema", write("s.json", '{"type": "string"}'), "--prefix", '"\udcff']) == 1
    assert "as far as" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", "-"], 0),
        (["check", "-", "--format", "xml"], 2),
        (["mask", "--schema", "-", "--prefix", "x"], 1),
        (["generate", "--schema", "/no/such/file", "--prompt", "x"], 2),
        (["check", "grammar.gbnf"], 2),
    ],
)
def test_exit_codes_of_a_process(arguments, code):
    run = subprocess.run(
        [sys.executable, "-m", "maskwright", *arguments],
        input=INTEGER,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == code
    assert "Traceback" not in run.stderr
    assert bool(run.stderr) == (code != 0)


def test_mask_loads_no_model_library(write):
    code = f"import sys; from maskwright.cli import main; main(['mask', '--schema', {write('s.json', INTEGER)!r}])"
    code += "; print({'torch', 'transformers', 'pydantic'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("generate --prompt x --temperature -1", "temperature"),
        ("generate --prompt x --top-p 0.5", "--top-p cuts"),
        ("generate --prompt x --n 0", "n: expected"),
        ("generate --prompt x --n 2", "pass a temperature"),
        ("generate --prompt x --n 2 --temperature 1 --stream", "--stream shows one output"),
        ("generate --prompt x --seed -1", "seed"),
        ("generate --prompt x --top-k 0", "--top-k"),
        ("generate --prompt x --stop=", "not empty"),
        ("generate --prompt x --stop x", "would cut JSON"),
        ("generate --prompt x --error-rate 0.5", "--error-rate is for --holes"),
        ("generate --prompt x --confidence 0.5 --holes 3", "--confidence is for --holes with a file"),
        ("generate --prompt x --error-rate 2 --holes examples.jsonl", "--error-rate lies between 0 and 1"),
        ("generate --prompt x --hole start", "--hole is for --holes"),
        ("explain --temperature 1", "--temperature is for a page about a generation"),
        ("explain --html out.html --max-tokens 5", "--max-tokens is for a page about a generation"),
        ("explain --html out.html --prompt x --stop x", "would cut JSON"),
        ("explain --html out.html --prompt x --seed -1", "seed"),
        ("infill --prompt x --steps 0", "steps"),
    ],
)
def test_values_of_options(command, words, write, capsys):
    name, *more = command.split()
    assert main([name, "--schema", write("s.json", INTEGER), *more, "--model", "no/such/model"]) == 2
    assert words in capsys.readouterr().err


def test_a_system_message_for_a_model_without_a_template(write, capsys):
    pytest.importorskip("transformers")
    given = ["generate", "--schema", write("s.json", INTEGER), "--prompt", "x", "--model", str(TINY)]
    assert main([*given, "--system", "Be brief."]) == 2
    assert "--system: the tokenizer has no chat template" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "library"),
    [
        ("missing.model", None, "sentencepiece"),
        ("bad.model", "x" * 100, "sentencepiece"),
        ("tekken_missing.json", None, "mistral_common"),
        ("tekken_bad.json", "{}", "mistral_common"),
    ],
)
def test_tokenizers_that_cannot_be_loaded(name, content, library, write, tmp_path, capsys):
    pytest.importorskip(library)
    path = str(tmp_path / name) if content is None else write(name, content)
    assert main(["explain", "--schema", write("s.json", INTEGER), "--tokenizer", path]) == 2
    assert f"the tokenizer {path!r} cannot be loaded: " in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["check - --json", "check -", "man", "completion bash"])
@pytest.mark.parametrize(("closed", "said"), [("> /dev/full", "No space left"), (">&-", "standard output")])
def test_output_that_cannot_be_written_is_no_defect(command: str, closed: str, said: str) -> None:
    shell = f"echo '{{}}' | {shlex.quote(sys.executable)} -m maskwright {command} {closed}"
    run = subprocess.run(["sh", "-c", shell], capture_output=True, text=True)
    assert run.returncode == 2 and said in run.stderr and len(run.stderr.splitlines()) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_messages_that_cannot_be_written_change_nothing() -> None:
    shell = f"{shlex.quote(sys.executable)} -m maskwright check no-such.json --json 2> /dev/full"
    run = subprocess.run(["sh", "-c", shell], capture_output=True, text=True)
    assert run.returncode == 2 and json.loads(run.stdout)["error"]["exit_code"] == 2


def test_no_standard_input_is_no_defect() -> None:
    shell = f"{shlex.quote(sys.executable)} -m maskwright check - <&-"
    run = subprocess.run(["sh", "-c", shell], capture_output=True, text=True)
    assert run.returncode == 2 and run.stderr == "maskwright: standard input is closed\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell that closes streams")
def test_messages_are_not_written_to_standard_output() -> None:
    """Where standard error is closed."""
    shell = f"echo '{{\"type\": 3}}' | {shlex.quote(sys.executable)} -m maskwright generate x --schema - --model no/such 2>&-"
    run = subprocess.run(["sh", "-c", shell], capture_output=True, text=True)
    assert run.returncode in (1, 2) and run.stdout == ""
