"""``unevaluatedProperties`` and ``unevaluatedItems`` (2020-12 core, section 11).

They look at what the other keywords of the same schema object have evaluated, through references and
applicators in place.  A schema is split into *variants*, one for each way in which its
applicators can hold, because that decides what is evaluated; within a variant the keyword is
an ordinary rule about the remaining members or items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from maskwright.errors import GrammarError, LimitError
from maskwright.frontends.json_schema.algebra.groups import (
    ANYTHING,
    ArrayGroup,
    Conjunction,
    Contained,
    Either,
    Group,
    Keys,
    Neither,
    ObjectGroup,
    Some,
)
from maskwright.frontends.json_schema.algebra.typed import item_keywords, negation
from maskwright.frontends.json_schema.read.keywords import dependent_schemas, held, is_hidden
from maskwright.frontends.json_schema.read.nodes import Node

if TYPE_CHECKING:
    from maskwright.frontends.json_schema.algebra.normalize import Normalizer

SELF_REFERENCE = "this subschema refers to itself without a member or item in between"
_KEYWORDS = ("unevaluatedProperties", "unevaluatedItems")


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Members with these names or patterns, or all; items below ``prefix``, or all, or those that
    satisfy one of ``contained``."""

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    members: bool = False
    prefix: int = 0
    items: bool = False
    contained: tuple[Conjunction, ...] = ()

    def joined(self, other: Evaluated) -> Evaluated:
        return Evaluated(
            tuple(dict.fromkeys((*self.names, *other.names))),
            tuple(dict.fromkeys((*self.patterns, *other.patterns))),
            self.members or other.members,
            max(self.prefix, other.prefix),
            self.items or other.items,
            tuple(dict.fromkeys((*self.contained, *other.contained))),
        )


NONE = Evaluated()
Variant = tuple[tuple[Group, ...], Evaluated]


