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

    No phrase may lie in two of its lexemes ``leaves``, ignored ones included (``Phrases.check_apart``).  Raises ``Shared``

    - where what the lexer does not read has a phrase: an inline schema, say;
    - where all line ends that tell columns have the phrase, or some do inside a JSON string.
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
    terminals = lexing.terminals
    forbidden: list[tuple[int, Regular]] = []
    changed: dict[int, Lexeme | None] = {}
    for position, terminal in enumerate(terminals):
        right, is_cut = phrases.cut(terminal)
        if is_cut and right is not None:
            begun = intersect([beginnings(terminal.regular, limits), until_a_phrase], limits)
            forbidden.append((position, begun))
        if is_cut:
            changed[position] = right
    newline = lexing.newline
    if newline is not None and newline in changed:
        if lexing.lines is not None or changed[newline] is None:
            raise Shared("its line ends have the phrase")
    ignored = tuple([each for each in lexing.ignored if changed.get(each, terminals[each]) is not None])
    mapping: dict[Hashable, Expr] = {}
    is_gone = False
    for position, right in changed.items():
        terminal = terminals[position]
        if right is not None:
            mapping[terminal.key] = Term(right)
        elif position not in lexing.ignored:
            # What leads to it must go on competing.
            mapping[terminal.key], is_gone = NO_TEXT, True
        else:
            # Rules refer to it where ignored text may come.
            other = ignored and not lexing.placed
            mapping[terminal.key] = Term(changed.get(ignored[0]) or terminals[ignored[0]]) if other else FAIL
    if not is_satisfiable(
        mapped(given, {key: FAIL if made is NO_TEXT else made for key, made in mapping.items()}, lexing)
    ):
        return None
    made = replace(
        lexing,
        terminals=tuple([changed.get(at) or terminal for at, terminal in enumerate(terminals)]),
        ignored=ignored,
        forbidden=(*lexing.forbidden, *forbidden),
    )
    return mapped(given, mapping, never_sure(made) if is_gone else made)
