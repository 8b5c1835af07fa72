"""The regular language of a grammar, where it has one; and texts that contain phrases."""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.algebra.inexact import Inexact
from maskwright.algebra.rules import Rules
from maskwright.algebra.written import text_of, word_text
from maskwright.base.deadline import check_time
from maskwright.errors import GrammarError, LimitError
from maskwright.ir.grammar import Choice, Expr, Grammar, Import, Ref, Seq, Switch, Term, Words
from maskwright.limits import Limits
from maskwright.regular.dfa import intersect
from maskwright.regular.expressions import EVERY_TEXT, Lit, Regular, alt, cat
from maskwright.regular.thompson import Sizes


def regular_language(grammar: Grammar, limits: Limits) -> Regular:
    """The language of a grammar whose rules do not refer to themselves.

    Raises ``Inexact`` for other grammars, ``UnsatisfiableError`` for one without a text, ``LimitError``.
    """
    if grammar.lexing is not None:
        raise Inexact("it has a lexer, whose longest match depends on the place (or use lexer='dynamic')")
    return _Reading(Rules(grammar, limits), limits).language()


class _Reading:
    def __init__(self, rules: Rules, limits: Limits) -> None:
        self.rules = rules
        self.limits = limits
        self.known: dict[int, Regular] = {}
        self.sizes = Sizes(limits, counting=False)

    def language(self) -> Regular:
        """That of the start."""
        # Rules that are asked for, the last one first: none recurses, and a rule below itself is found.
        path = [self.rules.start]
        on_path = set(path)
        while path:
            check_time()
            rule = path[-1]
            missing = [
                other for other in _used(self.rules.plain(rule), self.rules) if other not in self.known
            ]
            if not missing:
                self.known[rule] = self._expr(self.rules.plain(rule))
                if self.sizes(self.known[rule]) > self.limits.max_regex_states:
                    raise LimitError(
                        "max_regex_states", self.sizes(self.known[rule]), self.limits.max_regex_states
                    )
                on_path.discard(path.pop())
                continue
            if missing[0] in on_path:
                raise Inexact(
                    f"rule {self.rules.names[missing[0]]!r} contains itself; bound its depth (or an array by maxItems), so that none does"
                )
            path.append(missing[0])
            on_path.add(missing[0])
        return self.known[self.rules.start]

    def _expr(self, expr: Expr) -> Regular:
        if isinstance(expr, Term):
            return text_of(expr.lexeme)
        if isinstance(expr, Ref):
            return self.known[expr.rule]
        if isinstance(expr, Import):
            return self.known[self.rules.imported(expr)]
        if isinstance(expr, Seq):
            return cat(*[self._expr(item) for item in expr.items])
        if isinstance(expr, Choice):
            return alt(*[self._expr(item) for item in expr.items])
        cases = [self._expr(case) for case in expr.cases]
        if isinstance(expr.lexemes, Words):
            return alt(*[cat(Lit(word_text(word)), cases[tag]) for word, tag in expr.lexemes.items()])
        return alt(*[cat(text_of(lexeme), case) for lexeme, case in zip(expr.lexemes, cases, strict=True)])


def _used(expr: Expr, rules: Rules) -> list[int]:
    """The rules that an expression refers to."""
    found: list[int] = []
    work = [expr]
    while work:
        part = work.pop()
        if isinstance(part, Ref):
            found.append(part.rule)
        elif isinstance(part, Import):
            found.append(rules.imported(part))
        elif isinstance(part, (Seq, Choice)):
            work += part.items
        elif isinstance(part, Switch):
            work += part.cases
    return found


def checked_phrases(texts: object, ordered: bool, limits: Limits) -> tuple[str, ...]:
    """Phrases as somebody gave them.  Raises ``GrammarError``, or ``LimitError`` for too many."""
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Sequence):
        raise GrammarError("Contains has several texts: pass a list of str")
    for text in texts:
        if not isinstance(text, str) or not text:
            raise GrammarError(f"Contains: a text is a str with some character, not {text!r}")
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise GrammarError(f"Contains: {text!r} holds a surrogate, which is no character")
    if not texts:
        raise GrammarError("Contains needs one text at least")
    phrases = tuple(texts) if ordered else tuple(dict.fromkeys(texts))
    if not ordered and len(phrases) > limits.max_phrases:
        raise LimitError("max_phrases", len(phrases), limits.max_phrases)
    return phrases


def containing(phrases: Sequence[str], ordered: bool, limits: Limits) -> Regular:
    """The texts that contain all phrases, in any order or in this one.

    In order it is one automaton that looks for one phrase after the other (Knuth, Morris and Pratt 1977); in any order the
    product of those of the phrases, whose states are those of Aho and Corasick (1975) with what was found.
    """
    if ordered:
        return cat(EVERY_TEXT, *[part for text in phrases for part in (Lit(text), EVERY_TEXT)])
    return intersect([cat(EVERY_TEXT, Lit(text), EVERY_TEXT) for text in phrases], limits)
