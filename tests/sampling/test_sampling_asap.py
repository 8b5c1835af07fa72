"""Expected futures of texts whose probability is less than any double."""

from __future__ import annotations

import numpy as np
import pytest

import maskwright as mw
from maskwright.sampling import Asap, CallableModel, GrammarConstraint, smc

VOCABULARY = mw.Vocabulary.from_bytes([b"a", b"b", b""], eos_ids=2)


@pytest.mark.parametrize(("length", "score"), [(60, -15.0), (120, -6.3), (1, -800.0)])
def test_texts_less_likely_than_any_double(length: int, score: float) -> None:
    row = np.array([score, 0.0, score])
    row -= np.logaddexp.reduce(row)
    model = CallableModel(lambda prefixes: [row for _ in prefixes], 3, 2)
    constraint = GrammarConstraint(mw.compile_regex(f"a{{{length}}}", VOCABULARY))
    sampler = Asap(model, constraint, length + 5, seed=0)
    assert sampler.sample(4).is_complete.all()
    exact = length * row[0] + row[2]
    assert sampler.log_evidence_bound == pytest.approx(exact)
    found = smc(model, constraint, 4, max_tokens=length + 5, seed=0)
    assert found.log_evidence == pytest.approx(exact)


def test_a_corner_is_no_text() -> None:
    """Behind "b", the model gives everything to what the grammar forbids."""
    rows = {(): [0.5, 0.5, 0.0], (0,): [0.0, 0.0, 1.0], (1,): [1.0, 0.0, 0.0]}
    with np.errstate(divide="ignore"):
        logs = {prefix: np.log(row) for prefix, row in rows.items()}
    model = CallableModel(lambda prefixes: [logs[tuple(prefix)] for prefix in prefixes], 3, 2)
    sampler = Asap(model, GrammarConstraint(mw.compile_regex("[ab]", VOCABULARY)), 4, seed=0)
    found = sampler.sample(40)
    assert found.is_complete.sum() == 39 and not found.is_complete.all()
    assert sampler.log_evidence_bound == pytest.approx(np.log(0.5))
