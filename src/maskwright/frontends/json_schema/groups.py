"""The algebra of JSON values: typed groups, and what two of them have in common.

A schema denotes a union of groups, each about one JSON type.  ``meet`` intersects two groups of
the same type; groups of different types have nothing in common.  Subschemas (of members and
items) stay references: a ``Conjunction`` of places in the document, looked at when needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from maskwright.frontends.json_schema.document import Node
from maskwright.frontends.json_schema.numbers import (
    Bound,
    exact,
    integer_bounds,
    tighter_high,
    tighter_low,
    within,
)

Conjunction: TypeAlias = tuple[Node, ...]
"""All of these subschemas must hold; the empty one allows anything."""


class Clash(Exception):
    """Two constraints that no value satisfies; says which."""


@dataclass(frozen=True, slots=True)
class NullGroup:
    pass


@dataclass(frozen=True, slots=True)
class BooleanGroup:
    values: tuple[bool, ...] = (False, True)


@dataclass(frozen=True, slots=True)
class NumberGroup:
    integer: bool = False
    low: Bound | None = None
    high: Bound | None = None
    values: tuple[Decimal, ...] | None = None


@dataclass(frozen=True, slots=True)
class StringGroup:
    patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    min_length: int = 0
    max_length: int | None = None
    values: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ArrayGroup:
    prefix: tuple[Conjunction, ...] = ()
    rest: Conjunction = ()
    min_items: int = 0
    max_items: int | None = None

    def item(self, index: int) -> Conjunction:
        return self.prefix[index] if index < len(self.prefix) else self.rest


@dataclass(frozen=True, slots=True)
class ObjectGroup:
    """Declared members in order; ``additional`` holds for the value of every other member."""

    properties: tuple[tuple[str, Conjunction], ...] = ()
    additional: Conjunction = ()
    required: tuple[str, ...] = ()


Group: TypeAlias = NullGroup | BooleanGroup | NumberGroup | StringGroup | ArrayGroup | ObjectGroup

ANYTHING: tuple[Group, ...] = (
    NullGroup(),
    BooleanGroup(),
    NumberGroup(),
    StringGroup(),
    ArrayGroup(),
    ObjectGroup(),
)


def conjoin(a: Conjunction, b: Conjunction) -> Conjunction:
    return a + tuple(node for node in b if node not in a)


def meet(a: Group, b: Group) -> Group | None:
    """What both groups allow; None when their types differ.  Raises ``Clash`` when it is nothing."""
    if isinstance(a, NullGroup) and isinstance(b, NullGroup):
        return a
    if isinstance(a, BooleanGroup) and isinstance(b, BooleanGroup):
        values = tuple(v for v in a.values if v in b.values)
        if not values:
            raise Clash("one value is true, the other false")
        return BooleanGroup(values)
    if isinstance(a, NumberGroup) and isinstance(b, NumberGroup):
        return _meet_numbers(a, b)
    if isinstance(a, StringGroup) and isinstance(b, StringGroup):
        return _meet_strings(a, b)
    if isinstance(a, ArrayGroup) and isinstance(b, ArrayGroup):
        return _meet_arrays(a, b)
    if isinstance(a, ObjectGroup) and isinstance(b, ObjectGroup):
        return _meet_objects(a, b)
    return None


def _meet_numbers(a: NumberGroup, b: NumberGroup) -> NumberGroup:
    values = a.values
    if a.values is not None and b.values is not None:
        values = tuple(v for v in a.values if v in b.values)
    elif b.values is not None:
        values = b.values
    met = NumberGroup(a.integer or b.integer, tighter_low(a.low, b.low), tighter_high(a.high, b.high), values)
    if values is not None:
        kept = tuple(v for v in values if within(v, met.low, met.high) and not (met.integer and v % 1))
        if not kept:
            raise Clash("none of the listed numbers is within the other constraints")
        return NumberGroup(values=kept)
    check_number(met)
    return met


def check_number(group: NumberGroup) -> None:
    """Raises ``Clash`` when the bounds leave no number."""
    low, high = group.low, group.high
    if group.integer:
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
        values = tuple(v for v in a.values if v in b.values)
        if not values:
            raise Clash("the listed strings have none in common")
    elif b.values is not None:
        values = b.values
    met = StringGroup(
        a.patterns + tuple(p for p in b.patterns if p not in a.patterns),
        a.formats + tuple(f for f in b.formats if f not in a.formats),
        max(a.min_length, b.min_length),
        _least(a.max_length, b.max_length),
        values,
    )
    check_length(met)
    return met


def check_length(group: StringGroup) -> None:
    if group.max_length is not None and group.min_length > group.max_length:
        raise Clash(f"minLength {group.min_length} exceeds maxLength {group.max_length}")


def _least(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def _meet_arrays(a: ArrayGroup, b: ArrayGroup) -> ArrayGroup:
    longest = max(len(a.prefix), len(b.prefix))
    met = ArrayGroup(
        tuple(conjoin(a.item(i), b.item(i)) for i in range(longest)),
        conjoin(a.rest, b.rest),
        max(a.min_items, b.min_items),
        _least(a.max_items, b.max_items),
    )
    check_items(met)
    return met


def check_items(group: ArrayGroup) -> None:
    if group.max_items is not None and group.min_items > group.max_items:
        raise Clash(f"minItems {group.min_items} exceeds maxItems {group.max_items}")


def _meet_objects(a: ObjectGroup, b: ObjectGroup) -> ObjectGroup:
    of_a, of_b = dict(a.properties), dict(b.properties)
    names = [*of_a, *(name for name in of_b if name not in of_a)]
    properties = tuple(
        (name, conjoin(of_a.get(name, a.additional), of_b.get(name, b.additional))) for name in names
    )
    required = a.required + tuple(name for name in b.required if name not in a.required)
    return ObjectGroup(properties, conjoin(a.additional, b.additional), required)


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
        items = tuple((_value_node(node, i),) for i in range(len(value)))
        return ArrayGroup(items, (), len(items), len(items))
    if isinstance(value, dict):
        members = tuple((name, (_value_node(node, name),)) for name in value)
        nothing = Node(node.pointer + "/(other members)", False)
        return ObjectGroup(members, (nothing,), tuple(value))
    return NumberGroup(values=(exact(value),))


def _value_node(node: Node, key: str | int) -> Node:
    child = node.at(key)
    return Node(child.pointer, child.value, child.base, is_value=True)
