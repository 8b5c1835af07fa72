"""Weighted infilling against exact enumeration of all trajectories of small models."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.diffusion import Canvas, Gap, MaskedDiffusionModel, Schedule, infill_smc
from maskwright.diffusion import particles as module
from maskwright.diffusion.slots import OPEN

# Many draws; tests of constraints, blocks and budgets run the same code with few.
pytestmark = pytest.mark.slow

LETTERS = [b"a", b"b", b"(", b")", b"ab", b"", b""]
END, MASK = 5, 6
VOCABULARY = mw.Vocabulary.from_bytes(LETTERS, eos_ids=[END])
Distribution = dict[tuple[int, ...], float]


class Model(MaskedDiffusionModel):
    """Logits that depend on the whole canvas."""

    mask_id, eos_ids = MASK, (END,)

    def __init__(self) -> None:
        self.calls = 0

    def logits(self, canvas: list[int]) -> Any:
        self.calls += 1
        seed = functools.reduce(lambda n, token: (n * 31 + token + 2) % 2**31, canvas, 7)
        return np.random.default_rng(seed).normal(0, 1.5, (len(canvas), len(LETTERS))).astype(np.float32)


def probabilities(canvas: tuple[int, ...], temperature: float) -> Any:
    logits = (
        Model().logits([MASK if token == OPEN else token for token in canvas]).astype(float) / temperature
    )
    logits[:, MASK] = -np.inf
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def ways(canvas: tuple[int, ...], count: int, confident: bool, temperature: float) -> Distribution:
    """The unconstrained loop's distribution over full canvases, by listing all of its trajectories."""
    opened = [i for i, token in enumerate(canvas) if token == OPEN]
    if not opened:
        return {canvas: 1.0}
    probs = probabilities(canvas, temperature)
    if confident:
        opened.sort(key=lambda i: -probs[i].max())
    found: Distribution = {}
    for tokens in itertools.product(range(MASK), repeat=len(opened[:count])):
        filled, q = list(canvas), 1.0
        for i, token in zip(opened[:count], tokens, strict=True):
            if filled[i] != OPEN:
                # Filled by an end token: it is listed once.
                q *= token == END
                continue
            q *= probs[i, token]
            filled[i] = token
            if token == END:
                filled[i:] = [END if t == OPEN else t for t in filled[i:]]
        if q > 0:
            for full, p in ways(tuple(filled), count, confident, temperature).items():
                found[full] = found.get(full, 0.0) + q * p
    return found


def in_language(grammar: mw.CompiledGrammar, canvas: tuple[int, ...]) -> bool:
    text = list(itertools.takewhile(lambda token: token != END, canvas))
    if any(token != END for token in canvas[len(text) :]):
        return False
    matcher = grammar.matcher()
    return all(matcher.accept_token(token) for token in text) and matcher.is_accepting


def exact(
    grammar: mw.CompiledGrammar, slots: int, count: int, confident: bool, temperature: float = 1.0
) -> Distribution:
    found = ways((OPEN,) * slots, count, confident, temperature)
    return {full: p for full, p in found.items() if in_language(grammar, full)}


GRAMMARS = {
    "regex": mw.compile(mw.Regex("a(b|ab)*|b"), VOCABULARY),
    "brackets": mw.compile(mw.Lark('start: "(" start ")" start | "a" |'), VOCABULARY),
}


def estimates(
    grammar: mw.CompiledGrammar, slots: int, runs: int, exact_texts: Distribution, **options: Any
) -> tuple[Any, Any]:
    """Evidence of each run [runs], and the unnormalised estimate of each text [runs, texts]."""
    texts = list(exact_texts)
    rows = {tuple(t for t in full if t != END): k for k, full in enumerate(texts)}
    evidence, cells = np.zeros(runs), np.zeros((runs, len(texts)))
    for seed in range(runs):
        found = infill_smc(Model(), grammar, [None] * slots, seed=seed, **options)
        evidence[seed] = math.exp(found.log_evidence)
        for ids, weight in zip(found.sequences, np.exp(found.log_weights), strict=True):
            if weight > 0:
                cells[seed, rows[tuple(ids)]] += weight / len(found.sequences)
    return evidence, cells


