"""Grammars with a lexer, as parts of larger ones and of products."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from itertools import accumulate

from maskwright.algebra.ignoring import check_alike
from maskwright.algebra.inexact import Inexact
from maskwright.algebra.rule_places import IgnoredSet, ignored_set
from maskwright.base.deadline import check_time
from maskwright.ir.grammar import (
    EMPTY,
    AnyLexeme,
    Body,
    Choice,
    Expr,
    Grammar,
    Indented,
    Lexeme,
    Lexing,
    Ref,
    Repeated,
    Seq,
    Switch,
    Term,
)
from maskwright.regular.expressions import Chars, Regular

_NO_TEXT = Lexeme("no text", Chars(((0xD800, 0xD800),)))
NO_TEXT = Term(_NO_TEXT)
"""What has no text, though it does not look so: a surrogate, which is no character.  What leads to it is not pruned.

Whatever is made of such a grammar keeps it as it is: without it, terminals that lead there would not compete any more."""


def has_no_text(lexeme: AnyLexeme) -> bool:
    """Whether it is the one of ``NO_TEXT``."""
    return isinstance(lexeme, Lexeme) and lexeme.key == _NO_TEXT.key


def explicit(grammar: Grammar) -> Grammar:
    """The same language with rules for ignored text, before each terminal and at the end: the lexer ignores nothing.

    Raises ``Inexact`` for blocks by indentation, and where modes wait together that ignore different texts.
    """
    lexing = grammar.lexing
    if lexing is None or (not lexing.ignored and lexing.newline is None and not lexing.of):
        return grammar
    if lexing.of:
        raise Inexact("it has grammars with different lexers")
    if lexing.newline is not None:
        raise Inexact("its blocks are told apart by the column in which their lines begin")
    ignored = frozenset([lexing.terminals[position].key for position in lexing.ignored])
    if lexing.placed:
        check_alike(grammar, ignored)
    out = _copied(grammar, replace(lexing, ignored=(), placed=False))
    skips: dict[IgnoredSet, Ref] = {}

    def some(terminals: IgnoredSet) -> Seq:
        texts = Choice(tuple([Term(each) for each in lexing.terminals if each.key in terminals]))
        return Seq((texts, skip(terminals)))

    def skip(terminals: IgnoredSet) -> Ref:
        if terminals not in skips:
            # Only once rules are mapped, as this one is not.
            rule = out.reserve("ignored text")
            out.helpers.add(rule)
            skips[terminals] = Ref(rule)
            out.rules[rule] = Choice((some(terminals), EMPTY))
        return skips[terminals]

    if lexing.placed:
        _map(out, lambda expr: some(found) if (found := ignored_set(expr, ignored)) is not None else None)
        return out
    _map_terminals(
        out, lexing, lambda term: skip(ignored) if _key(term) in ignored else Seq((skip(ignored), term))
    )
    out.blank = skip(ignored).rule  # no part of what is captured
    out.start = out.add("text", Seq((Ref(grammar.start), skip(ignored))))
    return out


def placed(grammar: Grammar) -> Grammar:
    """The same language where ignored text begins only where a rule waits for it (``Lexing.placed``)."""
    lexing = grammar.lexing
    if lexing is None or lexing.placed:
        return grammar
    out = _copied(grammar, replace(lexing, placed=True))
    if not lexing.ignored:
        return out
    ignored = {lexing.terminals[position].key for position in lexing.ignored}
    texts = _ignored_by(lexing)
    _map_terminals(
        out, lexing, lambda term: texts if _key(term) in ignored else Choice((term, Seq((texts, term))))
    )
    out.start = out.add("text", Seq((Ref(grammar.start), Choice((EMPTY, texts)))))
    return out


def _ignored_by(lexing: Lexing) -> Choice:
    return Choice(tuple([Term(lexing.terminals[position]) for position in lexing.ignored]))


def _copied(grammar: Grammar, lexing: Lexing) -> Grammar:
    """A grammar to be changed."""
    return replace(
        grammar,
        rules=list(grammar.rules),
        names=list(grammar.names),
        lexing=lexing,
        helpers=set(grammar.helpers),
    )


def _key(expr: Expr) -> Hashable | None:
    return expr.lexeme.key if isinstance(expr, Term) and isinstance(expr.lexeme, Lexeme) else None


def _map_terminals(grammar: Grammar, lexing: Lexing, to: Callable[[Term], Expr]) -> None:
    """Put something for each terminal of a lexer in the rules of a grammar."""
    terminals = {terminal.key for terminal in lexing.terminals}
    _map(grammar, lambda expr: to(expr) if isinstance(expr, Term) and _key(expr) in terminals else None)


def _map(grammar: Grammar, to: Callable[[Expr], Expr | None]) -> None:
    """Put something for expressions in the rules of a grammar; None: it is looked into."""

    def mapped(expr: Expr) -> Expr:
        found = to(expr)
        if found is not None:
            return found
        if isinstance(expr, Seq):
            return Seq(tuple([mapped(item) for item in expr.items]))
        if isinstance(expr, Choice):
            return Choice(tuple([mapped(item) for item in expr.items]))
        if isinstance(expr, Switch):
            return Switch(expr.lexemes, tuple([mapped(case) for case in expr.cases]))
        return expr

    # Rules that share a body go on sharing it.  Bodies are kept until the end: they are known by their addresses.
    made: dict[int, Body] = {}
    given = list(grammar.rules)
    for index, body in enumerate(given):
        check_time()
        if isinstance(body, (Term, Ref, Seq, Choice, Switch)):
            found = made.get(id(body))
            if found is None:
                found = made[id(body)] = mapped(body)
            grammar.rules[index] = found


def closes(grammar: Grammar) -> bool:
    """Whether no longest match looks into what follows a text of the grammar: none ends in a terminal but for a quote."""
    lexing = grammar.lexing
    if lexing is None:
        return True
    open_ones: set[Hashable] = set()
    for first, part in _parts(lexing):
        open_ones |= {
            each.key
            for at, each in enumerate(lexing.terminals[first : first + len(part.terminals)])
            if at != part.quote
        }
    body = grammar.rules[grammar.start]
    if isinstance(body, Seq) and body.items and isinstance(body.items[-1], Term):
        return _key(body.items[-1]) not in open_ones
    # By rule: whether it may end in one of these, and whether it may be empty (which is taken of any that is no expression).
    ends = [(False, False)] * len(grammar.rules)

    def end(body: Body | None) -> tuple[bool, bool]:
        if isinstance(body, Term):
            return _key(body) in open_ones, False
        if isinstance(body, (Ref, Indented)):
            return ends[body.rule]
        if isinstance(body, Seq):
            for item in reversed(body.items):
                found, empty = end(item)
                if found or not empty:
                    return found, False
            return False, True
        if isinstance(body, Choice):
            items = [end(item) for item in body.items]
            return any(found for found, _ in items), any(empty for _, empty in items)
        if isinstance(body, Repeated):
            return ends[body.first][0] or ends[body.rest][0], True
        # No terminal of a lexer is in the others.
        return False, True

    changed = True
    while changed:
        changed = False
        # Mostly, a rule refers to later ones.
        for index in range(len(ends) - 1, -1, -1):
            check_time()
            found = end(grammar.rules[index])
            changed = changed or found != ends[index]
            ends[index] = found
    return not ends[grammar.start][0]


def one_lexer(grammars: list[Grammar]) -> list[Grammar]:
    """The same grammars with one lexer for all of them, each with terminals of its own (``Lexing.of``).

    What one ignores belongs to its own texts: rules say where it may come.  Raises ``Inexact`` for captures beside others, for those of a grammar
    that ``explicit`` refuses, and for two that have blocks by indentation.
    """
    if len(grammars) > 1 and any(grammar.captures for grammar in grammars):
        raise Inexact("its captures are not read beside another grammar with a lexer")
    made = []
    for grammar in grammars:
        assert grammar.lexing is not None
        try:
            # Nothing is ignored in front of what captures: no boundary stands there.
            apart = (
                grammar if is_apart(grammar.lexing) else (explicit if grammar.captures else placed)(grammar)
            )
        except Inexact as error:
            raise Inexact(f"{error}, and it captures: it can be a part in a JsonString only") from None
        assert apart.lexing is not None
        made.append((apart, apart.lexing))
    parts = {_content(part): part for _, lexing in made for _, part in _parts(lexing)}
    if len(parts) < 2:
        return [grammar for grammar, _ in made]
    joined = _joined([*parts.values()])
    first = {content: at for content, (at, _) in zip(parts, _parts(joined), strict=True)}
    out = []
    for grammar, lexing in made:
        named: dict[Hashable, Expr] = {
            lexing.terminals[at + place].key: Term(joined.terminals[first[_content(part)] + place])
            for at, part in _parts(lexing)
            for place in range(len(part.terminals))
        }
        out.append(mapped(grammar, named, joined))
    return out


def mapped(grammar: Grammar, terminals: dict[Hashable, Expr], lexing: Lexing) -> Grammar:
    """A grammar with something in place of terminals, by their keys, and with another lexer."""
    out = _copied(grammar, lexing)
    _map(out, lambda expr: terminals.get(_key(expr)))
    return out


def is_apart(lexing: Lexing) -> bool:
    """Whether nothing is ignored where something else may begin."""
    return bool(lexing.of) or lexing.quote is not None


def _parts(lexing: Lexing) -> list[tuple[int, Lexing]]:
    """The lexers that one is of, each with the position of its first terminal."""
    parts = lexing.of or (lexing,)
    sizes = [len(part.terminals) for part in parts]
    return list(zip(accumulate(sizes, initial=0), parts, strict=False))


def _content(lexing: Lexing) -> Hashable:
    """What tells a lexer from others."""
    keys = tuple([terminal.key for terminal in lexing.terminals])
    lines = lexing.newline, lexing.line_break, lexing.columns, lexing.quote
    return keys, lexing.ignored, lexing.refused, lexing.parts, lexing.forbidden, lexing.early, lines


def _joined(parts: list[Lexing]) -> Lexing:
    """The terminals of some lexers, one behind the other."""
    lines = [part for part in parts if part.newline is not None]
    if len(lines) > 1:
        raise Inexact("both have blocks by indentation")
    joined = Lexing((), placed=True, of=tuple(parts))
    for number, part in enumerate(parts):
        first = len(joined.terminals)

        def moved(places: Iterable[int], first: int = first) -> tuple[int, ...]:
            return tuple([first + place for place in places])

        joined = replace(
            joined,
            terminals=(
                *joined.terminals,
                *[Lexeme((number, terminal.key), terminal.regular) for terminal in part.terminals],
            ),
            ignored=joined.ignored + moved(part.ignored),
            refused=(*joined.refused, *[(first + owner, language) for owner, language in part.refused]),
            parts=(*joined.parts, *moved(part.parts or range(len(part.terminals)))),
            forbidden=(
                *joined.forbidden,
                *[(first + owner, language) for owner, language in part.forbidden],
            ),
            names=joined.names + (part.names or ("a terminal",) * len(part.terminals)),
            early=joined.early + moved(part.early),
        )
        if part.newline is not None:
            [newline] = moved([part.newline])
            [line_break] = moved([part.line_break]) if part.line_break is not None else [None]
            [quote] = moved([part.quote]) if part.quote is not None else [None]
            joined = replace(
                joined,
                newline=newline,
                line_break=line_break,
                quote=quote,
                columns=part.columns,
                lines=part.lines,
            )
    return joined


class Variants:
    """The terminals of a lexer, and parts of their languages as terminals of the same rank."""

    def __init__(self, lexing: Lexing) -> None:
        self._lexing = lexing
        self._parts: list[dict[object, Lexeme]] = [{} for _ in lexing.terminals]
        self._ranks = {terminal.key: rank for rank, terminal in enumerate(lexing.terminals)}

    def is_terminal(self, lexeme: AnyLexeme) -> bool:
        """Whether the lexer reads it."""
        return isinstance(lexeme, Lexeme) and lexeme.key in self._ranks

    def terminal(self, whole: AnyLexeme, part: AnyLexeme) -> AnyLexeme:
        """The terminal for a part of one; what is no terminal stays as it is."""
        if not isinstance(whole, Lexeme) or not isinstance(part, Lexeme) or whole.key not in self._ranks:
            return part
        if part is whole:
            return whole
        parts = self._parts[self._ranks[whole.key]]
        return parts.setdefault(part.key, Lexeme((whole.key, part.key), part.regular))

    def lexing(self) -> Lexing:
        """The lexer with all parts that were made (``never_sure``)."""
        given = self._lexing
        ranked = [
            (rank, terminal)
            for rank, whole in enumerate(given.terminals)
            for terminal in (*self._parts[rank].values(), whole)
        ]

        def moved(texts: tuple[tuple[int, Regular], ...]) -> tuple[tuple[int, Regular], ...]:
            return tuple(
                [
                    (position, language)
                    for position, (rank, _) in enumerate(ranked)
                    for of, language in texts
                    if of == rank
                ]
            )

        whole = {rank: position for position, (rank, _) in enumerate(ranked)}  # It comes last.
        given_parts = given.parts or range(len(given.terminals))
        made = replace(
            given,
            terminals=tuple([terminal for _, terminal in ranked]),
            parts=tuple([whole[given_parts[rank]] for rank, _ in ranked]),
            ignored=(),
            refused=moved(given.refused),
            forbidden=moved(given.forbidden),
            placed=False,
            quote=None,
            names=tuple([given.names[rank] for rank, _ in ranked]) if given.names else (),
            early=tuple([position for position, (rank, _) in enumerate(ranked) if rank in given.early]),
        )
        return never_sure(made)


def never_sure(lexing: Lexing) -> Lexing:
    """A lexer that says of no thread that it can surely be completed, so that each is looked at.

    Its last terminal is one that nobody waits for: another one always comes before it.
    """
    last = lexing.terminals[-1]
    return replace(
        lexing,
        terminals=(*lexing.terminals, Lexeme(("never", last.key), last.regular)),
        parts=(*lexing.parts, len(lexing.terminals)) if lexing.parts else (),
        names=(*lexing.names, lexing.names[-1]) if lexing.names else (),
    )
