"""Adapters for models of Hugging Face transformers and for decoding loops of others.

- ``HuggingFaceDiffusionModel``: any module that maps token ids to logits of every position: LLaDA and SDAR (position-aligned), Dream
  and its relatives (logits shifted by one), BERT and ModernBERT (masked language models).
- ``dream_hooks``: the two hooks of Dream's ``diffusion_generate``, so that its own loop fills a canvas.
- ``DiffusionLogitsProcessor``: a logits processor for models without a mask that denoise whole canvases, as
  DiffusionGemma in transformers does.

Mask and end ids are read from the tokenizer or the configuration, never assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from maskwright.compiling.compiler import CompiledGrammar
from maskwright.diffusion.canvas import Canvas
from maskwright.diffusion.decode import fill_from
from maskwright.diffusion.model import MaskedDiffusionModel
from maskwright.diffusion.slots import OPEN
from maskwright.errors import CanvasError

_SHIFTED = ("dream",)
"""Model types whose logits at a position are those of the next one."""
_BOOST = 1.0


class HuggingFaceDiffusionModel(MaskedDiffusionModel):
    """A masked-diffusion or masked language model, with a prompt before the canvas.

    ``model``: a module; ``call(model, ids)`` maps int64 [1, length] to logits [1, length, V] (default: the usual call of its
    type).  ``prompt``: token ids before the canvas.  ``shift``: 1 when logits belong to the next position (default:
    by model type).  ``causal(model, ids)``: the same as ``call`` by the model's causal mode, for ``Schedule(verify=True)``: shifted
    as well where logits are.  Raises ``CanvasError`` when no mask or end token is known.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        *,
        prompt: Sequence[int] = (),
        mask_id: int | None = None,
        eos_ids: Iterable[int] | None = None,
        shift: int | None = None,
        call: Callable[[Any, Any], Any] | None = None,
        causal: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        config = getattr(model, "config", None)
        self.model = model
        self.tokenizer = tokenizer
        self.prompt = list(prompt)
        self.mask_id = _first("mask_token_id", tokenizer, config) if mask_id is None else mask_id
        if self.mask_id is None:
            raise CanvasError("the tokenizer and the configuration name no mask token; pass mask_id=...")
        ends = _first("eos_token_id", getattr(model, "generation_config", None), tokenizer, config)
        if eos_ids is None and ends is None:
            raise CanvasError("the tokenizer and the configuration name no end token; pass eos_ids=...")
        self.eos_ids = (
            list(eos_ids) if eos_ids is not None else [ends] if isinstance(ends, int) else list(ends)
        )
        model_type = str(getattr(config, "model_type", "")).lower()
        self.shift = int(model_type in _SHIFTED) if shift is None else shift
        self._call = call or (_call_dream if model_type in _SHIFTED else _call_plain)
        self._causal = causal

    def logits(self, canvas: list[int]) -> Any:
        return self.logits_of([canvas])[0]

    def logits_of(self, canvases: list[list[int]]) -> Any:
        if len({len(canvas) for canvas in canvases}) > 1:
            return super().logits_of(canvases)
        return self._logits_by(self._call, canvases)

    @property
    def has_causal_logits(self) -> bool:
        return self._causal is not None

    def causal_logits(self, canvas: list[int]) -> Any:
        if self._causal is None:
            raise CanvasError("how to call the model's causal mode is not known; pass causal=...")
        return self._logits_by(self._causal, [canvas])[0]

    def _logits_by(self, call: Callable[[Any, Any], Any], canvases: list[list[int]]) -> Any:
        import torch

        device = getattr(self.model, "device", "cpu")
        with torch.inference_mode():
            ids = torch.tensor([self.prompt + canvas for canvas in canvases], device=device)
            logits = call(self.model, ids)
            if self.shift:
                logits = torch.cat([logits[:, :1], logits[:, :-1]], dim=1)
            return logits[:, len(self.prompt) :].float().cpu().numpy()

    def encode(self, text: str) -> list[int]:
        if self.tokenizer is None:
            raise CanvasError("fixed text in a canvas needs a tokenizer")
        return list(self.tokenizer.encode(text, add_special_tokens=False))


def _first(name: str, *sources: Any) -> Any:
    return next((value for source in sources if (value := getattr(source, name, None)) is not None), None)


def _call_plain(model: Any, ids: Any) -> Any:
    return model(input_ids=ids).logits


def _call_dream(model: Any, ids: Any) -> Any:
    return model(ids, "full").logits


