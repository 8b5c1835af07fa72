"""Stop texts: whether they make sense for an output at all."""

from __future__ import annotations

import re
from collections.abc import Sequence

from maskwright.errors import MaskwrightError, UnsatisfiableError
from maskwright.frontends.regex import to_grammar
from maskwright.generation.outputs import Output
from maskwright.ir.prune import is_satisfiable
from maskwright.limits import Limits
from maskwright.sources import Choice, Regex


def check_stops(output: Output, stops: Sequence[str], limits: Limits) -> None:
    """Raises ``MaskwrightError`` for a stop text that no output can have, or at which none is complete.

    Of grammars this is only known when an output gets there; then it is an error as well.
    """
    for stop in stops:
        if output.is_json:
            raise MaskwrightError(
                f"stop={stop!r} would cut JSON, which is complete at its end only: leave it out"
            )
        if not _is_possible(output.source, stop, limits):
            raise MaskwrightError(
                f"stop={stop!r} can occur in no text of this {type(output.source).__name__}"
            )


def _is_possible(source: object, stop: str, limits: Limits) -> bool:
    if isinstance(source, Choice):
        texts = [option for option in source.options if isinstance(option, str)]
        return not texts or any(stop in text for text in texts)
    if isinstance(source, Regex):
        pattern = rf"(?=[\s\S]*{re.escape(stop)})(?:{source.pattern})"
        try:
            return is_satisfiable(to_grammar(pattern, source.flavour, source.flags, limits))
        except UnsatisfiableError:
            return False
        except MaskwrightError:
            return True  # what cannot be combined is found when an output gets there
    return True
