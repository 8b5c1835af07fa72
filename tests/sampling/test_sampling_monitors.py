"""Monitors: masks agree with what tokens may do, names come from a database and from static analysis."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import piece_vocabulary

import maskwright as mw
from maskwright import ConstraintError, VocabularyError
from maskwright.sampling import CallableModel, GrammarConstraint, Monitor, Posterior, SqlNames, smc
from maskwright.sampling.constraints import Constraint
from maskwright.sampling.monitors import sql_text
from maskwright.sampling.monitors.monitor import MonitorState

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


class Late(Constraint):
    """A monitor that is one token late: what it says of a place holds for the next one."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def start(self) -> tuple[MonitorState, MonitorState]:
        return self._monitor.start(), self._monitor.start()

    def check(self, states: Sequence[Any], tokens: Sequence[int]) -> np.ndarray:
        return self._monitor.check([before for before, _ in states], tokens)

    def advance(self, state: Any, token: int) -> tuple[MonitorState, MonitorState]:
        current = state[1]
        if self._monitor.check([current], [token])[0]:
            return current, self._monitor.advance(current, token)
        return current, MonitorState(current.text + bytes([token]), b"", None)


def mistakes(monitor: Constraint, good: Sequence[str], bad: Sequence[str]) -> list[str]:
    """The texts that a monitor takes for the opposite: the good ones have good beginnings."""
    refused = [
        text for text in good if not all(monitor.prefix(ids(text[:end])) for end in range(len(text) + 1))
    ]
    return refused + [text for text in bad if monitor.prefix(ids(text))]


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"options": 5}, "options: expected a function"),
        ({"options": "name"}, "options: expected a function"),
        ({"triggers": "."}, "triggers: expected bytes, got str"),
        ({"triggers": None}, "triggers: expected bytes"),
        ({"word": 5}, "word: expected bytes"),
        ({"between": [32]}, "between: expected bytes"),
        ({"ignore_case": "no"}, "ignore_case: expected bool"),
        ({"comments": b"#"}, "comments: expected Mapping"),
        ({"comments": {"#": "\n"}}, "first and the last bytes"),
        ({"comments": {b"#": b""}}, "first and the last bytes"),
        ({"comments": {b"rem": b"\n"}}, "among triggers, word or between"),
        ({"comments": {b"..": b"\n"}}, "among triggers, word or between"),
    ],
)
def test_arguments_of_a_wrong_type(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        Monitor(**{"vocabulary": VOCABULARY, "options": members, "triggers": b"."} | arguments)


@pytest.mark.parametrize("answer", [5, "name", b"name", [1], [b"name"], [None], ["\ud800"]])
def test_answers_of_a_wrong_type(answer: Any) -> None:
    """An error each time: it is not remembered as an answer."""
    monitor = Monitor(VOCABULARY, lambda text: answer, triggers=b".")
    for _ in range(2):
        with pytest.raises(ConstraintError, match=r"options\(b''\)"):
            monitor.start()


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
            "create table Bücher (grö$se integer, no$te text);"
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
    # Aliases before their AS, and without it.
    "select s.name from singer as s",
    "select s.name, c.year from singer s join concert c on c.singer_id = s.id where s.age > 20 order by c.year",
    "select T1.name, count(*) from singer AS T1 JOIN concert AS T2 ON T1.id = T2.singer_id GROUP BY T1.id HAVING count(*) >= 2 ORDER BY count(*) DESC LIMIT 1",
    "select year as y from concert where y > 2000 group by y order by y, cid limit 3",
    "select name from singer where id not in (select singer_id from concert where year = 2014)",
    "select name from singer where age > (select avg(age) from singer) intersect select name from singer where age < 60",
    "with old as (select * from singer where age > 60), names(n) as (select name from old) select n from names",
    "with a as (select * from b), b as (select 1 as one) select one from a",
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < 9) select i from n, singer s where n.i = s.age",
    "select main.singer.name, rowid, _rowid_, oid from main.singer where main.singer.rowid = 1",
    "select strftime('%Y', year), printf('%d', cid), iif(cid, 1, 2), row_number() over w from concert window w as (order by year)",
    "select sum(age) over (w order by id) from singer window w as (partition by name)",
    "select foo from (select 1 as foo) where foo is not distinct from 3",
    "select singer.year from concert as singer",
    "select * from singer natural join concert where true",
    "select key, value from json_each('[1]') where value > 0 and json_each.key = 0",
    "select name from pragma_table_info('singer')",
    'select [name], `age`, "id" from [singer] where [age] > 1 and singer.[age] < 9',
    "select grö$se, no$te from Bücher where grö$se > 1",
    "select s.* from singer s, concert where s.id = singer_id and ?1 = :a",
    "select exists(select 1 from concert c where c.singer_id = s.id) from singer s",
    "select case when age > 3 then name else null end as x from singer order by x collate nocase, id desc nulls last",
    "insert into singer (id, name) select cid, year from concert where year > 3",
    "insert into singer values (1, 'a', 2) on conflict do update set age = 3 returning id",
    "update or ignore singer set age = age + 1 where name = 'x'",
    "delete from concert where year < 2000 /* or so */",
    "values (1), (2)",
]
REFUSED = [
    "select foo",
    "select name from foo",
    "select name from singer as s where s.year",
    "select singer.year",
    "select name from singer where agee > 1",
    "select 'it''s' , naem",
    "select bid$name from singer",
    "select total from singer",
    "select nosuch(name) from singer",
    "select s.name from singer",
    "pragma table_info('singer')",
    "attach 'x.db' as x",
    "query plan select 1",
    "select 1; select 2",
    "",
]


