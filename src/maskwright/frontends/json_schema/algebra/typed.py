"""The constraints of one subschema on each JSON type, as groups, and what violates them.

``typed_groups`` reads ``type`` and the keywords about one type each; ``violations`` is the complement.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeAlias

from maskwright.base.deadline import check_time, if_many, in_time, let_go
from maskwright.errors import GrammarError, LimitError
from maskwright.frontends.json_schema.algebra.groups import (
    ANYTHING,
    EVERY_KEY,
    Absent,
    ArrayGroup,
    BooleanGroup,
    Clash,
    Clause,
    Conjunction,
    Contained,
    Group,
    Keys,
    Neither,
    NullGroup,
    NumberGroup,
    ObjectGroup,
    Rule,
    Some,
    StringGroup,
    check_items,
    check_length,
    check_members,
    check_number,
    lesser,
    nothing,
    value_group,
    with_listed,
)
from maskwright.frontends.json_schema.algebra.strings import pattern_language, pattern_texts, string_allows
from maskwright.frontends.json_schema.numbers.bounds import Bound, exact, tighter_high, tighter_low
from maskwright.frontends.json_schema.read.dialects import Dialect
from maskwright.frontends.json_schema.read.keywords import TYPES, held
from maskwright.frontends.json_schema.read.nodes import Node, escape, says_any
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.frontends.json_schema.texts.formats import (
    HOSTNAME_1034,
    INTEGER_BOUNDS,
    LATER,
    OPENAPI_PATTERNS,
    PATTERNS,
)
from maskwright.limits import Limits

Clashes: TypeAlias = list[tuple[str, str]]
_BY_NAME: dict[str, Group] = {
    "null": ANYTHING[0],
    "boolean": ANYTHING[1],
    "number": ANYTHING[2],
    "string": ANYTHING[3],
    "array": ANYTHING[4],
    "object": ANYTHING[5],
    "integer": NumberGroup(integral=True),
}
_ALL_OF: dict[str, tuple[Group, ...]] = {name: (group,) for name, group in _BY_NAME.items()}
_NUMBERS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
ABOUT: dict[str, frozenset[str]] = {
    "null": frozenset(),
    "boolean": frozenset(),
    "number": _NUMBERS,
    "integer": _NUMBERS,
    "string": frozenset(("pattern", "format", "minLength", "maxLength")),
    "array": frozenset(
        ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "contains", "uniqueItems")
    ),
    "object": frozenset(
        (
            "properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties",
            "maxProperties", "dependentRequired", "dependencies",
        )
    ),
}  # fmt: skip
"""Which keywords say something about values of a type."""
_BEYOND_TYPE = frozenset(("unevaluatedProperties",)).union(*ABOUT.values())


_SIMPLE: dict[str | None, tuple[str, ...]] = {name: (name,) for name in TYPES}
_SIMPLE[None] = tuple(name for name in TYPES if name != "integer")


def type_names(node: Node) -> tuple[str, ...]:
    """The types allowed, each once; "integer" only where "number" is not."""
    schema: dict[str, Any] = node.value
    types = schema.get("type")
    known = _SIMPLE.get(types) if types is None or type(types) is str else None
    if known is not None and not node.base.dialect.nullable:
        return known
    types = TYPES if types is None else (types,) if isinstance(types, str) else tuple(types)
    if "any" in types:
        types = TYPES
    if node.base.dialect.nullable and schema.get("nullable") is True and "type" in schema:
        types = (*types, "null")
    if "number" in types:
        types = tuple([t for t in types if t != "integer"])
    return tuple(dict.fromkeys(types))


class TypedKeywords:
    """Reads the keywords about one type each."""

    def __init__(self, options: SchemaOptions, limits: Limits) -> None:
        self.options = options
        self.limits = limits
        self._closes = options.additional_properties is not True
        self._plain = options.plain_integers

    def groups(self, node: Node, clashes: Clashes) -> tuple[Group, ...]:
        """``type`` and all that is said about each type; contradictions are noted in ``clashes``."""
        schema: dict[str, Any] = node.value
        if not says_any(schema, _BEYOND_TYPE):
            if "type" not in schema:
                return ANYTHING
            known = self._of_type(schema["type"], node.base.dialect)
            if known is not None:
                return known
        names = type_names(node)
        groups: list[Group] = []
        for name in names:
            try:
                groups.append(self._group(node, name))
            except Clash as clash:
                clashes.append((node.pointer, str(clash)))
        if len(names) == 1 and len(groups) == 1 and groups[0] is _BY_NAME[names[0]]:
            return _ALL_OF[names[0]]
        found = tuple(groups)
        return ANYTHING if len(found) == len(ANYTHING) and found == ANYTHING else found

    def _of_type(self, name: object, dialect: Dialect) -> tuple[Group, ...] | None:
        """The groups of a schema that says nothing but ``type``; None: see ``groups``."""
        if type(name) is not str or dialect.nullable:
            return None
        if name == "integer" and (self._plain or dialect.plain_integers):
            return None
        return _ALL_OF.get(name)

    def _group(self, node: Node, name: str) -> Group:
        schema: dict[str, Any] = node.value
        is_integer = name == "integer"
        if "format" in schema and (is_integer or name == "number") and self.options.formats == "assert":
            format_name = schema["format"]
            bounds = INTEGER_BOUNDS.get(format_name) if isinstance(format_name, str) else None
            if bounds is not None:
                return _whole_number_group(node, bounds, self._plain_integers(node))
        if is_integer and self._plain_integers(node):
            return replace(_number_group(node, True), plain=True)
        if self._closes and name == "object" and _says_open(schema):
            group = object_group(node)
            return replace(group, rules=(*group.rules, (EVERY_KEY, ())))
        if not says_any(schema, ABOUT[name]):
            return _BY_NAME[name]
        if name == "string":
            return self._string_group(node)
        if name == "object":
            for pattern in schema.get("patternProperties", ()):
                self._check_pattern(pattern, f"{node.pointer}/patternProperties/{escape(pattern)}")
            return object_group(node)
        if name == "array":
            return array_group(node)
        return _number_group(node, is_integer)

    def _plain_integers(self, node: Node) -> bool:
        return self._plain or node.base.dialect.plain_integers

    def _string_group(self, node: Node) -> StringGroup:
        schema = node.value
        name = schema.get("format")
        known = name in PATTERNS or (
            name in OPENAPI_PATTERNS and node.base.dialect.name.startswith("openapi")
        )
        asserted = known and (self.options.formats == "assert" or node.base.dialect.asserts_formats)
        if name == "hostname" and not node.base.dialect.punycode:
            name = HOSTNAME_1034
        elif name in node.base.dialect.later_formats:
            name += LATER
        texts: tuple[str, ...] | None = None
        if "pattern" in schema:
            self._check_pattern(schema["pattern"], f"{node.pointer}/pattern")
            if not asserted:
                texts = pattern_texts(schema["pattern"], self.limits)
        group = StringGroup(
            (schema["pattern"],) if "pattern" in schema else (),
            (name,) if asserted else (),
            int(schema.get("minLength", 0)),
            int(schema["maxLength"]) if "maxLength" in schema else None,
        )
        check_length(group)
        return group if texts is None else self._listed(group, texts)

    def _listed(self, group: StringGroup, texts: tuple[str, ...]) -> StringGroup:
        """What lengths leave of the texts of a pattern: values can be told apart, and left out, one by one."""
        lengths = replace(group, patterns=())
        values = tuple([text for text in texts if string_allows(lengths, text, self.limits)])
        if not values:
            raise Clash(f"the pattern {group.patterns[0]!r} has no text, or none of such a length")
        return StringGroup(values=values)

    def _check_pattern(self, pattern: str, place: str) -> None:
        try:
            pattern_language(pattern, self.limits)
        except GrammarError as error:
            message = f"in the regular expression at {error.place}: {error.message}"
            raise GrammarError(message, place=place) from None
        except LimitError as error:
            raise LimitError(error.limit, error.given, error.allowed, place=place) from None

    # --- the complement

    def violations(self, node: Node) -> tuple[Group, ...]:
        """What ``groups`` does not allow."""
        names = type_names(node)
        violating: list[Group] = []
        for name, everything in list(_BY_NAME.items())[:-1]:
            if name == "number" and "integer" in names:
                violating.append(NumberGroup(integral=False))
                if (
                    node.base.dialect.plain_integers
                ):  # With the option, 1.0 is written by nobody, and yet an integer.
                    violating.append(NumberGroup(integral=True, plain=False))
                name = "integer"
            if name not in names:
                violating.append(everything)
                continue
            if name in ("null", "boolean"):
                continue
            try:
                group = self._group(node, name)
            except Clash:
                violating.append(NumberGroup(integral=True) if name == "integer" else everything)
                continue
            if isinstance(group, NumberGroup) and group.integral and name == "number":
                violating.append(NumberGroup(integral=False))
            if isinstance(group, StringGroup) and group.values is not None and "pattern" in node.value:
                violating.append(self._unlisted(group.values, node.value["pattern"]))
            else:
                violating.extend(complement(group, node.pointer))
        return tuple(violating)

    def _unlisted(self, values: tuple[str, ...], pattern: str) -> StringGroup:
        """All strings but the texts of a pattern that are long enough, and not too long."""
        texts = pattern_texts(pattern, self.limits)
        return StringGroup(
            excluded=values, avoided=(pattern,) if texts is not None and len(texts) == len(values) else ()
        )


def complement(group: Group, pointer: str) -> list[Group]:
    """The values of the group's type that are not in it."""
    if isinstance(group, NullGroup):
        return []
    if isinstance(group, BooleanGroup):
        rest = tuple(v for v in (False, True) if v not in group.values)
        return [BooleanGroup(rest)] if rest else []
    if isinstance(group, NumberGroup):
        return _number_complement(group)
    if isinstance(group, StringGroup):
        return _string_complement(group)
    if isinstance(group, ArrayGroup):
        return _array_complement(group, pointer)
    return _object_complement(group, pointer)


