"""SQL that a SQLite database takes: tables where they must be, names that it resolves, and its own word on what is complete."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

from maskwright.errors import ConstraintError
from maskwright.sampling.monitors.monitor import Monitor, MonitorState
from maskwright.sampling.monitors.sql_text import Reading, common_names, read, table_position, top_query
from maskwright.vocabulary.vocabulary import Vocabulary

_WORD = bytes(i for i in range(256) if chr(i).isalnum() and i < 128) + b"_$" + bytes(range(128, 256))
_TRIGGERS = bytes(set(range(256)) - set(_WORD))
_STATEMENTS = frozenset({"select", "values", "with", "insert", "replace", "update", "delete"})
_ANSWERS = 4096
_FINAL = (
    "no such column",
    "no such table",
    "no such function",
    "ambiguous column name",
    "wrong number of arguments",
)
"""Errors that nothing behind a complete FROM clause can mend."""
_SYSTEM = ("sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema", "main", "temp")


class SqlNames(Monitor):
    """Queries and changes (INSERT, UPDATE, DELETE) that a SQLite database prepares.

    ``database``: a path or an open connection, to which it keeps a connection.  Nothing is executed; a schema that changes
    later is not followed.  SQLite itself decides on complete texts.  What is under way is refused only where no continuation
    can be right: a word behind FROM, JOIN, INTO or UPDATE that no table, view or common table expression has; and, once a query's FROM
    clause is complete, names before it and behind it that SQLite does not resolve.  In SQL, names come before what declares them, so
    before FROM anything may stand.  Case does not matter, quoted names and subqueries are read as SQLite reads them.

    The monitor knows names, no syntax: combine it with a grammar, ``GrammarConstraint(cg) * SqlNames(...)``.
    Raises ``ConstraintError`` when the database has no tables or cannot be read.
    """

    def __init__(self, vocabulary: Vocabulary, database: str | Path | sqlite3.Connection) -> None:
        self._connection = _connected(database)
        self.tables = _read_tables(self._connection)
        self._sources = _sources(self._connection, self.tables)
        self._answers: OrderedDict[str, str | None] = OrderedDict()
        self._readings: OrderedDict[str, Reading] = OrderedDict()
        super().__init__(vocabulary, self.names, triggers=_TRIGGERS, word=_WORD, ignore_case=True)

    def names(self, text: str) -> Iterable[str] | None:
        """The words that may follow ``text`` (which does not end inside a word), lower case; none: nothing may."""
        reading = read(text)
        if not self._resolves(text, reading):
            return []
        if reading.is_open or not table_position(reading.lexemes):
            return None
        common, declared_later = common_names(reading.lexemes)
        if declared_later:
            return None
        more = ["or"] if reading.lexemes[-1].text == "update" else []
        return [*self._sources, *common, *more, ""]

    def may_end(self, state: MonitorState) -> bool:
        """Whether SQLite prepares the text."""
        return super().may_end(state) and self.prepares(state.text.decode("utf-8", "replace"))

    def prepares(self, text: str) -> bool:
        """Whether SQLite prepares a whole text as one query or change."""
        lexemes = read(text).lexemes
        return bool(lexemes) and lexemes[0].text in _STATEMENTS and self._error(text) is None

    def _resolves(self, text: str, reading: Reading) -> bool:
        query = top_query(text, reading.lexemes)
        if query is None:
            return True
        error = self._error(query.head)
        if error is not None:
            return not error.startswith(_FINAL)
        for operand in query.operands:
            error = self._error(f"{query.head} where {operand}")
            if error is not None and error.startswith("no such column"):
                return False
        return True

    def _error(self, text: str) -> str | None:
        """What SQLite says of a statement; None: it is prepared."""
        if text not in self._answers:
            self._answers[text] = _prepare(self._connection, text)
            if len(self._answers) > _ANSWERS:
                self._answers.popitem(last=False)
        return self._answers[text]


def _prepare(connection: sqlite3.Connection, text: str) -> str | None:
    try:
        connection.execute(f"EXPLAIN {text}").close()
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        # Parameters are bound behind preparing, and none were given.
        message = str(error)
        return None if "bind" in message else message
    return None


def _connected(database: str | Path | sqlite3.Connection) -> sqlite3.Connection:
    if isinstance(database, sqlite3.Connection):
        return database
    try:
        return sqlite3.connect(
            f"{Path(database).absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise ConstraintError(f"the database cannot be read: {error}") from None


def _read_tables(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    tables = {}
    try:
        for name in _column(connection, "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"):
            columns = connection.execute("SELECT name FROM pragma_table_info(?)", (name,))
            tables[name.lower()] = tuple(column.lower() for (column,) in columns.fetchall())
    except sqlite3.Error as error:
        raise ConstraintError(f"the database cannot be read: {error}") from None
    if not tables:
        raise ConstraintError("the database has no tables")
    return tables


def _sources(connection: sqlite3.Connection, tables: Iterable[str]) -> frozenset[str]:
    """All words that may stand for a table, or begin its name: of all schemas, of functions that make tables, of schemas."""
    found = {*tables, *_SYSTEM}
    for schema in _column(connection, "SELECT name FROM pragma_database_list"):
        quoted = schema.replace('"', '""')
        found |= {schema, *_column(connection, f'SELECT name FROM "{quoted}".sqlite_master')}
    found |= set(_column(connection, "SELECT name FROM pragma_module_list"))
    found |= {f"pragma_{name}" for name in _column(connection, "SELECT name FROM pragma_pragma_list")}
    return frozenset(name.lower() for name in found)


def _column(connection: sqlite3.Connection, query: str) -> list[str]:
    return [str(row[0]) for row in connection.execute(query).fetchall()]
