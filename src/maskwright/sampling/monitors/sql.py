"""Names in SQL that a SQLite database has: tables, columns, functions, and aliases once they are declared."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from maskwright.errors import ConstraintError
from maskwright.sampling.monitors.monitor import Monitor
from maskwright.vocabulary.vocabulary import Vocabulary

KEYWORDS = frozenset(
    {
        "all", "and", "as", "asc", "between", "by", "case", "cast", "collate", "count", "avg", "sum",
        "min", "max", "total", "abs", "round", "length", "lower", "upper", "substr", "coalesce", "ifnull",
        "nullif", "cross", "current_date", "current_time", "current_timestamp", "desc", "distinct",
        "else", "end", "escape", "except", "exists", "from", "full", "glob", "group", "having", "in",
        "inner", "intersect", "is", "isnull", "join", "left", "like", "limit", "natural", "not",
        "notnull", "null", "offset", "on", "or", "order", "outer", "right", "select", "set", "then",
        "true", "false", "union", "using", "values", "when", "where", "with", "insert", "into", "update",
        "delete", "default", "integer", "text", "real", "blob", "numeric",
    }
)  # fmt: skip
"""Words that are no names: keywords of queries and SQLite's most used functions."""

_LEXEME = re.compile(
    r"(?P<string>'(?:[^']|'')*'?)|(?P<quoted>\"(?:[^\"]|\"\")*\"?|`[^`]*`?|\[[^\]]*\]?)|(?P<comment>--[^\n]*\n?|/\*.*?(?:\*/|$))"
    r"|(?P<number>\d[\w.]*)|(?P<word>[A-Za-z_]\w*)|(?P<space>\s+)|(?P<mark>.)",
    re.DOTALL,
)
_TABLE_POSITIONS = frozenset({"from", "join", "into", "update"})
_TRIGGERS = bytes(
    byte for byte in range(256) if not (chr(byte).isalnum() and byte < 128) and byte != ord("_")
)


class SqlNames(Monitor):
    """SQL whose unquoted names are tables and columns of a SQLite database.

    ``database``: a path or an open connection; it is read once, here.  Behind FROM, JOIN, INTO and UPDATE a table
    must follow (or a parenthesis), behind ``table.`` or ``alias.`` one of its columns, elsewhere a keyword, a
    column, a table, or an alias that was declared with AS further left.  Behind AS any word may follow.  Quoted
    names, strings, numbers and comments are not looked into.  Case does not matter.

    The monitor knows names, no syntax: combine it with a grammar, ``GrammarConstraint(cg) * SqlNames(...)``.
    Raises ``ConstraintError`` when the database has no tables or cannot be read.
    """

    def __init__(self, vocabulary: Vocabulary, database: str | Path | sqlite3.Connection) -> None:
        self.tables = _read_tables(database)
        self._columns = frozenset(name for names in self.tables.values() for name in names)
        super().__init__(vocabulary, self.names, triggers=_TRIGGERS, ignore_case=True)

    def names(self, text: str) -> Iterable[str] | None:
        """The names that may follow ``text`` (which does not end inside a word), lower case."""
        lexemes = [
            (str(match.lastgroup), match.group().lower())
            for match in _LEXEME.finditer(text)
            if match.lastgroup not in ("space", "comment")
        ]
        if _is_inside(text):
            return None
        before = lexemes[-1] if lexemes else ("", "")
        if before == ("mark", "."):
            owner = lexemes[-2][1] if len(lexemes) > 1 and lexemes[-2][0] == "word" else ""
            table = self._aliases(lexemes).get(owner, owner)
            return [*self.tables[table], ""] if table in self.tables else None
        if before == ("word", "as"):
            return None
        if before[0] == "word" and before[1] in _TABLE_POSITIONS:
            return [*self.tables, ""]
        aliases = self._aliases(lexemes)
        return [*KEYWORDS, *self._columns, *self.tables, *aliases, ""]

    def _aliases(self, lexemes: list[tuple[str, str]]) -> dict[str, str]:
        found = {}
        for first, middle, last in zip(lexemes, lexemes[1:], lexemes[2:], strict=False):
            if middle == ("word", "as") and last[0] == "word":
                found[last[1]] = first[1]
        return found


def _is_inside(text: str) -> bool:
    """Whether the text ends inside a string, a quoted name, a number or a comment."""
    lexemes = list(_LEXEME.finditer(text))
    if not lexemes:
        return False
    kind, lexeme = lexemes[-1].lastgroup, lexemes[-1].group()
    if kind in ("string", "quoted"):
        closing = {"[": "]"}.get(lexeme[0], lexeme[0])
        # A doubled quote is one character of the string.
        return len(lexeme) < 2 or lexeme[-1] != closing or lexeme[1:].count(closing) % 2 == 0
    if kind == "comment":
        return not lexeme.endswith("\n" if lexeme.startswith("--") else "*/")
    return kind == "number"


def _read_tables(database: str | Path | sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    try:
        if isinstance(database, sqlite3.Connection):
            tables = _list_tables(database)
        else:
            with closing(
                sqlite3.connect(f"{Path(database).absolute().as_uri()}?mode=ro", uri=True)
            ) as connection:
                tables = _list_tables(connection)
    except sqlite3.Error as error:
        raise ConstraintError(f"the database cannot be read: {error}") from None
    if not tables:
        raise ConstraintError("the database has no tables")
    return tables


def _list_tables(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    tables = {}
    listed = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    for (name,) in listed.fetchall():
        columns = connection.execute("SELECT name FROM pragma_table_info(?)", (name,))
        tables[name.lower()] = tuple(column.lower() for (column,) in columns.fetchall())
    return tables
