"""Groups -> rules of the intermediate representation.

One rule for each conjunction of subschemas, made when it is first referred to; the work list
keeps deep schemas from deep recursion.
"""

from __future__ import annotations

from decimal import Decimal

from maskwright.errors import UnsatisfiableError
from maskwright.frontends.json_schema.groups import (
    ANYTHING,
    ArrayGroup,
    BooleanGroup,
    Conjunction,
    Group,
    NullGroup,
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
    STRING,
    TRUE,
)
from maskwright.frontends.json_schema.normalize import Normalizer
from maskwright.frontends.json_schema.numbers import integer_bounds, integer_language, number_language
from maskwright.frontends.json_schema.strings import is_text, string_term
from maskwright.grammar import (
    FAIL,
    Choice,
    Expr,
    Grammar,
    Lexeme,
    Member,
    Record,
    Ref,
    Repeated,
    Seq,
    Term,
)
from maskwright.limits import Limits
from maskwright.regular import NOTHING, Lit, alt

_EXACT_IN_DOUBLES = 2**53


class Emitter:
    """Builds the grammar of one document."""

    def __init__(self, normalizer: Normalizer, whitespace: str, limits: Limits) -> None:
        self.normalizer = normalizer
        self.marks = PUNCTUATION[whitespace]
        self.limits = limits
        self.grammar = Grammar()
        self._rules: dict[Conjunction, int] = {}
        self._separated: dict[Conjunction, int] = {}
        self._pending: list[Conjunction] = []

    def emit(self, root: Conjunction) -> Grammar:
        """The grammar of a conjunction.  Raises ``UnsatisfiableError`` when it is contradictory."""
        self.grammar.start = self.rule(root)
        while self._pending:
            conjunction = self._pending.pop()
            groups = self.normalizer.groups(conjunction)
            self.grammar.rules[self._rules[conjunction]] = Choice(tuple(self.group(g) for g in groups))
            if not groups and conjunction == root:
                raise self.unsatisfiable(root[0].pointer if root else "")
        return self.grammar

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
        if isinstance(group, NullGroup):
            return Term(NULL)
        if isinstance(group, BooleanGroup):
            return Term(BOOLEAN if len(group.values) == 2 else TRUE if group.values[0] else FALSE)
        if isinstance(group, NumberGroup):
            return _number(group)
        if isinstance(group, StringGroup):
            return Term(STRING) if group == ANYTHING[3] else string_term(group, self.limits)
        if isinstance(group, ArrayGroup):
            return self.array(group)
        return self.object(group)

    # --- arrays

    def array(self, group: ArrayGroup) -> Expr:
        low, high = group.min_items, group.max_items
        marks = self.marks
        filled: Expr = FAIL
        if high != 0:
            if group.prefix:
                first = self.rule(group.prefix[0])
                filled = Seq((marks.open_array, Ref(first), self.items_after(group, 1)))
            else:
                items = self.grammar.add(
                    "items", Repeated(self.rule(group.rest), self.separated(group.rest), max(low, 1), high)
                )
                filled = Seq((marks.open_array, Ref(items), marks.close_array))
        empty = Seq((marks.open_array, marks.close_empty_array)) if low == 0 else FAIL
        return Choice((filled, empty))

    def items_after(self, group: ArrayGroup, count: int) -> Expr:
        """What may follow the first ``count`` items: built from the end of the prefix."""
        low, high = group.min_items, group.max_items
        limit = len(group.prefix) if high is None else min(len(group.prefix), high)
        behind: Expr = self.items_behind_prefix(group, limit)
        for index in range(limit - 1, count - 1, -1):
            more: Expr = Seq((Ref(self.separated(group.prefix[index])), behind))
            if low <= index:
                more = Choice((more, self.marks.close_array))
            behind = Ref(self.grammar.add("items", more))
        return behind

    def items_behind_prefix(self, group: ArrayGroup, count: int) -> Expr:
        low, high = max(group.min_items - count, 0), group.max_items
        if high is not None and high <= count:
            return self.marks.close_array if low == 0 else FAIL
        more = self.separated(group.rest)
        rest = self.grammar.add("items", Repeated(more, more, low, None if high is None else high - count))
        return Seq((Ref(rest), self.marks.close_array))

    def separated(self, conjunction: Conjunction) -> int:
        """The rule of an item behind a comma."""
        found = self._separated.get(conjunction)
        if found is None:
            value = self.rule(conjunction)
            found = self.grammar.add(
                "comma " + self.grammar.names[value], Seq((self.marks.comma, Ref(value)))
            )
            self._separated[conjunction] = found
        return found

    # --- objects

    def object(self, group: ObjectGroup) -> Expr:
        declared = dict(group.properties)
        for name in group.required:
            declared.setdefault(name, group.additional)
        required = frozenset(group.required)
        members = tuple(
            Member(name, self.rule(value) if is_text(name) else None, name in required)
            for name, value in declared.items()
        )
        marks = self.marks
        record = Record(
            tuple(m for m in members if m.required or is_text(m.name)),
            STRING,
            self.rule(group.additional),
            marks.open_object,
            marks.close_empty_object,
            marks.colon,
            marks.comma,
            marks.close_object,
        )
        return Ref(self.grammar.add("object", record))


def _number(group: NumberGroup) -> Expr:
    if group.values is not None:
        texts = dict.fromkeys(text for value in group.values for text in _number_texts(value))
        return Term(Lexeme(("numbers", *texts), alt(*(Lit(text) for text in texts))))
    if group.low is None and group.high is None:
        return Term(INTEGER if group.integer else NUMBER)
    if group.integer:
        least, greatest = integer_bounds(group.low, group.high)
        language = integer_language(least, greatest)
    else:
        language = number_language(group.low, group.high)
    if language == NOTHING:
        return FAIL
    return Term(Lexeme(("number", group.integer, group.low, group.high), language))


def _number_texts(value: Decimal) -> list[str]:
    # The plain decimal, also with ".0" when it is an integer that readers will not round; and the
    # scientific form where it differs.
    texts = []
    if abs(value.adjusted()) < 40:
        plain = format(value, "f")
        if "." in plain:
            plain = plain.rstrip("0").rstrip(".")
        texts.append(plain)
        if "." not in plain and abs(value) <= _EXACT_IN_DOUBLES:
            texts.append(plain + ".0")
    if abs(value.adjusted()) > 6:
        texts.append(str(value).lower())
    return texts
