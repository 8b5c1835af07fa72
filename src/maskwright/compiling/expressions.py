"""Expressions over sources (``sources.EXPRESSIONS``) -> parts: what an operator means, and what has no exact meaning.

Regular operands are combined as regular languages.  A union, sequence or repetition of others is one of their grammars; of
an intersection, all operands but one must be regular, and the one is combined with their automaton.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from maskwright.algebra import joins
from maskwright.algebra.found import Shared
from maskwright.algebra.inexact import Inexact
from maskwright.algebra.product import product, with_phrases
from maskwright.algebra.regular import checked_phrases, containing, regular_language
from maskwright.algebra.strings import in_string
from maskwright.algebra.written import quoted
from maskwright.base.arguments import one_of, whole
from maskwright.compiling.compiled import CompiledGrammar
from maskwright.errors import GrammarError, LimitError, UnsatisfiableError, no_recursion
from maskwright.frontends.lexical import regular_expr
from maskwright.frontends.regex import flag_letters
from maskwright.ir.grammar import Grammar, Import, Spelling
from maskwright.limits import Limits
from maskwright.masks.trie import CompiledTrie, TokenTrie
from maskwright.regex import parse_regex
from maskwright.regular.dfa import is_empty, only_in
from maskwright.regular.expressions import Regular, alt, cat, repeat
from maskwright.sources import (
    Choice,
    Contains,
    Intersection,
    JsonString,
    Not,
    Regex,
    Repetition,
    Sequence,
    Source,
    Type,
    Union,
    as_source,
)

_T = TypeVar("_T")
_SHOWN, _SHOWN_MOST = 60, 960
_MULTIPLY = (
    "; for sampling, multiply constraints in place of languages: smc(model, GrammarConstraint(compile(a)) * "
    "GrammarConstraint(compile(b)), ...)"
)
_REFUSE = "; for sampling, refuse its texts at their ends: its = GrammarConstraint(compile(it)); smc(model, others * Predicate(complete=lambda ids: not its.complete(ids)), ...)"


@dataclass(frozen=True, slots=True)
class Operand:
    """A source, and the part that it is compiled as."""

    source: Source
    part: Import
    regular: Callable[[], Regular] | None = None
    """Its language, of a source that is regular by what it is."""

    @property
    def name(self) -> str:
        return described(self.source)

    def language(self, limits: Limits) -> Regular:
        """Its regular language.  Raises ``Inexact`` where it has none."""
        return regular_language(self.part.make(), limits) if self.regular is None else self.regular()


def described(source: Any, most: int = _SHOWN) -> str:
    """A source in a few words, for messages: what it consists of, and the options that are not the usual ones."""
    text = _written(source)
    return text if len(text) <= most else f"{text[: most - 5]} ...)"


def _written(value: Any) -> str:
    if isinstance(value, tuple) and value and all(isinstance(each, Source) for each in value):
        return f"({', '.join(_written(each) for each in value)})"
    if not isinstance(value, Source) or not is_dataclass(value):
        return repr(value)
    given = [(each, getattr(value, each.name)) for each in fields(value)]
    parts = [_written(part) for each, part in given if each.default is MISSING]
    parts += [
        f"{each.name}={part!r}"
        for each, part in given
        if each.default is not MISSING and repr(part) != repr(each.default)
    ]
    return f"{type(value).__name__}({', '.join(parts)})"


def _check_has_text(source: Any) -> None:
    """Raises ``GrammarError`` for sets of token sequences, and for what is compiled."""
    if isinstance(source, (CompiledGrammar, CompiledTrie)):
        raise GrammarError(
            f"a {type(source).__name__} is compiled: combine the source from which it was, and compile the result"
        )
    options = source.options if isinstance(source, Choice) else None
    is_ids = isinstance(options, np.ndarray) or (
        isinstance(options, (list, tuple))
        and any(isinstance(each, (list, tuple, np.ndarray)) for each in options)
    )
    if is_ids or isinstance(source, TokenTrie):
        what = "TokenTrie" if isinstance(source, TokenTrie) else "choice of token ids"
        raise GrammarError(
            f"a {what} has no text to combine: give the texts, Choice([vocabulary.decode(ids), ...]); for sampling, multiply "
            "constraints: smc(model, TrieConstraint(trie) * GrammarConstraint(compile(...)), ...)"
        )


def _is_text(options: Iterable[Any]) -> bool:
    """Whether no option is bytes that are no UTF-8."""
    try:
        for option in options:
            if isinstance(option, bytes):
                option.decode()
    except UnicodeDecodeError:
        return False
    return True


def _phrases(operand: Operand) -> tuple[str, ...] | None:
    """The phrases that a text must contain in any order; None: something else is asked of it."""
    source = operand.source
    if isinstance(source, Contains) and (not source.ordered or len(source.texts) == 1):
        return tuple(dict.fromkeys(source.texts))
    return None


class Expressions:
    """Reads expressions; ``part_of`` makes the part of a source that is none."""

    def __init__(self, part_of: Callable[[Any], Import], limits: Limits) -> None:
        self.part_of = part_of
        self.limits = limits

    def part(self, source: Source) -> Import:
        """The part of an expression: nothing but its operands' keys is looked at before it is made."""
        with no_recursion():
            return self.operand(source).part

    def operand(self, source: Any) -> Operand:
        """Raises ``GrammarError`` for what is no source, or has operands that are none."""
        source = as_source(source)
        if isinstance(source, Contains):
            phrases = checked_phrases(source.texts, source.ordered, self.limits)
            return self.of_regular(
                source,
                ("contains", phrases, bool(source.ordered)),
                lambda: containing(phrases, source.ordered, self.limits),
            )
        if isinstance(source, Not):
            return self.complement(source)
        if isinstance(source, JsonString):
            return self.json_string(source)
        if isinstance(source, (Union, Sequence)):
            return self.joined(source)
        if isinstance(source, Repetition):
            return self.repetition(source)
        if isinstance(source, Intersection):
            return self.intersection(source)
        return self.plain(source.of if isinstance(source, Type) else source, source)

    def plain(self, source: Any, shown: Source) -> Operand:
        """A source that is no expression."""
        _check_has_text(source)
        part = self.part_of(source)
        if isinstance(source, Regex):
            letters = source.flags if isinstance(source.flags, str) else flag_letters(source.flags)
            return Operand(
                shown, part, lambda: parse_regex(source.pattern, source.flavour, self.limits, letters)
            )
        if isinstance(source, Choice) and _is_text(source.options):
            return Operand(shown, part, lambda: regular_language(part.make(), self.limits))
        return Operand(shown, part)

    def of_regular(
        self, source: Source, key: Hashable, language: Callable[[], Regular], keep: bool = True
    ) -> Operand:
        """A source with a regular language, which is one lexeme."""

        def make() -> Grammar:
            with no_recursion():
                read = language()
            if is_empty(read):
                raise UnsatisfiableError(f"no text is in {described(source)}")
            grammar = Grammar()
            grammar.start = grammar.add("text", regular_expr(read, self.limits))
            return grammar

        return Operand(source, Import((key, self.limits), make, keep=keep), language)

    def of_grammar(
        self, source: Source, key: Hashable, parts: Iterable[Operand], make: Callable[[], Grammar]
    ) -> Operand:
        """A source with the grammar that comes of some parts."""
        keep = all(operand.part.keep for operand in parts)
        return Operand(source, Import((key, self.limits), lambda: self.exact(source, make), keep=keep))

    def exact(self, source: Source, make: Callable[[], _T]) -> _T:
        """What is made, or the error that says why it cannot be."""
        try:
            with no_recursion():
                return make()
        except Inexact as error:
            offer = _MULTIPLY if isinstance(source, Intersection) else ""
            raise GrammarError(f"{described(source)}: {error}{offer}") from None

    # --- operators

    def complement(self, source: Not) -> Operand:
        operand = self.operand(source.item)

        def language() -> Regular:
            why = "has a complement only if it is regular"
            return only_in([], [self.regular_of(operand, why, _REFUSE)], self.limits)

        return self.of_regular(source, ("not", operand.part.key), language, operand.part.keep)

    def regular_of(self, operand: Operand, why: str, offer: str) -> Regular:
        """The language of an operand that must be regular; ``offer``: what works where it is not."""
        try:
            return operand.language(self.limits)
        except Inexact as error:
            raise GrammarError(f"{operand.name} {why}: {error}{offer}") from None

    def json_string(self, source: JsonString) -> Operand:
        operand = self.operand(source.content)
        one_of(source.escapes, ("printed", "any"), "JsonString: escapes", GrammarError)
        spelling: Spelling = "printed" if source.escapes == "printed" else "quoted"
        key = ("json string", spelling, operand.part.key)
        regular = operand.regular
        if regular is not None:
            return self.of_regular(source, key, lambda: quoted(regular(), spelling), operand.part.keep)
        return self.of_grammar(
            source, key, [operand], lambda: in_string(operand.part.make(), spelling, self.limits)
        )

    def joined(self, source: Union | Sequence) -> Operand:
        operands = [self.operand(item) for item in source.items]
        either = isinstance(source, Union)
        key = ("union" if either else "sequence", *[operand.part.key for operand in operands])
        languages = [operand.regular for operand in operands if operand.regular is not None]
        if len(languages) == len(operands):
            join = alt if either else cat
            keep = all(operand.part.keep for operand in operands)
            return self.of_regular(source, key, lambda: join(*[language() for language in languages]), keep)
        parts = [operand.part for operand in operands]
        make = joins.union if either else joins.sequence
        return self.of_grammar(source, key, operands, lambda: make(parts))

    def repetition(self, source: Repetition) -> Operand:
        low = whole(source.low, "a repetition", GrammarError, 0)
        high = None if source.high is None else whole(source.high, "a repetition", GrammarError, low)
        if low > self.limits.max_count:
            raise LimitError("max_count", low, self.limits.max_count)
        operand = self.operand(source.item)
        key = ("repetition", low, high, operand.part.key)
        regular = operand.regular
        if regular is not None:
            return self.of_regular(source, key, lambda: repeat(regular(), low, high), operand.part.keep)
        return self.of_grammar(source, key, [operand], lambda: joins.repetition(operand.part, low, high))

    def intersection(self, source: Intersection) -> Operand:
        inside = [self.operand(item) for item in source.items if not isinstance(item, Not)]
        outside = [self.operand(item.item) for item in source.items if isinstance(item, Not)]
        operands = [*inside, *outside]
        key = ("intersection", len(inside), *[operand.part.key for operand in operands])
        if all(operand.regular is not None for operand in operands):
            keep = all(operand.part.keep for operand in operands)
            return self.of_regular(source, key, lambda: self.restriction(source, inside, outside), keep)
        return self.of_grammar(source, key, operands, lambda: self.restricted(source, inside, outside))

    def restricted(self, source: Source, inside: list[Operand], outside: list[Operand]) -> Grammar:
        """The grammar of one operand, with the regular language of all others."""
        others = [operand for operand in inside if operand.regular is None]
        base = others[0] if others else None
        for other in others[1:]:
            try:
                other.language(self.limits)
            except Inexact as error:
                assert base is not None
                try:
                    base.language(self.limits)
                except Inexact:
                    raise GrammarError(
                        f"{base.name} and {other.name} are both context-free, and whether two such have a text in common "
                        f"cannot be decided; {other.name}: {error}{_MULTIPLY}"
                    ) from None
                base = other
        rest = [operand for operand in inside if operand is not base]
        shared = ""
        if base is not None:
            try:
                made = self.with_phrases(base, rest, outside)
            except Shared as error:
                shared = str(error)
            else:
                if made is not None:
                    return made
        language = self.restriction(source, rest, outside)
        if base is None:
            grammar = Grammar()
            grammar.start = grammar.add("text", regular_expr(language, self.limits))
            return grammar
        try:
            made = product(base.part.make(), language, self.limits)
        except Inexact as error:
            if not shared:
                raise
            raise Inexact(f"{error} (and {shared}, so it is not looked for in lexemes)") from None
        if made is None:
            raise self.empty(base, [*rest, *outside], outside)
        return made

    def with_phrases(self, base: Operand, inside: list[Operand], outside: list[Operand]) -> Grammar | None:
        """The grammar of one operand where the others ask for phrases only; None: that is not so.

        Raises ``Shared`` where a phrase may lie in two lexemes.
        """
        required, forbidden = (
            [_phrases(operand) for operand in inside],
            [_phrases(operand) for operand in outside],
        )
        if None in required or None in forbidden or any(each and len(each) > 1 for each in forbidden):
            return None
        wanted = dict.fromkeys([text for texts in required for text in texts or ()])
        unwanted = dict.fromkeys([text for texts in forbidden for text in texts or ()])
        if len(wanted) > self.limits.max_phrases:
            return None
        made = with_phrases(base.part.make(), tuple(wanted), tuple(unwanted), self.limits)
        if made is None:
            raise self.empty(base, [*inside, *outside], outside)
        return made

    def restriction(self, source: Source, inside: list[Operand], outside: list[Operand]) -> Regular:
        """The regular language of some operands and none of others.  Raises ``UnsatisfiableError`` for an empty one."""
        why = "can only be taken away if it is regular"
        beside = "must be regular beside another grammar"
        languages = [self.regular_of(operand, beside, _MULTIPLY) for operand in inside]
        without = [self.regular_of(operand, why, _REFUSE) for operand in outside]
        found = only_in(languages, without, self.limits)
        if is_empty(found):
            operands = [*inside, *outside]
            raise self.empty(operands[0], operands[1:], outside)
        return found

    def empty(self, first: Operand, others: list[Operand], outside: list[Operand]) -> UnsatisfiableError:
        """Names the parts that have no text in common."""
        operands, most = [first, *others], _SHOWN
        shown = [described(operand.source, most) for operand in operands]
        while len(set(shown)) < len(shown) and most < _SHOWN_MOST:
            most *= 2
            shown = [described(operand.source, most) for operand in operands]
        names = [
            f"outside of {text}" if operand in outside else f"in {text}"
            for operand, text in zip(operands, shown, strict=True)
        ]
        return UnsatisfiableError(f"no text is {' and '.join(names)}")
