"""SQL that a SQLite database takes: tables where they must be, names that it resolves, and its own word on what is complete."""

from __future__ import annotations

import os
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from maskwright.base.arguments import check_type
from maskwright.errors import ConstraintError
from maskwright.sampling.monitors.monitor import Monitor, MonitorState
from maskwright.sampling.monitors.sql_text import (
    Reading,
    common_names,
    in_lower_case,
    read,
    table_position,
    top_query,
)
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
_OF_STATEMENTS = ("You can only execute one statement", "the query contains a null character")
"""Errors of the module's own that are about the statement; its others are about the connection."""
_OF_DATABASES = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOTADB,
    }
)
"""Errors of SQLite's that say nothing about the statement."""
_SYSTEM = ("sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema", "main", "temp")


class SqlNames(Monitor):
    """Queries and changes (INSERT, UPDATE, DELETE) that a SQLite database prepares.

    ``database``: a path or an open connection, to which it keeps a connection.  Nothing is executed; a schema that changes
    later is not followed.  SQLite itself decides on complete texts.  What is under way is refused only where no continuation
    can be right: a word behind FROM, JOIN, INTO or UPDATE that no table, view or common table expression has; and, once a query's FROM
    clause is complete, names before it and behind it that SQLite does not resolve.  In SQL, names come before what declares them, so
    before FROM anything may stand.  The case of ASCII letters does not matter, quoted names and subqueries are read as SQLite reads them.

    The monitor knows names, no syntax: combine it with a grammar, ``GrammarConstraint(cg) * SqlNames(...)``.
    Raises ``ConstraintError`` when the database has no tables or cannot be read.  So do its answers where SQLite cannot judge a text: a
    connection that is closed, or of another thread (open it with ``check_same_thread=False``), or a database that is locked.
    """

    def __init__(self, vocabulary: Vocabulary, database: str | Path | sqlite3.Connection) -> None:
        self._connection = _connected(database)
        self.tables, self._sources = _read_names(self._connection)
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
        _rows(connection, f"EXPLAIN {text}").close()
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        message = str(error)
        if isinstance(error, sqlite3.ProgrammingError):
            # Parameters are bound behind preparing, and none were given.
            if message.startswith("Incorrect number of bindings"):
                return None
            if not message.startswith(_OF_STATEMENTS):
                raise _unreadable(error) from None
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_DATABASES:
            raise _unreadable(error) from None
        return message
    return None


def _connected(database: str | Path | sqlite3.Connection) -> sqlite3.Connection:
    if isinstance(database, sqlite3.Connection):
        return database
    check_type(database, (str, os.PathLike, sqlite3.Connection), "database", ConstraintError)
    try:
        return sqlite3.connect(
            f"{Path(database).absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False
        )
    except (sqlite3.Error, ValueError) as error:
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> ConstraintError:
    return ConstraintError(f"the database cannot be read: {error}")


def _read_names(connection: sqlite3.Connection) -> tuple[dict[str, tuple[str, ...]], frozenset[str]]:
    """The columns of tables and views, and all words that may stand for one, or begin its name: of all schemas, of functions that
    make tables, of schemas."""
    tables: dict[str, tuple[str, ...]] = {}
    found = set(_SYSTEM)
    try:
        schemas = _column(connection, "SELECT name FROM pragma_database_list")
        # Of tables with one name SQLite takes that of temp, then that of main, then that which was attached first.
        first = {"temp": -2, "main": -1}
        order = sorted(schemas, key=lambda each: first.get(each, 0))
        for schema in order[::-1]:
            quoted = schema.replace('"', '""')
            found |= {schema, *_column(connection, f'SELECT name FROM "{quoted}".sqlite_master')}
            kinds = "type IN ('table', 'view')"
            for name in _column(connection, f'SELECT name FROM "{quoted}".sqlite_master WHERE {kinds}'):
                columns = _column(connection, "SELECT name FROM pragma_table_info(?, ?)", (name, schema))
                tables[in_lower_case(name)] = tuple(map(in_lower_case, columns))
        found |= set(_column(connection, "SELECT name FROM pragma_module_list"))
        found |= {f"pragma_{name}" for name in _column(connection, "SELECT name FROM pragma_pragma_list")}
    except sqlite3.Error as error:
        raise _unreadable(error) from None
    if not tables:
        raise ConstraintError("the database has no tables")
    return tables, frozenset(map(in_lower_case, found))


def _rows(connection: sqlite3.Connection, query: str, values: tuple[str, ...] = ()) -> sqlite3.Cursor:
    # A cursor of its own: what the caller makes of rows is set for the connection, and is none of ours.
    return sqlite3.Cursor(connection).execute(query, values)


def _column(connection: sqlite3.Connection, query: str, values: tuple[str, ...] = ()) -> list[str]:
    return [_text(row[0]) for row in _rows(connection, query, values).fetchall()]


def _text(value: Any) -> str:
    # What the caller makes of texts can be set for the connection only.
    return value.decode("utf-8", "replace") if isinstance(value, (bytes, bytearray)) else str(value)
