"""Metrics of agents: rates of what became of outputs, in one form."""

from __future__ import annotations

import datetime
import functools
import math
import threading
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pytest

pydantic = pytest.importorskip("pydantic", reason="typed values are pydantic's as well")

import maskwright as mw  # noqa: E402
from maskwright.generation.metrics import Rates, _leaves, exactness  # noqa: E402
from maskwright.generation.results import Generation, RemovedMass, Usage  # noqa: E402


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
    assert rates.tokens_per_output == 20
    assert rates.latency_p50_seconds == 2.0 and 2.0 < (rates.latency_p95_seconds or 0) <= 3.0


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


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("exactness", each) for each in (1.5, -0.1, math.nan, "a", True)),
        *(("tokens", each) for each in (-1, 1.5, math.nan, "a", True)),
        *(("seconds", each) for each in (-1.0, math.nan, math.inf, "a", True)),
        *((name, each) for name in ("valid", "executes", "success") for each in ("no", 1, 0.5)),
    ],
)
def test_what_is_no_count_is_refused(name: str, wrong: Any) -> None:
    metrics = mw.Metrics()
    metrics.add(valid=True, tokens=5)
    before = metrics.rates()
    with pytest.raises(mw.MaskwrightError, match=name):
        metrics.add(**{"valid": False, "tokens": 3, "success": True, name: wrong})
    assert metrics.rates() == before
    metrics.add(
        valid=np.bool_(True),
        exactness=np.float32(1),
        tokens=np.int64(3),
        seconds=np.float64(0.5),
        success=False,
    )
    assert metrics.rates().schema_validity == metrics.rates().argument_exactness == 1.0


def test_only_outputs_are_judged() -> None:
    metrics = mw.Metrics()
    for wrong in (None, {"a": 1}, "text"):
        with pytest.raises(mw.MaskwrightError, match="generation: expected Generation"):
            metrics.judge(wrong)  # type: ignore[arg-type]
        with pytest.raises(mw.MaskwrightError, match="usage: expected Usage"):
            metrics.count(wrong, valid=True)  # type: ignore[arg-type]
    with pytest.raises(mw.MaskwrightError, match="execute"):
        metrics.judge(generation({}), execute=3)  # type: ignore[arg-type]
    with pytest.raises(mw.MaskwrightError, match="valid"):
        metrics.count(Usage(), valid="x")  # type: ignore[arg-type]
    assert metrics.rates().outputs == 0


def test_an_output_is_counted_once() -> None:
    """By whoever comes first; what was left before its end is neither valid nor invalid."""
    metrics = mw.Metrics()
    one, other = generation({"a": 1}, 10, 1.0), generation({"a": 1}, 10, 1.0)
    metrics.count(one.usage, valid=True)
    metrics.judge(one, expected={"a": 1})
    metrics.judge(other, expected={"a": 2})
    metrics.count(Usage(generated_tokens=5, seconds=9.0), valid=False)
    metrics.count(Usage(generated_tokens=5, seconds=9.0), valid=None)
    assert metrics.rates() == Rates(4, pytest.approx(2 / 3), None, 0.5, 20, pytest.approx(25 / 3), 1.0, 1.0)


def test_an_output_that_was_cut_off_is_no_success() -> None:
    metrics = mw.Metrics()
    cut = generation({"a": 1})
    cut.finish_reason = "length"  # type: ignore[assignment]
    metrics.judge(cut, expected={"a": 1})
    assert metrics.rates().schema_validity == 0.0 and metrics.rates().argument_exactness == 1.0
    assert metrics.rates().cost_per_success is None


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


@dataclass
class Place:
    x: int
    y: int


class Colour(Enum):
    RED = "red"


