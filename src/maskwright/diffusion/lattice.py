"""Likeliest filling and exact sampling: dynamic programming over all fillings of a canvas.

Where the states that a canvas can reach are few (regular languages, schemas without recursion on short canvases),
every filling is a path through a lattice of (slot, state).  With independent probabilities p_i by slot, as one call
of a masked-diffusion model gives them, this finds

- the most likely filling, ``most_likely`` (DINGO, arXiv 2505.23061, but only fillings that fit the canvas), and
- draws from p restricted to the language, ``sample_filling`` (forward filtering, backward sampling; arXiv 2607.07026),
  with the logarithm of the probability that p gives to the language.

End tokens count in the slot where the text ends; those behind it are forced and count nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from maskwright.base.deadline import check_time, deadline
from maskwright.diffusion.canvas import Canvas
from maskwright.diffusion.slots import OPEN
from maskwright.errors import CanvasError, LimitError

Floats = npt.NDArray[np.float64]


@dataclass
class _Layer:
    """The states before one slot and what leads from them to those behind it."""

    states: list[int] = field(default_factory=list)
    edges: list[tuple[int, int, npt.NDArray[np.int32]]] = field(default_factory=list)
    """(state here, state behind, tokens), by position in the layers."""


class Lattice:
    """All fillings of a canvas whose grammar is exact.

    Raises ``LimitError`` when more than ``canvas.limits.max_lattice_states`` states are reached or it takes longer than
    ``canvas.limits.max_seconds``, ``CanvasError`` when the grammar has objects with undeclared keys (their states cannot be listed) or the canvas has optional slots.
    """

    def __init__(self, canvas: Canvas) -> None:
        if not canvas.exact:
            raise CanvasError(
                "the lattice needs a grammar whose objects have no undeclared keys (additionalProperties: false)"
            )
        if any(canvas.is_optional(i) for i in range(len(canvas))):
            raise CanvasError("the lattice needs a canvas without variable gaps")
        self.canvas = canvas
        self._layers: list[_Layer] = []
        with deadline(canvas.limits.max_seconds):
            self._build()

    def _build(self) -> None:
        """Forward through viable states only; -1 stands for a text that has ended."""
        canvas = self.canvas
        canvas.make_room()
        reading = canvas.reading
        index = {canvas.sets.start: 0}
        count = 1
        ends = np.array(sorted(reading.ends), dtype=np.int32)
        for i, token in enumerate(canvas.tokens):
            layer = _Layer(list(index))
            behind: dict[int, int] = {}
            for here, state in enumerate(layer.states):
                check_time()
                for target, ids in self._moves(state, i, token, ends):
                    layer.edges.append((here, behind.setdefault(target, len(behind)), ids))
            count += len(behind)
            if count > canvas.limits.max_lattice_states:
                raise LimitError("max_lattice_states", count, canvas.limits.max_lattice_states)
            self._layers.append(layer)
            index = behind
        self._last = [state < 0 or canvas.sets.is_accepting(state) for state in index]

    def _moves(
        self, state: int, i: int, token: int, ends: npt.NDArray[np.int32]
    ) -> list[tuple[int, npt.NDArray[np.int32]]]:
        canvas, reading = self.canvas, self.canvas.reading
        moves = []
        one = np.array([token], dtype=np.int32)
        if state < 0:
            return [(-1, ends if token == OPEN else one)] if token == OPEN or token in reading.ends else []
        if token != OPEN and token not in reading.ends:
            target = canvas.sets.next(state, token)
            return [(target, one)] if target >= 0 and reading.viable(target, i + 1) else []
        if token == OPEN and i < reading.end:
            moves = [
                (target, ids) for target, ids in reading.classes_of(state) if reading.viable(target, i + 1)
            ]
        if reading.ends and i > reading.last and canvas.sets.is_accepting(state):
            moves.append((-1, ends if token == OPEN else one))
        return moves

    # --- dynamic programming

    def _weights(self, log_probs: Floats, i: int, here: int, ids: npt.NDArray[np.int32]) -> Floats:
        if self.canvas.tokens[i] != OPEN:
            return np.zeros(len(ids))
        if self._layers[i].states[here] < 0:
            # An end token behind the end is forced; one of them stands for all.
            return np.where(np.arange(len(ids)) == 0, 0.0, -np.inf)
        return np.asarray(log_probs[i, ids], dtype=np.float64)

    def _checked(self, log_probs: npt.ArrayLike) -> Floats:
        given = np.asarray(log_probs, dtype=np.float64)
        shape = (len(self.canvas), self.canvas.vocabulary.vocab_size)
        if given.shape != shape:
            raise CanvasError(f"log_probs: expected shape {list(shape)}, got {list(given.shape)}")
        if np.isnan(given).any() or (given == np.inf).any():
            raise CanvasError("log_probs: NaN or infinity is no logarithm of a probability")
        return given

    def most_likely(self, log_probs: npt.ArrayLike) -> tuple[list[int], float]:
        """The filling with the largest sum of ``log_probs`` [slots, V] over open slots, and that sum."""
        given = self._checked(log_probs)
        best = np.where(self._last, 0.0, -np.inf)
        choices: list[list[tuple[int, int]]] = []
        for i in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[i]
            value = np.full(len(layer.states), -np.inf)
            choice = [(-1, -1)] * len(layer.states)
            for here, behind, ids in layer.edges:
                weights = self._weights(given, i, here, ids)
                k = int(weights.argmax())
                if choice[here][0] < 0 or weights[k] + best[behind] > value[here]:
                    value[here] = weights[k] + best[behind]
                    choice[here] = (behind, int(ids[k]))
            best = value
            choices.append(choice)
        tokens, here = [], 0
        for choice in reversed(choices):
            here, token = choice[here]
            tokens.append(token)
        return tokens, float(best[0])

    def sample_filling(self, log_probs: npt.ArrayLike, rng: np.random.Generator) -> tuple[list[int], float]:
        """A filling drawn from ``log_probs`` [slots, V] restricted to the language.

        Also the logarithm of the mass that fillings have under ``log_probs``: the importance weight that makes a step
        under the constraint comparable with one without.  ``CanvasError`` when that mass is zero.
        """
        given = self._checked(log_probs)
        masses = [np.where(self._last, 0.0, -np.inf)]
        for i in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[i]
            value = np.full(len(layer.states), -np.inf)
            for here, behind, ids in layer.edges:
                weights = self._weights(given, i, here, ids)
                value[here] = np.logaddexp(value[here], np.logaddexp.reduce(weights) + masses[-1][behind])
            masses.append(value)
        masses.reverse()
        total = float(masses[0][0])
        if total == -np.inf:
            raise CanvasError("log_probs: no filling of the canvas has any probability")
        tokens, here = [], 0
        for i, layer in enumerate(self._layers):
            edges = [edge for edge in layer.edges if edge[0] == here]
            parts = [self._weights(given, i, here, ids) + masses[i + 1][behind] for _, behind, ids in edges]
            flat = np.concatenate(parts)
            chances = np.exp(flat - flat.max())
            pick = int(rng.choice(len(flat), p=chances / chances.sum()))
            for (_, behind, ids), part in zip(edges, parts, strict=True):
                if pick < len(part):
                    tokens.append(int(ids[pick]))
                    here = behind
                    break
                pick -= len(part)
        return tokens, total


def most_likely(canvas: Canvas, log_probs: npt.ArrayLike) -> list[int]:
    """The most likely filling of a canvas under independent ``log_probs`` [slots, V]; see ``Lattice``."""
    return Lattice(canvas).most_likely(log_probs)[0]


def sample_filling(
    canvas: Canvas, log_probs: npt.ArrayLike, rng: np.random.Generator
) -> tuple[list[int], float]:
    """A filling drawn exactly, and the logarithm of the language's mass; see ``Lattice``."""
    return Lattice(canvas).sample_filling(log_probs, rng)
