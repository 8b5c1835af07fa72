"""Remove what can never be completed, so that the engine has no dead ends.

A rule is productive when it derives some finite text.  Unproductive alternatives, members
and items are dropped; a grammar whose start rule is unproductive is unsatisfiable.
"""

from __future__ import annotations

from maskwright.errors import UnsatisfiableError
from maskwright.grammar import (
    EMPTY,
    FAIL,
    Body,
    Choice,
    Expr,
    Grammar,
    Keyset,
    Member,
    Record,
    Ref,
    Repeated,
    Seq,
    Term,
)
from maskwright.regular import is_nothing


def prune(grammar: Grammar) -> Grammar:
    """A grammar for the same language in which every rule is productive, or empty and unreferenced.

    Raises ``UnsatisfiableError`` when the language is empty.
    """
    good = _productive_rules(grammar)
    if not good[grammar.start]:
        name = grammar.names[grammar.start]
        raise UnsatisfiableError(
            "no finite text satisfies this: every alternative contains itself or a contradiction", place=name
        )
    if all(good):
        return grammar
    rules: list[Body | None] = [
        _prune_body(body, good) if good[i] else FAIL for i, body in enumerate(grammar.rules)
    ]
    return Grammar(rules, grammar.names, grammar.start)


def _productive_rules(grammar: Grammar) -> list[bool]:
    # Rules that refer to later ones settle fastest from the back.
    good = [False] * len(grammar.rules)
    changed = True
    while changed:
        changed = False
        for i in range(len(grammar.rules) - 1, -1, -1):
            if not good[i] and _body_is_productive(grammar.rules[i], good):
                good[i] = changed = True
    return good


def _body_is_productive(body: Body | None, good: list[bool]) -> bool:
    if isinstance(body, Repeated):
        if body.max is not None and body.max < body.min:
            return False
        if body.min == 0:
            return True
        return good[body.first] and (body.min == 1 or good[body.rest])
    if isinstance(body, Record):
        return all(m.value is not None and good[m.value] for m in body.members if m.required)
    return body is not None and _expr_is_productive(body, good)


def _expr_is_productive(expr: Expr, good: list[bool]) -> bool:
    if isinstance(expr, Ref):
        return good[expr.rule]
    if isinstance(expr, Seq):
        return all(_expr_is_productive(item, good) for item in expr.items)
    if isinstance(expr, Choice):
        return any(_expr_is_productive(item, good) for item in expr.items)
    return _term_is_productive(expr)


def _term_is_productive(term: Term) -> bool:
    lexeme = term.lexeme
    if isinstance(lexeme, Keyset):
        return bool(lexeme.names) or lexeme.other is not None
    return not is_nothing(lexeme.regular)


def _prune_body(body: Body | None, good: list[bool]) -> Body:
    if isinstance(body, Repeated):
        most = body.max
        if not good[body.first]:
            most = 0
        elif not good[body.rest]:
            most = 1 if most is None else min(most, 1)
        if most == 0:
            return EMPTY if body.min == 0 else FAIL
        return Repeated(body.first, body.rest if good[body.rest] else body.first, body.min, most)
    if isinstance(body, Record):
        members = tuple(
            m if m.value is None or good[m.value] else Member(m.name, None, m.required) for m in body.members
        )
        other = body.other_value if body.other_value is not None and good[body.other_value] else None
        return Record(
            members,
            body.other_key,
            other,
            body.open,
            body.close_empty,
            body.colon,
            body.comma,
            body.close,
        )
    return FAIL if body is None else _prune_expr(body, good)


def _prune_expr(expr: Expr, good: list[bool]) -> Expr:
    if isinstance(expr, Ref):
        return expr if good[expr.rule] else FAIL
    if isinstance(expr, Term):
        return expr if _term_is_productive(expr) else FAIL
    items = tuple(_prune_expr(item, good) for item in expr.items)
    if isinstance(expr, Seq):
        return FAIL if FAIL in items else Seq(items)
    return Choice(tuple(item for item in items if item != FAIL))
