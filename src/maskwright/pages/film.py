"""The film of a canvas that a diffusion model fills: one step after the other, forward and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maskwright.base.html import escape, facts, table
from maskwright.errors import MaskwrightError
from maskwright.pages.page import page


@dataclass(frozen=True)
class Frame:
    """A canvas behind one step; the first frame is the canvas before the first model call.

    ``slots``: the text of each, None where it is open.  ``left_out``: slots without a token.  ``taken``: slots filled in this step.
    ``proposed`` and ``refused``: tokens.  ``calls``: of the model.  Seconds were spent on the model and on the constraint.
    """

    slots: tuple[str | None, ...]
    left_out: tuple[int, ...] = ()
    taken: tuple[int, ...] = ()
    proposed: int = 0
    refused: int = 0
    calls: int = 0
    model_seconds: float = 0.0
    constraint_seconds: float = 0.0


_STAGE = """<div class="stage">
<label for="step">Step <output id="number" for="step"></output></label>
<input id="step" type="range" min="0" value="0">
<button type="button" class="act" id="play">Play</button>
<p class="quiet">Left and right arrow keys move by one step, Home and End to the ends, the space bar plays.</p>
<div class="tokens" id="slots" role="img"></div>
<dl class="facts" aria-live="polite">
<div><dt>Slots filled in this step</dt><dd data-figure="taken"></dd></div>
<div><dt>Open</dt><dd data-figure="open"></dd></div>
<div><dt>Proposed tokens</dt><dd data-figure="proposed"></dd></div>
<div><dt>Refused</dt><dd data-figure="refused"></dd></div>
</dl>
</div>
"""


def film(frames: Sequence[Frame], title: str = "A canvas fills up") -> str:
    """The page: HTML, one file.  ``maskwright.diffusion.frames`` makes frames of the steps of ``infill_steps``.

    Raises ``MaskwrightError`` where there is no frame, or a frame has another number of slots than the first.
    """
    if not frames:
        raise MaskwrightError("a film has at least one frame: the canvas before the first step")
    if any(len(frame.slots) != len(frames[0].slots) for frame in frames):
        raise MaskwrightError("all frames of a film have the same number of slots")
    last = frames[-1]
    text = "".join("░" if slot is None else slot for slot in last.slots)
    body = (
        facts(
            [
                ("Slots", len(last.slots)),
                ("Steps", len(frames) - 1),
                ("Forward passes", sum(frame.calls for frame in frames)),
                ("Tokens refused", sum(frame.refused for frame in frames)),
                ("Model", f"{sum(frame.model_seconds for frame in frames):.2f} s"),
                ("Constraint", f"{1e3 * sum(frame.constraint_seconds for frame in frames):.1f} ms"),
            ]
        )
        + _STAGE
        + f"<details><summary>The text</summary><pre>{escape(text)}</pre></details>\n"
        + f"<details><summary>All steps as a table</summary>\n{_all(frames)}</details>\n"
    )
    return page(title, body, scripts=["film.js"], data={"frames": _changes(frames)})


def _changes(frames: Sequence[Frame]) -> list[dict[str, Any]]:
    """By frame what became of slots: their number, text (None: open), and whether they are left out."""
    changes: list[dict[str, Any]] = []
    before: list[tuple[str | None, bool]] = [("", False)] * len(frames[0].slots)
    for i, frame in enumerate(frames):
        gone = set(frame.left_out)
        now = [(text, k in gone) for k, text in enumerate(frame.slots)]
        slots = [[k, *each] for k, each in enumerate(now) if i == 0 or each != before[k]]
        figures = {"proposed": frame.proposed, "refused": frame.refused, "taken": list(frame.taken)}
        changes.append({"slots": slots, **figures})
        before = now
    return changes


def _all(frames: Sequence[Frame]) -> str:
    rows = []
    for i, frame in enumerate(frames):
        written = " ".join(repr(frame.slots[k]) for k in frame.taken if frame.slots[k])
        opened = sum(slot is None for slot in frame.slots)
        rows.append((i, len(frame.taken), opened, frame.proposed, frame.refused, frame.calls, written))
    heads = ("step", "filled", "open", "proposed", "refused", "forward passes", "texts")
    return table("All steps", heads, rows, numbers=range(6))