class Unevaluated:
    """Reduces the two keywords to rules about members and items."""

    def __init__(self, normalizer: Normalizer) -> None:
        self.normalizer = normalizer
        self._open: list[Node] = []

    def release(self) -> None:
        """Let go of what refers back, so that nothing waits for the garbage collector."""
        del self.normalizer

    def concerns(self, node: Node) -> bool:
        """Whether a schema object has one of the keywords, and it demands something."""
        schema = node.value
        return any(keyword in schema and schema[keyword] not in (True, {}) for keyword in _KEYWORDS)

    def groups(self, node: Node) -> tuple[Group, ...]:
        """The groups of a schema object with one of the keywords."""
        from maskwright.frontends.json_schema.algebra.normalize import union

        return union(groups for groups, _ in self.variants(node))

    def violations(self, node: Node) -> tuple[Group, ...]:
        """What ``groups`` does not allow."""
        from maskwright.frontends.json_schema.algebra.normalize import union

        value = {keyword: held for keyword, held in node.value.items() if keyword not in _KEYWORDS}
        bare = Node(node.pointer + " (without unevaluated...)", value, node.base, scope=node.scope)
        parts: list[Sequence[Group]] = [self.normalizer.expand(bare.negation())]
        for groups, evaluated in self._below(node):
            parts.extend(
                self.normalizer.meet_all(groups, (group,), node.pointer)
                for group in self._violating(node, evaluated)
            )
        return union(parts)

    def variants(self, node: Node) -> list[Variant]:
        """The ways in which a schema can hold, with what each evaluates."""
        if node.is_value or node.negated or not isinstance(node.value, dict):
            return [(self.normalizer.expand(node), NONE)]
        limit = self.normalizer.limits.max_depth
        if node in self._open:
            raise GrammarError(SELF_REFERENCE, place=node.pointer or "#")
        if len(self._open) >= limit:
            raise LimitError("max_depth", len(self._open) + 1, limit, place=node.pointer)
        self._open.append(node)
        try:
            found = self._below(node)
        finally:
            self._open.pop()
        schema = node.value
        if "unevaluatedProperties" in schema:
            found = [
                (self._with(groups, self._member_rule(node, seen), node), replace(seen, members=True))
                for groups, seen in found
            ]
        if "unevaluatedItems" in schema:
            found = [
                (self._with(groups, self._item_rule(node, seen), node), replace(seen, items=True))
                for groups, seen in found
            ]
        return [(groups, seen) for groups, seen in found if groups]

    def _with(self, groups: tuple[Group, ...], rule: Group | None, node: Node) -> tuple[Group, ...]:
        if rule is None:
            return groups
        others = tuple(g for g in ANYTHING if type(g) is not type(rule))
        return self.normalizer.meet_all(groups, (*others, rule), node.pointer)

    def _member_rule(self, node: Node, seen: Evaluated) -> Group | None:
        if seen.members:
            return None
        rest = Keys(seen.names, seen.patterns, outside=True)
        return ObjectGroup(((rest, (node.at("unevaluatedProperties"),)),))

    def _item_rule(self, node: Node, seen: Evaluated) -> Group | None:
        if seen.items:
            return None
        return ArrayGroup(((),) * seen.prefix, self._item(node, seen))

    def _item(self, node: Node, seen: Evaluated) -> Conjunction:
        rest: Conjunction = (node.at("unevaluatedItems"),)
        if seen.contained:
            # A name that holds for this variant only.
            pointer = f"{node.pointer}/unevaluatedItems (or {len(seen.contained)} contained)"
            rest = (Either(pointer, (rest, *seen.contained)),)
        return rest

    def _violating(self, node: Node, seen: Evaluated) -> list[Group]:
        found: list[Group] = []
        if "unevaluatedProperties" in node.value and not seen.members:
            rest = Keys(seen.names, seen.patterns, outside=True)
            wrong = negation((node.at("unevaluatedProperties"),), node.pointer)
            found.append(ObjectGroup(clauses=((Some(rest, wrong),),)))
        if "unevaluatedItems" in node.value and not seen.items:
            wrong = negation(self._item(node, seen), node.pointer)
            found.append(ArrayGroup(contained=(Contained(wrong, start=seen.prefix),)))
        return found

    # --- the ways in which the other keywords hold

    def _below(self, node: Node) -> list[Variant]:
        from maskwright.frontends.json_schema.algebra.normalize import without

        normalizer, schema, pointer = self.normalizer, node.value, node.pointer
        found: list[Variant] = [(normalizer.own(node), self._own(node))]
        for keyword in node.base.dialect.references:
            if keyword in schema:
                target = normalizer.document.resolve(node, keyword)
                found = self._both(found, self.variants(target), pointer)
        if is_hidden(node):
            return found
        for branch in held(node, "allOf") if "allOf" in schema else ():
            found = self._both(found, self.variants(branch), branch.pointer)
        if "anyOf" in schema:
            found = self._both(found, self._some_of(held(node, "anyOf"), pointer), pointer)
        if "oneOf" in schema:
            found = self._both(found, self._one_of(held(node, "oneOf"), pointer), pointer)
        if "not" in schema:
            found = self._both(found, [(normalizer.expand(node.at("not").negation()), NONE)], pointer)
        if "if" in schema:
            condition = node.at("if")
            then = self.variants(condition)
            otherwise: list[Variant] = [(normalizer.expand(condition.negation()), NONE)]
            if "then" in schema:
                then = self._both(then, self.variants(node.at("then")), pointer)
            if "else" in schema:
                otherwise = self._both(otherwise, self.variants(node.at("else")), pointer)
            found = self._both(found, then + otherwise, pointer)
        for name, branch in dependent_schemas(node):
            present: list[Variant] = [((ObjectGroup(required=(name,)),), NONE)]
            ways = [
                (without(name, branch.pointer), NONE),
                *self._both(present, self.variants(branch), pointer),
            ]
            found = self._both(found, ways, pointer)
        return found

    def _both(self, a: list[Variant], b: list[Variant], pointer: str) -> list[Variant]:
        found: list[Variant] = []
        for (left, seen), (right, more) in product(a, b):
            groups = self.normalizer.meet_all(left, right, pointer)
            if groups:
                found.append((groups, seen.joined(more)))
            self.normalizer.check_branches(len(found), pointer)
        return found

    def _some_of(self, branches: list[Node], pointer: str) -> list[Variant]:
        # Every set of branches that hold together, while the others do not.
        found: list[Variant] = [(ANYTHING, NONE)]
        holding = [False]
        for branch in branches:
            yes, no = self.variants(branch), self.normalizer.expand(branch.negation())
            after: list[Variant] = []
            flags: list[bool] = []
            for variant, holds in zip(found, holding, strict=True):
                chosen = self._both([variant], yes, pointer)
                left = self._both([variant], [(no, NONE)], pointer)
                after += chosen + left
                flags += [True] * len(chosen) + [holds] * len(left)
            found, holding = after, flags
            self.normalizer.check_branches(len(found), pointer)
        return [variant for variant, holds in zip(found, holding, strict=True) if holds]

    def _one_of(self, branches: list[Node], pointer: str) -> list[Variant]:
        found: list[Variant] = []
        for branch in branches:
            others = tuple((other,) for other in branches if other is not branch)
            alone = self.normalizer.expand(Neither(f"{branch.pointer} alone", others))
            found += self._both(self.variants(branch), [(alone, NONE)], pointer)
        return found

    def _own(self, node: Node) -> Evaluated:
        schema = node.value
        listing, rest = item_keywords(node)
        contained: tuple[Conjunction, ...] = ()
        if "contains" in schema and node.base.dialect.contains_evaluates:
            contained = ((node.at("contains"),),)
        return Evaluated(
            tuple(schema.get("properties", ())),
            tuple(schema.get("patternProperties", ())),
            "additionalProperties" in schema,
            0 if listing is None else len(schema[listing]),
            rest in schema,
            contained,
        )
