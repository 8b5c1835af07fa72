"""The sets of texts of a grammar, which are a cache with a limit (``Limits.max_set_bytes``).

They belong to the grammar and grow with every new question.  When they are full, whoever asks moves to new ones, where
it begins with what it must know; the old ones go when nobody has them any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from maskwright._core import StateSets
from maskwright.base.arguments import check_type
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.errors import CanvasError, LimitError

Answer = TypeVar("Answer")


def check_grammar(grammar: object) -> None:
    """Raises ``CanvasError`` unless this is a compiled grammar: a set of token sequences has no states of texts."""
    check_type(grammar, CompiledGrammar, "grammar", CanvasError)


def state_sets(grammar: CompiledGrammar) -> StateSets:
    """The state sets of a grammar that are kept with it; new ones when they are full."""
    check_grammar(grammar)
    sets = grammar._state_sets
    if sets is None or sets.is_full:
        sets = grammar._state_sets = StateSets(grammar._core)
    return sets


class HoldsSets:
    """Something that holds states of ``sets``, and can find them again in others."""

    grammar: CompiledGrammar
    sets: StateSets

    def _move(self, sets: StateSets) -> None:
        """Go on with ``sets``.  Raises ``LimitError`` when what must be known has no room; it is found out later then."""
        raise NotImplementedError

    def make_room(self) -> None:
        """Leave sets that are full: all numbers of states are others then."""
        if self.sets.is_full:
            self._move(state_sets(self.grammar))

    def with_room(self, ask: Callable[[], Answer]) -> Answer:
        """The answer to a question that may need new states.  ``ask`` leaves everything as it was when it fails.

        Raises ``LimitError`` when new sets have no room for it either."""
        try:
            return ask()
        except LimitError:
            if not self.sets.is_full:
                raise
        except MemoryError:
            self.grammar._state_sets = None
        # Only here nothing else, such as a traceback, holds the old sets.
        self._move(state_sets(self.grammar))
        return ask()