def negation(conjunction: Conjunction, pointer: str) -> Conjunction:
    """A conjunction that holds when this one does not."""
    if len(conjunction) == 1:
        return (conjunction[0].negation(),)
    return (Neither(pointer, (conjunction,)),)


def _number_complement(group: NumberGroup) -> list[Group]:
    # Of numbers; what ``integral`` demands is the caller's business.
    if group.values is not None:
        return [NumberGroup(excluded=group.values)]
    found: list[Group] = []
    if group.low is not None:
        found.append(NumberGroup(high=Bound(group.low.value, not group.low.exclusive)))
    if group.high is not None:
        found.append(NumberGroup(low=Bound(group.high.value, not group.high.exclusive)))
    found.extend(NumberGroup(non_multiples=(m,)) for m in group.multiples)
    found.extend(NumberGroup(multiples=(m,)) for m in group.non_multiples)
    if group.excluded:
        found.append(NumberGroup(values=group.excluded))
    return found


def _string_complement(group: StringGroup) -> list[Group]:
    if group.values is not None:
        return [StringGroup(excluded=group.values)]
    found: list[Group] = [StringGroup(not_patterns=(p,)) for p in group.patterns]
    found.extend(StringGroup(not_formats=(f,)) for f in group.formats)
    found.extend(StringGroup(patterns=(p,)) for p in group.not_patterns)
    found.extend(StringGroup(formats=(f,)) for f in group.not_formats)
    if group.min_length > 0:
        found.append(StringGroup(max_length=group.min_length - 1))
    if group.max_length is not None:
        found.append(StringGroup(min_length=group.max_length + 1))
    if group.excluded:
        found.append(StringGroup(values=group.excluded))
    return found


