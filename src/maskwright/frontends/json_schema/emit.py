"""Groups -> rules of the intermediate representation.

One rule for each conjunction of subschemas, made when it is first referred to; the work list
keeps deep schemas from deep recursion.
"""

from __future__ import annotations

from functools import lru_cache

from maskwright.dfa import difference, intersect
from maskwright.errors import Refusal, UnsatisfiableError, UnsupportedSchemaError
from maskwright.frontends.json_schema.arrays import ArrayRules
from maskwright.frontends.json_schema.bounds import integer_bounds
from maskwright.frontends.json_schema.groups import (
    ArrayGroup,
    BooleanGroup,
    Conjunction,
    Group,
    NumberGroup,
    ObjectGroup,
    StringGroup,
)
from maskwright.frontends.json_schema.lexemes import (
    BOOLEAN,
    FALSE,
    INTEGER,
    NULL,
    NUMBER,
    PUNCTUATION,
    TRUE,
)
from maskwright.frontends.json_schema.normalize import Normalizer
from maskwright.frontends.json_schema.numbers import number_regular, plain_integers, values_texts
from maskwright.frontends.json_schema.objects import ObjectRules
from maskwright.frontends.json_schema.options import SchemaOptions
from maskwright.frontends.json_schema.strings import string_term
from maskwright.grammar import (
    FAIL,
    Choice,
    Expr,
    Grammar,
    Lexeme,
    Term,
)
from maskwright.limits import Limits
from maskwright.regular import NOTHING


class Emitter:
    """Builds the grammar of one document."""

    def __init__(self, normalizer: Normalizer, options: SchemaOptions, limits: Limits) -> None:
        self.normalizer = normalizer
        self.options = options
        self.marks = PUNCTUATION[options.whitespace]
        self.limits = limits
        self.grammar = Grammar()
        self.arrays = ArrayRules(self)
        self.objects = ObjectRules(self)
        self._rules: dict[Conjunction, int] = {}
        self._pending: list[Conjunction] = []
        self._refusals: list[Refusal] = []

    def emit(self, root: Conjunction) -> Grammar:
        """The grammar of a conjunction.  Raises ``UnsatisfiableError`` when it is contradictory."""
        self.grammar.start = self.rule(root)
        while self._pending:
            conjunction = self._pending.pop()
            groups = self.normalizer.groups(conjunction)
            self.grammar.rules[self._rules[conjunction]] = Choice(tuple(self.group(g) for g in groups))
            if not groups and conjunction == root:
                raise self.unsatisfiable(root[0].pointer if root else "")
        if self._refusals:
            raise UnsupportedSchemaError(self._refusals)
        return self.grammar

    def release(self) -> None:
        """Let go of what refers back, so that nothing waits for the garbage collector."""
        self.normalizer.release()
        del self.arrays, self.objects

    def refuse(self, refusal: Refusal) -> Expr:
        """Note what cannot be enforced; ``emit`` raises once everything has been looked at."""
        self._refusals.append(refusal)
        return FAIL

    def unsatisfiable(self, pointer: str) -> UnsatisfiableError:
        for place, message in self.normalizer.clashes:
            return UnsatisfiableError(f"nothing satisfies this schema: {message}", place=place or "#")
        return UnsatisfiableError("nothing satisfies this schema", place=pointer or "#")

    def rule(self, conjunction: Conjunction) -> int:
        found = self._rules.get(conjunction)
        if found is None:
            name = " & ".join((n.pointer or "#") for n in conjunction) or "any value"
            found = self._rules[conjunction] = self.grammar.reserve(name)
            self._pending.append(conjunction)
        return found

    def group(self, group: Group) -> Expr:
        """The values of a group."""
        if isinstance(group, StringGroup):
            return string_term(group, self.limits)
        if isinstance(group, ObjectGroup):
            return self.objects.object(group)
        if isinstance(group, NumberGroup):
            return _number(group, self.limits)
        if isinstance(group, ArrayGroup):
            return self.arrays.array(group)
        if isinstance(group, BooleanGroup):
            return Term(BOOLEAN if len(group.values) == 2 else TRUE if group.values[0] else FALSE)
        return Term(NULL)


_ANY_NUMBER, _ANY_INTEGER = NumberGroup(), NumberGroup(integral=True)


def _number(group: NumberGroup, limits: Limits) -> Expr:
    if group == _ANY_NUMBER:
        return Term(NUMBER)
    if group == _ANY_INTEGER:
        return Term(INTEGER)
    return _number_term(group, limits)


@lru_cache(maxsize=1024)
def _number_term(group: NumberGroup, limits: Limits) -> Expr:
    divided = group.multiples or group.non_multiples or group.excluded
    if group.plain and group.values is None and not divided:
        language = plain_integers(*integer_bounds(group.low, group.high))
    else:
        if group.values is not None:
            language = values_texts(group.values)
        else:
            language = number_regular(
                group.low,
                group.high,
                group.integral,
                group.multiples,
                group.non_multiples,
                group.excluded,
                limits,
            )
        if group.plain is not None:
            plain = plain_integers(None, None)
            language = (
                intersect((language, plain), limits) if group.plain else difference(language, plain, limits)
            )
    return FAIL if language == NOTHING else Term(Lexeme(("number", group), language))