class Trip(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    to: Place
    colour: Colour = Colour.RED
    on: datetime.date = pydantic.Field(datetime.date(2026, 5, 1), alias="day")


Numbers = pydantic.RootModel[list[int]]
TRIP = {"to": {"x": 1, "y": 2}, "colour": "red", "day": "2026-05-01"}


@pytest.mark.parametrize(
    ("given", "expected", "share"),
    [
        (Place(1, 2), Place(1, 3), 0.5),
        (Place(1, 2), {"x": 1, "y": 2}, 1.0),
        ([Place(1, 2)], [{"x": 1}], 0.5),
        (Trip(to=Place(1, 2)), TRIP, 1.0),
        (Trip(to=Place(1, 2)), Trip(to=Place(1, 3), more=1), 3 / 5),
        (Trip(to=Place(1, 2)), {**TRIP, "day": "2026-05-02"}, 3 / 4),
        (Trip(to=Place(1, 2)), {**TRIP, "day": "soon", "colour": Colour.RED}, 3 / 4),
        (Numbers([1, 2]), [1, 2], 1.0),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 5]], 3 / 4),
        (np.array([1, 2]), np.array([1, 2]), 1.0),
        ({"a": np.float64(1.5), "b": np.bool_(True)}, {"a": 1.5, "b": 1}, 0.5),
    ],
)
def test_typed_values_are_compared_by_their_members(given: Any, expected: Any, share: float) -> None:
    assert exactness(given, expected) == pytest.approx(share) == exactness(expected, given)


def call(place: Place, days: int = 1, /, *names: str, unit: str = "C", **more: Any) -> None:
    """Of all kinds of parameters."""


@pytest.mark.parametrize(
    ("given", "expected", "share"),
    [
        (functools.partial(weather, city="Rome"), {"city": "Rome", "days": 1}, 1.0),
        (functools.partial(weather, city="Rome", days=1), {"city": "Rome"}, 1.0),
        (functools.partial(weather, "Rome"), {"city": "Rome"}, 1.0),
        (functools.partial(weather, city="Rome"), {"city": "Rome", "days": 2}, 0.5),
        # A default that neither of them names is no argument that was right.
        (functools.partial(weather, city="Rome"), {"city": "Oslo"}, 0.0),
        (functools.partial(weather, city="Rome"), {"city": "Rome", "hours": 1}, 0.5),
        (
            functools.partial(call, Place(1, 2), 3, "a"),
            {"place": {"x": 1, "y": 2}, "days": 3, "names": ["a"]},
            1.0,
        ),
        (functools.partial(call, Place(1, 2), z=1), {"place": Place(1, 2), "z": 1, "unit": "C"}, 1.0),
        (functools.partial(max, 1, 2), {"0": 1, "1": 2}, 1.0),
    ],
)
def test_arguments_are_those_of_the_signature(given: Any, expected: Any, share: float) -> None:
    metrics = mw.Metrics()
    metrics.judge(generation(given), expected=expected)
    assert metrics.rates().argument_exactness == pytest.approx(share)


def test_wrong_variants_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share of the expected leaves alone, which rewards arguments that nobody asked for, and a cost of the successes alone."""

    def careless(given: Any, expected: Any) -> float:
        ours, theirs = _leaves(given), _leaves(expected)
        return sum(ours.get(place) == leaf for place, leaf in theirs.items()) / len(theirs)

    monkeypatch.setattr("maskwright.generation.metrics.exactness", careless)
    metrics = mw.Metrics()
    metrics.judge(generation({"a": 1, "b": 2}), expected={"a": 1})
    assert metrics.rates().argument_exactness != exactness({"a": 1, "b": 2}, {"a": 1})

    class Cheap(mw.Metrics):
        def _note(self, *, success: bool | None = None, paid: int | None = None, **values: Any) -> None:
            super()._note(success=success, paid=paid if success else 0, **values)

    for kind, cost in ((mw.Metrics, 30), (Cheap, 10)):
        metrics = kind()
        for expected in (1, 2, 2):
            metrics.judge(generation({"a": 1}), expected={"a": expected})
        assert metrics.rates().cost_per_success == cost


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


def test_nothing_is_counted_of_what_no_double_holds() -> None:
    metrics = mw.Metrics()
    with pytest.raises(mw.MaskwrightError, match="tokens"):
        metrics.add(valid=True, tokens=10**400)
    assert metrics.rates().outputs == 0