def tried(connection: sqlite3.Connection, text: str) -> bool:
    """Whether SQLite prepares a text, asked without the monitor."""
    try:
        connection.execute("explain " + text, {"a": 1} if ":a" in text else ()).fetchall()
    except sqlite3.Error as error:
        return "bind" in str(error)
    return True


def test_names_of_a_database(database: Path) -> None:
    monitor = SqlNames(VOCABULARY, database)
    assert monitor.tables["singer"] == ("id", "name", "age")
    with closing(sqlite3.connect(database)) as judge:
        for text in ACCEPTED:
            assert tried(judge, text), text
            assert monitor.complete(ids(text)), text
            # Every beginning may still become the text.
            assert all(monitor.prefix(ids(text[:end])) for end in range(len(text))), text
    for text in REFUSED:
        assert not monitor.complete(ids(text)), text
    assert monitor.prefix(ids("select nam")) and not monitor.complete(ids("select nam"))


def test_what_is_refused_before_the_end(database: Path) -> None:
    monitor = SqlNames(VOCABULARY, database)
    for text in (
        "select name from sn",
        "select name from singer join singer2 ",
        "insert into nosuch ",
        "update foo ",
        "select foo from singer where ",
        "select s.nam from singer s order ",
        "select nosuch(name) from singer group ",
        "select name from singer where agee > ",
        "select name from singer s where s.year = ",
        "select name from singer where age > 1 and (id = foo )",
        "select name from singer, concert where singer.foo + ",
        "with a as (select 1 as x) select y from a where ",
        "select name from singer union select foo from singer order ",
    ):
        assert not monitor.prefix(ids(text)), text


def test_a_name_that_looks_like_an_error_of_bindings(database: Path) -> None:
    monitor = SqlNames(VOCABULARY, database)
    for name in ("bind", "binding", "bindings"):
        assert not monitor.complete(ids(f"select {name} from singer"))
        assert not monitor.prefix(ids(f"select {name} from singer where "))
    assert monitor.complete(ids("select name from singer where age = ? and id = :id"))


def test_a_connection_that_cannot_answer_is_an_error_and_nothing_is_remembered(database: Path) -> None:
    text = ids("select name from singer")
    with closing(sqlite3.connect(database)) as connection:
        monitor = SqlNames(VOCABULARY, connection)
        with ThreadPoolExecutor(1) as pool, pytest.raises(ConstraintError, match="thread"):
            pool.submit(monitor.complete, text).result()
        assert monitor.complete(text)
        with closing(sqlite3.connect(database)) as other:
            other.execute("begin exclusive")
            locked = sqlite3.connect(f"{database.as_uri()}", uri=True, timeout=0)
            with closing(locked), pytest.raises(ConstraintError, match="locked"):
                SqlNames(VOCABULARY, locked)
    with pytest.raises(ConstraintError, match="closed"):
        monitor.complete(ids("select age from singer"))
    with pytest.raises(ConstraintError, match="closed"):
        SqlNames(VOCABULARY, connection)


