"""What is asked of a generator, prompt by prompt, and what its rows have written."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maskwright.base.html import cut
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.errors import MaskwrightError
from maskwright.generation.chooser import Chooser, sampler, seed_at
from maskwright.generation.options import GenerationOptions, options_of
from maskwright.generation.outputs import Output
from maskwright.generation.results import Generation, Step
from maskwright.generation.row import Row

_SHOWN = 100
"""Characters of a request in a message."""


@dataclass(frozen=True)
class Job:
    """One prompt and what to write behind it.  ``contrasts``: prompts with less in them; ``index``: its place among the prompts;
    ``left``: set when nobody waits for it any more."""

    output: Output
    grammar: CompiledGrammar
    least: int
    prompt: list[int] = field(default_factory=list)
    contrasts: list[list[int]] = field(default_factory=list)
    room: int = 0
    index: int = 0
    left: threading.Event = field(default_factory=threading.Event)

    def check_wanted(self) -> None:
        """Raises ``MaskwrightError`` when nobody waits any more."""
        if self.left.is_set():
            raise MaskwrightError("the caller left")


@dataclass(frozen=True)
class Started:
    """A request that is being written: its place, and its rows."""

    place: int
    output: Output
    asked: GenerationOptions
    rows: list[Row]

    @property
    def is_over(self) -> bool:
        return all(row.done for row in self.rows) or any(row.error is not None for row in self.rows)

    def results(self) -> list[Generation] | Exception:
        """What was written, or the first error."""
        error = next((row.error for row in self.rows if row.error is not None), None)
        if error is not None:
            return error
        try:
            return [result_of(row, self.output, self.asked) for row in self.rows]
        except Exception as raised:
            return raised


def parts_of(request: Any) -> tuple[Any, Any, GenerationOptions]:
    """The prompt, output type and options of a request.  Raises ``MaskwrightError`` for what is none."""
    if not isinstance(request, (tuple, list)) or len(request) != 3 or not isinstance(request[2], Mapping):
        shown = cut(repr(request), _SHOWN)
        raise MaskwrightError(f"a request is a prompt, an output type and a dict of options, not {shown}")
    return request[0], request[1], options_of(dict(request[2]))


def chooser_of(asked: GenerationOptions, index: int) -> Chooser:
    """How the tokens of one output are chosen; a seed for each output."""
    return sampler(
        asked.temperature or 0.0,
        top_k=asked.top_k,
        top_p=asked.top_p,
        min_p=asked.min_p,
        repetition_penalty=asked.repetition_penalty,
        seed=seed_at(asked.seed, index),
    )


def step_of(row: Row) -> Step:
    """An output as far as it is written."""
    # The end may be part of a character.
    return Step(row.shown().decode("utf-8", "ignore"), len(row.ids), row.usage.mask_seconds)


def result_of(row: Row, output: Output, asked: GenerationOptions) -> Generation:
    """A finished output.  Raises ``OutputError`` as ``Output.value``."""
    assert row.text is not None, "the row is done"
    text = row.text.decode("utf-8", "replace")
    return Generation(
        output.value(text),
        text,
        row.ids,
        row.reason,
        row.usage,
        row.removed,
        row.logprobs if asked.logprobs is not False else None,
        row.top_logprobs if asked.top else None,
        row.posterior,
    )
