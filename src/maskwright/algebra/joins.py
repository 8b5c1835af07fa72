"""Unions, sequences and repetitions of grammars.

Grammars without a lexer are parts of the result, as imports: their tables are made once for all who use them.  One with captures
is copied into it, and so is one with a lexer.  An engine has one lexer: several become one (``lexers``), and what is ignored is waited for
where it belongs.
"""

from __future__ import annotations

from collections.abc import Hashable

from maskwright.algebra.inexact import Inexact
from maskwright.algebra.lexers import closes, one_lexer
from maskwright.algebra.rules import include
from maskwright.ir.grammar import EMPTY, Choice, Expr, Grammar, Import, Ref, Repeated, Seq, Term


def union(parts: list[Import]) -> Grammar:
    """The texts of any of some grammars.  Raises ``Inexact`` for captures beside a lexer."""
    out, items = _together(parts)
    out.start = out.add("either", Choice(tuple(items)))
    return out


def sequence(parts: list[Import]) -> Grammar:
    """A text of each of some grammars, one behind the other.  Raises ``Inexact`` where a longest match would look into the next."""
    out, items = _together(parts, in_a_row=True)
    out.start = out.add("sequence", Seq(tuple(items)))
    return out


def repetition(part: Import, low: int, high: int | None) -> Grammar:
    """So many texts of a grammar in a row.  Raises ``Inexact`` for one with a lexer, but for one text at most."""
    if high == 0:
        out = Grammar()
        out.start = out.add("nothing", EMPTY)
        return out
    often = high is None or high > 1
    out, items = _together([part, part] if often else [part], in_a_row=often)
    once = items[0].rule if isinstance(items[0], Ref) else out.add("item", items[0])
    out.start = out.add("repeated", Repeated(once, once, low, high))
    return out


def _together(parts: list[Import], in_a_row: bool = False) -> tuple[Grammar, list[Expr]]:
    """A grammar that has the rules of some, and what each of them is there."""
    made = [part.make() for part in parts]
    lexed = [number for number, grammar in enumerate(made) if grammar.lexing is not None]
    for number in lexed:
        if in_a_row and number < len(parts) - 1 and not closes(made[number]):
            raise Inexact(
                "its longest match would read on in what comes behind it: use lexer='dynamic', or put it last"
            )
    out = Grammar()
    begun: dict[Hashable, Ref] = {}
    for number, grammar in zip(lexed, one_lexer([made[number] for number in lexed]), strict=True):
        if parts[number].key not in begun:
            out.lexing = grammar.lexing
            begun[parts[number].key] = _included(out, grammar)
    items: list[Expr] = []
    capturing = any(grammar.captures for grammar in made)
    for part, grammar in zip(parts, made, strict=True):
        body = grammar.rules[grammar.start]
        if part.key in begun:
            items.append(begun[part.key])
        elif grammar.captures:
            items.append(_with_captures(out, grammar))
        else:
            # One lexeme is itself: what is read behind it is not what is read behind another one.  Captures are read beside imports alone.
            items.append(body if isinstance(body, Term) and not capturing else part)
    return out, items


def _included(out: Grammar, grammar: Grammar) -> Ref:
    """What a grammar is in another one, to which its rules are added."""
    first = len(out.rules)
    include(out, first, grammar)
    if grammar.captures and grammar.blank is not None:
        out.blank = first + grammar.blank
    return Ref(first + grammar.start)


def _with_captures(out: Grammar, grammar: Grammar) -> Expr:
    """The rules of a grammar without a lexer, added to another one: of an import, nobody reads captures.

    Raises ``Inexact`` where what is captured would be read in another way there.
    """
    if out.lexing is not None:
        raise Inexact("its captures are not read beside a grammar with a lexer: use lexer='dynamic' for both")
    if grammar.blank is not None and out.blank is not None:
        raise Inexact("both capture parts of texts with ignored text between them")
    return _included(out, grammar)
