"""Several models as one: products of experts, mixtures, and models under masks.

All parts have the same ids and ends.  Models with different vocabularies get there by ``ByteModel``, each its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maskwright.base.arguments import check_type, listed, real
from maskwright.errors import ConstraintError, MaskwrightError, VocabularyError
from maskwright.masks.bitmask import allowed_tokens
from maskwright.sampling.byte_model import END_OF_BYTES, PrefixStates, columns
from maskwright.sampling.constraints import Constraint
from maskwright.sampling.logspace import MINUS_INFINITY, Floats, Integers, normalized_rows
from maskwright.sampling.models import STAY, LanguageModel, ModelState, one_end
from maskwright.sampling.verdicts import masks_of


class Combination(LanguageModel):
    """Models of the same ids that read the same text.

    Raises ``VocabularyError`` when they differ in ids or ends, or share no bytes, so that no text but the empty one is possible for
    two of them; ``MaskwrightError`` for no models.
    """

    def __init__(self, models: Sequence[LanguageModel]) -> None:
        self.models = listed(models, "models", "language models")
        if not self.models:
            raise MaskwrightError("models: at least one is needed")
        for each in self.models:
            check_type(each, LanguageModel, "models", MaskwrightError)
        first = self.models[0]
        self.vocab_size = first.vocab_size
        self.eos_ids = tuple(first.eos_ids)
        for each in self.models[1:]:
            if each.vocab_size != self.vocab_size or set(each.eos_ids) != set(self.eos_ids):
                raise VocabularyError(
                    f"models of {self.vocab_size} ids ending with {sorted(self.eos_ids)} and of {each.vocab_size} ending with "
                    f"{sorted(each.eos_ids)} do not fit each other; make models of bytes of them: ByteModel(model, vocabulary)"
                )
        rooms = [each.room for each in self.models if each.room is not None]
        self.room = min(rooms, default=None)
        self.alphabet = _shared_bytes(self.models)
        """The bytes that all of them may write; None: not known."""
        self._prefixes = PrefixStates(self)

    @property
    def has_dropped(self) -> bool:  # type: ignore[override]
        return any(each.has_dropped for each in self.models)

    def next_byte_logprobs(self, prefix: bytes) -> Floats:
        """log p(next byte | prefix), float64 [257]; the last one is the end.

        Raises ``VocabularyError`` when the models are not of bytes, ``ModelError`` where the prefix is impossible.
        """
        if self.vocab_size != END_OF_BYTES + 1 or self.eos_ids != (END_OF_BYTES,):
            raise VocabularyError(
                "these models are not of bytes; make such ones: ByteModel(model, vocabulary)"
            )
        return self._prefixes.next_byte_logprobs(prefix)

    def _states(self, prefixes: Sequence[Sequence[int]]) -> list[ModelState]:
        return [each.state(prefixes) for each in self.models]


def _shared_bytes(models: Sequence[LanguageModel]) -> frozenset[int] | None:
    alphabets = [found for each in models if (found := getattr(each, "alphabet", None)) is not None]
    if not alphabets:
        return None
    shared: frozenset[int] = frozenset.intersection(*alphabets)
    if not shared:
        raise VocabularyError(
            "the models share no bytes: what one can write, another cannot; give each ByteModel the vocabulary whose tokens have the bytes that "
            "its model writes"
        )
    return shared


def checked_weights(weights: Any, count: int, default: float) -> Floats:
    """One positive, finite weight for each model."""
    given = [default] * count if weights is None else listed(weights, "weights", "a number for each model")
    if len(given) != count:
        raise MaskwrightError(f"weights: one for each of {count} models is needed, not {len(given)}")
    found = [real(each, "weights") for each in given]
    if not all(0 < each < float("inf") for each in found):
        raise MaskwrightError(
            f"weights are positive and finite, not {given}; leave out models without weight"
        )
    return np.array(found)


def product(models: Sequence[LanguageModel], weights: Sequence[float] | None = None) -> Product:
    """A product of experts: p(next) is proportional to the product of each model's p(next) to the power of its weight.

    ``weights``: positive exponents, 1 each by default.  It is normalised in every step, as masks are; the product of whole
    texts, normalised once, is another distribution: ``smc(a, reward=...)`` with the probability of the text under the other.  Behind a
    prefix that not all models can go on from in the same way nothing has any probability.  Errors: see ``Combination``.
    """
    return Product(models, weights)


def mixture(models: Sequence[LanguageModel], weights: Sequence[float] | None = None) -> Mixture:
    """A mixture of whole texts: p(text) is the mean of each model's p(text), by weights.

    So every step is the mean of the models' steps by their *posterior* weights, which the text so far has moved to the models that
    foresaw it.  ``weights``: positive, made to sum to one; equal by default.  Errors: see ``Combination``.
    """
    return Mixture(models, weights)


class Product(Combination):
    """See ``product``."""

    def __init__(self, models: Sequence[LanguageModel], weights: Sequence[float] | None = None) -> None:
        super().__init__(models)
        self.weights = checked_weights(weights, len(self.models), 1.0)

    def state(self, prefixes: Sequence[Sequence[int]]) -> ModelState:
        return _ProductState(self, self._states(prefixes))


class _ProductState(ModelState):
    def __init__(self, owner: Product, states: list[ModelState]) -> None:
        self.owner = owner
        self.states = states
        parts = [
            one_end(each.logprobs, owner.eos_ids) * weight
            for each, weight in zip(states, owner.weights, strict=True)
        ]
        self.logprobs = normalized_rows(np.sum(parts, axis=0))

    def extend(self, parents: Integers, tokens: Integers) -> ModelState:
        return _ProductState(self.owner, [each.extend(parents, tokens) for each in self.states])


class Mixture(Combination):
    """See ``mixture``."""

    def __init__(self, models: Sequence[LanguageModel], weights: Sequence[float] | None = None) -> None:
        super().__init__(models)
        # As logarithms, since the sum of large weights may be no double.
        self.log_weights = normalized_rows(np.log(checked_weights(weights, len(self.models), 1.0))[None, :])[
            0
        ]

    def state(self, prefixes: Sequence[Sequence[int]]) -> ModelState:
        start = np.zeros((len(prefixes), 1), dtype=np.int64)
        state: ModelState = _MixtureState(
            self._states([[] for _ in prefixes]), self.log_weights[None, :] + start
        )
        for column in columns(prefixes):
            state = state.extend(np.arange(len(prefixes)), np.array(column, dtype=np.int64))
        return state


class _MixtureState(ModelState):
    """``posterior``: log p(model | text so far), [R, models]."""

    def __init__(self, states: list[ModelState], posterior: Floats) -> None:
        self.states = states
        self.posterior = posterior
        parts = [np.asarray(each.logprobs) + posterior[:, i, None] for i, each in enumerate(states)]
        self.logprobs = np.logaddexp.reduce(parts, axis=0)

    def extend(self, parents: Integers, tokens: Integers) -> ModelState:
        evidence = np.stack([each.logprobs[parents, tokens] for each in self.states], axis=1).astype(
            np.float64
        )
        evidence[tokens == STAY] = 0.0
        states = [each.extend(parents, tokens) for each in self.states]
        return _MixtureState(states, normalized_rows(self.posterior[parents] + evidence))


class Masked(LanguageModel):
    """A model under an exact constraint: in every step what the masks leave, normalised.

    Raises ``ConstraintError`` for constraints that are not exact, ``VocabularyError`` when model and constraint differ in ids.
    """

    def __init__(self, model: LanguageModel, constraint: Constraint) -> None:
        check_type(constraint, Constraint, "constraint", MaskwrightError)
        if not constraint.exact:
            raise ConstraintError("masks alone do not tell what this constraint allows; a grammar's do")
        constraint.bind(model.vocab_size, model.eos_ids)
        self.model = model
        self.constraint = constraint
        self.vocab_size = model.vocab_size
        self.eos_ids = model.eos_ids
        self.room = model.room
        self.alphabet = getattr(model, "alphabet", None)

    @property
    def has_dropped(self) -> bool:  # type: ignore[override]
        return self.model.has_dropped

    def state(self, prefixes: Sequence[Sequence[int]]) -> ModelState:
        constraint = self.constraint
        places = []
        for ids in prefixes:
            place = constraint.start()
            for token in ids:
                place = constraint.advance(place, token)
            places.append(place)
        return _MaskedState(self, self.model.state(prefixes), places)


class _MaskedState(ModelState):
    def __init__(self, owner: Masked, state: ModelState, places: list[Any]) -> None:
        self.owner = owner
        self.state = state
        self.places = places
        logprobs = np.array(state.logprobs, dtype=np.float64)
        masks = masks_of(owner.constraint, places, owner.vocab_size)
        if masks is not None:
            logprobs[~allowed_tokens(masks, owner.vocab_size)] = MINUS_INFINITY
        self.logprobs = normalized_rows(logprobs)

    def extend(self, parents: Integers, tokens: Integers) -> ModelState:
        constraint = self.owner.constraint
        places = [
            self.places[parent] if token == STAY else constraint.advance(self.places[parent], token)
            for parent, token in zip(parents.tolist(), tokens.tolist(), strict=True)
        ]
        return _MaskedState(self.owner, self.state.extend(parents, tokens), places)
