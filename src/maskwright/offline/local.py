"""A model in this process, or one on each machine of a cluster: whatever finishes requests as ``Generator.as_completed`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from maskwright.offline.answers import completion
from maskwright.offline.rows import Row

if TYPE_CHECKING:
    from maskwright.generation.results import Generation

Requests = Iterable[tuple[Any, Any, Mapping[str, Any]]]
Finish = Callable[[Requests], "Iterator[tuple[int, list[Generation] | Exception]]"]


def fill(rows: Iterable[Row], finish: Finish, model: str) -> Iterator[tuple[Row, dict[str, Any] | Exception]]:
    """Each row with the body of its completion, or with its error, as they are finished.  ``model``: its name in the output."""
    taken: dict[int, Row] = {}

    def requests() -> Requests:
        for place, row in enumerate(rows):
            taken[place] = row
            yield row.prompt, row.source, row.options

    for place, result in finish(requests()):
        row = taken.pop(place)
        yield row, result if isinstance(result, Exception) else completion(row, result, model)
