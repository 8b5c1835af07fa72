"""A real language server as a monitor: names behind dots, and servers that fail."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_sampling_monitors import VOCABULARY, ids

from maskwright import ConstraintError
from maskwright.sampling import LanguageServerNames

CONTEXT = """import os

class Boat:
    def __init__(self) -> None:
        self.length = 3
    def sail(self, to: str) -> "Boat":
        return self

boat = Boat()
"""
SERVERS = {"basedpyright-langserver": ["--stdio"], "jedi-language-server": []}


def installed(name: str) -> str | None:
    """The server beside this Python, or on the path."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


@pytest.fixture(scope="module", params=SERVERS)
def monitor(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LanguageServerNames]:
    server = installed(request.param)
    if server is None:
        pytest.skip(f"{request.param} is not installed (pip install basedpyright or jedi-language-server)")
    found = LanguageServerNames(
        VOCABULARY,
        [server, *SERVERS[request.param]],
        context=CONTEXT,
        root=tmp_path_factory.mktemp("code"),
        trust_incomplete=True,
        timeout=120,
    )
    yield found
    found.close()


@pytest.mark.slow
def test_names_of_a_real_server(monitor: LanguageServerNames) -> None:
    for text in (
        "boat.sail('x').length",
        "boat . length",
        "(boat.\nsail)",
        "x = 1.5",
        "os.path.join",
        "unknown.foo",
    ):
        assert monitor.prefix(ids(text)), text
    for text in ("boat.size", "boat.sail('é').nothing", "os.pathh", "(boat.\nsale)"):
        assert not monitor.prefix(ids(text)), text
    assert monitor.prefix(ids("boat.sa")) and not monitor.complete(ids("boat.sa"))
    # What a server says of comments is its own affair: jedi's names the boat's attributes there, too.
    before = monitor.analyses
    assert monitor.complete(ids("boat.sail('x').length")) and monitor.analyses == before


def test_servers_that_fail(tmp_path: Path) -> None:
    with pytest.raises(ConstraintError, match="cannot be started"):
        LanguageServerNames(VOCABULARY, [str(tmp_path / "nosuch")])
    with pytest.raises(ConstraintError, match="ended"):
        LanguageServerNames(VOCABULARY, [sys.executable, "-c", "pass"])
    with pytest.raises(ConstraintError, match=r"did not answer initialize within 0\.2 s"):
        LanguageServerNames(VOCABULARY, [sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)
    with pytest.raises(ConstraintError, match="ended"):
        LanguageServerNames(VOCABULARY, [sys.executable, "-c", "print('Content-Length: x')"])
    refusing = """
import json, sys
while True:
    length = int(sys.stdin.buffer.readline().split()[1])
    sys.stdin.buffer.readline()
    asked = json.loads(sys.stdin.buffer.read(length))
    data = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "not today"}}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%s" % (len(data), data))
    sys.stdout.buffer.flush()
"""
    with pytest.raises(ConstraintError, match="refuses initialize: not today"):
        LanguageServerNames(VOCABULARY, [sys.executable, "-c", refusing])