def _array_complement(group: ArrayGroup, pointer: str) -> list[Group]:
    found: list[Group] = []
    if group.unique is not None:
        found.append(ArrayGroup(min_items=2, repeated=group.unique))
    if group.repeated is not None:
        found.append(ArrayGroup(unique=group.repeated))
    for i, item in enumerate(group.prefix):
        if item:
            found.append(ArrayGroup((*((),) * i, negation(item, pointer)), (), i + 1))
    if group.rest:
        found.append(
            ArrayGroup(contained=(Contained(negation(group.rest, pointer), start=len(group.prefix)),))
        )
    if group.min_items > 0:
        found.append(ArrayGroup(max_items=group.min_items - 1))
    if group.max_items is not None:
        found.append(ArrayGroup(min_items=group.max_items + 1))
    for contained in group.contained:
        if contained.low > 0:
            found.append(fewer(contained, pointer))
        if contained.high is not None:
            more = Contained(contained.items, contained.high + 1, None, contained.start)
            found.append(ArrayGroup(contained=(more,)))
    return found


def fewer(contained: Contained, pointer: str) -> ArrayGroup:
    """Arrays in which fewer than ``contained.low`` items match."""
    if contained.low == 1:
        return ArrayGroup(((),) * contained.start, negation(contained.items, pointer))
    return ArrayGroup(contained=(Contained(contained.items, 0, contained.low - 1, contained.start),))


