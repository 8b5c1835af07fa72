"""The values of conjunctions that have only few: numbers, strings, and arrays and objects of such values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import product
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from maskwright.base.deadline import check_time
from maskwright.frontends.json_schema.algebra.groups import (
    EVERY_KEY,
    ArrayGroup,
    BooleanGroup,
    Conjunction,
    Group,
    NullGroup,
    NumberGroup,
    ObjectGroup,
    StringGroup,
)
from maskwright.frontends.json_schema.algebra.keys import KeyMap

if TYPE_CHECKING:
    from maskwright.frontends.json_schema.algebra.normalize import Normalizer

_DEPTH = 12
_MANY = 1000

_Values: TypeAlias = frozenset[Hashable]
"""Equal JSON values are equal here, and no others."""


class FewValues:
    """Lists the values of conjunctions that have less than ``enough``."""

    def __init__(self, normalizer: Normalizer, enough: int) -> None:
        self.normalizer = normalizer
        self.enough = enough
        self._known: dict[Conjunction, _Values | None] = {}
        self._depth = 0

    def of(self, conjunction: Conjunction) -> _Values | None:
        """All values that satisfy all of these, maybe with others; None: not seen, or there may be enough."""
        check_time()
        if conjunction and conjunction not in self._known:
            # What is inside of itself is not looked at again.
            self._known[conjunction] = None
            if self._depth < _DEPTH:
                self._depth += 1
                self._known[conjunction] = self._of_groups(self.normalizer.groups(conjunction))
                self._depth -= 1
        return self._known.get(conjunction)

    def _of_groups(self, groups: Iterable[Group]) -> _Values | None:
        total: _Values = frozenset()
        for group in groups:
            values = self._of_group(group)
            if values is None:
                return None
            total |= values
            if len(total) >= self.enough:
                return None
        return total

    def _of_group(self, group: Group) -> _Values | None:
        if isinstance(group, NullGroup):
            return frozenset((None,))
        if isinstance(group, BooleanGroup):
            return frozenset(("boolean", value) for value in group.values)
        if isinstance(group, (NumberGroup, StringGroup)):
            return None if group.values is None else frozenset(group.values)
        return self._arrays(group) if isinstance(group, ArrayGroup) else self._objects(group)

    def _arrays(self, group: ArrayGroup) -> _Values | None:
        low, high = group.min_items, group.max_items
        if high is None or high > len(group.prefix) + _MANY or high - low >= self.enough:
            return None
        total: set[Hashable] = set()
        for length in range(low, high + 1):
            arrays = self._combined(group.item(i) for i in range(length))
            if arrays is None:
                return None
            total.update(("array", array) for array in arrays)
        return frozenset(total)

    def _objects(self, group: ObjectGroup) -> _Values | None:
        if group.max_members == 0:
            return frozenset((frozenset(),))
        keys = KeyMap(group, self.normalizer)
        names, others = keys.candidates(EVERY_KEY)
        if others or len(names) > len(group.required):
            return None
        objects = self._combined(keys.value(name) for name in names)
        if objects is None:
            return None
        return frozenset(frozenset(zip(names, values, strict=True)) for values in objects)

    def _combined(self, places: Iterable[Conjunction]) -> Iterable[tuple[Hashable, ...]] | None:
        """Each way to take a value at each place."""
        parts = []
        for place in places:
            values = self.of(place)
            if values is None:
                return None
            parts.append(values)
        return product(*parts) if prod(map(len, parts)) < self.enough else None