def forced_logits(canvas: Canvas, logits: Any, positions: Sequence[int], *, certain: bool = False) -> Any:
    """Logits [len(positions), V] under which the likeliest tokens of open slots ``positions`` fit together.

    The canvas stays as it is, but its witness becomes that filling.  A token that is the likeliest already keeps its
    logits, so that confidences stay what they are; another one is lifted just above; ``certain`` leaves nothing else.
    """
    out = np.array(logits, dtype=np.float32)
    impossible = np.array([not data for data in canvas.vocabulary.tokens])
    impossible[list(canvas.reading.ends)] = False
    opened = canvas.open
    fill_from(canvas, out, {i: k for k, i in enumerate(positions)}, positions, impossible)
    # All of them: filling one may fill others.
    canvas.uncommit(opened)
    witness = canvas.witness()
    for k, i in enumerate(positions):
        top = out[k].max()
        if certain or not np.isfinite(top):
            out[k] = -np.inf
            out[k, witness[i]] = 0
        elif out[k].argmax() != witness[i] or np.isnan(out[k]).any():
            out[k, witness[i]] = top + _BOOST
    return out


def dream_hooks(
    canvas: Canvas, prompt_length: int, mask_id: int, *, certain: bool = False
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """``generation_tokens_hook_func`` and ``generation_logits_hook_func`` for ``diffusion_generate`` (batch size 1).

    Pass ``certain=True`` when the loop samples with a temperature above 0.
    """

    def tokens_hook(step: int | None, x: Any, logits: Any) -> Any:
        held = x[0, prompt_length : prompt_length + len(canvas)].tolist()
        now = canvas.tokens
        canvas.commit_many(
            [(i, token) for i, token in enumerate(held) if token != mask_id and now[i] == OPEN]
        )
        for i, token in enumerate(canvas.tokens):
            # What did not fit is masked again; end tokens spread to the right.
            x[0, prompt_length + i] = mask_id if token == OPEN else token
        return x

    def logits_hook(step: int | None, x: Any, logits: Any) -> Any:
        import torch

        opened = canvas.open
        if opened:
            rows = [prompt_length + i for i in opened]
            forced = forced_logits(canvas, logits[0, rows].float().cpu().numpy(), opened, certain=certain)
            logits = logits.clone()
            logits[0, rows] = torch.from_numpy(forced).to(logits)
        return logits

    return tokens_hook, logits_hook


class DiffusionLogitsProcessor:
    """``logits_processor`` for denoising loops over canvases without a mask (DiffusionGemma's ``generate``).

    Called with ``input_ids`` [batch, prompt and finished canvases] and ``scores`` [batch, canvas, V]; lifts a filling that is
    in the language to be the likeliest token of every slot.  ``prompt_length``: tokens before the text;
    ``max_new_tokens``: those of all canvases, so that the text ends in time.
    """

    def __init__(self, grammar: CompiledGrammar, prompt_length: int, max_new_tokens: int) -> None:
        self.grammar = grammar
        self.prompt_length = prompt_length
        self.max_new_tokens = max_new_tokens
        self._canvases: dict[tuple[int, tuple[int, ...]], Canvas] = {}

    def __call__(self, input_ids: Any, scores: Any, cur_step: Any = None) -> Any:
        import torch

        out = scores.clone()
        for row in range(scores.shape[0]):
            done = tuple(input_ids[row, self.prompt_length :].tolist())
            canvas = self._canvas(row, done)
            positions = range(len(done), min(len(done) + scores.shape[1], self.max_new_tokens))
            opened = [i for i in positions if canvas.tokens[i] == OPEN]
            rows = [i - len(done) for i in opened]
            if opened:
                forced = forced_logits(canvas, scores[row, rows].float().cpu().numpy(), opened)
                out[row, rows] = torch.from_numpy(forced).to(out)
            for i in positions:
                if i not in opened:
                    out[row, i - len(done)] = -torch.inf
                    out[row, i - len(done), canvas.tokens[i]] = 0
        return out

    def _canvas(self, row: int, done: tuple[int, ...]) -> Canvas:
        key = (row, done)
        if key not in self._canvases:
            self._canvases = {k: canvas for k, canvas in self._canvases.items() if k[0] != row}
            ends = self.grammar.vocabulary.eos_ids
            stop = next((i for i, token in enumerate(done) if token in ends), len(done))
            # Padding behind the end counts as end tokens.
            held: list[int | None] = [*done[:stop], *[ends[0]] * (len(done) - stop)]
            self._canvases[key] = Canvas(self.grammar, held + [None] * (self.max_new_tokens - len(done)))
        return self._canvases[key]
