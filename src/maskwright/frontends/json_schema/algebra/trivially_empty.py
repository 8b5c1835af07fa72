"""Groups that are empty, as far as a look at their required parts tells.

What is called trivially_empty is empty.  The converse does not hold (emptiness of recursive schemas is
decided on the grammar, by ``ir.prune``); the more is seen here, the fewer branches there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskwright.base.deadline import check_time, check_time_again, let_go
from maskwright.errors import GrammarError, LimitError
from maskwright.frontends.json_schema.algebra.groups import (
    Absent,
    ArrayGroup,
    Clause,
    Conjunction,
    Group,
    ObjectGroup,
    Some,
    StringGroup,
    conjoin,
)
from maskwright.frontends.json_schema.algebra.keys import KeyMap
from maskwright.frontends.json_schema.algebra.strings import string_language_is_empty
from maskwright.limits import Limits

if TYPE_CHECKING:
    from maskwright.frontends.json_schema.algebra.normalize import Normalizer

_DEPTH = 4
_EMPTY = -1
_FEW_CLAUSES = 16
_MOST_KNOWN = 100_000
"""What is remembered at a time.  A dictionary that grows is copied in one step, for which all other threads wait: of a million entries,
40 ms."""


def remember(memo: dict[Any, Any], key: object, value: object) -> None:
    """What was found; everything else is forgotten where that is too much."""
    if len(memo) >= _MOST_KNOWN:
        let_go(memo)
    memo[key] = value


class TriviallyEmpty:
    """Looks for emptiness down to a few levels of members and items."""

    normalizer: Normalizer
    limits: Limits
    _known: dict[Conjunction, int]
    """Down to how many levels nothing was found; or ``_EMPTY``."""
    _groups: dict[Group, bool]
    _maps: dict[int, KeyMap]
    _last: KeyMap | None
    _depth: int

    def __init__(self, normalizer: Normalizer, limits: Limits) -> None:
        self.normalizer = normalizer
        self.limits = limits
        self._known = {}
        self._groups = {}
        self._maps = {}
        self._last = None
        self._depth = 0

    def release(self) -> None:
        """Let go of what refers back, so that nothing waits for the garbage collector."""
        self.normalizer = None  # type: ignore[assignment]
        let_go(self._known, self._groups, self._maps)
        self._last = None

    def conjunction(self, conjunction: Conjunction) -> bool:
        """Whether nothing satisfies all of these."""
        if not conjunction:
            return False
        levels = _DEPTH - self._depth
        known = self._known.get(conjunction)
        if known is not None and (known == _EMPTY or known >= levels):
            return bool(known == _EMPTY)
        if levels == 0:
            return False
        # Conjunctions grow by one literal at a time.
        if len(conjunction) > 2 and self._known.get(conjunction[:-1]) == _EMPTY:
            self._known[conjunction] = _EMPTY
            return True
        self._depth += 1
        mark = len(self.normalizer.clashes)
        result = True
        try:
            for group in self.normalizer.inside(conjunction):
                if not self.group(group):
                    result = False
                    break
        except LimitError as error:
            check_time_again(error)
            result = False
        except GrammarError:
            result = False
        finally:
            self._depth -= 1
            del self.normalizer.clashes[mark:]
        remember(self._known, conjunction, _EMPTY if result else levels)
        return result

    def group(self, group: Group) -> bool:
        """Whether a group is seen to be empty."""
        check_time()
        try:
            return self._group(group)
        except LimitError as error:
            check_time_again(error)
            return False
        except GrammarError:
            # Whoever needs what is below will meet the error again.
            return False

    def _group(self, group: Group) -> bool:
        if isinstance(group, StringGroup):
            return self._string(group)
        if isinstance(group, ArrayGroup):
            array: ArrayGroup = group
            for i in range(min(array.min_items, len(array.prefix) + 1)):
                if self.conjunction(array.item(i)):
                    return True
        if isinstance(group, ObjectGroup):
            record: ObjectGroup = group
            if record.required or record.clauses:
                return self._object(record)
        return False

    def apart(self, a: ObjectGroup, b: ObjectGroup) -> bool:
        """Whether no object is seen to be in both groups, whatever their numbers of members."""
        left, right = self._keys_of_branch(a), self._keys_of_branch(b)
        names = a.required + tuple([name for name in b.required if name not in a.required])
        try:
            for name in names:
                if self.conjunction(conjoin(left.value(name), right.value(name))):
                    return True
            clauses = a.clauses + b.clauses
            # Many are those of a union without a discriminator that must come: they tell two more branches apart in vain.
            for clause in clauses if len(clauses) <= _FEW_CLAUSES else ():
                for atom in clause:
                    if isinstance(atom, Absent):
                        absent: Absent = atom
                        if absent.name not in names:
                            break
                    elif self._common_member(left, right, atom):
                        break
                else:
                    return True
        except LimitError as error:
            check_time_again(error)
        except GrammarError:
            # Whoever needs what is below will meet the error again.
            pass
        return False

    def _common_member(self, left: KeyMap, right: KeyMap, some: Some) -> bool:
        """Whether an object in both groups may have such a member."""
        names, others = left.candidates(some.keys)
        more, others_too = right.candidates(some.keys)
        if others and others_too:
            return True
        for name in dict.fromkeys(names + more):
            value = conjoin(left.value(name), right.value(name))
            if not self.conjunction(conjoin(value, some.value)):
                return True
        return False

    def _keys_of_branch(self, group: ObjectGroup) -> KeyMap:
        keys: KeyMap | None = self._maps.get(id(group))
        if keys is None:
            # It holds the group, so that the id is that of no other one.
            keys = self._maps[id(group)] = self.keys(group)
        return keys

    def keys(self, group: ObjectGroup) -> KeyMap:
        """The members of a group, which may be asked for twice in a row."""
        keys = self._last
        if keys is None or keys.group is not group:
            keys = self._last = KeyMap(group, self.normalizer, keys)
        return keys

    def _object(self, group: ObjectGroup) -> bool:
        keys = self.keys(group)
        for name in group.required:
            if self.conjunction(keys.value(name)):
                return True
        for clause in group.clauses:
            for atom in clause:
                if self._possible(keys, atom):
                    break
            else:
                return True
        return False

    def _string(self, group: StringGroup) -> bool:
        known = self._groups.get(group)
        if known is None:
            known = self._groups[group] = string_language_is_empty(group, self.limits)
        return known

    def open_atoms(self, keys: KeyMap, clause: Clause) -> Clause:
        """The atoms of a clause that some object of the group may satisfy."""
        return tuple([atom for atom in clause if self._possible(keys, atom)])

    def _possible(self, keys: KeyMap, atom: Some | Absent) -> bool:
        if isinstance(atom, Absent):
            absent: Absent = atom
            return absent.name not in keys.group.required
        some: Some = atom
        names, others = keys.candidates(some.keys)
        if others:
            return True
        for name in names:  # noqa: SIM110
            if not self.conjunction(conjoin(keys.value(name), some.value)):
                return True
        return False
