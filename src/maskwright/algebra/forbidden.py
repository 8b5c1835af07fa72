"""Texts of a grammar with a lexer that are without some phrases.

Where no phrase can begin in one lexeme and end in another, a text has it exactly if one of its lexemes does.  So each terminal keeps its
texts without the phrases:

    NAME        NAME without "eval"         forbidden: NAME up to "eval" ("eval", "medieval", ...)
    EVAL        no text (``NO_TEXT``)

The lexer must not read "eval" as "eva" and "l", now that no name is longer.  So the beginnings of names up to the end of a phrase are a
match of nothing where a name may come (``Lexing.forbidden``).  Ignored text and blocks by indentation stay what they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from maskwright.algebra.found import Phrases, Shared
from maskwright.algebra.lexers import NO_TEXT, has_no_text, mapped, never_sure
from maskwright.ir.grammar import FAIL, Expr, Grammar, Keyset, Lexeme, Term, Words
from maskwright.ir.prune import is_satisfiable
from maskwright.regular.dfa import beginnings, first_matches, intersect
from maskwright.regular.expressions import EVERY_TEXT, Lit, Regular, alt, cat


def without_phrases(
    given: Grammar, leaves: Sequence[Lexeme | Keyset | Words], phrases: Phrases
) -> Grammar | None:
    """The texts of a grammar with none of the phrases; None: there is none.

    No phrase may lie in two of its lexemes ``leaves``, ignored ones included (``Phrases.check_apart``).  Raises ``Shared`` for
    phrases in what is no terminal, or in all line ends where these tell blocks, or some of them inside a JSON string.
    """
    lexing = given.lexing
    assert lexing is not None
    limits = phrases.limits
    read = {terminal.key for terminal in lexing.terminals}
    for leaf in leaves:
        known = not isinstance(leaf, Keyset) and leaf.key in read
        if not known and not has_no_text(leaf) and set(phrases.split(leaf)) != {0}:
            raise Shared("the phrase may stand in what its lexer does not read")
    until_a_phrase = first_matches(cat(EVERY_TEXT, alt(*[Lit(each) for each in phrases.phrases])), limits)
    terminals = list(lexing.terminals)
    forbidden: list[tuple[int, Regular]] = []
    mapping: dict[Hashable, Expr] = {}
    for position, terminal in enumerate(terminals):
        right, wrong = phrases.cut(terminal)
        if wrong is None:
            continue
        mapping[terminal.key] = NO_TEXT if right is None else Term(right)
        if right is not None:
            begun = intersect([beginnings(terminal.regular, limits), until_a_phrase], limits)
            forbidden.append((position, begun))
            terminals[position] = right
    gone = {position for position, terminal in enumerate(terminals) if mapping.get(terminal.key) is NO_TEXT}
    if lexing.newline in gone:
        raise Shared("all of its line ends have the phrase")
    if lexing.lines is not None and lexing.newline in dict(forbidden):
        raise Shared("some of its line ends have the phrase")
    if not is_satisfiable(
        mapped(given, {key: FAIL for key, made in mapping.items() if made is NO_TEXT}, lexing)
    ):
        return None
    if gone:
        lexing = never_sure(lexing)
        terminals.append(lexing.terminals[-1])
    ignored = tuple([each for each in lexing.ignored if each not in gone])
    forbidden = [*lexing.forbidden, *forbidden]
    return mapped(
        given,
        mapping,
        replace(lexing, terminals=tuple(terminals), ignored=ignored, forbidden=tuple(forbidden)),
    )
