"""Several candidates for one output: sequential Monte Carlo of ``maskwright.sampling`` over the same model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maskwright.compiler import CompiledGrammar
from maskwright.errors import MaskwrightError
from maskwright.generation.key_values import Prefixes
from maskwright.sampling.candidates import several_candidates
from maskwright.sampling.huggingface import HuggingFaceModel


@dataclass(frozen=True)
class Weighed:
    """``token_ids``: of the likeliest text, without EOS; ``logprob``: theirs, of the model alone; ``posterior``: the probability of each distinct text that was found, the
    likeliest first; and what it took."""

    token_ids: list[int]
    logprob: float
    posterior: dict[str, float]
    model_calls: int
    mask_seconds: float


def weigh_candidates(
    model: Any,
    prompt: Sequence[int],
    grammar: CompiledGrammar,
    room: int,
    particles: int,
    seed: int | None,
    prefixes: Prefixes,
) -> Weighed:
    """Candidates of ``maskwright.sampling.several_candidates``; ``room``: their tokens, EOS included.

    Raises ``MaskwrightError`` for an encoder-decoder model, and what ``several_candidates`` raises.
    """
    if model.config.is_encoder_decoder:
        raise MaskwrightError(
            "particles are for decoder-only models: pass num_beams, or n with a temperature"
        )
    cache, _ = prefixes.find(list(prompt[:-1]))
    backend = HuggingFaceModel(model, None, prompt, eos_ids=grammar.vocabulary.eos_ids, cache=cache)
    found = several_candidates(backend, grammar, room, particles=particles, seed=seed)
    prefixes.keep(list(prompt), backend.prompt_cache)
    decode = grammar.vocabulary.decode
    shares = found.posterior.posterior(lambda ids: decode(ids).decode("utf-8", "replace"))
    return Weighed(
        found.token_ids,
        sum(found.logprobs[: len(found.token_ids)]),
        dict(sorted(shares.items(), key=lambda share: -share[1])),
        found.posterior.counts.model_calls,
        found.mask_seconds,
    )