def agrees(samples: Any, truth: float) -> bool:
    error = samples.std(ddof=1) / math.sqrt(len(samples))
    return bool(abs(samples.mean() - truth) <= 4.2 * error + 1e-9)


def all_agree(cells: Any, truth: Distribution) -> bool:
    """Texts that came in few runs have no error to speak of: they are taken together, if these are not few as well."""
    expected = np.array(list(truth.values()))
    often = (cells > 0).sum(axis=0) >= 30
    found = [agrees(cells[:, k], expected[k]) for k in np.flatnonzero(often)]
    rest = cells[:, ~often].sum(axis=1)
    if (rest > 0).sum() >= 30:
        found.append(agrees(rest, expected[~often].sum()))
    return len(found) >= 2 and all(found)


@pytest.mark.parametrize(
    ("name", "slots", "schedule", "options"),
    [
        ("regex", 3, Schedule(score="left_to_right"), {"n_particles": 4}),
        ("regex", 3, Schedule(score="confidence"), {"n_particles": 4, "ess_threshold": 1.0}),
        ("brackets", 3, Schedule(steps=2, score="confidence"), {"n_particles": 6, "ess_threshold": 0.9}),
        ("brackets", 3, Schedule(score="left_to_right", temperature=0.5), {"n_particles": 3, "resampling": "multinomial"}),
        ("brackets", 4, Schedule(score="confidence"), {"n_particles": 5, "resampling": "residual"}),
    ],
)  # fmt: skip
def test_weights_are_proper(name: str, slots: int, schedule: Schedule, options: dict[str, Any]) -> None:
    count = -(-slots // (schedule.steps or slots))
    truth = exact(GRAMMARS[name], slots, count, schedule.score == "confidence", schedule.temperature or 1.0)
    evidence, cells = estimates(GRAMMARS[name], slots, 300, truth, schedule=schedule, **options)
    assert len(truth) > 3
    assert agrees(evidence, sum(truth.values()))
    assert all_agree(cells, truth)


def test_wrong_weights_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unweighted(*args: Any) -> Any:
        draw = module_awrs(*args)
        return type(draw)(draw.token, 0.0 if draw.log_weight > -math.inf else draw.log_weight, draw.calls)

    module_awrs = module.awrs
    monkeypatch.setattr(module, "awrs", unweighted)
    truth = exact(GRAMMARS["regex"], 3, 1, False)
    evidence, cells = estimates(
        GRAMMARS["regex"], 3, 100, truth, schedule=Schedule(score="left_to_right"), n_particles=4
    )
    assert not agrees(evidence, sum(truth.values()))
    assert not all_agree(cells, truth)


def test_rewards_and_calls() -> None:
    grammar, schedule = GRAMMARS["regex"], Schedule(score="left_to_right")
    truth = exact(grammar, 3, 1, False)
    wanted = sum(p * len([t for t in full if t != END]) for full, p in truth.items())
    results = [
        infill_smc(Model(), grammar, [None] * 3, 8, schedule=schedule, reward=lambda ids: float(len(ids)), seed=seed)
        for seed in range(300)
    ]  # fmt: skip
    assert agrees(np.exp([result.log_evidence for result in results]), wanted)
    model = Model()
    result = infill_smc(model, grammar, [None] * 3, 64, schedule=schedule, seed=0)
    # Equal canvases share a call: the first step has one of them.
    assert result.counts.model_calls == model.calls < 64
    assert result.counts.constraint_calls >= result.counts.checked_draws - 64 * 3
    assert len(result.ess_history) == len(result.genealogy) > 0
    again = infill_smc(Model(), grammar, [None] * 3, 64, schedule=schedule, seed=0)
    assert again.sequences == result.sequences and (again.log_weights == result.log_weights).all()


def test_gaps_and_context_are_always_in_the_language() -> None:
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b"", b""], eos_ids=[256])
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    grammar = mw.compile_json_schema(schema, vocabulary)

    class Noise(MaskedDiffusionModel):
        mask_id, eos_ids = 257, (256,)

        def logits(self, canvas: list[int]) -> Any:
            return np.random.default_rng(len(canvas)).normal(0, 1, (len(canvas), 258))

    result = infill_smc(
        Noise(), grammar, ['{"a": ', Gap(1, 4), "}"], 8, schedule=Schedule(score="random", block=4), seed=3
    )
    assert result.is_complete.any()
    for ids, complete in zip(result.sequences, result.is_complete, strict=True):
        matcher = grammar.matcher()
        assert not complete or (all(matcher.accept_token(t) for t in ids) and matcher.is_accepting)


