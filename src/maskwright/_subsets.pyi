"""Types of the extension module; its docstrings are the manual."""

from collections.abc import Callable, Sequence

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
    def accepting(self, state: int) -> bool: ...
    def row(self, state: int) -> dict[int, int]: ...

def combine(
    automata: list[SubsetAutomaton],
    needed: list[bool],
    accept: Callable[[Sequence[bool]], bool],
    max_states: int,
) -> tuple[list[dict[int, int]], list[bool]]: ...
def reduce(rows: list[dict[int, int]], accepting: list[bool]) -> tuple[list[dict[int, int]], list[bool]]: ...
