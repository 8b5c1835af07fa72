"""What programs and terminals get of the command line: JSON documents, exit codes, examples, colours, bars, the manual page."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import threading
from typing import Any

import pytest
from places import ROOT

from maskwright.cli import main, program
from maskwright.cli.command import ENVIRONMENT, EXIT_CODES
from maskwright.cli.playground import playground
from maskwright.cli.program import COMMANDS, make_parser
from maskwright.playground.server import Playground

jsonschema = pytest.importorskip("jsonschema", reason="documents are judged by a validator")

PERSON = '{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"], "additionalProperties": false}'
SILENT = {"serve", "lsp", "completion", "man"}
"""Commands that print no result."""


@pytest.fixture(scope="module")
def is_document() -> Any:
    schema = json.loads((ROOT / "docs" / "output.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema).validate


@pytest.fixture
def file(tmp_path):
    def go(name: str, text: str) -> str:
        (tmp_path / name).write_text(text, "utf-8")
        return str(tmp_path / name)

    return go


@pytest.fixture
def asked(is_document, capsys):
    """Run a command with --json: the document, which is what the schema says."""

    def go(*arguments: str, code: int = 0) -> dict[str, Any]:
        capsys.readouterr()
        assert main([*arguments, "--json"]) == code
        document = json.loads(capsys.readouterr().out)
        is_document(document)
        assert document["command"] == arguments[0]
        return document

    return go


# --- JSON -----------------------------------------------------------------------------------


def test_documents_of_commands_without_a_model(asked, file) -> None:
    schema = file("person.json", PERSON)
    found = asked("check", schema, "--sample", "2", "--instance", file("i", '{"age": 1'), code=1)
    assert [each["code"] for each in found["findings"]] == ["incomplete"] and len(found["samples"]) == 2
    assert (found["findings"][0]["line"], found["findings"][0]["column"]) == (1, 10)
    grammar = file("g.gbnf", 'root ::= "a" b\nc ::= "d"\n')
    found = asked("check", grammar, schema, code=1)["findings"]
    assert {each["line"] for each in found} == {1, 2}
    mask = asked("mask", "--schema", schema, "--prefix", '{"age": ')
    assert {ord("-"), ord("0")} <= set(mask["bytes"]) and not mask["complete"]
    found = asked("explain", "--schema", schema, "--prefix", '{"age": 1', "--token", "x")
    assert found["verdicts"][0]["allowed"] is False and found["allowed"] > 1
    found = asked("bench", "--schema", schema, "--tokenizer", "bytes", "--repeat", "1", "--sentences", "1")
    assert found["tokens"] > 0 and found["steady_mask"]["p50"] > 0
    # No text, so no tokens.
    assert asked("bench", "--schema", schema, "--tokenizer", "bytes", "--sentences", "0")["steady_mask"] == {}


def test_the_document_of_conformance(asked) -> None:
    found = asked("conformance", "--engine", "maskwright", "--group", "padding ids")
    assert found["engines"]["maskwright"]["total"]["pass"] > 0


def test_the_document_of_the_playground(is_document, capsys, monkeypatch) -> None:
    monkeypatch.setattr(Playground, "serve_forever", lambda self: None)
    args = make_parser().parse_args(["playground", "--port", "0", "--json"])
    assert playground(args) == 0
    document = json.loads(capsys.readouterr().out)
    is_document(document)
    assert document["address"].startswith("http://127.0.0.1:")


@pytest.mark.slow
def test_documents_of_commands_with_a_model(asked, file, tmp_path) -> None:
    pytest.importorskip("transformers", reason="models run in transformers")
    schema = file("person.json", PERSON)
    found = asked(
        "generate", "--schema", schema, "--prompt", "36", "--max-tokens", "40", "--n", "2", "--num-beams", "2"
    )
    assert len(found["outputs"]) == 2 and "age" in json.loads(found["outputs"][0]["text"])
    holes = asked("generate", "--schema", schema, "--prompt", "36", "--max-tokens", "40", "--holes", "0.5")
    assert holes["threshold"] == 0.5 and holes["outputs"][0]["written"]
    asked("generate", "--schema", schema, "--prompt", "36", "--stream", code=2)
    found = asked("infill", "--schema", schema, "--prompt", "36", "--slots", "24", "--live", "never")
    assert found["valid"] and "age" in json.loads(found["text"])
    rows = file("in.jsonl", '{"prompt": "36"}\n{"prompt": 1}\n')
    found = asked("batch", rows, str(tmp_path / "out.jsonl"), "--schema", schema, code=1)
    assert (found["total"], found["filled"], found["left_out"]) == (2, 1, 1)


def test_every_command_that_prints_a_result_has_a_document(is_document) -> None:
    schema = json.loads((ROOT / "docs" / "output.schema.json").read_text("utf-8"))
    described = {part["$ref"].rpartition("/")[2] for part in schema["oneOf"]} - {"failure"}
    assert described == {command.name for command in COMMANDS} - SILENT
    assert set(schema["$defs"]["failure"]["properties"]["command"]["enum"]) == described
    with pytest.raises(jsonschema.ValidationError):
        is_document({"version": 1, "command": "mask", "bytes": []})


# --- exit codes and errors --------------------------------------------------------------------


def test_failures_are_documents_too(asked, file, monkeypatch, capsys) -> None:
    assert asked("check", "missing.json", code=2)["error"]["kind"] == "UsageError"
    found = asked("mask", "--schema", file("s.json", PERSON), "--prefix", "x", code=1)["error"]
    assert found["kind"] == "GrammarError" and found["exit_code"] == 1
    found = asked("mask", "--grammar", file("g.gbnf", "root ::= ("), code=1)["error"]
    assert found["place"] == "1:10"
    for error, code in ((ZeroDivisionError("x"), 70), (KeyboardInterrupt(), 130)):

        def fail(args: argparse.Namespace, error: BaseException = error) -> int:
            raise error

        broken = program.COMMANDS[0]
        monkeypatch.setattr(program, "COMMANDS", (_with_run(broken, fail),))
        found = asked("check", "x", code=code)["error"]
        assert found["kind"] == type(error).__name__


def _with_run(command: Any, run: Any) -> Any:
    return type(command)(
        command.name, command.help, command.arguments, run, command.examples, command.description
    )


def test_a_defect_has_a_traceback(monkeypatch, capsys) -> None:
    def fail(args: argparse.Namespace) -> int:
        raise ZeroDivisionError("divided")

    monkeypatch.setattr(program, "COMMANDS", (_with_run(COMMANDS[0], fail),))
    assert main(["check", "x"]) == 70
    err = capsys.readouterr().err
    assert "Traceback" in err and "maskwright: this is a defect of maskwright: divided" in err


def test_one_table_of_exit_codes() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (\d+) \| (.+?) \|$", page, re.MULTILINE))
    assert {int(code): meaning for code, meaning in rows.items()} == EXIT_CODES
    assert dict(re.findall(r"^\| `([A-Z_]+)` \| (.+?) \|$", page, re.MULTILINE)) == ENVIRONMENT
    shown = make_parser().format_help()
    assert all(re.search(rf"^ +{code}  {re.escape(text)}$", shown, re.M) for code, text in EXIT_CODES.items())


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_in_a_process(tmp_path) -> None:
    # A shell's background processes, which this test may be, ignore the signal.
    code = "import signal, sys, time; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from maskwright.cli import program, main\n"
    code += "program.COMMANDS[0].arguments.__globals__['read_source'] = lambda path: print('ready', flush=True) or time.sleep(60)\n"
    code += "sys.exit(main(['check', 'x']))"
    run = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert run.stdout is not None and run.stdout.readline() == "ready\n"
    run.send_signal(2)
    _, err = run.communicate(timeout=30)
    assert run.returncode == 130 and err == "maskwright: interrupted\n"


# --- help -----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_examples_are_commands(command, capsys) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command.name, "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert command.examples
    for line in command.examples:
        assert f"  {line}\n" in shown
        words = shlex.split(re.sub(r"^eval \"\$\((.*)\)\"$", r"\1", line))
        words = words[: next((i for i, word in enumerate(words) if word in "<>|"), len(words))]
        assert words[0] == "maskwright" and words[1] == command.name
        assert make_parser().parse_args(words[1:]).command == command.name


# --- terminals --------------------------------------------------------------------------------

on_terminals = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals of POSIX")


def on_terminal(command: list[str], **environment: str) -> str:
    """What a process writes on a terminal, on which both its outputs are."""
    import fcntl
    import pty
    import termios

    given = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    main_end, other_end = pty.openpty()
    # A new one has no columns.
    fcntl.ioctl(other_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    run = subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.DEVNULL,
        stdout=other_end,
        stderr=other_end,
        env={**given, "TERM": "xterm", **environment},
    )
    os.close(other_end)
    written = bytearray()

    def read() -> None:
        while True:
            try:
                part = os.read(main_end, 4096)
            except OSError:  # The other end is closed.
                return
            if not part:
                return
            written.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    run.wait(60)
    reader.join(60)
    os.close(main_end)
    return written.decode()


@pytest.mark.slow
@on_terminals
def test_colours_on_a_terminal(file) -> None:
    command = ["-m", "maskwright", "check", file("s.json", '{"type": "strnig"}')]
    assert "\x1b[31merror\x1b[0m" in on_terminal(command)
    for environment in ({"NO_COLOR": "1"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal(command, **environment)
    # An empty value says nothing (no-color.org).
    assert "\x1b[31m" in on_terminal(command, NO_COLOR="")


@pytest.mark.parametrize(("variables", "coloured"), [({}, False), ({"FORCE_COLOR": "1"}, True)])
def test_colours_elsewhere(variables, coloured, file, monkeypatch, capsys) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(["check", file("s.json", '{"type": "strnig"}')]) == 1
    assert ("\x1b" in capsys.readouterr().out) == coloured


SLOW = """
import time
from maskwright.cli import progress as module
from maskwright.cli.progress import progress
assert module._SECONDS == 1
module._SECONDS = 0.3
with progress("filling", 4, "rows") as bar:
    bar.update(2)
    time.sleep({seconds})
