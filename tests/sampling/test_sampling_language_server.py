"""A language server as a monitor: names behind dots from real ones, and servers that fail."""

from __future__ import annotations

import gc
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_sampling_monitors import VOCABULARY, Late, ids, mistakes

from maskwright import ConstraintError, MaskwrightError
from maskwright.sampling import LanguageServerNames
from maskwright.sampling.constraints import Everything
from maskwright.sampling.monitors.python_text import PythonText

pytest.importorskip("parso", reason="Python code is read with parso, which the optional extras have")

CONTEXT = """import os

class Boat:
    def __init__(self) -> None:
        self.length = 3
        self.größe = 4
    def sail(self, to: str) -> "Boat":
        return self

boat = Boat()
"""
GOOD = [
    "boat.sail('x').length",
    "boat . length",
    "boat.größe",
    "(boat.\nsail)",
    "(boat. # x\n sail)",
    "x = 1.5",
    "os.path.join",
    "unknown.foo",
    "f'{boat.length} boat.no'",
    # No access.
    "# a. b",
    "# boat.no",
    "print('x. y')",
    "x = 'it\\'s boat; boat. no'",
    "from . import x",
    "from .. import y",
    "from .nosuch import z",
    "x = ...",
    "1..real",
]
BAD = [
    "boat.size",
    "boat.grö ",
    "boat.sail('é').nothing",
    "os.pathh",
    "(boat.\nsale)",
    "(boat. # x\n sale)",
    "f'{boat.no}'",
]
SERVERS = {"basedpyright-langserver": ["--stdio"], "jedi-language-server": []}


def installed(name: str) -> str | None:
    """The server beside this Python, or on the path."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


def start(name: str, root: Path) -> LanguageServerNames:
    server = installed(name)
    if server is None:
        pytest.skip(f"{name} is not installed (pip install basedpyright or jedi-language-server)")
    return LanguageServerNames(
        VOCABULARY, [server, *SERVERS[name]], context=CONTEXT, root=root, trust_incomplete=True, timeout=120
    )


@pytest.fixture(scope="module", params=SERVERS)
def monitor(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LanguageServerNames]:
    found = start(request.param, tmp_path_factory.mktemp("code"))
    yield found
    found.close()


@pytest.mark.slow
def test_names_of_a_real_server(monitor: LanguageServerNames, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mistakes(monitor, GOOD, BAD) == []
    assert monitor.prefix(ids("boat.sa")) and not monitor.complete(ids("boat.sa"))
    before = monitor.analyses
    assert monitor.complete(ids("boat.sail('x').length")) and monitor.analyses == before
    # Wrong on purpose.
    assert mistakes(Everything(), GOOD, BAD) == BAD
    assert "boat . length" in mistakes(Late(monitor), GOOD, BAD)
    monkeypatch.setattr(PythonText, "is_access", lambda self, code: True)
    assert mistakes(monitor, ["print('boat. z')", "x = 1\nfrom .. import y", "# boat. c"], [])


@pytest.mark.slow
def test_columns_behind_letters_of_two_code_units(monitor: LanguageServerNames) -> None:
    """Each side of the protocol counts columns in the unit that both know."""
    assert monitor.complete(ids("a = '😀😀'; boat.length"))
    assert not monitor.prefix(ids("a = '😀😀'; boat.size"))


# --- Servers that fail: scripts that answer as told

FAKE = """
import json, os, sys, time
answers = json.loads(sys.argv[1])
while True:
    length = int(sys.stdin.buffer.readline().split()[1])
    sys.stdin.buffer.readline()
    asked = json.loads(sys.stdin.buffer.read(length))
    if asked["method"] in ["exit", *answers.get("ends", [])]:
        os._exit(3)
    if asked["method"] in answers.get("sleeps", []):
        time.sleep(600)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    found = answers.get(asked["method"], {"result": {}})
    if "position" in found:
        found = {"result": [{"label": "at%d" % asked["params"]["position"]["character"]}]}
    sent = [{"jsonrpc": "2.0", "method": "window/logMessage"}, answer | found]
    if asked["method"] in answers.get("other", {}):
        sent = [answers["other"][asked["method"]]]
    for each in sent:
        data = json.dumps(each).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%s" % (len(data), data))
    sys.stdout.buffer.flush()
