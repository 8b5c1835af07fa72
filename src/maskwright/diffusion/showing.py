"""Canvases for people: the text of each slot, a canvas in a notebook, and the steps of a loop as frames of a film."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from maskwright.base.arguments import listed
from maskwright.base.html import escape
from maskwright.diffusion.slots import EMPTY, OPEN
from maskwright.errors import CanvasError
from maskwright.pages.film import Frame
from maskwright.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from maskwright.diffusion.canvas import Canvas
    from maskwright.diffusion.steps import Step

_UTF8 = codecs.getincrementaldecoder("utf-8")


def slot_texts(tokens: Sequence[int], vocabulary: Vocabulary) -> list[str | None]:
    """The text of each slot (``tokens``: ids, ``OPEN`` or ``EMPTY``); None where it is open.

    A character that several tokens spell stands in the slot of the last one.
    """
    texts: list[str | None] = []
    decoder, start, last = _UTF8("replace"), True, ""
    for token in [*tokens, OPEN]:
        if token == OPEN:
            # A character that is not whole.
            if rest := decoder.decode(b"", True):
                texts[-1] = last + rest
            decoder.reset()
            texts.append(None)
            start, last = False, ""
        else:
            ids = [token] if token != EMPTY else []
            last = decoder.decode(vocabulary.decode(ids, start=start))
            texts.append(last)
            start = start and vocabulary.at_start(ids)
    return texts[:-1]


def frames(steps: Iterable[Step], vocabulary: Vocabulary) -> list[Frame]:
    """What ``infill_steps`` gives, as ``maskwright.pages.film.film`` shows it."""
    given = listed(steps, "steps", "what infill_steps gives", CanvasError)
    if not all(hasattr(step, "constraint_seconds") for step in given):
        raise CanvasError("steps: expected what infill_steps gives")
    return [
        Frame(
            tuple(slot_texts(step.tokens, vocabulary)),
            tuple(i for i, token in enumerate(step.tokens) if token == EMPTY),
            tuple(step.taken),
            step.proposed,
            step.refused,
            step.calls if step.number else 0,
            step.model_seconds,
            step.constraint_seconds,
        )
        for step in given
    ]


def canvas_html(canvas: Canvas) -> str:
    """A canvas in a notebook: what is put down, and in open slots, faint, what the witness has there."""
    tokens, witness = canvas.tokens, canvas.witness()
    filled, likely = slot_texts(tokens, canvas.vocabulary), slot_texts(witness, canvas.vocabulary)
    parts = []
    for i, (text, guess) in enumerate(zip(filled, likely, strict=True)):
        if text is None:
            title, text, style = (
                f"slot {i}, open",
                guess or "·",
                ' style="opacity: .55; border-bottom: 1px dotted"',
            )
        else:
            title, style = f"slot {i}: {_named(tokens[i], canvas)}", ""
        parts.append(f'<span title="{escape(title)}"{style}>{escape(text)}</span>')
    opened = len(canvas.open)
    return (
        f"<p><strong>{len(tokens):,} slots, {opened:,} open</strong>; refused {canvas.refused:,}, undecided {canvas.undecided:,}</p>\n"
        f'<pre style="white-space: pre-wrap">{"".join(parts)}</pre>\n'
        + ("<p>Faint: one way to fill what is open.</p>\n" if opened else "")
    )


def _named(token: int, canvas: Canvas) -> str:
    if token == EMPTY:
        return "left out"
    if token in canvas.reading.ends:
        return f"token {token}, an end"
    return f"token {token}, {canvas.vocabulary.decode([token], start=False)!r}"
