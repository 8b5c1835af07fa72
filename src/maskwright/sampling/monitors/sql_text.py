"""SQL as SQLite's tokenizer reads it, and the few things about its clauses that a text under way shows for certain."""

from __future__ import annotations

import re
from string import ascii_uppercase
from typing import NamedTuple

_LEXEME = re.compile(
    r"(?P<string>[xX]?'(?:[^']|'')*(?P<open_string>\Z)?'?)"
    r"|(?P<quoted>\"(?:[^\"]|\"\")*\"?|`(?:[^`]|``)*`?|\[[^\]]*\]?)"
    r"|(?P<comment>--[^\n]*\n?|/\*.*?(?:\*/|\Z))"
    r"|(?P<number>(?:\d|\.\d)[\w.$\x80-\U0010ffff]*(?:(?<=[eE])[+-]\d*)?)"
    r"|(?P<parameter>\?\d*|[:@#$][A-Za-z0-9_$\x80-\U0010ffff]+(?:::[A-Za-z0-9_$\x80-\U0010ffff]*)*(?:\([^\s)]*\)?)?)"
    r"|(?P<word>(?!\ufeff)[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*)"
    r"|(?P<space>[ \t\n\f\r]+|\ufeff)|(?P<mark>\|\||->>|->|<<|>>|<=|>=|<>|!=|==|.)",
    re.DOTALL | re.ASCII,
)

RESERVED = frozenset(
    [
        "add",
        "all",
        "alter",
        "and",
        "as",
        "autoincrement",
        "between",
        "case",
        "check",
        "collate",
        "commit",
        "constraint",
        "create",
        "default",
        "deferrable",
        "delete",
        "distinct",
        "drop",
        "else",
        "escape",
        "except",
        "exists",
        "foreign",
        "from",
        "group",
        "having",
        "in",
        "index",
        "insert",
        "intersect",
        "into",
        "is",
        "isnull",
        "join",
        "limit",
        "not",
        "notnull",
        "null",
        "on",
        "or",
        "order",
        "primary",
        "references",
        "returning",
        "select",
        "set",
        "table",
        "then",
        "to",
        "transaction",
        "union",
        "unique",
        "update",
        "using",
        "values",
        "when",
        "where",
    ]
)
"""Words that are never a name unless they are quoted."""
KEYWORDS = RESERVED | frozenset(
    [
        "abort",
        "action",
        "after",
        "always",
        "analyze",
        "asc",
        "attach",
        "before",
        "begin",
        "by",
        "cascade",
        "cast",
        "column",
        "conflict",
        "cross",
        "current",
        "current_date",
        "current_time",
        "current_timestamp",
        "database",
        "deferred",
        "desc",
        "detach",
        "do",
        "each",
        "end",
        "exclude",
        "exclusive",
        "explain",
        "fail",
        "filter",
        "first",
        "following",
        "for",
        "full",
        "generated",
        "glob",
        "groups",
        "if",
        "ignore",
        "immediate",
        "indexed",
        "initially",
        "inner",
        "instead",
        "key",
        "last",
        "left",
        "like",
        "match",
        "materialized",
        "natural",
        "no",
        "nothing",
        "nulls",
        "of",
        "offset",
        "others",
        "outer",
        "over",
        "partition",
        "plan",
        "pragma",
        "preceding",
        "query",
        "raise",
        "range",
        "recursive",
        "regexp",
        "reindex",
        "release",
        "rename",
        "replace",
        "restrict",
        "right",
        "rollback",
        "row",
        "rows",
        "savepoint",
        "temp",
        "temporary",
        "ties",
        "trigger",
        "unbounded",
        "vacuum",
        "view",
        "virtual",
        "window",
        "with",
        "within",
        "without",
    ]
)
"""The others may be a keyword or a name."""
_CLAUSES = frozenset({"where", "group", "having", "order", "limit", "union", "intersect", "except"})
"""Words behind which the FROM clause before them is complete; they are never names."""
_BEFORE_OPERANDS = frozenset(
    {
        "(",
        ",",
        "=",
        "==",
        "<",
        ">",
        "<=",
        ">=",
        "<>",
        "!=",
        "+",
        "*",
        "/",
        "%",
        "||",
        "&",
        "|",
        "<<",
        ">>",
        "~",
    }
    | {"where", "and", "or", "having", "when", "then", "else", "between", "limit"}
)


_LOWER = {ord(letter): letter.lower() for letter in ascii_uppercase}


def in_lower_case(text: str) -> str:
    """A text as SQLite compares names: other letters than ASCII's are not folded."""
    return text.translate(_LOWER)


class Lexeme(NamedTuple):
    """``text`` is lower case for words; ``start`` is its place."""

    kind: str
    text: str
    start: int


class Reading(NamedTuple):
    """The lexemes of a text without spaces and comments, and whether it ends inside one whose rest may change what it is."""

    lexemes: list[Lexeme]
    is_open: bool


def read(text: str) -> Reading:
    """The lexemes of a text that goes on."""
    found = []
    is_open = False
    for match in _LEXEME.finditer(text):
        kind, lexeme = str(match.lastgroup), match.group()
        kind = "string" if kind == "open_string" else kind
        if match.end() == len(text):
            is_open = _goes_on(kind, lexeme)
        if kind not in ("space", "comment"):
            found.append(Lexeme(kind, in_lower_case(lexeme) if kind == "word" else lexeme, match.start()))
    return Reading(found, is_open)


