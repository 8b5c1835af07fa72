"""Monitors: masks agree with what tokens may do, names come from a database and from static analysis."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import piece_vocabulary

import maskwright as mw
from maskwright import ConstraintError, VocabularyError
from maskwright.sampling import CallableModel, Monitor, SqlNames, smc

PIECES = [b"na", b"name ", b".na", b"s.a", b"ab", b"abc.", b"1a", b" 1", b" = 'ab", b"', ab", b"..", b"ge\n"]
VOCABULARY = mw.Vocabulary.from_bytes(
    [*(bytes([b]) for b in range(256)), *PIECES, b"</s>"], eos_ids=256 + len(PIECES)
)


def ids(text: str) -> list[int]:
    return list(text.encode())


def members(text: str) -> list[str] | None:
    """a., ab. and abc. have members; behind a space there may be a word."""
    if text.endswith(" "):
        return ["ab", "name", ""]
    return {"a": ["b", "bc"], "b": ["na", "name"], "c": None}.get(text[-2:-1]) if text.endswith(".") else None


def make_monitor() -> Monitor:
    return Monitor(VOCABULARY, members, triggers=b". ")


def is_good(text: bytes, *, complete: bool) -> bool:
    """The definition in the module's docstring, place by place."""
    for at in range(len(text) + 1):
        if at and text[at - 1] not in b". ":
            continue
        names = members(text[:at].decode("utf-8", "replace"))
        if names is None:
            continue
        run = bytearray()
        for byte in text[at:]:
            if not (chr(byte).isalnum() and byte < 128) and byte != ord("_"):
                break
            run.append(byte)
        word = bytes(run).decode()
        if word[:1].isdigit():
            word = ""
        elif at + len(run) == len(text) and not complete:
            if not any(name.startswith(word) for name in names):
                return False
            continue
        if word not in names:
            return False
    return True


@given(st.lists(st.sampled_from([*"abcn._=x1 ", "ab", "abc", "na", "name"]), max_size=7).map("".join))
def test_prefix_and_complete_are_the_definition(text: str) -> None:
    monitor = make_monitor()
    assert monitor.prefix(ids(text)) == is_good(text.encode(), complete=False)
    if monitor.prefix(ids(text)):
        assert monitor.complete(ids(text)) == is_good(text.encode(), complete=True)