@pytest.mark.parametrize("rows", [None, sqlite3.Row, lambda cursor, row: {"value": row}])
@pytest.mark.parametrize("texts", [str, bytes, bytearray])
def test_settings_of_an_open_connection(database: Path, rows: Any, texts: Any) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory, connection.text_factory = rows, texts
        monitor = SqlNames(VOCABULARY, connection)
        assert connection.row_factory is rows and connection.text_factory is texts
        assert monitor.tables == SqlNames(VOCABULARY, database).tables
        for text in ACCEPTED:
            assert monitor.complete(ids(text)), text


def test_tables_of_all_schemas() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create temp table boat (id, mast)")
        assert SqlNames(VOCABULARY, connection).tables == {"boat": ("id", "mast")}
        connection.execute("attach ':memory:' as first")
        connection.execute("attach ':memory:' as second")
        for schema in ("second", "first", "main"):
            connection.execute(f"create table {schema}.boat (of_{schema})")
            connection.execute(f"create table {schema}.crew (of_{schema})")
        connection.execute("create table second.port (city)")
        monitor = SqlNames(VOCABULARY, connection)
        assert monitor.tables == {"boat": ("id", "mast"), "crew": ("of_main",), "port": ("city",)}
        # As SQLite finds them.
        for name, columns in monitor.tables.items():
            found = connection.execute(f"select * from {name}").description
            assert tuple(each[0] for each in found) == columns
        connection.execute("drop table main.crew")
        assert SqlNames(VOCABULARY, connection).tables["crew"] == ("of_first",)


@pytest.mark.parametrize("database", [5, None, b"music.db", "\0", ["music.db"]])
def test_what_is_no_database(database: Any) -> None:
    with pytest.raises(ConstraintError, match="database"):
        SqlNames(VOCABULARY, database)


def test_what_is_no_vocabulary(database: Path) -> None:
    with pytest.raises(VocabularyError, match="vocabulary"):
        SqlNames(5, database)  # type: ignore[arg-type]


STATEMENTS = [
    "with",
    "without",
    "select",
    "distinct",
    "from",
    "where",
    "group",
    "order",
    "by",
    "having",
    "limit",
    "union",
    "all",
    "as",
    "on",
    "join",
    "left",
    "in",
    "not",
    "and",
    "or",
    "exists",
    "case",
    "when",
    "then",
    "else",
    "end",
    "(",
    ")",
    ",",
    ".",
    "=",
    "+",
    ">",
    "*",
    ";",
    "over",
    "partition",
    "(",
    ")",
    ",",
    ".",
    "=",
    "1",
    "'x'",
    "null",
    "values",
    "insert",
    "into",
    "update",
    "set",
    "delete",
    "window",
    "w",
    "singer",
    "concert",
    "name",
    "age",
    "id",
    "year",
    "cid",
    "singer_id",
    "s",
    "c",
    "t",
    "x",
    "foo",
    "count",
    "sum",
    "strftime",
    "rowid",
    "main",
    "Bücher",
    "grö$se",
]
# Words first; single bytes, so that everything can be spelled.
WORDS = mw.Vocabulary.from_bytes(
    [*(f"{word} ".encode() for word in STATEMENTS), *(bytes([i]) for i in range(256)), b"</s>"],
    eos_ids=len(STATEMENTS) + 256,
)


