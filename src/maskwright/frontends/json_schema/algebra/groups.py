"""The algebra of JSON values: typed groups, and what two of them have in common.

A schema denotes a union of groups, each about one JSON type.  ``meet`` intersects two groups of
the same type; groups of different types have nothing in common.  Subschemas (of members and
items) stay references: a ``Conjunction`` of places in the document, looked at when needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeAlias

from maskwright.base.deadline import check_time, in_time
from maskwright.frontends.json_schema.numbers.bounds import (
    Bound,
    exact,
    integer_bounds,
    tighter_high,
    tighter_low,
    within,
)
from maskwright.frontends.json_schema.numbers.multiples import is_multiple
from maskwright.frontends.json_schema.read.nodes import Node


@dataclass(frozen=True)
class Either:
    """At least one of these conjunctions holds."""

    pointer: str
    alternatives: tuple[Conjunction, ...]

    def negation(self) -> Neither:
        return Neither(self.pointer, self.alternatives)


@dataclass(frozen=True)
class Neither:
    """None of these conjunctions holds."""

    pointer: str
    alternatives: tuple[Conjunction, ...]

    def negation(self) -> Either:
        return Either(self.pointer, self.alternatives)


Literal: TypeAlias = Node | Either | Neither
Conjunction: TypeAlias = tuple[Literal, ...]
"""All of these must hold; the empty one allows anything."""


class Clash(Exception):
    """Two constraints that no value satisfies; says which."""


@dataclass(frozen=True)
class NullGroup:
    pass


@dataclass(frozen=True)
class BooleanGroup:
    values: tuple[bool, ...] = (False, True)


@dataclass(frozen=True)
class NumberGroup:
    """``integral``: True, only integers; False, only others; None, both.  ``plain``: the same for texts
    without fraction and exponent."""

    integral: bool | None = None
    low: Bound | None = None
    high: Bound | None = None
    multiples: tuple[Decimal, ...] = ()
    non_multiples: tuple[Decimal, ...] = ()
    values: tuple[Decimal, ...] | None = None
    excluded: tuple[Decimal, ...] = ()
    plain: bool | None = None

    def allows(self, value: Decimal) -> bool:
        """Whether a number satisfies everything but ``values``."""
        return (
            within(value, self.low, self.high)
            and (self.integral is None or (value == value.to_integral_value()) == self.integral)
            and all(is_multiple(value, m) for m in self.multiples)
            and not any(is_multiple(value, m) for m in self.non_multiples)
            and value not in self.excluded
        )


@dataclass(frozen=True)
class StringGroup:
    patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    min_length: int = 0
    max_length: int | None = None
    values: tuple[str, ...] | None = None
    not_patterns: tuple[str, ...] = ()
    not_formats: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()
    """Patterns of which ``excluded`` has all texts: what other engines find them in is not written."""


@dataclass(frozen=True)
class Contained:
    """``low`` to ``high`` of the items from index ``start`` on, and before ``stop``, satisfy ``items``."""

    items: Conjunction
    low: int = 1
    high: int | None = None
    start: int = 0
    stop: int | None = None

    @property
    def demands(self) -> bool:
        """Whether not all arrays will do."""
        return self.low > 0 or self.high is not None

    def counts(self, index: int) -> bool:
        """Whether this is about the item at an index."""
        return self.start <= index and (self.stop is None or index < self.stop)


@dataclass(frozen=True)
class ArrayGroup:
    prefix: tuple[Conjunction, ...] = ()
    rest: Conjunction = ()
    min_items: int = 0
    max_items: int | None = None
    contained: tuple[Contained, ...] = ()
    unique: str | None = None
    """Where it is demanded that no two items are equal."""
    repeated: str | None = None
    """Where it is demanded that two items are equal."""

    def item(self, index: int) -> Conjunction:
        return self.prefix[index] if index < len(self.prefix) else self.rest


@dataclass(frozen=True)
class Keys:
    """Member names: those listed, those in which a pattern is found, those that satisfy ``schemas`` as
    strings; with ``outside``, all others."""

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    schemas: Conjunction | None = None
    outside: bool = False

    def complement(self) -> Keys:
        return replace(self, outside=not self.outside)


EVERY_KEY = Keys(outside=True)


@dataclass(frozen=True)
class Some:
    """There is a member with one of these keys and a value that satisfies ``value``."""

    keys: Keys
    value: Conjunction = ()


@dataclass(frozen=True)
class Absent:
    """There is no member of this name."""

    name: str


def atom_names(atom: Some | Absent) -> tuple[str, ...]:
    """The names listed in an atom."""
    return (atom.name,) if isinstance(atom, Absent) else atom.keys.names


Clause: TypeAlias = tuple[Some | Absent, ...]
"""One of these holds."""
Rule: TypeAlias = tuple[Keys, Conjunction]
"""The values of members with such keys satisfy these."""


@dataclass(frozen=True)
class ObjectGroup:
    """``rules``: every member with one of the keys has a value that satisfies the conjunction.

    Names listed in rules, required or in clauses are *declared*, in this order.
    """

    rules: tuple[Rule, ...] = ()
    required: tuple[str, ...] = ()
    min_members: int = 0
    max_members: int | None = None
    clauses: tuple[Clause, ...] = ()

    def __hash__(self) -> int:
        # Rules and requirements may be thousands; groups with as many, the same first and last of them and the same first
        # atom are few.
        rules, required = self.rules, self.required
        ends = (rules[0][1], rules[-1][1]) if rules else ()
        names = required if len(required) < 8 else (len(required), required[0], required[-1])
        clauses = self.clauses
        atom = clauses[0][0] if clauses and clauses[0] else None
        first = (atom.value if isinstance(atom, Some) else atom, len(clauses))
        return hash((len(rules), ends, names, self.min_members, self.max_members, first))


Group: TypeAlias = NullGroup | BooleanGroup | NumberGroup | StringGroup | ArrayGroup | ObjectGroup

ANYTHING: tuple[Group, ...] = (
    NullGroup(),
    BooleanGroup(),
    NumberGroup(),
    StringGroup(),
    ArrayGroup(),
    ObjectGroup(),
)


_FEW = 64  # Comparisons that are faster than hashing.
_FEW_PARTS = 4


def conjoin(a: Conjunction, b: Conjunction) -> Conjunction:
    if not a or not b:
        return a or b
    if len(a) * len(b) > _FEW:
        return tuple(dict.fromkeys((*a, *b)))
    more = [literal for literal in b if literal not in a]
    return (*a, *more) if more else a


def conjoin_all(first: Conjunction, others: list[Conjunction]) -> Conjunction:
    """``conjoin`` one after another; of many, in one go."""
    if len(others) > _FEW_PARTS:
        found: dict[Literal, None] = dict.fromkeys(first)
        for each in others:
            found.update(dict.fromkeys(each))
        return tuple(found)
    for each in others:
        first = conjoin(first, each)
    return first


def meet(a: Group, b: Group) -> Group | None:
    """What both groups allow; None when their types differ.  Raises ``Clash`` when it is nothing."""
    if type(a) is not type(b):
        return None
    if isinstance(a, ObjectGroup):
        return _meet_objects(a, b)  # type: ignore[arg-type]
    if isinstance(a, StringGroup):
        return _meet_strings(a, b)  # type: ignore[arg-type]
    if isinstance(a, NumberGroup):
        return _meet_numbers(a, b)  # type: ignore[arg-type]
    if isinstance(a, ArrayGroup):
        return _meet_arrays(a, b)  # type: ignore[arg-type]
    if isinstance(a, BooleanGroup) and isinstance(b, BooleanGroup):
        values = tuple([v for v in a.values if v in b.values])
        if not values:
            raise Clash("one value is true, the other false")
        return BooleanGroup(values)
    return a


def _joined(a: tuple, b: tuple) -> tuple:  # type: ignore[type-arg]
    if not a or not b:
        return a or b
    if len(a) * len(b) > _FEW:
        return tuple(dict.fromkeys((*a, *b)))
    more = [each for each in b if each not in a]
    return (*a, *more) if more else a


def _common(a: tuple, b: tuple) -> tuple:  # type: ignore[type-arg]
    others = _quickly_searched(a, b)
    return tuple([each for each in a if each in others])


def _without(a: tuple, b: tuple) -> tuple:  # type: ignore[type-arg]
    others = _quickly_searched(a, b)
    return tuple([each for each in a if each not in others])


def _quickly_searched(a: tuple, b: tuple) -> Collection[object]:  # type: ignore[type-arg]
    """``b``, in which each of ``a`` will be looked for."""
    return b if len(a) * len(b) <= _FEW else frozenset(b)


def _meet_numbers(a: NumberGroup, b: NumberGroup) -> NumberGroup:
    if a.integral is not None and b.integral is not None and a.integral != b.integral:
        raise Clash("an integer here, no integer there")
    if a.plain is not None and b.plain is not None and a.plain != b.plain:
        raise Clash("a number without fraction here, with one there")
    values = a.values
    if a.values is not None and b.values is not None:
        values = _common(a.values, b.values)
    elif b.values is not None:
        values = b.values
    excluded = _joined(a.excluded, b.excluded)
    if values is not None and excluded:
        values, excluded = _without(values, excluded), ()
    met = NumberGroup(
        b.integral if a.integral is None else a.integral,
        tighter_low(a.low, b.low),
        tighter_high(a.high, b.high),
        _joined(a.multiples, b.multiples),
        _joined(a.non_multiples, b.non_multiples),
        values,
        excluded,
        b.plain if a.plain is None else a.plain,
    )
    if values is not None:
        kept = tuple([v for v in values if met.allows(v)])
        if not kept:
            raise Clash("none of the listed numbers is within the other constraints")
        return NumberGroup(values=kept, plain=met.plain)
    check_number(met)
    return met


def check_number(group: NumberGroup) -> None:
    """Raises ``Clash`` when the bounds leave no number."""
    low, high = group.low, group.high
    if group.integral:
        least, greatest = integer_bounds(low, high)
        if least is not None and greatest is not None and least > greatest:
            raise Clash(f"no integer is within the bounds {_bound_text(low)} and {_bound_text(high)}")
    elif low is not None and high is not None:
        if low.value > high.value or (low.value == high.value and (low.exclusive or high.exclusive)):
            raise Clash(f"the lower bound {_bound_text(low)} excludes the upper bound {_bound_text(high)}")


def _bound_text(bound: Bound | None) -> str:
    return "none" if bound is None else f"{bound.value}{' (exclusive)' if bound.exclusive else ''}"


def _meet_strings(a: StringGroup, b: StringGroup) -> StringGroup:
    values = a.values
    if a.values is not None and b.values is not None:
        values = _common(a.values, b.values)
        if not values:
            raise Clash("the listed strings have none in common")
    elif b.values is not None:
        values = b.values
    excluded = _joined(a.excluded, b.excluded)
    if values is not None and excluded:
        values = _without(values, excluded)
        if not values:
            raise Clash("all of the listed strings are excluded")
        excluded = ()
    met = StringGroup(
        _joined(a.patterns, b.patterns),
        _joined(a.formats, b.formats),
        max(a.min_length, b.min_length),
        lesser(a.max_length, b.max_length),
        values,
        _joined(a.not_patterns, b.not_patterns),
        _joined(a.not_formats, b.not_formats),
        excluded,
        _joined(a.avoided, b.avoided) if values is None else (),
    )
    for kind, positive, negative in (
        ("pattern", met.patterns, met.not_patterns),
        ("format", met.formats, met.not_formats),
    ):
        for name in negative:
            if name in positive:
                raise Clash(f"the {kind} {name!r} is both demanded and excluded")
    check_length(met)
    return met


def check_length(group: StringGroup) -> None:
    if group.max_length is not None and group.min_length > group.max_length:
        raise Clash(f"minLength {group.min_length} exceeds maxLength {group.max_length}")


def lesser(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def _meet_arrays(a: ArrayGroup, b: ArrayGroup) -> ArrayGroup:
    if a is ANYTHING[4]:
        return b
    if b is ANYTHING[4]:
        return a
    longest = max(len(a.prefix), len(b.prefix))
    met = ArrayGroup(
        tuple([conjoin(a.item(i), b.item(i)) for i in in_time(range(longest))]),
        conjoin(a.rest, b.rest),
        max(a.min_items, b.min_items),
        lesser(a.max_items, b.max_items),
        _joined(a.contained, b.contained),
        a.unique if a.unique is not None else b.unique,
        a.repeated if a.repeated is not None else b.repeated,
    )
    check_items(met)
    return met


def check_items(group: ArrayGroup) -> None:
    if group.max_items is not None and group.min_items > group.max_items:
        raise Clash(f"minItems {group.min_items} exceeds maxItems {group.max_items}")
    if group.unique is not None and group.repeated is not None:
        raise Clash("uniqueItems is both demanded and excluded")
    for contained in group.contained:
        if contained.high is not None and contained.low > contained.high:
            raise Clash(f"minContains {contained.low} exceeds maxContains {contained.high}")


def _meet_objects(a: ObjectGroup, b: ObjectGroup) -> ObjectGroup:
    if a is ANYTHING[5]:
        return b
    if b is ANYTHING[5]:
        return a
    # Equal rules are the same object: groups are expanded once for each place.
    rules = a.rules or b.rules
    if a.rules and b.rules:
        known = {id(rule) for rule in rules}
        rules += tuple([rule for rule in b.rules if id(rule) not in known])
    met = ObjectGroup(
        rules,
        _joined(a.required, b.required),
        max(a.min_members, b.min_members),
        lesser(a.max_members, b.max_members),
        _joined(a.clauses, b.clauses),
    )
    check_members(met)
    return met


def check_members(group: ObjectGroup) -> None:
    if group.max_members is not None and max(group.min_members, len(group.required)) > group.max_members:
        if group.min_members > group.max_members:
            raise Clash(f"minProperties {group.min_members} exceeds maxProperties {group.max_members}")
        raise Clash(f"{len(group.required)} required members exceed maxProperties {group.max_members}")


def value_group(node: Node) -> Group:
    """The group of exactly the JSON value of ``node``."""
    value = node.value
    if value is None:
        return NullGroup()
    if isinstance(value, bool):
        return BooleanGroup((value,))
    if isinstance(value, str):
        return StringGroup(values=(value,))
    if isinstance(value, list):
        items = tuple((_value_node(node, i),) for i in in_time(range(len(value))))
        return ArrayGroup(items, (), len(items), len(items))
    if isinstance(value, dict):
        names = tuple(value)
        rules = [(Keys((name,)), (_value_node(node, name),)) for name in in_time(names)]
        rules.append((Keys(names, outside=True), (nothing(node.pointer + "/(other members)"),)))
        return ObjectGroup(tuple(rules), names)
    return NumberGroup(values=(exact(value),))


def nothing(pointer: str) -> Node:
    """The schema false, demanded at a place."""
    # Nodes are equal by their pointers: this one is no place of the document.
    return Node(pointer + " (nothing)", False)


def _value_node(node: Node, key: str | int) -> Node:
    child = node.at(key)
    return Node(child.pointer, child.value, child.base, is_value=True)


def listed_together(groups: Iterable[Group]) -> tuple[Group, ...]:
    """The same union; all listed strings are one group, and all listed numbers."""
    # An enum of 10 000 strings is one set of keys.
    strings: dict[str, None] = {}
    numbers: dict[Decimal, None] = {}
    found: dict[Group, None] = {}
    for group in groups:
        check_time()
        if (
            isinstance(group, StringGroup)
            and group.values is not None
            and group == StringGroup(values=group.values)
        ):
            strings.update(dict.fromkeys(group.values))
        elif isinstance(group, NumberGroup) and group.values is not None and group.plain is None:
            numbers.update(dict.fromkeys(group.values))
        else:
            found[group] = None
    return with_listed(found, strings, numbers)


def with_listed(
    groups: Iterable[Group], strings: Collection[str], numbers: Collection[Decimal]
) -> tuple[Group, ...]:
    """Some groups, one of all these strings, and one of all these numbers, where there are any."""
    found = [*groups]
    if strings:
        found.append(StringGroup(values=tuple(strings)))
    if numbers:
        found.append(NumberGroup(values=tuple(numbers)))
    return tuple(found)
