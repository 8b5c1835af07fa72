"""Unions, sequences and repetitions of grammars.

Grammars without a lexer are parts of the result, as imports: their tables are made once for all who use them.  One with captures
is copied into it, and so is one with a lexer.  An engine has one lexer: several become one (``lexers``), and what is ignored is waited for
where it belongs.  A *boundary* stands before each text of a grammar with a lexer, and behind each that a longest match could go on from:

    A | B      bA A | bB B       terminals of A compete with each other, and not with those of B
    A + R      bA A bR R         a match at the end of A does not look into R
"""

from __future__ import annotations

from collections.abc import Hashable

from maskwright.algebra.inexact import Inexact
from maskwright.algebra.lexers import closes, is_apart, one_lexer
from maskwright.algebra.rules import include
from maskwright.ir.grammar import EMPTY, Boundary, Choice, Expr, Grammar, Import, Ref, Repeated, Seq, Term
from maskwright.ir.nullable import nullable_rules


def union(parts: list[Import]) -> Grammar:
    """The texts of any of some grammars.  Raises ``Inexact`` for captures beside a lexer."""
    out, items = _together(parts)
    out.start = out.add("either", Choice(tuple(items)))
    return out


def sequence(parts: list[Import]) -> Grammar:
    """A text of each of some grammars, one behind the other.  Raises ``Inexact`` for captures beside a lexer."""
    out, items = _together(parts, in_a_row=True)
    out.start = out.add("sequence", Seq(tuple(items)))
    return out


def repetition(part: Import, low: int, high: int | None) -> Grammar:
    """So many texts of a grammar in a row.  Raises ``Inexact`` for captures of one with a lexer, if there may be several."""
    if high == 0:
        out = Grammar()
        out.start = out.add("nothing", EMPTY)
        return out
    often = high is None or high > 1
    out, items = _together([part, part] if often else [part], in_a_row=often)
    once = items[-1].rule if isinstance(items[-1], Ref) else out.add("item", items[-1])
    out.start = out.add("repeated", Repeated(once, once, low, high))
    return out


def _together(parts: list[Import], in_a_row: bool = False) -> tuple[Grammar, list[Expr]]:
    """A grammar that has the rules of some, and what each of them is there."""
    made = [part.make() for part in parts]
    lexed = [number for number, grammar in enumerate(made) if grammar.lexing is not None]
    bounded = _bounded(parts, made, in_a_row)
    if any(bounded) and any(grammar.captures for grammar in made):
        if len(lexed) == 1 and made[lexed[0]].captures:
            raise Inexact(
                "its captures are not read before another part: use lexer='dynamic', or put it last"
            )
        raise Inexact("its captures are not read beside a grammar with a lexer: use lexer='dynamic' for both")
    out = Grammar()
    begun: dict[Hashable, Ref] = {}
    for number, grammar in zip(lexed, one_lexer([made[number] for number in lexed]), strict=True):
        if parts[number].key not in begun:
            out.lexing = grammar.lexing
            begun[parts[number].key] = _included(out, grammar)
    items: list[Expr] = []
    capturing = any(grammar.captures for grammar in made)
    for part, grammar, has_boundary in zip(parts, made, bounded, strict=True):
        body = grammar.rules[grammar.start]
        item: Expr
        if part.key in begun:
            item = begun[part.key]
        elif grammar.captures:
            item = _with_captures(out, grammar)
        else:
            # One lexeme is itself: what is read behind it is not what is read behind another one.  Captures are read beside imports alone.
            item = body if isinstance(body, Term) and not capturing else part
        if has_boundary:
            has_lines = (
                grammar.lexing is not None
                and not is_apart(grammar.lexing)
                and grammar.lexing.newline is not None
            )
            item = Seq((Term(Boundary(part.key, has_lines)), item))
            # The empty text is read as nothing: so what may end where a boundary is needs none for that.
            item = Choice((item, EMPTY)) if _may_be_empty(grammar) else item
        items.append(item)
    return out, items


def _bounded(parts: list[Import], made: list[Grammar], in_a_row: bool) -> list[bool]:
    """Before which of some grammars a boundary stands.

    Not before one that is alone and begins with its own quote, nor before one that is alone and captures, which would not be read behind one.
    """
    several = (
        len({part.key for part, grammar in zip(parts, made, strict=True) if grammar.lexing is not None}) > 1
    )
    bounded = []
    read_on = False  # by a longest match, if a text of those before ends here
    for grammar in made:
        lexing = grammar.lexing
        begins = lexing is not None and (several or not (is_apart(lexing) or grammar.captures))
        bounded.append(read_on or begins)
        read_on = in_a_row and (not closes(grammar) or (read_on and _may_be_empty(grammar)))
    return bounded


def _may_be_empty(grammar: Grammar) -> bool:
    inner = {each.key: _may_be_empty(each.make()) for each in grammar.imports()}
    return nullable_rules(grammar, inner)[grammar.start]


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
