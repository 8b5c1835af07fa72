"""Schemas -> unions of typed groups.

``groups`` of a conjunction of subschemas is the list of groups whose union is exactly the values
that satisfy all of them.  Subschemas of members and items are not looked into, so recursion in
a schema is no recursion here; references and applicators in place are followed on the spot.
Every literal has a complement (``_expand_not``), so ``not``, ``oneOf`` and ``if`` need nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from maskwright.base.deadline import check_time, in_time, let_go
from maskwright.errors import GrammarError, LimitError
from maskwright.frontends.json_schema.algebra.clauses import propagate_units
from maskwright.frontends.json_schema.algebra.discriminators import Discriminators
from maskwright.frontends.json_schema.algebra.groups import (
    ANYTHING,
    Clash,
    Conjunction,
    Either,
    Group,
    Keys,
    Literal,
    Neither,
    NumberGroup,
    ObjectGroup,
    StringGroup,
    atom_names,
    listed_together,
    meet,
    nothing,
    value_group,
)
from maskwright.frontends.json_schema.algebra.strings import widened
from maskwright.frontends.json_schema.algebra.trivially_empty import TriviallyEmpty, remember
from maskwright.frontends.json_schema.algebra.typed import TypedKeywords, complement, value_groups
from maskwright.frontends.json_schema.algebra.unevaluated import SELF_REFERENCE, Unevaluated
from maskwright.frontends.json_schema.read.document import Document
from maskwright.frontends.json_schema.read.keywords import dependent_schemas, held, is_hidden
from maskwright.frontends.json_schema.read.nodes import Node, says_any
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.limits import Limits

_IN_PLACE = frozenset(
    (
        "allOf", "anyOf", "oneOf", "not", "if", "dependencies", "dependentSchemas",
    )
)  # fmt: skip

_BEYOND_TYPES = _IN_PLACE | {
    "$ref", "$dynamicRef", "$recursiveRef", "const", "enum", "unevaluatedItems", "unevaluatedProperties",
}  # fmt: skip
"""Without these, a schema says no more than what ``typed`` reads."""

Count: TypeAlias = int
Pairs: TypeAlias = dict[int, dict[int, bool]]
# Above this many groups, empty ones and idle clauses are looked for: conditions multiply.
_MANY = 16

# What lies on such a way is expanded anew each time it is come to.
_MAX_SELF_REFERENCES = 1000
_NOTHING_OPEN = 1 << 30


class Normalizer:
    """Normalises the subschemas of one document; remembers why branches were dropped."""

    document: Document
    options: SchemaOptions
    limits: Limits
    clashes: list[tuple[str, str]]
    """(pointer, message) of every contradiction met."""
    typed: TypedKeywords
    trivially_empty: TriviallyEmpty
    _discriminators: Discriminators
    _unevaluated: Unevaluated
    _known: dict[Literal, tuple[Group, ...]]
    _conjunctions: dict[Conjunction, tuple[Group, ...]]
    _listed: dict[tuple[Node, str], tuple[Group, ...]]
    """Many groups of values, by place.  They are freed at the end: in the middle, all of them would be at once."""
    _open: list[Literal]
    _lowest: int
    """The outermost open literal that what is being expanded refers to."""
    _max_depth: int
    _deepest: int
    """Compiled functions recurse on the stack of C, of which Python takes no notice."""
    _self_references: int
    _outside: int
    """So many of the open literals are further out than a member or an item."""

    def __init__(self, document: Document, options: SchemaOptions, limits: Limits) -> None:
        self.document = document
        self.options = options
        self.limits = limits
        self.clashes = []
        self.typed = TypedKeywords(options, limits)
        self.trivially_empty = TriviallyEmpty(self, limits)
        self._discriminators = Discriminators(self)
        self._unevaluated = Unevaluated(self)
        self._known = {}
        self._conjunctions = {}
        self._listed = {}
        self._open = []
        self._lowest = _NOTHING_OPEN
        self._max_depth = limits.max_depth
        self._deepest = sys.getrecursionlimit()
        self._self_references = self._outside = 0

    def groups(self, conjunction: Conjunction) -> tuple[Group, ...]:
        """The groups whose union satisfies all of these; empty when nothing does."""
        many = len(conjunction)
        if many < 2:
            return self.expand(conjunction[0]) if many else ANYTHING
        known = self._conjunctions.get(conjunction)
        if known is not None:
            return known
        clashing = _demanded_both_ways(conjunction)
        if clashing is not None:
            self.clashes.append((clashing.pointer, "both a schema and its opposite are demanded"))
            return ()
        # Conjunctions grow by one literal at a time.
        groups, done = ANYTHING, 0
        known = self._conjunctions.get(conjunction[:-1]) if many > 2 else None
        if known is not None:
            groups, done = known, many - 1
        for literal in conjunction[done:]:
            groups = self.meet_all(groups, self.expand(literal), literal.pointer)
        if self._lowest >= len(self._open):
            # Otherwise something further out is still to be known.
            remember(self._conjunctions, conjunction, groups)
        return groups

    def meet_all(self, a: Sequence[Group], b: Sequence[Group], pointer: str) -> tuple[Group, ...]:
        """What both unions allow."""
        if a is ANYTHING:
            return tuple(b)
        if b is ANYTHING:
            return tuple(a)
        met: list[Group] = []
        reasons: list[str] = []
        telling = len(a) > _MANY
        try:
            for left in a:
                check_time()
                known = self._discriminators.settled(left) if telling else None
                for right in b:
                    if known is not None and isinstance(right, ObjectGroup):
                        if self._discriminators.apart(known, right):
                            continue
                        if self._discriminators.implies(known, right):
                            met.append(left)
                            continue
                    try:
                        both = meet(left, right)
                    except Clash as clash:
                        reasons.append(str(clash))
                        continue
                    if both is not None:
                        met.append(both)
                self.check_branches(len(met), pointer)
        except BaseException:
            let_go(met)
            raise
        if len(met) > _MANY:
            met = self._cleared(met)
        if not met and a and b:
            kinds = [" or ".join(sorted({type(g).__name__[:-5].lower() for g in side})) for side in (a, b)]
            reasons.append(f"{kinds[0]} here, {kinds[1]} there")
        if reasons:
            self.clashes.extend([(pointer, reason) for reason in reasons])
        return (
            tuple(met) if len(met) < 2 or len(a) == 1 or len(b) == 1 else tuple(dict.fromkeys(in_time(met)))
        )

    def _cleared(self, groups: list[Group]) -> list[Group]:
        """Without those that are seen to be empty, and without idle clauses."""
        found: list[Group] = []
        for group in groups:
            if self._discriminators.settled(group) is not None:
                found.append(group)
            elif not self.trivially_empty.group(group):
                group = self._with_units_propagated(group)
                self._discriminators.settle(group)
                found.append(group)
        return found

    def _with_units_propagated(self, group: Group) -> Group:
        if not isinstance(group, ObjectGroup) or not group.clauses:
            return group
        try:
            return propagate_units(group, self)
        except (LimitError, GrammarError):
            # Whoever needs what is below will meet the error again.
            return group

    def check_branches(self, count: Count, pointer: str) -> None:
        limit = self.limits.max_schema_branches
        if count > limit:
            raise LimitError("max_schema_branches", count, limit, place=pointer or "#")

    def inside(self, conjunction: Conjunction) -> tuple[Group, ...]:
        """``groups``, for a member or an item of what is being expanded."""
        outside, self._outside = self._outside, len(self._open)
        lowest, self._lowest = self._lowest, _NOTHING_OPEN
        try:
            return self.groups(conjunction)
        finally:
            self._outside, self._lowest = outside, lowest

    def release(self) -> None:
        """Let go of what refers back, so that nothing waits for the garbage collector."""
        self.trivially_empty.release()
        self._discriminators.release()
        self._unevaluated.release()
        let_go(self._known, self._conjunctions, self._listed)

    # --- one literal

    def expand(self, literal: Literal) -> tuple[Group, ...]:
        """The groups of one literal."""
        known = self._known.get(literal)
        if known is not None:
            return known
        if isinstance(literal, Node) and self.document.shares:
            first: Node = literal.alike()
            if first != literal:
                groups = self.expand(first)
                if first in self._known:
                    remember(self._known, literal, groups)
                return groups
        check_time()
        if literal in self._open:
            return self._self_reference(literal)
        if len(self._open) >= self._max_depth:
            raise LimitError("max_depth", len(self._open) + 1, self._max_depth, place=literal.pointer)
        if len(self._open) >= self._deepest:
            raise RecursionError
        self._open.append(literal)
        try:
            if isinstance(literal, Either):
                groups = union([self.groups(c) for c in literal.alternatives])
            elif isinstance(literal, Neither):
                groups = ANYTHING
                for conjunction in literal.alternatives:
                    opposite = union([self.expand(part.negation()) for part in conjunction])
                    groups = self.meet_all(groups, opposite, literal.pointer)
            elif literal.negated:
                groups = self._expand_not(literal.negation())
            else:
                groups = self._expand_node(literal)
        finally:
            self._open.pop()
        if self._lowest >= len(self._open):
            # Otherwise something further out is still to be known.
            remember(self._known, literal, groups)
            self._lowest = _NOTHING_OPEN
        return groups

    def _self_reference(self, literal: Literal) -> tuple[Group, ...]:
        """What a subschema that is being expanded contributes to itself: nothing.

        No value owes its validity to itself alone, and this is what validators find that get to an
        end.  Unions and intersections distribute, so once is enough; a subschema that refers to its
        opposite has no meaning.
        """
        start = self._open.index(literal)
        self._self_references += 1
        if (
            start < self._outside
            or any(
                isinstance(part, Neither) or (isinstance(part, Node) and part.negated)
                for part in self._open[start:]
            )
            or self._self_references > _MAX_SELF_REFERENCES
        ):
            raise GrammarError(SELF_REFERENCE, place=literal.pointer or "#")
        self._lowest = min(self._lowest, start)
        self.clashes.append((literal.pointer, SELF_REFERENCE))
        return ()

    def _expand_node(self, node: Node) -> tuple[Group, ...]:
        if node.is_value:
            return (value_group(node),)
        if node.value is True:
            return ANYTHING
        if node.value is False:
            self.clashes.append((node.pointer, "the schema false allows nothing"))
            return ()
        schema: dict[str, Any] = node.value
        if not says_any(schema, _BEYOND_TYPES):
            return self.typed.groups(node, self.clashes)
        if ("unevaluatedProperties" in schema or "unevaluatedItems" in schema) and self._unevaluated.concerns(
            node
        ):
            return self._unevaluated.groups(node)
        groups: tuple[Group, ...] = ANYTHING
        for keyword in node.base.dialect.references:
            if keyword in schema:
                target = self.expand(self.document.resolve(node, keyword))
                groups = self.meet_all(groups, target, f"{node.pointer}/{keyword}")
        if is_hidden(node):
            return groups
        groups = self.meet_all(groups, self.own(node), node.pointer)
        if not says_any(schema, _IN_PLACE):
            return groups
        for branch in held(node, "allOf") if "allOf" in schema else ():
            groups = self.meet_all(groups, self.expand(branch), branch.pointer)
        if "anyOf" in schema:
            # Lists, not generators: there is a Python frame less for each level.
            alternatives = union([self.expand(branch) for branch in held(node, "anyOf")])
            groups = self.meet_all(groups, alternatives, f"{node.pointer}/anyOf")
        if "not" in schema:
            branch = node.at("not").negation()
            groups = self.meet_all(groups, self.expand(branch), branch.pointer)
        if "if" in schema:
            groups = self.meet_all(groups, self._conditional(node), f"{node.pointer}/if")
        for name, branch in dependent_schemas(node):
            with_member = self.meet_all((ObjectGroup(required=(name,)),), self.expand(branch), branch.pointer)
            groups = self.meet_all(groups, (*without(name, branch.pointer), *with_member), branch.pointer)
        if "oneOf" in schema:
            groups = self._exactly_one(groups, held(node, "oneOf"), f"{node.pointer}/oneOf")
        if "oneOf" in schema or "if" in schema:
            groups = self._in_order(groups, node)
        return groups

    def _in_order(self, groups: tuple[Group, ...], node: Node) -> tuple[Group, ...]:
        """The same groups; objects with clauses have their declared members in the order of the schema."""
        names: dict[str, None] | None = None
        found: list[Group] = []
        for group in groups:
            if isinstance(group, ObjectGroup) and group.clauses:
                mentioned = {name for clause in group.clauses for atom in clause for name in atom_names(atom)}
                mentioned.update([name for keys, _ in group.rules for name in keys.names])
                mentioned.update(group.required)
                if names is None:
                    names = self._names(node, set())
                order = tuple([name for name in names if name in mentioned])
                group = replace(group, rules=((Keys(order), ()), *group.rules))
            found.append(group)
        return tuple(found)

    def _names(self, node: Node, seen: set[Node]) -> dict[str, None]:
        """Member names in the order in which the schema, with its branches in place, mentions them."""
        names: dict[str, None] = {}
        if not isinstance(node.value, dict) or node.is_value or node in seen:
            return names
        seen.add(node)
        schema = node.value
        branches: list[Node] = []
        for keyword in node.base.dialect.references:
            if keyword in schema:
                branches.append(self.document.resolve(node, keyword))
        names.update(dict.fromkeys(schema.get("properties", ())))
        for keyword in ("allOf", "if", "then", "else", "anyOf", "oneOf"):
            if keyword in schema:
                branches += held(node, keyword)
        for branch in branches:
            names.update(self._names(branch, seen))
        return names

    def own(self, node: Node) -> tuple[Group, ...]:
        """What a schema says itself about each type, and by ``const`` and ``enum``."""
        groups = self.typed.groups(node, self.clashes)
        schema: dict[str, Any] = node.value
        for keyword in ("const", "enum"):
            if keyword in schema:
                listed = self._listed.get((node, keyword)) or value_groups(node, keyword)
                if len(listed) > _MANY:
                    self._listed[node, keyword] = listed
                groups = self.meet_all(groups, listed, f"{node.pointer}/{keyword}")
        return groups

    def _conditional(self, node: Node) -> tuple[Group, ...]:
        schema = node.value
        condition = node.at("if")
        if "then" not in schema and "else" not in schema:
            return ANYTHING
        then: tuple[Group, ...] = self.expand(condition)
        otherwise: tuple[Group, ...] = self.expand(condition.negation())
        if "then" in schema:
            then = self.meet_all(then, self.expand(node.at("then")), f"{node.pointer}/then")
        if "else" in schema:
            otherwise = self.meet_all(otherwise, self.expand(node.at("else")), f"{node.pointer}/else")
        return union((then, otherwise))

    def _exactly_one(self, groups: Sequence[Group], branches: list[Node], pointer: str) -> tuple[Group, ...]:
        # Each branch, without what another one allows as well.
        expanded = [self.meet_all(groups, self.expand(branch), branch.pointer) for branch in branches]
        found: dict[Group, object] = {}
        overlaps: Pairs = {}
        made: list[Group] = []
        beside = _Beside(expanded)
        try:
            for i, own in enumerate(expanded):
                kept = [group for group in own if not self.trivially_empty.group(group)]
                for j in beside.branches(i):
                    check_time()
                    if not kept:
                        break
                    branch = branches[j]
                    alone: list[Group] = []
                    shared: list[Group] = []
                    for group in kept:
                        side = shared if self._overlap_any(group, expanded[j], overlaps) else alone
                        side.append(group)
                    if shared:
                        cut = self.meet_all(tuple(shared), self.expand(branch.negation()), branch.pointer)
                        kept = alone + [group for group in cut if not self.trivially_empty.group(group)]
                        # As long as they are here, ids tell them apart.
                        made.extend(kept)
                found.update(dict.fromkeys(kept))
                self.check_branches(len(found), pointer)
        finally:
            let_go(overlaps, made)
        return tuple(found)

    def _overlap_any(self, group: Group, others: tuple[Group, ...], known: Pairs) -> bool:
        """Whether a group overlaps one of the others; ``known``: what was found for which two."""
        for other in others:
            if type(other) is not type(group):
                continue
            first, second = sorted((id(group), id(other)))
            of_first = known.setdefault(first, {})
            found = of_first.get(second)
            if found is None:
                found = of_first[second] = self.overlap(group, other)
            if found:
                return True
        return False

    def overlap(self, a: Group, b: Group) -> bool:
        """Whether two groups have something in common, as far as is easily seen, for some validator."""
        if isinstance(a, StringGroup) and isinstance(b, StringGroup):
            a, b = widened(a), widened(b)
        if isinstance(a, ObjectGroup) and isinstance(b, ObjectGroup):
            left: ObjectGroup = a
            right: ObjectGroup = b
            if left.max_members is None and right.max_members is None:
                return not self.trivially_empty.apart(left, right)
        try:
            both = meet(a, b)
        except Clash:
            return False
        return both is not None and not self.trivially_empty.group(both)

    # --- complements

    def _expand_not(self, node: Node) -> tuple[Group, ...]:
        """What the (positive) node does not allow: it violates one of its keywords."""
        schema, pointer = node.value, node.pointer
        if node.is_value:
            group = value_group(node)
            same_type = complement(group, pointer)
            return union((tuple([g for g in ANYTHING if type(g) is not type(group)]), same_type))
        if schema is True:
            self.clashes.append((pointer, "the opposite of the schema true allows nothing"))
            return ()
        if schema is False:
            return ANYTHING
        if self._unevaluated.concerns(node):
            return self._unevaluated.violations(node)
        parts: list[Sequence[Group]] = []
        for keyword in node.base.dialect.references:
            if keyword in schema:
                parts.append(self.expand(self.document.resolve(node, keyword).negation()))
        if is_hidden(node):
            return union(parts)
        parts.append(self.own_violations(node))
        if "allOf" in schema:
            parts.extend([self.expand(branch.negation()) for branch in held(node, "allOf")])
        if "anyOf" in schema:
            parts.append(self.expand(Neither(pointer, tuple([(b,) for b in held(node, "anyOf")]))))
        if "not" in schema:
            parts.append(self.expand(node.at("not")))
        if "if" in schema:
            condition = node.at("if")
            if "then" in schema:
                wrong = self.expand(node.at("then").negation())
                parts.append(self.meet_all(self.expand(condition), wrong, pointer))
            if "else" in schema:
                wrong = self.expand(node.at("else").negation())
                parts.append(self.meet_all(self.expand(condition.negation()), wrong, pointer))
        for name, branch in dependent_schemas(node):
            wrong = self.expand(branch.negation())
            parts.append(self.meet_all((ObjectGroup(required=(name,)),), wrong, branch.pointer))
        if "oneOf" in schema:
            branches = held(node, "oneOf")
            parts.append(self.expand(Neither(pointer, tuple([(b,) for b in branches]))))
            for i, first in enumerate(branches):
                for second in branches[:i]:
                    parts.append(self.meet_all(self.expand(first), self.expand(second), pointer))
        groups = union(parts)
        self.check_branches(len(groups), pointer)
        return groups

    def own_violations(self, node: Node) -> tuple[Group, ...]:
        """What ``own`` does not allow."""
        parts: list[Sequence[Group]] = [self.typed.violations(node)]
        for keyword in ("const", "enum"):
            if keyword in node.value:
                groups = ANYTHING
                for group in value_groups(node, keyword):
                    others = tuple(g for g in ANYTHING if type(g) is not type(group))
                    opposite = (*others, *complement(group, node.pointer))
                    groups = self.meet_all(groups, opposite, node.pointer)
                parts.append(groups)
        return union(parts)


class _Beside:
    """Which branches may overlap: of listed values, only those that list the same, or have a type without a list."""

    def __init__(self, expanded: list[tuple[Group, ...]]) -> None:
        self.expanded = expanded
        self.by_type: dict[object, list[int]] = {}
        self.open: dict[object, list[int]] = {}
        self.listing: dict[object, list[int]] = {}
        for i, groups in enumerate(expanded):
            for group in groups:
                check_time()
                self.by_type.setdefault(type(group), []).append(i)
                values = _listed_values(group)
                if values is None:
                    self.open.setdefault(type(group), []).append(i)
                for value in values or ():
                    check_time()
                    self.listing.setdefault((type(group), value), []).append(i)

    def branches(self, i: int) -> list[int]:
        """Those that may overlap branch ``i``, in order."""
        found: set[int] = set()
        for group in self.expanded[i]:
            check_time()
            values = _listed_values(group)
            found.update((self.by_type if values is None else self.open).get(type(group), ()))
            for value in values or ():
                check_time()
                found.update(self.listing[type(group), value])
        found.discard(i)
        return sorted(found)


def _listed_values(group: Group) -> tuple[object, ...] | None:
    return group.values if isinstance(group, (NumberGroup, StringGroup)) else None


def _demanded_both_ways(conjunction: Conjunction) -> Literal | None:
    """A literal whose opposite is in the conjunction as well, if there is one."""
    present: set[Literal] = set()
    for literal in conjunction:
        if isinstance(literal, Node):
            node: Node = literal
            if not node.negated:
                continue
        elif not isinstance(literal, Neither):
            continue
        # Of such a pair, one is of this kind.
        if not present:
            present.update(conjunction)
        if literal.negation() in present:
            return literal
    return None


_EVERYTHING = {type(group): group for group in ANYTHING}


def union(parts: Iterable[Sequence[Group]]) -> tuple[Group, ...]:
    """All groups, each once, without those that a full type includes; listed values are one group."""
    found: dict[Group, None] = {}
    for part in parts:
        check_time()
        many = len(part) > _MANY
        for group in part:
            if many:
                # Equal ones are compared, however large they are.
                check_time()
            found[group] = None
    full = set()
    for group in found:
        check_time()
        everything = _EVERYTHING[type(group)]
        if group is everything or group == everything:
            full.add(type(group))
    if len(full) == len(ANYTHING):
        return ANYTHING
    if len(found) > _MANY:
        found = dict.fromkeys(in_time(listed_together(found)))
    if full:
        found = {g: None for g in in_time(found) if type(g) not in full or g == _EVERYTHING[type(g)]}
    return tuple(found)


def without(name: str, pointer: str) -> tuple[Group, ...]:
    """All values but objects with a member of this name."""
    return (*ANYTHING[:-1], ObjectGroup(((Keys((name,)), (nothing(pointer),)),)))
