"""``maskwright explain``, ``bench`` and ``completion``; the schema options of ``generate``."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from byte_walks import BYTES

import maskwright as mw
from maskwright.cli import main
from maskwright.cli.completion import SHELLS
from maskwright.cli.program import make_parser
from maskwright.cli.sources import UsageError, json_schema_of
from maskwright.compiling.symbols import Symbols

LARK = 'start: "let" NAME "=" sum\nsum: NUMBER ("+" NUMBER)*\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\n%ignore " "\n'
SCHEMA = '{"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}'


def test_explain_says_what_waits_and_why_not(file, capsys):
    grammar = file("g.lark", LARK)
    assert (
        main(["explain", "--grammar", grammar, "--prefix", "let x = 4", "--token", " +", "--token", "5x"])
        == 0
    )
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "complete: yes, the text may end here"
    assert "waiting: NUMBER (behind '4'), \"+\" in sum < start" in out
    assert "allowed bytes: 12 of 256" in out and "  '+'" in out
    assert "' +' may come next" in out
    assert main(["explain", "--grammar", grammar, "--token", "="]) == 0
    assert "'=' may not come next: expected \"let\"" in capsys.readouterr().out
    assert "'5x' may not come next: behind '5', expected NUMBER (behind '45') or \"+\" in sum < start" in out


def test_explain_as_json_of_a_schema_and_a_file(file, capsys):
    prefix = file("p", '{"a": ')
    schema = file("s.json", SCHEMA)
    assert (
        main(["explain", "--schema", schema, "--prefix-file", prefix, "--format", "json", "--token", "0"])
        == 0
    )
    data = json.loads(capsys.readouterr().out)
    assert not data["complete"] and data["shortest_completion"] in ("true}", "false}")
    assert data["allowed"] == len(data["tokens"]) and set("tf") <= set(data["tokens"]) <= set("tf \t\r\n")
    (verdict,) = data["verdicts"]
    assert not verdict["allowed"] and verdict["fits"] == "" and "'t'" in verdict["expected"]


def test_explain_names_the_member_among_others_of_its_type(file, capsys):
    item = {"$ref": "#/$defs/item"}
    schema = {
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": item, "d": item},
        "required": ["a", "b", "c", "d"],
        "$defs": {"item": {"type": "array", "items": {"type": "null"}, "minItems": 1}},
    }
    path = file("s.json", json.dumps({"type": "object", **schema}))
    for prefix, place in (
        ('{"a":', "/properties/a"),
        ('{"a":1,"b":', "/properties/b"),
        ('{"a":1,"b":2,"c":[null],"d":', "/properties/d"),
    ):
        assert main(["explain", "--schema", path, "--prefix", prefix]) == 0
        assert f" in {place}\n" in capsys.readouterr().out
    symbols = Symbols(
        mw.compile_json_schema({"type": "object", **schema}, BYTES), ["/properties/b", "/properties/d"]
    )
    found = symbols.start.read(b'{"a":1,"b":2,"c":[null],"d":[null],').occurrences()
    assert [each.symbol for each in found] == ["/properties/b", "/properties/d"]


def test_explain_where_the_text_leaves_the_grammar(file, capsys):
    grammar = file("g.lark", LARK)
    assert main(["explain", "--grammar", grammar, "--prefix", "let 4"]) == 1
    assert "as far as 'let ', where expected NAME in start" in capsys.readouterr().err
    assert main(["explain", "--grammar", grammar, "--token", ""]) == 2


def test_tokens_of_a_tokenizer(file, capsys):
    pytest.importorskip("transformers")
    arguments = ["explain", "--grammar", file("g.lark", LARK), "--tokenizer", "demo", "--limit", "9999"]
    assert main([*arguments, "--prefix", "let "]) == 0
    out = capsys.readouterr().out
    assert "allowed tokens: " in out and "  'er'\n" in out and "  '='\n" not in out
    assert main([*arguments[:-4], "--tokenizer", file("tekken.json", "{")]) == 2
    assert "cannot be loaded" in capsys.readouterr().err


def test_bench(file, capsys):
    grammar = file("g.lark", LARK)
    arguments = ["bench", "--grammar", grammar, "--tokenizer", "bytes", "--repeat", "2"]
    assert main([*arguments, "--format", "json", "--sentences", "3"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["texts"] == 3 and data["tokens"] > 3 and data["vocabulary"] == 257
    assert 0 < data["steady_mask"]["p50"] <= data["steady_mask"]["max"] and data["compile_ms"] > 0
    assert main([*arguments, "--instance", file("t", "let x = 1\n")]) == 0
    assert "1 texts, 9 tokens" in capsys.readouterr().out
    assert main([*arguments, "--instance", file("t", "let 1")]) == 2
    assert "not in the language" in capsys.readouterr().err
    assert main([*arguments[:-1], "0"]) == 2


# --- completion -----------------------------------------------------------------------------


def words(*typed):
    """What bash offers behind what was typed."""
    script = (
        'source <("$0" -m maskwright completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _maskwright; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )

    run = subprocess.run(
        ["bash", "-c", script, sys.executable, "maskwright", *typed],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr == ""
    return run.stdout.split()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_completion_in_bash():
    assert words("che") == ["check"]
    assert set(words("")) >= {"check", "explain", "bench", "completion", "--help"}
    assert words("check", "--prof") == ["--profile"]
    assert words("check", "--format", "") == ["text", "json", "sarif", "github"]
    assert words("generate", "--property-order", "a") == ["any"]
    assert words("completion", "f") == ["fish"]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_in_each_script(shell, capsys):
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    for word in ("check", "generate", "infill", "mask", "explain", "bench", "completion"):
        assert word in out
    assert ("-l prefix-file" if shell == "fish" else "--prefix-file") in out
    if shutil.which(shell):
        assert subprocess.run([shell, "-n", "-c", out], check=False).returncode == 0


# --- schema options -------------------------------------------------------------------------

FLAGS = [
    "--property-order",
    "any",
    "--whitespace",
    "2",
    "--no-additional-properties",
    "--formats",
    "annotate",
]


@pytest.mark.parametrize(
    "command",
    [
        ["generate", "--schema", "-", "--prompt", "x"],
        ["infill", "--schema", "-", "--prompt", "x"],
        ["mask", "--schema", "-"],
        ["explain", "--schema", "-"],
        ["bench", "--schema", "-"],
        ["check", "-"],
    ],
)
def test_schema_options_of_every_command(command):
    source = json_schema_of(SCHEMA, make_parser().parse_args([*command, *FLAGS]))
    assert (source.property_order, source.whitespace, source.formats) == ("any", 2, "annotate")
    assert not source.additional_properties


@pytest.mark.parametrize("command", ["generate", "explain", "batch"])
def test_what_a_model_writes_has_the_members_of_the_schema(command, file, capsys, monkeypatch):
    """Unless something is said about others; help says the default."""
    seen = []

    def see(path, text, args):
        seen.append(json_schema_of(text, args).additional_properties)
        raise UsageError("enough")

    monkeypatch.setattr(f"maskwright.cli.{command}.source_of", see)
    schema = file("s.json", SCHEMA)
    needs = {
        "generate": ["--prompt", "x"],
        "explain": ["--prompt", "x", "--html", "-"],
        "batch": [file("in", ""), "out"],
    }
    for more in ([], ["--additional-properties"], ["--no-additional-properties"]):
        assert main([command, "--schema", schema, *needs[command], *more]) == 2
    assert seen == ["needed", True, False]
    if command == "explain":
        assert main([command, "--schema", schema]) == 2 and seen[-1] is True
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "only where nothing satisfies the schema without them" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_generate_follows_them(file, capsys):
    pytest.importorskip("transformers")
    schema = file("s.json", SCHEMA)
    arguments = ["generate", "--schema", schema, "--prompt", "a is true"]
    assert main([*arguments, "--whitespace", "2", "--no-additional-properties"]) == 0
    out = capsys.readouterr().out
    assert out in ('{\n  "a": true\n}\n', '{\n  "a": false\n}\n')
    assert main([*arguments, "--max-whitespace", "-1"]) == 2