@given(st.lists(st.sampled_from([*"abn._=1 ", "ab", "abc", "na"]), max_size=5).map("".join))
def test_masks_and_checks_together_are_the_tokens_that_keep_the_text_good(text: str) -> None:
    monitor = make_monitor()
    if not monitor.prefix(ids(text)):
        return
    state = monitor.start()
    for token in ids(text):
        state = monitor.advance(state, token)
    mask = monitor.masks([state])
    for token in range(VOCABULARY.vocab_size - 1):
        good = is_good(text.encode() + VOCABULARY.tokens[token], complete=False)
        assert bool(monitor.check([state], [token])[0]) == good
        if mask is not None and good:
            assert mask[0, token // 32] >> (token % 32) & 1
    if mask is not None:
        # Inside a name the mask alone decides about bytes of words.
        for byte in b"abcn_xyz":
            assert bool(mask[0, byte // 32] >> (byte % 32) & 1) == is_good(
                text.encode() + bytes([byte]), complete=False
            )


def test_other_vocabularies() -> None:
    vocabulary = piece_vocabulary(3)
    monitor = Monitor(vocabulary, members, triggers=b". ")
    state = monitor.start()
    for i in [vocabulary.tokens.index(b) for b in (b"a", b"b", b".")]:
        state = monitor.advance(state, i)
    mask = monitor.masks([state])
    assert mask is not None
    for token, data in enumerate(vocabulary.tokens):
        if data and is_good(b"ab." + data, complete=False):
            assert mask[0, token // 32] >> (token % 32) & 1


def test_bad_answers() -> None:
    with pytest.raises(ConstraintError, match="list of names"):
        Monitor(VOCABULARY, lambda text: "name", triggers=b".").start()
    monitor = make_monitor()
    with pytest.raises(ConstraintError, match="not known"):
        monitor.advance(monitor.advance(monitor.advance(monitor.start(), ord("a")), ord(".")), ord("z"))
    with pytest.raises(VocabularyError):
        monitor.bind(VOCABULARY.vocab_size + 1, [0])


# --- SQL


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "music.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "create table singer (id integer, Name text, age integer);"
            "create table concert (cid integer, year integer, singer_id integer);"
        )
    connection.close()
    return path


ACCEPTED = [
    "select name from singer",
    "SELECT Name, age FROM Singer WHERE age >= 18 AND name LIKE 'foo bar%'",
    "select count(*) from singer as s where s.age > 1e5",
    "select concert.year from concert join singer on concert.singer_id = singer.id",
    'select "anything" from singer -- any comment\n where age < 3',
    "select 'it''s' , name from singer",
    "select x.year from (select year from concert) as x",
    "",
]
REFUSED = [
    "select foo",
    "select name from foo",
    "select s.name from singer as s",
    "select name from singer as s where s.year",
    "select singer.year",
    "select name from singer where agee",
    "select 'it''s' , naem",
]


def test_names_of_a_database(database: Path) -> None:
    monitor = SqlNames(VOCABULARY, database)
    assert monitor.tables["singer"] == ("id", "name", "age")
    for text in ACCEPTED:
        if "(select" not in text:
            assert monitor.complete(ids(text)), text
    for text in REFUSED:
        assert not monitor.complete(ids(text)), text
    assert monitor.prefix(ids("select nam")) and not monitor.complete(ids("select nam"))


def test_open_connections_and_broken_databases(tmp_path: Path, database: Path) -> None:
    connection = sqlite3.connect(database)
    assert SqlNames(VOCABULARY, connection).tables.keys() == {"singer", "concert"}
    connection.execute("select 1")  # still open
    connection.close()
    with pytest.raises(ConstraintError, match="cannot be read"):
        SqlNames(VOCABULARY, tmp_path / "missing.db")
    (tmp_path / "broken.db").write_text("this is no database at all, but long enough to be looked at" * 20)
    with pytest.raises(ConstraintError, match="cannot be read"):
        SqlNames(VOCABULARY, tmp_path / "broken.db")
    with pytest.raises(ConstraintError, match="no tables"):
        SqlNames(VOCABULARY, sqlite3.connect(":memory:"))


def test_sampling_with_a_monitor(database: Path) -> None:
    """A model that likes wrong columns as much as right ones writes only right ones."""
    texts = [b"select ", b"name", b"naem", b"year", b"age", b", ", b" from singer", b" from nothing", b"</s>"]
    vocabulary = mw.Vocabulary.from_bytes(texts, eos_ids=8)
    follows = {None: [0], 0: [1, 2, 3, 4], 5: [1, 2, 3, 4], 6: [8], 7: [8]}

    def function(prefixes: list[list[int]]) -> np.ndarray:
        rows = np.full((len(prefixes), 9), -math.inf)
        for row, prefix in zip(rows, prefixes, strict=True):
            choices = follows.get(prefix[-1] if prefix else None, [5, 6, 7])
            row[choices] = -math.log(len(choices))
        return rows

    found = smc(CallableModel(function, 9, 8), SqlNames(vocabulary, database), 64, max_tokens=9, seed=1)
    written = {vocabulary.decode(text) for text in found.probabilities(tuple)}
    assert written and all(b"naem" not in text and b"nothing" not in text for text in written)
    # Two of three names survive at every place, so a text of one column has 3/4 · 2/3 of its mass left.
    assert found.log_evidence == pytest.approx(math.log(_evidence()), abs=0.3)


def _evidence() -> float:
    # Columns come with 3/4 each, a text goes on, ends well or ends badly with 1/3 each; at most 3 columns fit.
    return sum(0.75**n * (1 / 3) ** (n - 1) * (1 / 3) for n in (1, 2, 3))


# --- Python


@pytest.mark.slow
def test_attributes_that_exist() -> None:
    pytest.importorskip("jedi", reason="the optional extra jedi is not installed")
    from maskwright.sampling import PythonAttributes

    monitor = PythonAttributes(VOCABULARY, "x = [1, 2]\n")
    for text in (
        "x.append(3)",
        "x.pop().real",
        "unknown.foo",
        "y = 1.5",
        "'x.nothing'",
        "import os\nos.path.join",
        "x.sort",
    ):
        assert monitor.prefix(ids(text)), text
    for text in ("x.foo", "x.append(3)\nx.keys", "import os\nos.pathh"):
        assert not monitor.prefix(ids(text)), text
    assert monitor.prefix(ids("x.appe")) and not monitor.complete(ids("x.appe"))
    before = monitor.analyses
    assert monitor.prefix(ids("x.append(3)")) and monitor.analyses == before
    assert not PythonAttributes(VOCABULARY, "x = 1\n", private=False).prefix(ids("x.__add"))
