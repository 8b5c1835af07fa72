"""Schemas -> unions of typed groups.

``groups`` of a conjunction of subschemas is the list of groups whose union is exactly the values
that satisfy all of them.  Subschemas of members and items are not looked into, so recursion in
a schema is no recursion here; ``$ref``, ``allOf`` and ``anyOf`` are followed on the spot.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from maskwright.errors import GrammarError, LimitError
from maskwright.frontends.json_schema.document import Document, Node
from maskwright.frontends.json_schema.formats import PATTERNS
from maskwright.frontends.json_schema.groups import (
    ANYTHING,
    ArrayGroup,
    BooleanGroup,
    Clash,
    Conjunction,
    Group,
    NullGroup,
    NumberGroup,
    ObjectGroup,
    StringGroup,
    check_items,
    check_length,
    check_number,
    meet,
    value_group,
)
from maskwright.frontends.json_schema.keywords import TYPES
from maskwright.frontends.json_schema.numbers import Bound, exact, tighter_high, tighter_low
from maskwright.frontends.json_schema.options import SchemaOptions
from maskwright.frontends.json_schema.strings import pattern_language
from maskwright.limits import Limits


class Normalizer:
    """Normalises the subschemas of one document; remembers why branches were dropped."""

    def __init__(self, document: Document, options: SchemaOptions, limits: Limits) -> None:
        self.document = document
        self.options = options
        self.limits = limits
        self.clashes: list[tuple[str, str]] = []
        """(pointer, message) of every contradiction met."""
        self._known: dict[Node, tuple[Group, ...]] = {}
        self._open: list[Node] = []

    def groups(self, conjunction: Conjunction) -> tuple[Group, ...]:
        """The groups whose union satisfies all of these; empty when nothing does."""
        groups = ANYTHING
        for node in conjunction:
            groups = self._meet_all(groups, self._expand(node), node.pointer)
        return groups

    def _meet_all(self, a: Sequence[Group], b: Sequence[Group], pointer: str) -> tuple[Group, ...]:
        if a is ANYTHING:
            return tuple(b)
        if b is ANYTHING:
            return tuple(a)
        met: dict[Group, None] = {}
        reasons: list[str] = []
        for left in a:
            for right in b:
                try:
                    both = meet(left, right)
                except Clash as clash:
                    reasons.append(str(clash))
                    continue
                if both is not None:
                    met[both] = None
            if len(met) > self.limits.max_schema_branches:
                raise LimitError(
                    "max_schema_branches", len(met), self.limits.max_schema_branches, place=pointer or "#"
                )
        if not met and a and b:
            kinds = [" or ".join(sorted({type(g).__name__[:-5].lower() for g in side})) for side in (a, b)]
            reasons.append(f"{kinds[0]} here, {kinds[1]} there")
        self.clashes.extend((pointer, reason) for reason in reasons)
        return tuple(met)

    def _expand(self, node: Node) -> tuple[Group, ...]:
        known = self._known.get(node)
        if known is not None:
            return known
        if node in self._open:
            raise GrammarError(
                "this subschema refers to itself without a member or item in between",
                place=node.pointer or "#",
            )
        if len(self._open) >= self.limits.max_depth:
            raise LimitError("max_depth", len(self._open) + 1, self.limits.max_depth, place=node.pointer)
        self._open.append(node)
        try:
            groups = self._expand_new(node)
        finally:
            self._open.pop()
        self._known[node] = groups
        return groups

    def _expand_new(self, node: Node) -> tuple[Group, ...]:
        schema, pointer = node.value, node.pointer
        if node.is_value:
            return (value_group(node),)
        if schema is True:
            return ANYTHING
        if schema is False:
            self.clashes.append((pointer, "the schema false allows nothing"))
            return ()
        groups: tuple[Group, ...] = ANYTHING
        if "$ref" in schema:
            groups = self._expand(self.document.resolve(node))
            if self.document.ref_hides_siblings:
                return groups
        groups = self._meet_all(groups, self._typed(node), pointer)
        for keyword in ("const", "enum"):
            if keyword in schema:
                values = (
                    [node.at(keyword)]
                    if keyword == "const"
                    else [node.at(keyword, i) for i in range(len(schema[keyword]))]
                )
                groups = self._meet_all(groups, _value_groups(values), f"{pointer}/{keyword}")
        for i in range(len(schema.get("allOf", ()))):
            branch = node.at("allOf", i)
            groups = self._meet_all(groups, self._expand(branch), branch.pointer)
        if "anyOf" in schema:
            union: dict[Group, None] = {}
            for i in range(len(schema["anyOf"])):
                union.update(dict.fromkeys(self._expand(node.at("anyOf", i))))
            groups = self._meet_all(groups, tuple(union), f"{pointer}/anyOf")
        return groups

    def _typed(self, node: Node) -> tuple[Group, ...]:
        # `type` together with the constraints that speak about one type each.
        schema = node.value
        types = schema.get("type", TYPES)
        types = (types,) if isinstance(types, str) else tuple(types)
        if "any" in types:
            types = TYPES
        if "number" in types:
            types = tuple(t for t in types if t != "integer")
        groups: list[Group] = []
        for name in dict.fromkeys(types):
            try:
                groups.append(self._group(node, name))
            except Clash as clash:
                self.clashes.append((node.pointer, str(clash)))
        return ANYTHING if tuple(groups) == ANYTHING else tuple(groups)

    def _group(self, node: Node, name: str) -> Group:
        if name == "null":
            return NullGroup()
        if name == "boolean":
            return BooleanGroup()
        if name in ("integer", "number"):
            return _number_group(node, name == "integer")
        if name == "string":
            return self._string_group(node)
        return _array_group(node) if name == "array" else _object_group(node)

    def _string_group(self, node: Node) -> StringGroup:
        schema = node.value
        name = schema.get("format")
        asserted = self.options.formats == "assert" and name in PATTERNS
        if "pattern" in schema:
            try:
                pattern_language(schema["pattern"], self.limits)
            except GrammarError as error:
                message = f"in the regular expression at {error.place}: {error.message}"
                raise GrammarError(message, place=f"{node.pointer}/pattern") from None
        group = StringGroup(
            (schema["pattern"],) if "pattern" in schema else (),
            (name,) if asserted else (),
            int(schema.get("minLength", 0)),
            int(schema["maxLength"]) if "maxLength" in schema else None,
        )
        check_length(group)
        return group


def _number_group(node: Node, integer: bool) -> NumberGroup:
    schema = node.value
    low = Bound(exact(schema["minimum"])) if "minimum" in schema else None
    high = Bound(exact(schema["maximum"])) if "maximum" in schema else None
    if "exclusiveMinimum" in schema:
        limit = schema["exclusiveMinimum"]
        if limit is True and low is not None:
            low = Bound(low.value, True)
        elif not isinstance(limit, bool):
            low = tighter_low(low, Bound(exact(limit), True))
    if "exclusiveMaximum" in schema:
        limit = schema["exclusiveMaximum"]
        if limit is True and high is not None:
            high = Bound(high.value, True)
        elif not isinstance(limit, bool):
            high = tighter_high(high, Bound(exact(limit), True))
    group = NumberGroup(integer, low, high)
    check_number(group)
    return group


def _array_group(node: Node) -> ArrayGroup:
    schema = node.value
    keyword = "prefixItems" if "prefixItems" in schema else "items"
    prefix: tuple[Conjunction, ...] = ()
    rest: Conjunction = ()
    if isinstance(schema.get(keyword), list):
        prefix = tuple((node.at(keyword, i),) for i in range(len(schema[keyword])))
        # Before 2020-12, the list stands in `items` and the rest in `additionalItems`.
        keyword = "items" if keyword == "prefixItems" else "additionalItems"
    if keyword in schema and not isinstance(schema[keyword], list):
        rest = (node.at(keyword),)
    group = ArrayGroup(
        prefix,
        rest,
        int(schema.get("minItems", 0)),
        int(schema["maxItems"]) if "maxItems" in schema else None,
    )
    check_items(group)
    return group


def _object_group(node: Node) -> ObjectGroup:
    schema = node.value
    required = schema.get("required", ())
    return ObjectGroup(
        tuple((name, (node.at("properties", name),)) for name in schema.get("properties", {})),
        (node.at("additionalProperties"),) if "additionalProperties" in schema else (),
        tuple(dict.fromkeys(required)) if not isinstance(required, bool) else (),
    )


def _value_groups(values: list[Node]) -> tuple[Group, ...]:
    # Scalars of one type share a group: an enum of 10 000 strings is one set of keys.
    strings: dict[str, None] = {}
    numbers: list[Decimal] = []
    groups: dict[Group, None] = {}
    for node in values:
        group = value_group(node)
        if isinstance(group, StringGroup) and group.values is not None:
            strings.update(dict.fromkeys(group.values))
        elif isinstance(group, NumberGroup) and group.values is not None:
            numbers.extend(v for v in group.values if v not in numbers)
        else:
            groups[group] = None
    if strings:
        groups[StringGroup(values=tuple(strings))] = None
    if numbers:
        groups[NumberGroup(values=tuple(numbers))] = None
    return tuple(groups)