def _goes_on(kind: str, lexeme: str) -> bool:
    if kind == "string":
        return not lexeme.endswith("'") or lexeme.count("'") % 2 == 1
    if kind == "quoted":
        end = {"[": "]"}.get(lexeme[0], lexeme[0])
        return len(lexeme) < 2 or lexeme[-1] != end or (end != "]" and lexeme.count(end) % 2 == 1)
    if kind == "comment":
        return not lexeme.endswith("\n" if lexeme.startswith("--") else "*/") or lexeme == "/*/"
    return kind in ("number", "parameter")


def table_position(lexemes: list[Lexeme]) -> bool:
    """Whether a table must follow, or something that is no word: behind FROM, JOIN, INTO and UPDATE."""
    if not lexemes or lexemes[-1].kind != "word":
        return False
    before = lexemes[-2].text if len(lexemes) > 1 else ""
    if before == ".":
        return False
    word = lexemes[-1].text
    if word == "from":
        return before != "distinct"  # IS DISTINCT FROM
    return word in ("join", "into") or (word == "update" and before not in ("do", "for", "on"))


def common_names(lexemes: list[Lexeme]) -> tuple[set[str], bool]:
    """Names of common table expressions, and whether one may still be declared that this place sees."""
    names = set()
    pending: list[int] = []  # depths of WITH whose statement has not begun
    depth = 0
    for i, (_, text, _) in enumerate(lexemes):
        if text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
            pending = [each for each in pending if each <= depth]
        elif text == "with":
            pending.append(depth)
        elif text in ("select", "values", "insert", "replace", "update", "delete"):
            pending = [each for each in pending if each != depth]
        following = lexemes[i + 1].text if i + 1 < len(lexemes) else ""
        if following in ("as", "("):
            names.add(name_of(lexemes[i]))
    return names, bool(pending)


def name_of(lexeme: Lexeme) -> str:
    """A name in lower case, without its quotes."""
    if lexeme.kind in ("quoted", "string") and len(lexeme.text) > 1:
        mark = lexeme.text[-1]
        inner = lexeme.text[1:-1]
        return in_lower_case(inner if mark == "]" else inner.replace(mark * 2, mark))
    return lexeme.text


class Query(NamedTuple):
    """A query at the top of a text, whose last FROM clause is complete."""

    head: str
    """The text up to the end of that clause."""
    operands: list[str]
    """Names behind it that stand for values, as ``name`` or ``name.name``, outside of subqueries."""


def top_query(text: str, lexemes: list[Lexeme]) -> Query | None:
    """What is known about a query, where the text shows that its names have been declared; None otherwise."""
    if not lexemes or lexemes[0].text not in ("select", "with"):
        return None
    depth, is_query, is_compound, head = 0, False, False, 0
    rest: list[Lexeme] = []
    inner: int | None = None  # the depth at which a subquery began
    for i, lexeme in enumerate(lexemes):
        word = lexeme.text if lexeme.kind == "word" else ""
        if lexeme.text == "(" and lexeme.kind == "mark":
            depth += 1
        elif lexeme.text == ")" and lexeme.kind == "mark":
            depth -= 1
            if inner is not None and depth < inner:
                inner = None
        if word in ("select", "with", "values") and depth and inner is None:
            inner = depth
        if depth == 0 and word in ("insert", "update", "delete", "replace", "values"):
            return None
        if depth == 0 and word == "select":
            is_query = True
        if depth == 0 and word in ("union", "intersect", "except"):
            is_compound = True
            head, rest = lexeme.start, []
        elif depth == 0 and is_query and word in _CLAUSES and not (head and rest):
            head, rest = lexeme.start, [lexeme]
        elif rest:
            hidden = inner is not None or (lexeme.text == ")" and lexeme.kind == "mark")
            rest.append(Lexeme("hidden", ")", lexeme.start) if hidden else lexeme)
        if depth == 0 and word == "select" and i:
            rest = []
    if not head:
        return None
    return Query(text[:head], [] if is_compound else _operands(rest))


def _operands(lexemes: list[Lexeme]) -> list[str]:
    found = []
    if lexemes and lexemes[-1].text in ("-", "/"):
        # It may begin a comment, and what comes behind that says what the operand is.
        lexemes = lexemes[:-1]
    for i in range(1, len(lexemes) - 1):
        before, lexeme, behind = lexemes[i - 1], lexemes[i], lexemes[i + 1]
        if before.kind not in ("word", "mark") or before.text not in _BEFORE_OPERANDS:
            continue
        if lexeme.kind != "word" or lexeme.text in KEYWORDS or behind.text in ("(", "as"):
            continue
        if before.text == "(" and i > 1 and lexemes[i - 2].text in ("over", "as"):
            continue  # the name of a window
        if behind.text != ".":
            found.append(lexeme.text)
        elif i + 3 < len(lexemes) and lexemes[i + 2].kind == "word" and lexemes[i + 3].text not in (".", "("):
            found.append(f"{lexeme.text}.{lexemes[i + 2].text}")
    return found
