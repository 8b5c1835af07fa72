"""What a masked-diffusion model is to this package: logits for every slot of a canvas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from maskwright.base.arguments import check_type
from maskwright.errors import CanvasError, ModelError

Logits = npt.NDArray[np.float32]
_LARGEST = np.float32(1e30)


class MaskedDiffusionModel:
    """Base class of models.  A subclass sets the attributes and defines ``logits``.

    ``mask_id``: the id of an open slot, or None for models that start from noise.  ``eos_ids``: ids that end
    the text (empty: texts fill the canvas).  ``forbidden_ids``: ids that open slots never get (nor the mask); an end
    among them is none.
    ``kind``: ``"absorbing"`` (open slots become tokens), ``"editing"`` (which it may also change later) or
    ``"uniform"`` (no mask: every slot is predicted anew in every step).
    """

    mask_id: int | None = None
    eos_ids: Sequence[int] = ()
    forbidden_ids: Sequence[int] = ()
    kind: Literal["absorbing", "editing", "uniform"] = "absorbing"

    def logits(self, canvas: list[int]) -> Any:
        """Logits of every slot, position-aligned: float32 [len(canvas), V], numpy or a CPU tensor."""
        raise NotImplementedError

    def logits_of(self, canvases: list[list[int]]) -> Sequence[Any]:
        """Logits of several canvases, each as ``logits`` gives them, in one call where a model can do that; by default in turn."""
        return [self.logits(canvas) for canvas in canvases]

    def causal_logits(self, canvas: list[int]) -> Any:
        """Logits of every slot given what is left of it alone, as ``logits``: of a block-diffusion model, those with blocks of one slot.

        Row i has the distribution of slot i, whatever ids stand there and behind.  By default there are none; ``Schedule(verify=True)`` needs them.
        """
        raise NotImplementedError

    @property
    def has_causal_logits(self) -> bool:
        """Whether there are ``causal_logits``: by default, whether a class defines them."""
        return type(self).causal_logits is not MaskedDiffusionModel.causal_logits

    def encode(self, text: str) -> list[int]:
        """Token ids of text that is fixed in a canvas.  By default unknown: the fewest tokens are taken."""
        raise NotImplementedError


def checked_logits(model: MaskedDiffusionModel, canvas: list[int], vocab_size: int) -> Logits:
    """The model's logits as float32 [len(canvas), vocab_size]; minus infinity rules a token out.

    Raises ``CanvasError`` when they have another shape or are no numbers, ``ModelError`` for NaN, plus infinity, and a slot
    without any finite logit.
    """
    return _checked(model.logits(list(canvas)), canvas, vocab_size)


def checked_causal_logits(model: MaskedDiffusionModel, canvas: list[int], vocab_size: int) -> Logits:
    """The same of the causal mode."""
    return _checked(model.causal_logits(list(canvas)), canvas, vocab_size)


def checked_logits_of(
    model: MaskedDiffusionModel, canvases: list[list[int]], vocab_size: int
) -> list[Logits]:
    """The same of several canvases in one call."""
    found = list(model.logits_of([list(canvas) for canvas in canvases]))
    if len(found) != len(canvases):
        raise CanvasError(f"logits_of: expected logits of {len(canvases)} canvases, got {len(found)}")
    return [_checked(given, canvas, vocab_size) for given, canvas in zip(found, canvases, strict=True)]


def _checked(given: Any, canvas: list[int], vocab_size: int) -> Logits:
    try:
        logits = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise CanvasError(
            f"logits: expected float32 [{len(canvas)}, {vocab_size}], got {type(given).__name__}: {error}"
        ) from None
    if logits.shape != (len(canvas), vocab_size):
        raise CanvasError(f"logits: expected shape [{len(canvas)}, {vocab_size}], got {list(logits.shape)}")
    top = logits.max(axis=-1)  # NaN where a row has one
    if not np.isfinite(top).all():
        row = int(np.flatnonzero(~np.isfinite(top))[0])
        found = {np.inf: "plus infinity", -np.inf: "no finite logit"}.get(float(top[row]), "NaN")
        raise ModelError(
            f"logits: row {row} of {len(canvas)} has {found}; every slot needs a finite logit, and minus infinity alone rules a token out"
        )
    return np.minimum(logits, _LARGEST)


def checked_model(model: MaskedDiffusionModel, vocab_size: int) -> None:
    """Raise ``CanvasError`` for what is no model, or has ids that do not fit the vocabulary."""
    check_type(model, MaskedDiffusionModel, "model", CanvasError)
    if model.kind not in ("absorbing", "editing", "uniform"):
        raise CanvasError(f"model.kind: expected absorbing, editing or uniform, got {model.kind!r}")
    if (model.mask_id is None) != (model.kind == "uniform"):
        raise CanvasError(
            f"model.mask_id: a model of kind {model.kind!r} has {'no' if model.mask_id is not None else 'a'} mask id"
        )
    ids: list[tuple[str, Iterable[int]]] = [
        ("eos_ids", model.eos_ids),
        ("forbidden_ids", model.forbidden_ids),
    ]
    if model.mask_id is not None:
        ids.append(("mask_id", [model.mask_id]))
    for name, values in ids:
        check_type(values, Iterable, f"model.{name}", CanvasError)
        for value in values:
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, np.integer))
                or not 0 <= value < vocab_size
            ):
                raise CanvasError(f"model.{name}: {value!r} is no id of the vocabulary of {vocab_size} ids")
    if model.mask_id is not None and model.mask_id in model.eos_ids:
        raise CanvasError(f"model.mask_id: {model.mask_id} is an end token as well")
