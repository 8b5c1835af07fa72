"""Texts that must contain phrases, sampled so that these need not wait for the end.

A mask lets a phrase wait until there is hardly room for it, and then it comes wherever it must.  Sequential Monte Carlo pays for
that afterwards.  Here it looks ahead as well: tokens are proposed from a model q that likes tokens of missing phrases better,

    q(v | x) ∝ p(v | x) · exp(boost · [v begins or continues a phrase that x does not have])

and resampling prefers prefixes that have more of the phrases (a twist).  Both divide out: the target is p restricted to the
constraint, whatever ``boost`` and ``pull`` are; only the variance depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from maskwright.base.arguments import check_type, listed, real
from maskwright.errors import MaskwrightError, VocabularyError
from maskwright.sampling.constraints import Constraint
from maskwright.sampling.logspace import MINUS_INFINITY, Floats, Integers, log_sum_exp
from maskwright.sampling.models import LanguageModel, ModelState
from maskwright.sampling.posterior import Posterior
from maskwright.sampling.sequential import smc
from maskwright.sampling.target import InLogarithms
from maskwright.vocabulary.vocabulary import Vocabulary

_SURE = 3
"""Bytes of a phrase that a token must have to begin it."""
_BOOST = 6.0
_PULL = 8.0
"""Nats at temperature 1: of those tried, they leave the least variance (``bench/contains.py``)."""
_MOST_BOOST = 1e3
_MOST_PULL = 1e4
"""Nats.  They divide out by subtraction: beside larger ones too little is left of log p.  With these, the evidence of texts of 300 tokens
is right to 2e-11 of itself, and errors grow with both; a boost of 1e12 leaves two digits."""


def phrase_smc(
    model: LanguageModel,
    constraint: Constraint,
    texts: Sequence[str],
    vocabulary: Vocabulary,
    n_particles: int = 16,
    *,
    boost: float | None = None,
    pull: float | None = None,
    **options: Any,
) -> Posterior:
    """``smc`` for a constraint under which texts contain phrases (``mw.Contains``, alone or in an expression).

    The posterior is that of ``smc(model, constraint, ...)``, with the same evidence; ``logprobs`` are those of ``model``.
    ``boost``: nats by which tokens of missing phrases are preferred when tokens are proposed.  ``pull``: what a missing phrase
    is taken to cost (nats), so a guess at minus the logarithm of how likely the model writes it of its own accord.  None: 6 and 8, divided
    by the model's temperature, as all its log-probabilities are.
    ``options``: those of ``smc``, but for ``reward``, ``twist``, ``power``, ``ramp`` and ``rejuvenation``.
    ``boost`` is at most 1,000 and ``pull`` at most 10,000: more decides nothing else, and log p would be lost beside it.
    Raises ``VocabularyError`` where model and vocabulary differ in size, ``MaskwrightError`` for bad options, and what ``smc`` raises.
    """
    taken = {"reward", "twist", "power", "ramp", "rejuvenation"} & options.keys()
    if taken:
        raise MaskwrightError(f"phrase_smc: {', '.join(sorted(taken))} is not available: use smc")
    phrases = _phrases(texts)
    check_type(model, LanguageModel, "model", MaskwrightError)
    check_type(vocabulary, Vocabulary, "vocabulary", VocabularyError)
    if model.vocab_size != vocabulary.vocab_size:
        raise VocabularyError(
            f"the model has {model.vocab_size} ids and the vocabulary {vocabulary.vocab_size}: use the model's own"
        )
    guided = _Guided(
        model,
        phrases,
        vocabulary,
        _nats(boost, "boost", _BOOST / model.temperature, _MOST_BOOST),
        _nats(pull, "pull", _PULL / model.temperature, _MOST_PULL),
    )
    reward, twist = InLogarithms(guided.log_reward), InLogarithms(guided.log_twist)
    found = smc(guided, constraint, n_particles, reward=reward, twist=twist, **options)
    for ids, logprobs in zip(found.sequences, found.logprobs, strict=True):
        guided.as_model(ids, logprobs)
    return found


def _nats(given: float | None, name: str, default: float, most: float) -> float:
    return min(default, most) if given is None else real(given, name, high=most)


def _phrases(texts: Iterable[str]) -> list[bytes]:
    found = listed(texts, "texts", "phrases")
    if not found or not all(isinstance(text, str) and text for text in found):
        raise MaskwrightError("phrase_smc: texts is a list of phrases, none of them empty")
    try:
        return [text.encode() for text in found]
    except UnicodeEncodeError as error:
        raise MaskwrightError(
            f"phrase_smc: texts: {error.object!r} has half a character, which no text has"
        ) from None


class _Guided(LanguageModel):
    """The model q, which remembers how it differs from p."""

    def __init__(
        self, model: LanguageModel, phrases: list[bytes], vocabulary: Vocabulary, boost: float, pull: float
    ) -> None:
        self.model = model
        self.vocab_size, self.eos_ids, self.room = model.vocab_size, model.eos_ids, model.room
        self.phrases = phrases
        self.tokens = vocabulary.tokens
        self.boost = boost
        self.pull = pull
        self.preferred: dict[tuple[int, int], Integers] = {}
        """By phrase and how much of it stands at the end of the text (bytes)."""
        self.seen: dict[tuple[int, ...], tuple[float, frozenset[int]]] = {}
        """By prefix, the logarithm of what q is divided by, and the tokens that it prefers."""
        self.ratios: dict[tuple[int, ...], float] = {(): 0.0}
        """By prefix, log p - log q."""
        self.begins = [self._ids(0, phrase) for phrase in phrases]

    def state(self, prefixes: Sequence[Sequence[int]]) -> ModelState:
        return _GuidedState(self, self.model.state(prefixes), [tuple(prefix) for prefix in prefixes])

    # --- what is preferred

    def _ids(self, have: int, phrase: bytes) -> Integers:
        rest = phrase[have:]
        found = []
        for token, data in enumerate(self.tokens):
            text = data if have else data.lstrip(b" ")
            enough = have > 0 or len(text) >= min(_SURE, len(phrase))
            if text and enough and (rest.startswith(text) or text.startswith(rest)):
                found.append(token)
        return np.array(found, dtype=np.int64)

    def progress(self, prefix: tuple[int, ...]) -> list[int]:
        """By phrase, how many of its bytes stand at the end of the text; all of them where it came before."""
        text = b"".join([self.tokens[token] for token in prefix])
        return [
            len(phrase)
            if phrase in text
            else max((n for n in range(1, len(phrase)) if text.endswith(phrase[:n])), default=0)
            for phrase in self.phrases
        ]

    def preference(self, prefix: tuple[int, ...]) -> Integers:
        """The tokens that begin or continue a phrase that the prefix does not have."""
        found: list[Integers] = []
        for number, have in enumerate(self.progress(prefix)):
            if have == len(self.phrases[number]):
                continue
            found.append(self.begins[number])
            if have:
                key = (number, have)
                if key not in self.preferred:
                    self.preferred[key] = self._ids(have, self.phrases[number])
                found.append(self.preferred[key])
        return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)

    def guide(self, prefix: tuple[int, ...], logprobs: Floats) -> Floats:
        """The row of q behind a prefix, from that of p."""
        chosen = self.preference(prefix)
        row = logprobs.copy()
        row[chosen] += self.boost
        total = float(log_sum_exp(row[None])[0])
        if total == MINUS_INFINITY:
            total = 0.0  # nothing can follow: whoever came here has no weight
        self.seen[prefix] = (total, frozenset(chosen.tolist()))
        row -= total
        return row

    # --- how it divides out

    def ratio(self, prefix: tuple[int, ...]) -> float:
        """log p(prefix) - log q(prefix)."""
        known = len(prefix)
        while prefix[:known] not in self.ratios:
            known -= 1
        for length in range(known, len(prefix)):
            total, chosen = self.seen[prefix[:length]]
            step = total - self.boost * (prefix[length] in chosen)
            self.ratios[prefix[: length + 1]] = self.ratios[prefix[:length]] + step
        return self.ratios[prefix]

    def log_reward(self, ids: list[int]) -> float:
        """log p - log q of a complete text, its end included."""
        prefix = tuple(ids)
        return self.ratio(prefix) + self.seen[prefix][0]

    def log_twist(self, ids: list[int]) -> float:
        """log p - log q so far, and a guess at how likely the model writes what is missing."""
        prefix = tuple(ids)
        missing = sum(
            1 - have / len(phrase) for have, phrase in zip(self.progress(prefix), self.phrases, strict=True)
        )
        return self.ratio(prefix) - self.pull * missing

    def as_model(self, ids: list[int], logprobs: list[float]) -> None:
        """Make the log-probabilities of a text those of p, in place."""
        prefix = tuple(ids)
        for at in range(len(logprobs)):
            total, chosen = self.seen[prefix[:at]]
            logprobs[at] += total - self.boost * (at < len(ids) and ids[at] in chosen)


class _GuidedState(ModelState):
    def __init__(self, guided: _Guided, inner: ModelState, prefixes: list[tuple[int, ...]]) -> None:
        self.guided = guided
        self.inner = inner
        self.prefixes = prefixes
        rows = [guided.guide(prefix, row) for prefix, row in zip(prefixes, inner.logprobs, strict=True)]
        self.logprobs = np.array(rows) if rows else inner.logprobs

    def extend(self, parents: Integers, tokens: Integers) -> ModelState:
        prefixes = [
            (*self.prefixes[parent], token) if token >= 0 else self.prefixes[parent]
            for parent, token in zip(parents.tolist(), tokens.tolist(), strict=True)
        ]
        return _GuidedState(self.guided, self.inner.extend(parents, tokens), prefixes)
