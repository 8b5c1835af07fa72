"""Regular languages as expressions of a grammar: what all front-ends for texts end in."""

from __future__ import annotations

from maskwright.ir.grammar import EMPTY, FAIL, Choice, Expr, Lexeme, Term
from maskwright.limits import Limits
from maskwright.regular.dfa import length_bounds, without_empty
from maskwright.regular.expressions import Regular


def regular_expr(node: Regular, limits: Limits) -> Expr:
    """The texts of a regular language, as one lexeme; a lexeme never matches the empty text.

    Raises ``LimitError`` when the language has to be determinised and is too large.
    """
    bounds = length_bounds(node)
    if bounds is None:
        return FAIL
    if bounds[0] > 0:
        return _term(node)
    if bounds[1] == 0:
        return EMPTY
    return Choice((_term(without_empty(node, limits)), EMPTY))


def _term(node: Regular) -> Term:
    # Trees are equal by structure: equal keys mean equal content.
    return Term(Lexeme(("regular", node), node))
