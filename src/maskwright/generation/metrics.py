"""Metrics of agents in one form: what ``Generator`` results, the server's ``/metrics`` and ``bench/quality.py`` report.

Those of the survey of small models as agents (Sharma and Mehta 2025, arXiv 2510.03847): schema validity, executable calls, argument
exactness, cost per success, latency.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from maskwright.errors import MaskwrightError
from maskwright.generation.results import Generation

KEPT_LATENCIES = 10_000
_MISSING = object()


@dataclass(frozen=True)
class Rates:
    """Means over what is known; None where nothing is."""

    outputs: int
    schema_validity: float | None
    """Share of outputs that follow their schema or grammar."""
    executable_calls: float | None
    """Share of calls (or queries, programs) that run."""
    argument_exactness: float | None
    """Mean share of the expected arguments that are equal, 0 to 1."""
    cost_per_success: float | None
    """Generated tokens of all outputs that were judged, for each that was right."""
    latency_p50: float | None
    """Seconds from the request to the end of its output: the median, and the 95th percentile, of the last 10 000."""
    latency_p95: float | None

    def asdict(self) -> dict[str, float | None]:
        """By name."""
        return asdict(self)


class Metrics:
    """Counts what became of outputs; safe for several threads.

    metrics = Metrics()
    metrics.judge(gen.generate(["Weather in Rome?"], get_weather)[0], expected={"city": "Rome"})
    metrics.rates().argument_exactness
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outputs = 0
        self._sums: dict[str, tuple[float, int]] = {}
        self._tokens = 0
        self._successes = 0
        self._latencies: deque[float] = deque(maxlen=KEPT_LATENCIES)

    def add(
        self,
        *,
        valid: bool | None = None,
        executes: bool | None = None,
        exactness: float | None = None,
        success: bool | None = None,
        tokens: int = 0,
        seconds: float | None = None,
    ) -> None:
        """Count one output.  None: not known, or not asked.  ``tokens``: those that were generated for it, all candidates included.

        Raises ``MaskwrightError`` for an exactness outside of 0 to 1, and for negative tokens or seconds.
        """
        if exactness is not None and not 0 <= exactness <= 1:
            raise MaskwrightError(f"exactness is a share, 0 to 1, not {exactness!r}")
        if tokens < 0 or (seconds is not None and not seconds >= 0):
            raise MaskwrightError(f"tokens and seconds are not negative; got {tokens!r} and {seconds!r}")
        with self._lock:
            self._outputs += 1
            for name, value in (("valid", valid), ("executes", executes), ("exactness", exactness)):
                if value is not None:
                    total, count = self._sums.get(name, (0.0, 0))
                    self._sums[name] = total + float(value), count + 1
            if success is not None:
                self._tokens += tokens
                self._successes += success
            if seconds is not None:
                self._latencies.append(seconds)

    def judge(
        self,
        generation: Generation,
        *,
        expected: Any = _MISSING,
        execute: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Count an output of ``Generator.generate``; what executing it returned, or None.

        ``execute(value)``: runs it, and raises where it cannot; by default a ready call of a function is called, and data are not
        executed.  ``expected``: the right arguments of a call, or the right value.  A success executes, where
        there is something to execute, and is exactly what was expected, where something was.
        """
        value = generation.value
        result, executes = None, None
        if execute is None and _arguments(value) is not None:
            execute = _call
        if execute is not None:
            try:
                result = execute(value)
                executes = True
            except Exception:
                executes = False
        given = _arguments(value)
        right = None if expected is _MISSING else exactness(value if given is None else given, expected)
        known = [each for each in (executes, None if right is None else right == 1.0) if each is not None]
        self.add(
            valid=True,
            executes=executes,
            exactness=right,
            success=all(known) if known else None,
            tokens=generation.usage.generated_tokens,
            seconds=generation.usage.seconds,
        )
        return result

    def rates(self) -> Rates:
        """The rates so far."""
        with self._lock:
            means = {name: total / count for name, (total, count) in self._sums.items()}
            cost = self._tokens / self._successes if self._successes else None
            low, high = (None, None)
            if self._latencies:
                low, high = map(float, np.quantile(np.array(self._latencies), (0.5, 0.95)))
            return Rates(
                self._outputs,
                means.get("valid"),
                means.get("executes"),
                means.get("exactness"),
                cost,
                low,
                high,
            )


def exactness(given: Any, expected: Any) -> float:
    """The share of the leaves of both, by their places, that are equal: 1 only for equal data."""
    ours, theirs = _leaves(given), _leaves(expected)
    places = ours.keys() | theirs.keys()
    equal = sum(place in ours and place in theirs and _equal(ours[place], theirs[place]) for place in places)
    return equal / len(places)


def _equal(one: Any, other: Any) -> bool:
    # In JSON, true is not 1.
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _leaves(value: Any) -> dict[tuple[Any, ...], Any]:
    """The leaves of nested data by their paths; an empty array or object is a leaf."""
    found: dict[tuple[Any, ...], Any] = {}
    work: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    while work:
        path, each = work.pop()
        if isinstance(each, Mapping) and each:
            work += [((*path, str(key)), part) for key, part in each.items()]
        elif isinstance(each, (list, tuple)) and each:
            work += [((*path, i), part) for i, part in enumerate(each)]
        else:
            found[path] = each
    return found


def _arguments(value: Any) -> dict[str, Any] | None:
    """The arguments of a ready call, by name; None for what is none."""
    if not (callable(value) and hasattr(value, "func") and hasattr(value, "keywords")):
        return None
    positional = {str(i): each for i, each in enumerate(value.args)}
    return {**positional, **value.keywords}


def _call(value: Callable[[], Any]) -> Any:
    return value()
