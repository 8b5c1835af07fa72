"""Which sorts of undeclared members an object may have together."""

from __future__ import annotations

from maskwright.errors import LimitError
from maskwright.limits import Limits


def allowed_together(sorts: list[frozenset[int]], limits: Limits) -> list[int]:
    """The sets of sorts of other members, as bits, that may be allowed at one place.

    A sort is the sets of obligations that a member of it may reach.  Where it is allowed, so is every sort
    that may reach all of that and more.
    """
    if len(sorts) > limits.max_key_sorts:
        raise LimitError("max_key_sorts", len(sorts), limits.max_key_sorts)
    better = [
        sum(1 << j for j, other in enumerate(sorts) if j != i and _reaches_more(other, sort))
        for i, sort in enumerate(sorts)
    ]
    found = [0]
    for i in sorted(range(len(sorts)), key=lambda i: better[i].bit_count()):
        found += [chosen | 1 << i for chosen in found if chosen & better[i] == better[i]]
        if len(found) > limits.max_key_sets:
            raise LimitError("max_key_sets", len(found), limits.max_key_sets)
    return found[1:]


def _reaches_more(other: frozenset[int], sort: frozenset[int]) -> bool:
    """Whether ``other`` reaches at least the obligations of ``sort``, in each of its ways, and the two differ."""
    return all(any(obligations | more == more for more in other) for obligations in sort) and not all(
        any(obligations | more == more for more in sort) for obligations in other
    )
