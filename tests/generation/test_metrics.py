"""Metrics of agents: rates of what became of outputs, in one form."""

from __future__ import annotations

import functools
import threading
from typing import Any

import pytest

import maskwright as mw
from maskwright.generation.metrics import exactness
from maskwright.generation.results import Generation, RemovedMass, Usage


def generation(value: Any, tokens: int = 10, seconds: float = 1.0) -> Generation:
    usage = Usage(generated_tokens=tokens, seconds=seconds)
    return Generation(value, "", [], "stop", usage, RemovedMass())


def weather(city: str, days: int = 1) -> str:
    if not city:
        raise ValueError("no city")
    return f"{city}: sun"


def test_nothing_is_known_at_first() -> None:
    rates = mw.Metrics().rates()
    assert rates.outputs == 0 and set(rates.asdict().values()) == {0, None}


def test_calls_that_run_and_calls_that_are_right() -> None:
    metrics = mw.Metrics()
    ready = functools.partial(weather, city="Rome", days=2)
    assert metrics.judge(generation(ready), expected={"city": "Rome", "days": 2}) == "Rome: sun"
    assert metrics.judge(generation(ready, 20, 2.0), expected={"city": "Oslo", "days": 2}) == "Rome: sun"
    assert (
        metrics.judge(generation(functools.partial(weather, city=""), 30, 3.0), expected={"city": ""}) is None
    )
    rates = metrics.rates()
    assert rates.outputs == 3 and rates.schema_validity == 1.0
    assert rates.executable_calls == pytest.approx(2 / 3)
    assert rates.argument_exactness == pytest.approx((1 + 1 / 2 + 1) / 3)
    # One is right and runs; it has to pay for all.
    assert rates.cost_per_success == 60
    assert rates.latency_p50 == 2.0 and 2.0 < (rates.latency_p95 or 0) <= 3.0


def test_data_are_executed_on_demand() -> None:
    metrics = mw.Metrics()
    assert metrics.judge(generation({"n": 2}), execute=lambda value: 6 // value["n"]) == 3
    assert metrics.judge(generation({"n": 0}), execute=lambda value: 6 // value["n"]) is None
    metrics.judge(generation({"n": 1}))
    rates = metrics.rates()
    assert rates.executable_calls == 0.5 and rates.argument_exactness is None and rates.cost_per_success == 20


def test_what_was_refused_counts_as_invalid() -> None:
    metrics = mw.Metrics()
    metrics.add(valid=False)
    metrics.add(valid=True, success=False, tokens=5)
    assert metrics.rates().schema_validity == 0.5 and metrics.rates().cost_per_success is None
    for wrong in ({"exactness": 1.5}, {"exactness": float("nan")}, {"tokens": -1}, {"seconds": float("nan")}):
        with pytest.raises(mw.MaskwrightError):
            metrics.add(**wrong)  # type: ignore[arg-type]
    assert metrics.rates().outputs == 2


@pytest.mark.parametrize(
    ("given", "expected", "share"),
    [
        ({"a": 1}, {"a": 1}, 1.0),
        ({"a": 1, "b": 2}, {"a": 1}, 0.5),
        ({"a": True}, {"a": 1}, 0.0),
        ({"a": 1.0}, {"a": 1}, 1.0),
        ({"a": [1, 2, 3]}, {"a": [1, 2]}, 2 / 3),
        ({"a": []}, {"a": {}}, 0.0),
        ([], [], 1.0),
        ("x", "x", 1.0),
        ({"a": {"b": None}}, {"a": {"b": None}}, 1.0),
        ({"a": {"b": None}}, {"a": {}}, 0.0),
    ],
)
def test_exactness_is_the_share_of_equal_leaves(given: Any, expected: Any, share: float) -> None:
    assert exactness(given, expected) == pytest.approx(share) == exactness(expected, given)


def test_threads_count_together() -> None:
    metrics = mw.Metrics()
    threads = [
        threading.Thread(target=lambda: [metrics.add(valid=True, seconds=0.1) for _ in range(500)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert metrics.rates().outputs == 2000 and metrics.rates().schema_validity == 1.0
