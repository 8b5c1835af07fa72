"""The best value that a strategy finds: what ``Generator.search`` does with its prompt and its type."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from maskwright.compiling.compiled import CompiledGrammar
from maskwright.errors import MaskwrightError, OutputError
from maskwright.generation.outputs import Output

if TYPE_CHECKING:
    from pathlib import Path

    from maskwright.search.strategy import Best, Strategy


def strategy_of(given: Strategy | str | Path) -> Strategy:
    """A strategy, or the one of a file.  Raises ``MaskwrightError`` for what is neither."""
    from maskwright.search import Strategy

    if isinstance(given, Strategy):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise MaskwrightError(f"strategy: expected a Strategy or the path of its file, got {given!r}")
    return Strategy.load(given)


def searched(
    strategy: Strategy,
    model: Any,
    tokenizer: Any,
    prompt: Sequence[int],
    grammar: CompiledGrammar,
    output: Output,
    reward: Callable[[Any], float],
    *,
    room: int,
    **options: Any,
) -> Best:
    """The text of highest reward, of its value (``value_of``).  ``room``: the tokens that it may have.  ``options``: see ``Strategy.write``."""

    def judged(ids: list[int]) -> float:
        try:
            found = value_of(ids, grammar, output)
        except OutputError:
            return 0.0
        return reward(found)

    limited = replace(strategy, max_tokens=room)
    return limited.write(model, tokenizer, prompt, grammar, judged, **options)


def value_of(ids: list[int], grammar: CompiledGrammar, output: Output) -> Any:
    """Raises ``OutputError`` for a text that the type refuses."""
    return output.value(grammar.vocabulary.decode(ids).decode("utf-8", "replace"))