def _object_complement(group: ObjectGroup, pointer: str) -> list[Group]:
    clause: list[Some | Absent] = [Absent(name) for name in group.required]
    clause.extend(Some(keys, negation(value, pointer)) for keys, value in group.rules if value)
    found: list[Group] = [ObjectGroup(clauses=(tuple(clause),))] if clause else []
    if group.min_members > 0:
        found.append(ObjectGroup(max_members=group.min_members - 1))
    if group.max_members is not None:
        found.append(ObjectGroup(min_members=group.max_members + 1))
    for atoms in group.clauses:
        # None of the atoms holds.
        rules = tuple((a.keys, negation(a.value, pointer)) for a in atoms if isinstance(a, Some))
        found.append(ObjectGroup(rules, tuple(a.name for a in atoms if isinstance(a, Absent))))
    return found


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
    multiples: tuple[Decimal, ...] = ()
    if "multipleOf" in schema:
        multiples = (exact(schema["multipleOf"]),)
    group = NumberGroup(True if integer else None, low, high, multiples)
    check_number(group)
    return group


def _whole_number_group(node: Node, bounds: tuple[Decimal, Decimal], plain: bool) -> NumberGroup:
    """Numbers whose format bounds them to integers of so many bits."""
    group = _number_group(node, True)
    group = replace(
        group,
        low=tighter_low(group.low, Bound(bounds[0])),
        high=tighter_high(group.high, Bound(bounds[1])),
        plain=True if plain else None,
    )
    check_number(group)
    return group


def item_keywords(node: Node) -> tuple[str | None, str]:
    """The keyword that lists schemas of first items, if one does, and the keyword for the items behind them."""
    schema = node.value
    for listing, rest in (("prefixItems", "items"), ("items", "additionalItems")):
        # Before 2020-12, the list stands in `items` and the rest in `additionalItems`.
        if isinstance(schema.get(listing), list):
            return listing, rest
    return None, "items"


def array_group(node: Node) -> ArrayGroup:
    schema = node.value
    listing, keyword = item_keywords(node)
    prefix: tuple[Conjunction, ...] = ()
    if listing is not None:
        prefix = tuple([(item,) for item in in_time(held(node, listing))])
    rest: Conjunction = ()
    if keyword in schema and not isinstance(schema[keyword], list):
        rest = tuple(held(node, keyword))
    least = int(schema.get("minItems", 0))
    most = int(schema["maxItems"]) if "maxItems" in schema else None
    contained: tuple[Contained, ...] = ()
    if "contains" in schema:
        low = int(schema.get("minContains", 1))
        high = int(schema["maxContains"]) if "maxContains" in schema else None
        if schema["contains"] in (True, {}) and (high is None or low <= high):
            # Every item counts.
            least, most = max(least, low), lesser(most, high)
        elif low > 0 or high is not None:
            contained = (Contained(tuple(held(node, "contains")), low, high),)
    group = ArrayGroup(
        prefix,
        rest,
        least,
        most,
        contained,
        node.pointer if schema.get("uniqueItems") is True else None,
    )
    check_items(group)
    return group


