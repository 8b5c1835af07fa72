"""Right distributions: sampling from a language model under constraints, with weights that say what masking hides.

    awrs(logprobs, accept)       one token under a black-box constraint, properly weighted
    smc(model, constraint, ...)  whole texts: p(y)^power · 1[constraint] · reward(y), and the evidence
    phrase_smc(model, constraint, texts, ...)  the same for texts that must contain phrases, looking ahead to them
    locally_constrained, rejection_sampling, sample_verify, Asap: what to compare with, on the same models

Models are ``CallableModel`` (any function) and ``HuggingFaceModel``; ``ByteModel`` is one of them over bytes, ``product``, ``mixture`` and
``anchored`` make one of several.  Constraints are ``GrammarConstraint``,
``Predicate``, monitors, and products of them with ``*``.

Names are imported on first use: torch only with ``HuggingFaceModel`` and ``WeightRecorder``, matplotlib only by
plots that need it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maskwright.sampling.adaptive import Draw as Draw
    from maskwright.sampling.adaptive import Draws as Draws
    from maskwright.sampling.adaptive import awrs as awrs
    from maskwright.sampling.adaptive import awrs_batch as awrs_batch
    from maskwright.sampling.anchoring import anchored as anchored
    from maskwright.sampling.asap import Asap as Asap
    from maskwright.sampling.baselines import locally_constrained as locally_constrained
    from maskwright.sampling.baselines import rejection_sampling as rejection_sampling
    from maskwright.sampling.baselines import sample_verify as sample_verify
    from maskwright.sampling.blocks import SymbolEnds as SymbolEnds
    from maskwright.sampling.byte_model import ByteModel as ByteModel
    from maskwright.sampling.combinations import mixture as mixture
    from maskwright.sampling.combinations import product as product
    from maskwright.sampling.constraints import END as END
    from maskwright.sampling.constraints import Constraint as Constraint
    from maskwright.sampling.constraints import Everything as Everything
    from maskwright.sampling.constraints import GrammarConstraint as GrammarConstraint
    from maskwright.sampling.constraints import Product as Product
    from maskwright.sampling.huggingface import HuggingFaceModel as HuggingFaceModel
    from maskwright.sampling.models import CallableModel as CallableModel
    from maskwright.sampling.models import LanguageModel as LanguageModel
    from maskwright.sampling.models import ModelState as ModelState
    from maskwright.sampling.monitors.attributes import PythonAttributes as PythonAttributes
    from maskwright.sampling.monitors.language_server import LanguageServerNames as LanguageServerNames
    from maskwright.sampling.monitors.monitor import Monitor as Monitor
    from maskwright.sampling.monitors.sql import SqlNames as SqlNames
    from maskwright.sampling.phrases import phrase_smc as phrase_smc
    from maskwright.sampling.posterior import Posterior as Posterior
    from maskwright.sampling.posterior import pooled as pooled
    from maskwright.sampling.predicate import Predicate as Predicate
    from maskwright.sampling.recorder import WeightRecorder as WeightRecorder
    from maskwright.sampling.resampling import resample as resample
    from maskwright.sampling.sequential import smc as smc
    from maskwright.sampling.tries import TrieConstraint as TrieConstraint

_HOMES = {
    "anchoring": ["anchored"],
    "asap": ["Asap"],
    "adaptive": ["Draw", "Draws", "awrs", "awrs_batch"],
    "baselines": ["locally_constrained", "rejection_sampling", "sample_verify"],
    "blocks": ["SymbolEnds"],
    "byte_model": ["ByteModel"],
    "combinations": ["mixture", "product"],
    "constraints": ["END", "Constraint", "Everything", "GrammarConstraint", "Product"],
    "huggingface": ["HuggingFaceModel"],
    "models": ["CallableModel", "LanguageModel", "ModelState"],
    "monitors.attributes": ["PythonAttributes"],
    "monitors.language_server": ["LanguageServerNames"],
    "monitors.monitor": ["Monitor"],
    "monitors.sql": ["SqlNames"],
    "phrases": ["phrase_smc"],
    "posterior": ["Posterior", "pooled"],
    "predicate": ["Predicate"],
    "recorder": ["WeightRecorder"],
    "resampling": ["resample"],
    "sequential": ["smc"],
    "tries": ["TrieConstraint"],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = list(_HOME_OF)


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'maskwright.sampling' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"maskwright.sampling.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
