"""What a generation gives back: the value, and what it took to write it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Generic, Literal

from maskwright.base.html import percent, shown, some, table
from maskwright.base.typed import Value

COMPLETE = ("stop", "budget")
"""Why an output ended that is a text of its language to its end."""


@dataclass
class Usage:
    """What one output took.

    ``prompt_tokens`` and ``generated_tokens`` (without EOS) are counts; ``forced_tokens`` of the generated ones were written
    because the grammar left no choice.  ``model_calls``: forward passes that this output took part in, the prompt's
    included.  ``seconds``: from the call to the end of this output; ``mask_seconds`` of them were spent on the grammar:
    filling and applying masks, following tokens, finding forced text.
    """

    prompt_tokens: int = 0
    generated_tokens: int = 0
    forced_tokens: int = 0
    model_calls: int = 0
    seconds: float = 0.0
    mask_seconds: float = 0.0


@dataclass
class RemovedMass:
    """The probability that masks took away from the model.

    ``steps[i]``: of the model's distribution before token i, how much the mask removed (0 to 1).  What is written at the
    very end without asking the model again (closing brackets, a completion within the budget) has no step, unless
    ``logprobs`` asks for it.
    """

    steps: list[float] = field(default_factory=list)

    @property
    def total(self) -> float:
        """The probability that the model, left alone along this output, would have left the language somewhere."""
        return -math.expm1(
            sum(math.log1p(-min(step, 1.0)) if step < 1.0 else -math.inf for step in self.steps)
        )


@dataclass
class Generation(Generic[Value]):
    """One finished output.

    ``value``: data for a schema, an instance for a Python type, a ready call for a function, text for other sources.
    ``logprobs``: the model's log-probability of each token (natural logarithm, before any mask), when asked for;
    ``top_logprobs``: by token id, those of the likeliest tokens at each place, when a number of them was asked for.
    With ``stop``, ``text`` and ``value`` end in front of the stop text; ``token_ids``, ``logprobs`` and ``usage`` are of all tokens that were written, those
    in which the stop text stands included.  ``finish_reason``: ``"stop"`` when the text ended by itself or at a stop string, ``"budget"`` when the shortest completion
    was written because the token budget ran short (beams keep to the budget as they go: ``"stop"``).  ``posterior``: with
    ``particles``, the share of each candidate's text in p(text)^4, the likeliest first; the first one is the output.
    """

    value: Value
    text: str
    token_ids: list[int]
    finish_reason: Literal["stop", "budget"]
    usage: Usage
    removed_mass: RemovedMass
    logprobs: list[float] | None = None
    top_logprobs: list[dict[int, float]] | None = None
    posterior: dict[str, float] | None = None

    def _repr_html_(self) -> str:
        """What a notebook shows: the text, what it took, and the candidates if there were several."""
        usage = self.usage
        figures = [
            ("value", type(self.value).__name__),
            ("ended by", {"stop": "itself", "budget": "the token budget"}[self.finish_reason]),
            ("tokens", f"{usage.generated_tokens:,}, {usage.forced_tokens:,} of them forced"),
            ("forward passes", f"{usage.model_calls:,}"),
            ("probability removed by masks", percent(self.removed_mass.total)),
            ("seconds", f"{usage.seconds:.2f}, {usage.mask_seconds:.3f} of them on masks"),
        ]
        made = shown(self.text) + table("What it took", ("", ""), figures)
        if self.posterior is not None:
            rows = [(text, percent(share)) for text, share in self.posterior.items()]
            made += some("Candidates", ("text", "share"), rows, numbers=[1])
        return made


@dataclass(frozen=True)
class Step:
    """An output while it is written: its text so far, how many tokens that is, and the seconds spent on masks."""

    text: str
    tokens: int
    mask_seconds: float
