"""Names behind dots in Python code: where one must follow, and which, as jedi says."""

from __future__ import annotations

import pytest
from test_sampling_monitors import VOCABULARY, Late, ids, mistakes

from maskwright import ConstraintError
from maskwright.sampling import PythonAttributes
from maskwright.sampling.constraints import Everything
from maskwright.sampling.monitors.python_text import PythonText

pytest.importorskip("jedi", reason="the optional extra jedi is not installed")

CONTEXT = """import os, collections
class Boat:
    tail = 1
    größe = 2
    def sail(self) -> "Boat":
        return self
d = Boat()
l = [1]
"""
GOOD = [
    "d.tail",
    "d.sail().sail().tail",
    "d.sail.__name__",
    "d.größe",
    "l.append(3)",
    "l.pop().real",
    "unknown.foo",
    "y = 1.5",
    "import os\nos.path.join",
    "os.path.join('a.b')",
    "@d.sail\ndef g(): pass",
    "[d.tail for d in [d]]",
    "def h(q):\n    q.anything",
    "with open('x.y') as f:\n    f.read()",
    "d.tail;d.sail",
    "from os import path; d.tail",
    # Blanks, line ends and comments around the dot.
    "d . tail",
    "d .tail",
    "(d.\ntail)",
    "(d\n.tail)",
    "(d. # the usual one\n tail)",
    "(d.# c.d # no\r\n # more\n\n tail)",
    "d.\\\n  tail",
    "d.sail(\n# d.zz\n).tail",
    # No access.
    "# d.nothing",
    "d.sail()  # see d.nothing",
    "'x.nothing'",
    "print('d.nope')",
    '"""\nd.nothing\n"""',
    "rb'd.nope'",
    "f'{d.tail} d.nothing'",
    "f'd.nope {d.tail!r:>{l.append}.3f}'",
    "from . import x",
    "from .. import y",
    "from .names import z",
    "a = 1; from . import x",
    "import os.path as p",
    "x = ...",
    "x[...]",
    "x = 1. + 2",
    "l[0].real",
    "1.5.real",
    "1..real",
    "0x1 .real",
]
BAD = [
    "d.nope",
    "d . nope",
    "d.tai ",
    "d.tailx",
    "d.Tail",
    "d.grö ",
    "d.größer",
    "d.sail().nope",
    "d.sail.nope",
    "l.foo",
    "l.append(3)\nl.keys",
    "l[0].nothing",
    "import os\nos.pathh",
    "from os import path; d.nope",
    "[d.nope for x in l]",
    "f'{d.nope}'",
    "'a'; d.nope",
    "# c\nd.nope",
    "d\n.tail # x\nd.nothing",
    "x = 1\rd.nothing",
    "x = 1\r\n\fd.nothing",
    "(d.\nnothing)",
    "d.\\\n nothing",
    # A comment stands before the name, and does not take its place.
    "(d. # x\n nope)",
    "(d. # tail\n nope)",
    "(d.#\r # tail\n\n nope)",
]


@pytest.mark.slow
def test_attributes_that_exist() -> None:
    monitor = PythonAttributes(VOCABULARY, CONTEXT)
    assert mistakes(monitor, GOOD, BAD) == []
    assert monitor.prefix(ids("l.appe")) and not monitor.complete(ids("l.appe"))
    assert monitor.prefix(ids("(d. # tail")) and not monitor.complete(ids("(d. # tail"))
    before = monitor.analyses
    assert monitor.prefix(ids("l.append(3)")) and monitor.analyses == before
    assert not PythonAttributes(VOCABULARY, "x = 1\n", private=False).prefix(ids("x.__add"))
    assert not PythonAttributes(VOCABULARY, "x = 1\nx.").prefix(ids("nope"))


@pytest.mark.slow
def test_wrong_monitors_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(mistakes(Everything(), GOOD, BAD)) == set(BAD)
    monitor = PythonAttributes(VOCABULARY, CONTEXT)
    assert "d.tail" in mistakes(Late(monitor), GOOD, BAD)
    monkeypatch.setattr(PythonText, "is_access", lambda self, code: True)
    everywhere = mistakes(PythonAttributes(VOCABULARY, CONTEXT), GOOD, BAD)
    assert "# d.nothing" in everywhere and "from .names import z" in everywhere


def test_arguments_of_a_wrong_type() -> None:
    with pytest.raises(ConstraintError, match="context: expected str, got int"):
        PythonAttributes(VOCABULARY, 5)  # type: ignore[arg-type]
    with pytest.raises(ConstraintError, match="private: expected bool"):
        PythonAttributes(VOCABULARY, private="no")  # type: ignore[arg-type]
