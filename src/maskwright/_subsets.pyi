"""Types of the extension module; its docstrings are the manual."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

_Ranges: TypeAlias = tuple[tuple[int, int], ...]

class Alphabet:
    minterms: list[list[tuple[int, int]]]
    def __init__(self, universe: _Ranges, sets: Iterable[_Ranges]) -> None: ...
    def members(self, ranges: _Ranges) -> tuple[int, ...]: ...
    def finer(self, other: Alphabet) -> list[list[int]]: ...
    def minterm_of(self, code: int) -> int | None: ...
    def union(self, minterms: Collection[int]) -> _Ranges: ...
    def edges(self, rows: list[dict[int, int]]) -> list[tuple[int, _Ranges, int]]: ...

class SubsetAutomaton:
    max_states: int
    def __init__(
        self,
        n_states: int,
        start: int,
        accept: int,
        sets: list[tuple[int, ...]],
        edges: list[tuple[int, int, int]],
        epsilons: list[tuple[int, int]],
        max_states: int,
    ) -> None: ...
    def __len__(self) -> int: ...
    def accepting(self, state: int) -> bool: ...
    def row(self, state: int) -> dict[int, int]: ...

def combine(
    automata: list[SubsetAutomaton],
    finer: list[list[list[int]]],
    needed: list[bool],
    accept: Callable[[Sequence[bool]], bool],
    max_states: int,
) -> tuple[list[dict[int, int]], list[bool]]: ...
def reduce(rows: list[dict[int, int]], accepting: list[bool]) -> tuple[list[dict[int, int]], list[bool]]: ...