"""
ASKED = "textDocument/completion"


def fake(answers: dict[str, Any], **options: Any) -> LanguageServerNames:
    return LanguageServerNames(
        VOCABULARY, [sys.executable, "-c", FAKE, json.dumps(answers)], **{"timeout": 60} | options
    )


def test_servers_that_do_not_begin(tmp_path: Path) -> None:
    with pytest.raises(ConstraintError, match="cannot be started"):
        LanguageServerNames(VOCABULARY, [str(tmp_path / "nosuch")])
    with pytest.raises(ConstraintError, match="cannot be started"):
        LanguageServerNames(VOCABULARY, ["no\0such"])
    with pytest.raises(ConstraintError, match="ended"):
        LanguageServerNames(VOCABULARY, [sys.executable, "-c", "pass"])
    with pytest.raises(ConstraintError, match=r"did not answer initialize within 0\.2 s"):
        LanguageServerNames(VOCABULARY, [sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)
    with pytest.raises(ConstraintError, match="ended"):
        LanguageServerNames(VOCABULARY, [sys.executable, "-c", "print('Content-Length: x')"])
    with pytest.raises(ConstraintError, match="refuses initialize: not today"):
        fake({"initialize": {"error": {"code": -1, "message": "not today"}}})
    with pytest.raises(ConstraintError, match="answers initialize with 5"):
        fake({"initialize": {"result": 5}})
    with pytest.raises(ConstraintError, match="counts columns in 'utf-7'"):
        fake({"initialize": {"result": {"capabilities": {"positionEncoding": "utf-7"}}}})
    with pytest.raises(ConstraintError, match="no message of the protocol"):
        fake({"other": {"initialize": [1]}})


def test_a_refused_question_is_a_place_where_nothing_is_known() -> None:
    monitor = fake({ASKED: {"error": {"code": -32603, "message": "out of range"}}})
    assert monitor.complete(ids("a.b")) and monitor.analyses == 2
    monitor.close()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            {"error": {"code": -32601, "message": "no such method"}},
            "refuses textDocument/completion: no such",
        ),
        ({"error": 5}, "refuses textDocument/completion: 5"),
        ({"result": 5}, "answers textDocument/completion with 5"),
        ({"result": [5]}, "answers textDocument/completion with"),
        ({"result": [{"label": "a", "insertText": 5}]}, "answers textDocument/completion with"),
        ({"result": {"items": [{}]}}, "answers textDocument/completion with"),
    ],
)
def test_answers_that_make_no_sense(answer: dict[str, Any], message: str) -> None:
    """A server that completes nothing at all would let everything pass; it is not taken for one that knows nothing here."""
    monitor = fake({ASKED: answer})
    for _ in range(2):
        with pytest.raises(ConstraintError, match=message):
            monitor.prefix(ids("a."))
    monitor.close()


def test_a_server_that_ends(capfd: pytest.CaptureFixture[str]) -> None:
    """Each question says so, and nothing is printed when the monitor goes."""
    monitor = fake({"ends": ["textDocument/didOpen"]})
    for _ in range(2):
        with pytest.raises(ConstraintError, match="ended"):
            monitor.prefix(ids("a." + "b" * 100_000 + "."))
    del monitor
    gc.collect()
    assert capfd.readouterr().err == ""


def test_a_server_that_does_not_read() -> None:
    """More than a pipe holds: the question ends in time all the same, and so does closing."""
    monitor = fake({"sleeps": ["textDocument/didOpen"]}, context="x" * 100_000, timeout=1.0)
    for _ in range(4):
        with pytest.raises(ConstraintError, match=r"did not answer textDocument/completion within 1 s"):
            monitor.prefix(ids("a."))
    monitor.close()


def test_names_as_a_server_writes_them() -> None:
    items = [
        {"label": "size (int)", "textEdit": {"range": {}, "newText": "size"}, "insertText": "no"},
        {"label": "x", "insertText": ".length"},
        {"label": "name(to)", "textEdit": None},
        {"label": "no", "insertText": "keel", "textEdit": {"range": {}}},
    ]
    monitor = fake({ASKED: {"result": items}}, language="go")
    assert all(monitor.complete(ids(f"boat.{name}")) for name in ("size", "length", "name", "keel"))
    assert not any(monitor.prefix(ids(f"boat.{name}")) for name in ("no", "x"))
    monitor.close()


def test_a_closed_monitor() -> None:
    monitor = fake({ASKED: {"result": [{"label": "b"}]}})
    assert monitor.prefix(ids("a.b")) and not monitor.prefix(ids("a.c"))
    monitor.close()
    monitor.close()
    with pytest.raises(ConstraintError, match="is closed"):
        monitor.prefix(ids("x.b"))
    # What was asked before is remembered.
    assert not monitor.prefix(ids("a.c"))


@pytest.mark.parametrize(("unit", "column"), [(None, 5), ("utf-16", 5), ("utf-32", 4)])
def test_columns_in_the_unit_of_the_server(unit: str | None, column: int) -> None:
    given = {} if unit is None else {"positionEncoding": unit}
    monitor = fake(
        {"initialize": {"result": {"capabilities": given}}, ASKED: {"position": True}}, language="go"
    )
    text = "a\r\n'😀."
    assert monitor.complete(ids(f"{text}at{column - 1}"))
    assert not monitor.prefix(ids(f"{text}at{column}"))
    monitor.close()


def test_places_of_other_languages() -> None:
    """Only Python code is read; others are asked about every dot, unless ``names`` is extended."""

    class Go(LanguageServerNames):
        def names(self, text: str) -> Any:
            return None if "//" in text.rpartition("\n")[2] else super().names(text)

    answers = {ASKED: {"result": [{"label": "Print"}]}}
    command = [sys.executable, "-c", FAKE, json.dumps(answers)]
    options: dict[str, Any] = {"language": "go", "suffix": ".go", "comments": {b"//": b"\n", b"/*": b"*/"}}
    plain = LanguageServerNames(VOCABULARY, command, **options)
    assert not plain.prefix(ids("// a. b")) and plain.complete(ids("fmt. // a. b\n /* c */ Print"))
    go = Go(VOCABULARY, command, **options)
    assert go.complete(ids("// a. b")) and not go.prefix(ids("fmt.Prim"))
    plain.close()
    go.close()


def test_a_context_that_ends_with_a_dot() -> None:
    monitor = fake({ASKED: {"result": [{"label": "b"}]}}, context="a.")
    assert monitor.complete(ids("b")) and not monitor.prefix(ids("c"))
    monitor.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"command": []}, "command: expected a list"),
        ({"command": "gopls serve"}, "command: expected a list"),
        ({"command": 5}, "command: expected a list"),
        ({"command": [None]}, "command: expected a list"),
        ({"command": [b"gopls"]}, "command: expected a list"),
        ({"timeout": -1}, "timeout: expected a number"),
        ({"timeout": 0}, "timeout: expected a number"),
        ({"timeout": float("inf")}, "timeout: expected a number"),
        ({"timeout": "x"}, "timeout: expected a number"),
        ({"language": 5}, "language: expected str"),
        ({"suffix": None}, "suffix: expected str"),
        ({"context": b"x"}, "context: expected str"),
        ({"context": "\ud800"}, "context: .*surrogate"),
        ({"root": 5}, "root: expected str or PathLike"),
        ({"settings": []}, "settings: expected Mapping"),
        ({"settings": [1]}, "settings: expected Mapping"),
        ({"settings": {"a": {1}}}, "settings: .*JSON"),
        ({"trust_incomplete": "yes"}, "trust_incomplete: expected bool"),
        ({"triggers": "."}, "triggers: expected bytes"),
    ],
)
def test_arguments_of_a_wrong_type(arguments: dict[str, Any], message: str) -> None:
    """Before anything is started."""
    with pytest.raises(ConstraintError, match=message):
        LanguageServerNames(**{"vocabulary": VOCABULARY, "command": ["no-such-server"]} | arguments)


def test_places_of_members_in_python_code() -> None:
    text = PythonText("lsp")
    for code in (
        "'it', boat.",
        'f("""a""".b.',
        "f'{boat.",
        'f\'{boat["x"].',
        "# 'a\nboat.",
        "a = 'b'; boat.",
        "from a import b; boat.",
        "raise ValueError from boat.",
        "def f():\n    x = yield from boat.",
    ):
        assert text.is_access(code), code
    for code in (
        "'boat.",
        "f('a', \"boat.",
        "'it\\'s boat.",
        "'a; boat.",
        "u'boat.",
        "f'{boat[\"a.",
        "'a\\\nboat.",
        "a; from boat.",
        "if x: from boat.",
        "if x: import boat.",
    ):
        assert not text.is_access(code), code


def test_python_code_without_parso(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "parso.grammar", None)
    with pytest.raises(MaskwrightError, match=r"maskwright\[lsp\]"):
        LanguageServerNames(VOCABULARY, ["no-such-server"])
    with pytest.raises(ConstraintError, match="cannot be started"):
        LanguageServerNames(VOCABULARY, ["no-such-server"], language="go")
