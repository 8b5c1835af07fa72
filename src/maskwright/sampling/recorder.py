"""Importance weights for plain ``generate``: how much probability the masks cut off."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from maskwright.generation.logits_processor import LogitsProcessor
from maskwright.sampling.logspace import MINUS_INFINITY, Floats, log_mean_exp


class WeightRecorder(LogitsProcessor):
    """A ``LogitsProcessor`` that remembers each row's importance weight.

    ``model.generate(..., do_sample=True, top_k=0, logits_processor=[recorder])`` samples from locally constrained
    decoding; ``recorder.log_weights`` then holds the logarithm of the product of the masses that the masks
    left, with which the finished rows are properly weighted for p(y) · 1[y in the language].  p is what reaches
    this processor; what comes behind it (temperature, top-k, top-p) must leave scores as they are.  For sampling
    only: beams and drafted tokens have no such weights.  Rows that did not reach EOS are no complete texts.  With ``tokenizer``, forced text
    has one spelling, so the weights are for texts in these tokens only.
    A new generation is recognised as ``LogitsProcessor`` does; ``reset`` forgets.
    """

    def reset(self) -> None:
        super().reset()
        self._columns = 0
        self._weights: Floats = np.zeros(0)

    @property
    def log_weights(self) -> Floats:
        """[rows], of the generation that is going on or was the last."""
        return self._weights.copy()

    @property
    def log_evidence(self) -> float:
        """Logarithm of the mean weight; unbiased for the mass of the language when all rows are finished."""
        return float(log_mean_exp(self._weights)) if len(self._weights) else MINUS_INFINITY

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor) -> torch.Tensor:
        masked = super().__call__(input_ids, scores)
        rows, columns = input_ids.shape
        if len(self._weights) != rows or columns <= self._columns or columns == self._begun:
            self._weights = np.zeros(rows)
        self._columns = columns
        # Where nothing is left, ``masked`` has scores all the same, so that sampling can go on.
        allowed = scores.float().masked_fill(~masked.isfinite(), MINUS_INFINITY)
        left = allowed.logsumexp(dim=-1) - scores.float().logsumexp(dim=-1)
        change = left.double().nan_to_num(nan=MINUS_INFINITY, neginf=MINUS_INFINITY).cpu().numpy()
        for row, matcher in enumerate(self._matchers_of(input_ids)):
            if matcher is None:
                self._weights[row] = MINUS_INFINITY
            elif not matcher.is_terminated:
                self._weights[row] += change[row]
        return masked

    def _matchers_of(self, input_ids: torch.LongTensor) -> Any:
        # Looked up a moment ago, so nothing is computed.
        return self._follow(input_ids.detach().cpu().numpy())
