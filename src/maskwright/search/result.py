"""What searches return, and what they share."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from maskwright.errors import ConstraintError, MaskwrightError, ModelError
from maskwright.sampling.constraints import Constraint
from maskwright.sampling.logspace import MINUS_INFINITY, Floats
from maskwright.sampling.models import LanguageModel, one_end
from maskwright.sampling.sequential import check_fit, check_length
from maskwright.sampling.verdicts import masks_of


class Found(NamedTuple):
    """A complete text: its ids without EOS, log p of it with EOS, and what it was judged by."""

    ids: list[int]
    log_probability: float
    score: float


@dataclass(frozen=True)
class SearchResult:
    """``found``: complete texts, the best one first."""

    found: list[Found]
    nodes: int
    """Prefixes that the model was asked about."""
    proved: bool
    """Whether nothing better can exist: the search came to its end, and to no limit."""


def check_problem(model: Any, constraint: Any, **least: tuple[int, int]) -> None:
    """Raise unless each number (given, least) is at least what it must be, and model and constraint fit, ``max_tokens`` included: the model has
    room for them, and they for a text."""
    for name, (given, low) in least.items():
        try:
            good = not isinstance(given, bool) and operator.index(given) >= low
        except TypeError:
            good = False
        if not good:
            raise MaskwrightError(f"{name} is a number, at least {low}, not {given!r}")
    max_tokens = least["max_tokens"][0] if "max_tokens" in least else None
    check_fit(model, constraint, max_tokens)
    if max_tokens is not None:
        check_length(constraint, max_tokens)


def allowed_scores(
    model: LanguageModel, constraint: Constraint, states: list[Any], logprobs: Floats
) -> Floats:
    """log p of the tokens that the masks allow [rows, V], all EOS ids as the first one; minus infinity elsewhere.

    Raises ``ModelError`` for another shape, NaN and plus infinity."""
    shape, wanted = np.shape(logprobs), (len(states), model.vocab_size)
    if shape != wanted:
        raise ModelError(f"the model's log-probabilities are [rows, V] = {list(wanted)}, not {list(shape)}")
    # NaN is the greatest of numbers that it is among.
    if not (np.max(logprobs, axis=1) < np.inf).all():
        raise ModelError("the model's log-probabilities contain NaN or plus infinity")
    scores: Floats = np.array(one_end(logprobs, model.eos_ids))
    masks = masks_of(constraint, states, model.vocab_size)
    if masks is not None:
        bits = np.unpackbits(masks.view(np.uint8), axis=1, count=scores.shape[1], bitorder="little")
        scores[bits == 0] = MINUS_INFINITY
    return scores


def number(value: Any, what: str, low: float, high: float) -> float:
    """A finite answer of a caller's function within bounds (or ``low`` itself), or ``ConstraintError``."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    except OverflowError:
        value = found = math.inf
    if not (low <= found <= high and found < math.inf):
        raise ConstraintError(f"{what} answered {value!r}; it must be a number from {low:g} to {high:g}")
    return found