def random_statements(compiled: mw.CompiledGrammar, count: int, seed: int) -> list[list[int]]:
    """Texts of the grammar by random walks that end soon, with lists of names that suit each other now and then."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        matcher = compiled.matcher()
        written: list[int] = []
        while len(written) < 40:
            mask = matcher.next_token_bitmask()
            allowed = [i for i in range(len(STATEMENTS)) if mask[i // 32] >> (i % 32) & 1]
            if matcher.is_accepting and (not allowed or len(written) >= 14 or rng.random() < 0.2):
                break
            token = (
                int(rng.choice(allowed))
                if allowed and len(written) < 14
                else matcher.shortest_completion()[0]
            )
            assert matcher.accept_token(token)
            written.append(token)
        found.append(written)
    return found


@pytest.mark.parametrize(("count", "seed"), [(200, 1), pytest.param(10_000, 2, marks=pytest.mark.slow)])
def test_nothing_that_sqlite_prepares_is_refused(database: Path, count: int, seed: int) -> None:
    """Random texts of the shipped grammar: the monitor's word on each is SQLite's, and every beginning of a good one passes."""
    compiled = mw.compile(mw.shipped_grammar("sql"), WORDS)
    monitor = SqlNames(WORDS, database)
    good = 0
    with closing(sqlite3.connect(database)) as judge:
        for text in random_statements(compiled, count, seed):
            prepared = tried(judge, WORDS.decode(text).decode())
            good += prepared
            assert monitor.complete(text) == prepared, WORDS.decode(text)
            if prepared:
                assert all(monitor.prefix(text[:end]) for end in range(len(text))), WORDS.decode(text)
    assert good > count / 20


@pytest.mark.slow
def test_all_that_is_sampled_is_prepared(database: Path) -> None:
    """With the shipped grammar and random words; the old rule, names that exist somewhere, is caught by the same judge."""
    grammar = GrammarConstraint(mw.compile(mw.shipped_grammar("sql"), WORDS))
    size = WORDS.vocab_size
    weights = np.random.default_rng(0).dirichlet(np.full(size, 0.5), size=size)
    weights[:, len(STATEMENTS) :] *= 1e-3
    weights[:, -1] += 0.2
    logs = np.log(weights / weights.sum(axis=1, keepdims=True))
    model = CallableModel(
        lambda prefixes: logs[[prefix[-1] if prefix else -1 for prefix in prefixes]], size, size - 1
    )

    class Anywhere(SqlNames):
        """Names that exist somewhere, wherever they stand."""

        def may_end(self, state: MonitorState) -> bool:
            return True

    shares = {}
    for kind in (SqlNames, Anywhere):
        finished = [
            WORDS.decode(text).decode()
            for seed in range(6)
            for text, done in zip(
                *_finished(smc(model, grammar * kind(WORDS, database), 48, max_tokens=16, seed=seed)),
                strict=True,
            )
            if done
        ]
        with closing(sqlite3.connect(database)) as judge:
            shares[kind] = sum(tried(judge, text) for text in finished) / len(finished)
        assert len(finished) > 50
    assert shares[SqlNames] == 1.0 > shares[Anywhere]


def _finished(posterior: Posterior) -> tuple[list[list[int]], list[bool]]:
    return posterior.sequences, (np.isfinite(posterior.log_weights) & posterior.is_complete).tolist()


def test_quoted_names_and_their_ends(database: Path) -> None:
    reading = sql_text.read
    for text in (
        "select 'a",
        'select "a""',
        "select [a",
        "select /* a",
        "select -- a",
        "select 'a''",
        "select 1",
        "select :a",
    ):
        assert reading(text).is_open, text
    for text in (
        "select 'a'",
        'select "a"""',
        "select [a]",
        "select /* a */",
        "select -- a\n",
        "select x'ab'",
        "select a",
    ):
        assert not reading(text).is_open, text


def test_open_connections_and_broken_databases(tmp_path: Path, database: Path) -> None:
    connection = sqlite3.connect(database)
    assert SqlNames(VOCABULARY, connection).tables.keys() == {"singer", "concert", "bücher"}
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

    found = smc(CallableModel(function, 9, 8), SqlNames(vocabulary, database), 512, max_tokens=9, seed=1)
    written = {vocabulary.decode(text) for text in found.probabilities(tuple)}
    assert written and all(
        b"naem" not in text and b"year" not in text and b"nothing" not in text for text in written
    )
    # Two of four columns are those of a singer, and the others are refused once the table is known.
    assert found.log_evidence == pytest.approx(math.log(_evidence()), abs=0.3)


def _evidence() -> float:
    # Columns that a singer has come with 1/2 each, a text goes on, ends well or ends badly with 1/3 each; at most 3 columns fit.
    return sum(0.5**n * (1 / 3) ** (n - 1) * (1 / 3) for n in (1, 2, 3))
