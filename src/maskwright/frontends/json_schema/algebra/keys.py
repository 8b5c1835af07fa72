"""Which member names a set of keys holds, and what an object group says about a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskwright.base.deadline import check_time, if_many, in_time
from maskwright.frontends.json_schema.algebra.groups import (
    Conjunction,
    Keys,
    ObjectGroup,
    Rule,
    StringGroup,
    atom_names,
    conjoin_all,
)
from maskwright.frontends.json_schema.algebra.strings import pattern_found, string_allows
from maskwright.frontends.json_schema.read.nodes import Node

if TYPE_CHECKING:
    from maskwright.frontends.json_schema.algebra.normalize import Normalizer


_FEW = 8  # Comparisons that are faster than hashing.
_FEW_ASKED = 4  # Names that are faster looked for than all sorted.


class KeyMap:
    """The rules of an object group, by name.

    ``like``: one of a group that may have the same rules, of which everything is known already then.
    """

    group: ObjectGroup
    normalizer: Normalizer
    general: list[Rule]
    """The rules that are not about listed names."""
    _listing: list[Rule]
    """The others."""
    _by_name: dict[str, Conjunction] | None
    """What they say by name, once many were asked for."""
    _values: dict[str, Conjunction]
    """What was answered by name."""
    _declared: list[str] | None
    _general_last: bool
    """Whether the rules about listed names come before the others."""
    _listed: dict[int, set[str]]
    """The names of general rules that have many, by the id of the keys."""

    def __init__(self, group: ObjectGroup, normalizer: Normalizer, like: KeyMap | None = None) -> None:
        self.group = group
        self.normalizer = normalizer
        self._declared = None
        if like is not None and like.group.rules is group.rules:
            self._by_name, self._values, self._listed = like._by_name, like._values, like._listed
            self._general_last, self._listing, self.general = like._general_last, like._listing, like.general
            return
        self._by_name = None
        self._values = {}
        self._listed = {}
        self._general_last = True
        self._listing = []
        self.general = []
        for rule in group.rules:
            check_time()
            keys: Keys = rule[0]
            if keys.outside or keys.patterns or keys.schemas is not None:
                self.general.append(rule)
                if len(keys.names) > _FEW:
                    self._listed[id(keys)] = set(keys.names)
            else:
                self._general_last = self._general_last and not self.general
                self._listing.append(rule)

    def _names(self) -> dict[str, Conjunction]:
        """What the rules about listed names say of each."""
        found = self._by_name
        if found is None:
            found = self._by_name = {}
            more: dict[str, list[Conjunction]] = {}
            for rule in self._listing:
                check_time()
                keys: Keys = rule[0]
                for name in keys.names:
                    if name not in found:
                        found[name] = rule[1]
                    elif rule[1]:
                        more.setdefault(name, []).append(rule[1])
            for name, parts in more.items():
                found[name] = conjoin_all(found[name], parts)
        return found

    @property
    def declared(self) -> list[str]:
        """Names listed in rules, required or in clauses, in this order."""
        found = self._declared
        if found is None:
            group = self.group
            # Names of rules that are not general are there in their order.
            declared: dict[str, object] = dict.fromkeys(if_many(self._names()) if self._general_last else ())
            for rule in self.general if self._general_last else group.rules:
                keys: Keys = rule[0]
                check_time()
                for name in keys.names:
                    if name not in declared:
                        declared[name] = None
            for name in if_many(group.required):
                if name not in declared:
                    declared[name] = None
            for clause in group.clauses:
                check_time()
                for atom in clause:
                    declared.update(dict.fromkeys(atom_names(atom)))
            self._declared = found = list(if_many(declared))
        return found

    def value(self, name: str) -> Conjunction:
        """What the value of a member of this name must satisfy."""
        known: Conjunction | None = self._values.get(name)
        if known is not None:
            return known
        value: Conjunction = ()
        parts: list[Conjunction] = []
        if self._by_name is None and len(self._values) < _FEW_ASKED:
            for rule in self._listing:
                listed: Keys = rule[0]
                if rule[1] and name in listed.names:
                    parts.append(rule[1])
        else:
            value = self._names().get(name, ())
        for keys, conjunction in self.general:
            if conjunction and self.holds(keys, name):
                parts.append(conjunction)
        if parts:
            value = conjoin_all(value, parts)
        self._values[name] = value
        return value

    def holds(self, keys: Keys, name: str) -> bool:
        """Whether a name is one of the keys."""
        if not keys.names and not keys.patterns and keys.schemas is None:
            return keys.outside
        inside = name in self._listed.get(id(keys), keys.names)
        for pattern in keys.patterns:
            check_time()
            inside = inside or pattern_found(pattern, name, self.normalizer.limits)
        inside = inside or (keys.schemas is not None and self.satisfies(keys.schemas, name))
        return inside != keys.outside

    def satisfies(self, schemas: Conjunction, name: str) -> bool:
        """Whether a name, as a string, satisfies all of these."""
        limits = self.normalizer.limits
        return any(
            string_allows(group, name, limits) and (group.values is None or name in group.values)
            for group in string_groups(self.normalizer, schemas)
        )

    def candidates(self, keys: Keys) -> tuple[list[str], bool]:
        """The declared names among ``keys``, and whether other ones may be among them and occur."""
        if not keys.outside and not keys.patterns and keys.schemas is None:
            return list(keys.names), False
        names = [name for name in in_time(self.declared) if self.holds(keys, name)]
        # Other names are excluded when a rule forbids all of them.
        for rule, value in self.general:
            if rule.outside and not rule.patterns and rule.schemas is None and is_false(value):
                return names, False
        return names, True


def string_groups(normalizer: Normalizer, schemas: Conjunction) -> list[StringGroup]:
    """The string groups among those of a conjunction."""
    return [group for group in normalizer.inside(schemas) if isinstance(group, StringGroup)]


def is_false(value: Conjunction) -> bool:
    """Whether one of these is the schema false."""
    for literal in value:
        if isinstance(literal, Node):
            node: Node = literal
            if not node.is_value and isinstance(node.value, bool) and node.value == node.negated:
                return True
    return False