def _says_open(schema: dict[str, Any]) -> bool:
    """Whether other members are allowed expressly."""
    return any(
        keyword in schema and schema[keyword] in (True, {})
        for keyword in ("additionalProperties", "unevaluatedProperties")
    )


def _is_required(member: Any) -> bool:
    """Whether draft 3 (section 5.7) requires a member, which it says in the member's own schema."""
    return isinstance(member, dict) and member.get("required") is True


def object_group(node: Node) -> ObjectGroup:
    schema: dict[str, Any] = node.value
    rules: list[Rule] = []
    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    if "properties" in schema:
        names = tuple(schema["properties"])
        properties: list[Node] = held(node, "properties")
        for i in range(len(names)):
            if i & 31 == 31:
                check_time()
            rules.append((Keys((names[i],)), (properties[i],)))
    if "patternProperties" in schema:
        patterns = tuple(schema["patternProperties"])
        for pattern, below in zip(patterns, held(node, "patternProperties"), strict=True):
            rules.append((Keys(patterns=(pattern,)), (below,)))
    additional = schema.get("additionalProperties", True)
    if additional is not True and additional != {}:
        rules.append((Keys(names, patterns, outside=True), tuple(held(node, "additionalProperties"))))
    if schema.get("propertyNames", True) is not True:
        unnamed = Keys(schemas=tuple(held(node, "propertyNames")), outside=True)
        rules.append((unnamed, (nothing(node.pointer + "/propertyNames"),)))
    required = schema.get("required", ())
    if node.base.dialect.name == "draft3":
        own = [name for name in if_many(names) if _is_required(schema["properties"][name])]
        required = own if isinstance(required, bool) else [*required, *own]
    clauses: list[Clause] = []
    if "dependentRequired" in schema or "dependencies" in schema:
        for name, others in _dependent_required(schema):
            clauses += [(Absent(name), Some(Keys((other,)))) for other in others]
    group = ObjectGroup(
        tuple(rules),
        tuple(dict.fromkeys(if_many(required))) if not isinstance(required, bool) else (),
        int(schema.get("minProperties", 0)),
        int(schema["maxProperties"]) if "maxProperties" in schema else None,
        tuple(clauses),
    )
    check_members(group)
    return group


def _dependent_required(schema: dict) -> list[tuple[str, list[str]]]:  # type: ignore[type-arg]
    found = list(schema.get("dependentRequired", {}).items())
    for name, value in schema.get("dependencies", {}).items():
        if isinstance(value, (list, str)):
            found.append((name, [value] if isinstance(value, str) else value))
    return found


def value_groups(node: Node, keyword: str) -> tuple[Group, ...]:
    """The groups of exactly the values of ``const`` or ``enum``; all strings are one group, and all numbers."""
    value = node.value[keyword]
    if keyword == "const":
        return (value_group(node.at(keyword)),)
    strings: dict[str, None] = {}
    numbers: dict[Decimal, None] = {}
    found: dict[Group, None] = {}
    try:
        for i in range(len(value)):
            check_time()
            each = value[i]
            if isinstance(each, str):
                strings[each] = None
            elif isinstance(each, (int, float, Decimal)) and not isinstance(each, bool):
                numbers[exact(each)] = None
            else:
                found[value_group(node.at(keyword, i))] = None
    except BaseException:
        let_go(found)
        raise
    return with_listed(found, strings, numbers)
