"""Groups -> rules of the intermediate representation.

One rule for each conjunction of subschemas, made when it is first referred to; the work list
keeps deep schemas from deep recursion.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from maskwright.base.deadline import check_time, if_many, in_time, let_go
from maskwright.errors import LimitError, Refusal, UnsatisfiableError, UnsupportedSchemaError, no_recursion
from maskwright.frontends.json_schema.algebra.groups import (
    ANYTHING,
    ArrayGroup,
    BooleanGroup,
    Conjunction,
    Group,
    NumberGroup,
    ObjectGroup,
    StringGroup,
)
from maskwright.frontends.json_schema.algebra.normalize import Normalizer
from maskwright.frontends.json_schema.algebra.strings import string_term
from maskwright.frontends.json_schema.emit.arrays import ArrayRules
from maskwright.frontends.json_schema.emit.indentation import indented
from maskwright.frontends.json_schema.emit.objects import ObjectRules
from maskwright.frontends.json_schema.numbers.bounds import integer_bounds
from maskwright.frontends.json_schema.numbers.languages import plain_integers, values_texts, written_numbers
from maskwright.frontends.json_schema.read.document import Document
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.frontends.json_schema.texts.lexemes import (
    BOOLEAN,
    FALSE,
    NULL,
    TRUE,
    Punctuation,
    number_lexeme,
    punctuation,
    string_spelling,
)
from maskwright.ir.grammar import (
    FAIL,
    Choice,
    Expr,
    Grammar,
    Import,
    Lexeme,
    Ref,
    Spelling,
    Term,
)
from maskwright.limits import Limits
from maskwright.regular.dfa import difference, intersect
from maskwright.regular.expressions import NOTHING, alt
from maskwright.regular.memo import remembered

_MANY = 64


class Emitter:
    """Builds the grammar of one document."""

    normalizer: Normalizer
    options: SchemaOptions
    marks: Punctuation
    spelling: Spelling
    """Of strings and keys."""
    limits: Limits
    grammar: Grammar
    arrays: ArrayRules
    objects: ObjectRules
    imports_any: bool
    _rules: dict[Conjunction, int]
    _bodies: dict[object, tuple[tuple[Group, ...], Expr]]
    _numbered: dict[Group, int]
    """With the groups, whose ids are keys as long as they are here."""
    _made: dict[Group, Expr]
    _pending: list[tuple[int, Conjunction]]
    """Rules without a body yet."""
    _refusals: list[Refusal]

    def __init__(self, normalizer: Normalizer, options: SchemaOptions, limits: Limits) -> None:
        self.normalizer = normalizer
        self.options = options
        self.marks = punctuation(options)
        self.spelling = string_spelling(options)
        self.limits = limits
        self.grammar = Grammar()
        self.arrays = ArrayRules(self)
        self.objects = ObjectRules(self)
        self._rules = {}
        self._bodies = {}
        self._numbered = {}
        self._made = {}
        self._pending = []
        self._refusals = []
        self.imports_any = not isinstance(options.whitespace, int)

    @no_recursion()
    def emit(self, root: Conjunction) -> Grammar:
        """The grammar of a conjunction.  Raises ``UnsatisfiableError`` when it is contradictory."""
        self.grammar.start = self.rule(root)
        while self._pending:
            check_time()
            index, conjunction = self._pending.pop()
            try:
                groups = self.normalizer.groups(conjunction)
                body = self._body(conjunction, groups)
            except LimitError as error:
                raise error.at(conjunction[0].pointer or "#" if conjunction else "#") from None
            self.grammar.rules[index] = body
            if not groups and conjunction == root:
                raise self.unsatisfiable(root[0].pointer if root else "")
        if self._refusals:
            raise UnsupportedSchemaError(self._refusals)
        if isinstance(self.options.whitespace, int):
            return indented(self.grammar, self.marks, self.options.whitespace, self.limits)
        return self.grammar

    def _body(self, conjunction: Conjunction, groups: tuple[Group, ...]) -> Expr:
        """The body of a rule, the same object for places that say the same."""
        if conjunction and len(groups) == len(ANYTHING) and groups == ANYTHING:
            return Ref(self.rule(()))
        if len(groups) == 1 and isinstance(groups[0], (ObjectGroup, ArrayGroup)):
            return self.group(groups[0])
        found = self._bodies.get(id(groups))
        if found is None:
            same = groups if len(groups) <= _MANY else self._numbers(groups)
            found = self._bodies.get(same)
            if found is None:
                found = groups, Choice(tuple([self.group(g) for g in if_many(groups)]))
                self._bodies[same] = found
            self._bodies[id(groups)] = groups, found[1]
        return found[1]

    def _numbers(self, groups: tuple[Group, ...]) -> tuple[int, ...]:
        """Equal for equal groups: hashing many at once takes long."""
        numbers = self._numbered
        return tuple([numbers.setdefault(group, len(numbers)) for group in in_time(groups)])

    def release(self) -> None:
        """Let go of what refers back, so that nothing waits for the garbage collector."""
        self.normalizer.release()
        self.arrays.release()
        self.objects.release()
        let_go(self._rules, self._bodies, self._numbered, self._made, self._pending)

    def refuse(self, refusal: Refusal) -> Expr:
        """Note what cannot be enforced; ``emit`` raises once everything has been looked at."""
        self._refusals.append(refusal)
        return FAIL

    def unsatisfiable(self, pointer: str) -> UnsatisfiableError:
        for place, message in self.normalizer.clashes:
            return UnsatisfiableError(f"nothing satisfies this schema: {message}", place=place or "#")
        return UnsatisfiableError("nothing satisfies this schema", place=pointer or "#")

    def rule(self, conjunction: Conjunction) -> int:
        number = len(self.grammar.rules)
        found = self._rules.setdefault(conjunction, number)
        if found != number:
            return found
        if not conjunction and self.imports_any:
            options = self.options
            anything = any_value(
                options.property_order,
                options.escapes,
                options.whitespace,
                options.max_whitespace,
                options.max_number_digits,
                self.limits,
            )
            return self.grammar.add("any value", anything)
        if len(conjunction) == 1:
            name = conjunction[0].pointer or "#"
        else:
            name = " & ".join([n.pointer or "#" for n in conjunction]) or "any value"
        self._pending.append((number, conjunction))
        return self.grammar.reserve(name)

    def group(self, group: Group) -> Expr:
        """The values of a group."""
        check_time()
        if isinstance(group, StringGroup):
            return string_term(group, self.limits, self.spelling)
        if isinstance(group, NumberGroup):
            return _number(group, self.limits, self.options.max_number_digits, self.options.plain_integers)
        if isinstance(group, (ObjectGroup, ArrayGroup)):
            # What is said of parts may come again beside other types, and in other unions.
            found = self._made.get(group)
            if found is None:
                if isinstance(group, ObjectGroup):
                    found = self.objects.object(group)
                else:
                    found = self.arrays.array(group)
                self._made[group] = found
            return found
        if isinstance(group, BooleanGroup):
            return Term(BOOLEAN if len(group.values) == 2 else TRUE if group.values[0] else FALSE)
        return Term(NULL)


@lru_cache(maxsize=64)
def any_value(
    property_order: Literal["schema", "any"],
    escapes: Literal["printed", "any"],
    whitespace: Literal["printed", "flexible", "compact"] | int,
    max_whitespace: int,
    max_number_digits: int,
    limits: Limits,
) -> Import:
    """What satisfies every schema: the same in all documents of these options."""
    spelling = SchemaOptions(
        property_order=property_order,
        escapes=escapes,
        whitespace=whitespace,
        max_whitespace=max_whitespace,
        max_number_digits=max_number_digits,
    )
    # Bytes, because every grammar that has it looks for its tables: these know their hash.
    key = b"any value " + repr((spelling, limits)).encode()
    return Import(key, lambda: _any_grammar(spelling, limits))


def _any_grammar(options: SchemaOptions, limits: Limits) -> Grammar:
    emitter = Emitter(Normalizer(Document(True, limits), options, limits), options, limits)
    emitter.imports_any = False
    try:
        return emitter.emit(())
    finally:
        emitter.release()


_ANY_NUMBER, _ANY_INTEGER = NumberGroup(), NumberGroup(integral=True)


def _number(group: NumberGroup, limits: Limits, digits: int, plain_values: bool) -> Expr:
    if group in (_ANY_NUMBER, _ANY_INTEGER):
        return Term(number_lexeme(digits, group == _ANY_INTEGER))
    return _number_term(group, limits, digits, plain_values and group.values is not None)


@remembered(1024)
def _number_term(group: NumberGroup, limits: Limits, digits: int, plain_values: bool) -> Expr:
    """``plain_values``: of the values of the group, integers have neither fraction nor exponent."""
    divided = group.multiples or group.non_multiples or group.excluded
    if group.plain and group.values is None and not divided:
        language = plain_integers(*integer_bounds(group.low, group.high), digits)
    else:
        if group.values is not None:
            language = values_texts(group.values, digits)
            if plain_values:
                others = tuple(value for value in in_time(group.values) if value != value.to_integral_value())
                plain = intersect((language, plain_integers(None, None, None)), limits)
                language = alt(plain, values_texts(others, digits)) if others else plain
        else:
            language = written_numbers(
                group.low,
                group.high,
                group.integral,
                group.multiples,
                group.non_multiples,
                group.excluded,
                limits,
                digits,
            )
        if group.plain is not None:
            plain = plain_integers(None, None, None)
            language = (
                intersect((language, plain), limits) if group.plain else difference(language, plain, limits)
            )
    return (
        FAIL
        if language == NOTHING
        else Term(Lexeme(("number", group, digits, limits.max_multiple_remainders, plain_values), language))
    )
