"""How many different values there are, as far as it is easily seen.

Arrays of different items need this: where every item that is still needed has more values than
there are items, none of them can run out.  Elsewhere the engine searches.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from maskwright.errors import GrammarError, LimitError, UnsupportedSchemaError
from maskwright.frontends.json_schema.algebra.few_values import FewValues
from maskwright.frontends.json_schema.algebra.groups import (
    ArrayGroup,
    BooleanGroup,
    Conjunction,
    Contained,
    Group,
    NullGroup,
    NumberGroup,
    ObjectGroup,
    StringGroup,
)
from maskwright.frontends.json_schema.algebra.keys import KeyMap
from maskwright.frontends.json_schema.algebra.strings import string_allows, written_language
from maskwright.frontends.json_schema.numbers.bounds import integer_bounds
from maskwright.limits import Limits
from maskwright.regular.dfa import count_texts
from maskwright.regular.memo import remembered

if TYPE_CHECKING:
    from maskwright.frontends.json_schema.algebra.normalize import Normalizer

_MANY = 1000
_LARGE = 10**15


class ValueCounts:
    """Counts the values of conjunctions, up to ``_MANY`` of a type; never more than there are."""

    def __init__(self, normalizer: Normalizer, limits: Limits) -> None:
        self.normalizer = normalizer
        self.limits = limits
        self._known: dict[Conjunction, tuple[int, int]] = {}

    def free_from(self, group: ArrayGroup) -> int | None:
        """``Distinct.free`` of the arrays of a group of which nothing is counted (else: ``CountedItems.free``)."""
        # The item at index i must be unlike i others; the first one may be anything.
        short = [
            i
            for i in range(1, min(group.min_items, len(group.prefix)))
            if self.at_least(group.prefix[i]) <= i
        ]
        if group.min_items > max(len(group.prefix), 1) and self.at_least(group.rest) < group.min_items:
            return group.min_items
        return short[-1] + 1 if short else 0

    def too_few(self, group: ArrayGroup) -> bool:
        """Whether it is seen that there are not as many different items as are needed."""
        # Whoever needs what is below a limit will meet the error again.
        with suppress(LimitError, GrammarError, UnsupportedSchemaError):
            if group.min_items > 1 and self._run_out(group):
                return True
            for contained in group.contained:
                low = contained.low
                if low > 1 and FewValues(self.normalizer, low).of(contained.items) is not None:
                    return True
        return False

    def all_differ(self, group: ArrayGroup) -> bool:
        """Whether it is seen that no two places of the arrays of a group have a value in common."""
        if group.max_items is None or group.max_items > len(group.prefix):
            return False
        few = FewValues(self.normalizer, _MANY)
        union: set[Hashable] = set()
        count = 0
        with suppress(LimitError, GrammarError, UnsupportedSchemaError):
            for place in group.prefix[: group.max_items]:
                values = few.of(place)
                if values is None:
                    return False
                union |= values
                count += len(values)
                if len(union) < count:
                    return False
            return True
        return False

    def _run_out(self, group: ArrayGroup) -> bool:
        """Whether some places that must be filled have less values than they are."""
        few = FewValues(self.normalizer, group.min_items)
        filled = group.prefix[: group.min_items]
        places = [(few.of(place), 1) for place in filled]
        if len(filled) < group.min_items:
            places.append((few.of(group.rest), group.min_items - len(filled)))
        known = [(values, count) for values, count in places if values is not None]
        union: set[Hashable] = set()
        needed = 0
        # Places with few values first: they are the first that run out.
        for values, count in sorted(known, key=lambda place: len(place[0])):
            union |= values
            needed += count
            if len(union) < needed:
                return True
            if len(union) >= group.min_items:
                break
        return False

    def most(self, group: ArrayGroup, contained: Contained) -> int | None:
        """A bound on the number of different items of a group that satisfy what ``contained`` is about."""
        # Other places have other items.
        return self.at_most(contained.items if group.prefix else (*group.rest, *contained.items))

    def least(self, group: ArrayGroup) -> int:
        """``Distinct.least`` of the arrays of a group."""
        return min(self.at_least(group.item(i)) for i in range(len(group.prefix) + 1))

    def at_least(self, conjunction: Conjunction) -> int:
        """A number of different values that satisfy all of these, if any do."""
        return self._counted(conjunction)[1]

    def surely(self, conjunction: Conjunction) -> int:
        """A number of different values that satisfy all of these."""
        return self._counted(conjunction)[0]

    def _counted(self, conjunction: Conjunction) -> tuple[int, int]:
        if conjunction not in self._known:
            self._known[conjunction] = (0, 0)
            # Whoever needs what is below a limit will meet the error again.
            with suppress(LimitError, GrammarError):
                self._known[conjunction] = self._count(conjunction)
        return self._known[conjunction]

    def _count(self, conjunction: Conjunction) -> tuple[int, int]:
        groups = self.normalizer.groups(conjunction) if conjunction else ()
        arrays = [self._sure_arrays(group) for group in groups if isinstance(group, ArrayGroup)]
        surely = self._scalars(conjunction) + max(arrays, default=0)
        if len(groups) == 1 and isinstance(groups[0], ObjectGroup):
            return surely, self._objects(groups[0])
        if len(groups) == 1 and isinstance(groups[0], ArrayGroup):
            return surely, self._arrays(groups[0])
        return surely, surely

    def at_most(self, conjunction: Conjunction) -> int | None:
        """A bound on the number of values that satisfy all of these; None: not seen."""
        if not conjunction:
            return None
        total = 0
        for group in self.normalizer.groups(conjunction):
            if isinstance(group, NullGroup):
                total += 1
            elif isinstance(group, (BooleanGroup, NumberGroup, StringGroup)) and group.values is not None:
                total += len(set(group.values))
            else:
                return None
        return total

    def _objects(self, group: ObjectGroup) -> int:
        # Of one object there are as many variants as one of its members has values.
        if group.clauses or group.max_members is not None:
            return 0
        if not any(keys.outside or keys.patterns or keys.schemas is not None for keys, _ in group.rules):
            return _MANY
        keys = KeyMap(group, self.normalizer)
        names = dict.fromkeys(name for rule, _ in group.rules if not rule.outside for name in rule.names)
        return self._largest(keys.value(name) for name in names)

    def _sure_arrays(self, group: ArrayGroup) -> int:
        if group.contained:
            return 0
        # Behind the prefix, one value may come twice.
        least = group.min_items if group.repeated is None else max(group.min_items, len(group.prefix) + 2)
        if group.max_items is not None and group.max_items < least:
            return 0
        return self._arrays(group) if all(map(self._scalars, (*group.prefix, group.rest))) else 0

    def _arrays(self, group: ArrayGroup) -> int:
        if group.unique is not None or any(c.high is not None for c in group.contained):
            return 0
        if group.max_items is None:
            # With more items, one array makes others.
            more = (*group.prefix[group.min_items :], group.rest)
            return _MANY if all(self._scalars(item) for item in more) else 0
        if group.contained or group.repeated is not None:
            return 0
        # There are as many variants as one place has values.
        places = {
            group.item(i) for i in range(min(max(group.min_items, 1), group.max_items, len(group.prefix) + 1))
        }
        return self._largest(places) if places else 1

    def _largest(self, conjunctions: Iterable[Conjunction]) -> int:
        """The most scalars that one of these is known to have."""
        most = 0
        for conjunction in conjunctions:
            most = max(most, self._scalars(conjunction))
            if most >= _MANY:
                break
        return most

    def _scalars(self, conjunction: Conjunction) -> int:
        """A number of numbers, strings, booleans and null that satisfy all of these."""
        if not conjunction:
            return _MANY
        # Groups of one type may have values in common.
        by_type: dict[type, int] = {}
        for group in self.normalizer.groups(conjunction):
            by_type[type(group)] = max(by_type.get(type(group), 0), self._of_group(group))
        return sum(by_type.values())

    def _of_group(self, group: Group) -> int:
        if isinstance(group, NumberGroup):
            return _numbers(group, self.normalizer.options.max_number_digits)
        if isinstance(group, StringGroup):
            return self._strings(group)
        if isinstance(group, BooleanGroup):
            return len(group.values)
        return 1 if isinstance(group, NullGroup) else 0

    def _strings(self, group: StringGroup) -> int:
        if group.values is not None:
            return len({v for v in group.values if string_allows(group, v, self.limits)})
        return _number_of_strings(group, self.limits)


@remembered(512)
def _number_of_strings(group: StringGroup, limits: Limits) -> int:
    few = count_texts(written_language(group, limits), _MANY, limits)
    return _MANY if few is None else few


def _numbers(group: NumberGroup, digits: int) -> int:
    if group.multiples or group.non_multiples or group.plain is not None:
        return 0
    if group.values is not None:
        return len({value for value in group.values if group.allows(value)})
    if group.integral is False or any(b and abs(b.value) > _LARGE for b in (group.low, group.high)):
        return 0
    # Integers are numbers, and those with so many digits are written.
    low, high = integer_bounds(group.low, group.high)
    most: int = 10**digits - 1
    low = -most if low is None else max(low, -most)
    high = most if high is None else min(high, most)
    return max(min(high - low + 1, _MANY) - len(group.excluded), 0)