with progress("loading"):
    time.sleep({seconds})
print("done")
"""


@pytest.mark.slow
@on_terminals
def test_bars_on_a_terminal_after_a_while() -> None:
    shown = on_terminal(["-c", SLOW.format(seconds=0.8)])
    assert re.search(r"\rfilling:  50%\|.*\| 2/4 \[00:00", shown)
    assert re.search(r"\rloading 00:00", shown)
    # Nothing is left of them.
    assert shown.rstrip().rpartition("\r")[2] == "done"
    assert on_terminal(["-c", SLOW.format(seconds=0.1)]) == "done\r\n"


@pytest.mark.slow
def test_no_bars_elsewhere() -> None:
    run = subprocess.run(
        [sys.executable, "-c", SLOW.format(seconds=0.8)], capture_output=True, text=True, check=True
    )
    assert (run.stdout, run.stderr) == ("done\n", "")


# --- the manual page ---------------------------------------------------------------------------


def test_the_manual_page_has_every_command_and_option(capsys) -> None:
    assert main(["man"]) == 0
    page = capsys.readouterr().out.replace("\\-", "-")
    (group,) = (a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    for name, parser in group.choices.items():
        section = page.partition(f".SS maskwright {name}\n")[2].partition("\n.S")[0]
        assert section
        for action in parser._actions:
            assert all(option in section for option in action.option_strings)
    for table in (EXIT_CODES, ENVIRONMENT):
        assert all(f".B {key}\n{text}\n" in page for key, text in table.items())


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_the_manual_page_is_one(capsys) -> None:
    assert main(["man"]) == 0
    page = capsys.readouterr().out
    command = ["groff", "-man", "-Tutf8", "-ww"]
    run = subprocess.run(command, input=page, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    shown = re.sub("\x1b\\[[0-9;]*m|.\x08", "", run.stdout)
    assert "MASKWRIGHT(1)" in shown and "--schema FILE, --grammar FILE" in shown.replace("‐", "-")
    assert "maskwright mask --schema person.json --prefix '{\"name'" in shown