def test_a_fork_goes_its_own_way() -> None:
    canvas = Canvas(GRAMMARS["brackets"], [None] * 4)
    before, allowed = canvas.tokens, canvas.allowed(1)
    other = canvas.fork()
    assert other.try_commit(0, 2) and other.try_commit(3, 3)
    assert canvas.tokens == before and (canvas.allowed(1) == allowed).all()
    assert not (other.allowed(1) == allowed).all()
    assert canvas.try_commit(0, 0) and other.tokens[0] == 2


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n_particles": 0}, mw.MaskwrightError),
        ({"ess_threshold": 2}, mw.MaskwrightError),
        ({"resampling": "none"}, mw.MaskwrightError),
        ({"schedule": Schedule(remask=1)}, mw.CanvasError),
        ({"schedule": Schedule(temperature=0)}, mw.CanvasError),
        ({"reward": lambda ids: float("nan")}, mw.ConstraintError),
        ({"reward": lambda ids: -1.0}, mw.ConstraintError),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        infill_smc(Model(), GRAMMARS["regex"], [None] * 3, **options)


def test_a_token_that_is_not_decided_is_an_error() -> None:
    with pytest.raises(mw.CanvasError, match="search_budget=0"):
        infill_smc(Model(), GRAMMARS["brackets"], [None] * 4, 32, search_budget=0, seed=1)


def test_nothing_fits() -> None:
    model = Model()
    with pytest.raises(mw.UnsatisfiableError):
        infill_smc(model, mw.compile(mw.Regex("(ab){9}"), VOCABULARY), [None] * 3)
    assert model.calls == 0


@pytest.mark.parametrize(("temperature", "gap"), [(0.1, 12.0), (1.0, 110.0), (1e-3, 1e3)])
def test_what_is_nearly_impossible_has_its_weight(temperature: float, gap: float) -> None:
    """Its probability is no number of 32 bits, and of 64 in the last case."""

    class Sure(MaskedDiffusionModel):
        mask_id, eos_ids = MASK, (END,)

        def logits(self, canvas: list[int]) -> Any:
            rows = np.zeros((len(canvas), len(LETTERS)), np.float32)
            rows[:, 0] = gap
            return rows

    grammar = mw.compile_regex("b", VOCABULARY)
    found = infill_smc(Sure(), grammar, [None], 8, schedule=Schedule(temperature=temperature), seed=0)
    assert not found.all_dead and found.log_evidence == pytest.approx(-gap / temperature, abs=1)


def test_what_the_model_rules_out_has_no_weight() -> None:
    """Also where all that is left are tokens that no text has."""

    class One(MaskedDiffusionModel):
        mask_id, eos_ids = MASK, (END,)

        def __init__(self, row: list[float]) -> None:
            self.row = row

        def logits(self, canvas: list[int]) -> Any:
            return np.array([self.row] * len(canvas), dtype=np.float32)

    grammar = mw.compile_regex("b", VOCABULARY)
    for first in (0.0, -1e4, -math.inf):
        row = [first, *[-math.inf] * 5, 0.0]
        found = infill_smc(One(row), grammar, [None], 8, seed=0)
        assert found.all_dead and found.log_evidence == -math.inf
    found = infill_smc(One([*[-math.inf], 0.0, *[-math.inf] * 4, 0.0]), grammar, [None], 8, seed=0)
    assert found.log_evidence == pytest.approx(0.0)
