"""Members that tell object groups apart: required ones with few values.

A chain of conditions (``if`` a member has this value ``then`` ...) makes one group for each of n values, and every
further condition meets all of them.  Most of these meets change nothing, or leave nothing, for the member's value alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskwright.base.deadline import check_time_again, let_go
from maskwright.errors import GrammarError, LimitError
from maskwright.frontends.json_schema.algebra.groups import (
    BooleanGroup,
    Conjunction,
    Group,
    Keys,
    NullGroup,
    NumberGroup,
    ObjectGroup,
    Some,
    StringGroup,
)

if TYPE_CHECKING:
    from maskwright.frontends.json_schema.algebra.normalize import Normalizer

_FEW = 4  # rules of a condition that are looked at


class Discriminators:
    """What is known of the values of required members."""

    normalizer: Normalizer
    _settled: dict[int, ObjectGroup]
    """By id, with the groups themselves: as long as they are here, ids tell them apart."""
    _values: dict[tuple[int, str], frozenset[object] | None]
    _listed: dict[Conjunction, frozenset[object] | None]

    def __init__(self, normalizer: Normalizer) -> None:
        self.normalizer = normalizer
        self._settled = {}
        self._values = {}
        self._listed = {}

    def release(self) -> None:
        """Let go of what refers back, so that nothing waits for the garbage collector."""
        self.normalizer = None  # type: ignore[assignment]
        let_go(self._settled, self._values, self._listed)

    def settle(self, group: Group) -> None:
        """From now on, ask this group: it is not trivially empty, and has no idle clauses."""
        if isinstance(group, ObjectGroup):
            self._settled[id(group)] = group

    def settled(self, group: Group) -> ObjectGroup | None:
        """The same group, if it may be asked."""
        return self._settled.get(id(group))

    def apart(self, settled: ObjectGroup, other: ObjectGroup) -> bool:
        """Whether a member with listed values, required in the settled group, has none of them in the other one."""
        for i in range(min(len(other.rules), _FEW)):
            keys: Keys = other.rules[i][0]
            if other.rules[i][1] and _is_one(keys) and keys.names[0] in settled.required:
                theirs = self._listed_values(other.rules[i][1])
                if theirs is not None:
                    ours = self._values_of(settled, keys.names[0])
                    if ours is not None and ours.isdisjoint(theirs):
                        return True
        return False

    def implies(self, settled: ObjectGroup, other: ObjectGroup) -> bool:
        """Whether the other group says nothing but clauses that hold for all listed values of a member required in the settled one."""
        if not other.clauses or other.min_members or other.max_members is not None:
            return False
        told: set[str] = set()
        for clause in other.clauses:
            for atom in clause:
                if isinstance(atom, Some):
                    some: Some = atom
                    name = some.keys.names[0] if _is_one(some.keys) else None
                    if name in settled.required and self._all_satisfy(settled, name, some.value):
                        told.add(name)
                        break
            else:
                return False
        for name in other.required:
            if name not in settled.required:
                return False
        for rule in other.rules:
            keys: Keys = rule[0]
            # What names one of these members alone declares nothing new.
            if rule[1] or not _is_one(keys) or keys.names[0] not in told:
                return False
        return True

    def _all_satisfy(self, settled: ObjectGroup, name: str, conjunction: Conjunction) -> bool:
        values = self._values_of(settled, name)
        if values is None:
            return False
        opposite = conjunction[0].negation() if len(conjunction) == 1 else None
        excluded = self._listed_values((opposite,)) if opposite is not None else None
        return excluded is not None and values.isdisjoint(excluded)

    def _values_of(self, settled: ObjectGroup, name: str) -> frozenset[object] | None:
        """The values of a member, if they are listed."""
        key = id(settled), name
        if key not in self._values:
            self._values[key] = self._listed_values(self.normalizer.trivially_empty.keys(settled).value(name))
        return self._values[key]

    def _listed_values(self, conjunction: Conjunction) -> frozenset[object] | None:
        if not conjunction:
            return None
        if conjunction not in self._listed:
            mark = len(self.normalizer.clashes)
            try:
                self._listed[conjunction] = _values(self.normalizer.inside(conjunction))
            except LimitError as error:
                check_time_again(error)
                return None
            except GrammarError:
                # Whoever needs what is below will meet the error again.
                return None
            finally:
                del self.normalizer.clashes[mark:]
        return self._listed[conjunction]


def _values(groups: tuple[Group, ...]) -> frozenset[object] | None:
    """All values of some groups, if each lists its own."""
    found: list[object] = []
    for group in groups:
        if isinstance(group, NullGroup):
            found.append((NullGroup, None))
        elif isinstance(group, (StringGroup, NumberGroup, BooleanGroup)) and group.values is not None:
            found += [(type(group), value) for value in group.values]
        else:
            return None
    return frozenset(found)


def _is_one(keys: Keys) -> bool:
    return len(keys.names) == 1 and not keys.outside and not keys.patterns and keys.schemas is None
