"""Groups that are empty, as far as a look at their required parts tells.

What is called hollow is empty.  The converse does not hold (emptiness of recursive schemas is
decided on the grammar, by ``passes.prune``); the more is seen here, the fewer branches there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskwright.deadline import check_time_again
from maskwright.errors import GrammarError, LimitError
from maskwright.frontends.json_schema.groups import (
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
from maskwright.frontends.json_schema.keys import KeyMap
from maskwright.frontends.json_schema.strings import string_language_is_empty
from maskwright.limits import Limits

if TYPE_CHECKING:
    from maskwright.frontends.json_schema.normalize import Normalizer

_DEPTH = 4


class Hollow:
    """Looks for emptiness down to a few levels of members and items."""

    def __init__(self, normalizer: Normalizer, limits: Limits) -> None:
        self.normalizer = normalizer
        self.limits = limits
        self._known: dict[Conjunction, bool] = {}
        self._groups: dict[Group, bool] = {}
        self._depth = 0

    def release(self) -> None:
        """Let go of what refers back, so that nothing waits for the garbage collector."""
        del self.normalizer

    def conjunction(self, conjunction: Conjunction) -> bool:
        """Whether nothing satisfies all of these."""
        if not conjunction:
            return False
        known = self._known.get(conjunction)
        if known is not None:
            return known
        if self._depth >= _DEPTH:
            return False
        self._depth += 1
        mark = len(self.normalizer.clashes)
        try:
            result = all(self.group(group) for group in self.normalizer.inside(conjunction))
        except LimitError as error:
            check_time_again(error)
            result = False
        except GrammarError:
            result = False
        finally:
            self._depth -= 1
            del self.normalizer.clashes[mark:]
        if self._depth == 0 or result:
            self._known[conjunction] = result
        return result

    def group(self, group: Group) -> bool:
        """Whether a group is seen to be empty."""
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
            return any(
                self.conjunction(group.item(i)) for i in range(min(group.min_items, len(group.prefix) + 1))
            )
        if isinstance(group, ObjectGroup):
            keys = KeyMap(group, self.normalizer)
            return any(self.conjunction(keys.value(name)) for name in group.required) or any(
                not self.open_atoms(keys, clause) for clause in group.clauses
            )
        return False

    def _string(self, group: StringGroup) -> bool:
        if group in self._groups:
            return self._groups[group]
        result = string_language_is_empty(group, self.limits)
        self._groups[group] = result
        return result

    def open_atoms(self, keys: KeyMap, clause: Clause) -> Clause:
        """The atoms of a clause that some object of the group may satisfy."""
        return tuple(atom for atom in clause if self._possible(keys, atom))

    def _possible(self, keys: KeyMap, atom: Some | Absent) -> bool:
        if isinstance(atom, Absent):
            return atom.name not in keys.group.required
        names, others = keys.candidates(atom.keys)
        if others:
            return True
        return any(not self.conjunction(conjoin(keys.value(name), atom.value)) for name in names)
