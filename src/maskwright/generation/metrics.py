"""Metrics of agents in one form: what ``Generator.metrics``, the server's ``/metrics`` and ``bench/quality.py`` report.

Those of the survey of small models as agents (Sharma and Mehta 2025, arXiv 2510.03847): schema validity, executable calls, argument
exactness, cost per success, latency.
"""

from __future__ import annotations

import inspect
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from datetime import date, time
from enum import Enum
from typing import Any

import numpy as np

from maskwright.base.arguments import check_type, real, whole
from maskwright.errors import MaskwrightError
from maskwright.generation.results import COMPLETE, Generation, Usage

KEPT_LATENCIES = 10_000
_MISSING = object()
_BOOLEANS = (bool, np.bool_, type(None))


@dataclass(frozen=True)
class Rates:
    """Means over what is known; None where nothing is."""

    outputs: int
    schema_validity: float | None
    """Share of outputs that follow their schema or grammar, of those that ended."""
    executable_calls: float | None
    """Share of calls (or queries, programs) that run."""
    argument_exactness: float | None
    """Mean share of the expected arguments that are equal, 0 to 1."""
    cost_per_success: float | None
    """Generated tokens of all outputs that were judged, for each that was right."""
    tokens_per_output: float | None
    """Mean number of generated tokens."""
    latency_p50_seconds: float | None
    """From the request to the end of its output: the median, and the 95th percentile, of the last 10 000."""
    latency_p95_seconds: float | None

    def asdict(self) -> dict[str, float | None]:
        """By name."""
        return asdict(self)


class Metrics:
    """Counts what became of outputs; safe for several threads.

    ``Generator.metrics`` has counted each of its outputs; ``judge`` adds whether it is right:

    call = gen.generate(["Weather in Rome?"], get_weather)[0]
    gen.metrics.judge(call, expected={"city": "Rome"})
    gen.metrics.rates().argument_exactness
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outputs = 0
        self._sums: dict[str, tuple[float, int]] = {}
        self._paid = 0
        self._successes = 0
        self._latencies: deque[float] = deque(maxlen=KEPT_LATENCIES)
        self._counted: weakref.WeakValueDictionary[int, Usage] = weakref.WeakValueDictionary()
        """Of outputs that were counted, as long as somebody has them: what they took, by its identity."""

    def add(
        self,
        *,
        valid: bool | None = None,
        executes: bool | None = None,
        exactness: float | None = None,
        success: bool | None = None,
        tokens: int | None = None,
        seconds: float | None = None,
    ) -> None:
        """Count one output.  None: not known, or not asked.  ``tokens``: those that were generated for it, all candidates included.

        Raises ``MaskwrightError`` for what is no bool, an exactness outside of 0 to 1, and for ``tokens`` and ``seconds`` that are
        no numbers, negative or not finite; nothing is counted then.
        """
        for name, value in (("valid", valid), ("executes", executes), ("success", success)):
            check_type(value, _BOOLEANS, name, MaskwrightError)
        if exactness is not None:
            exactness = real(exactness, "exactness", high=1.0)
        if tokens is not None:
            tokens = whole(tokens, "tokens", low=0)
            real(tokens, "tokens", high=sys.float_info.max)
        if seconds is not None:
            seconds = real(seconds, "seconds", high=sys.float_info.max)
        with self._lock:
            self._outputs += 1
            self._note(valid=valid, tokens=tokens, seconds=seconds)
            self._note(executes=executes, exactness=exactness, success=success, paid=tokens)

    def count(self, usage: Usage, *, valid: bool | None) -> None:
        """Count an output by what it took, as ``Generator`` and servers do, before anybody judges it.

        ``valid``: None for one that was left before its end, of which nothing else is counted.  Latency is that of valid ones.
        Raises ``MaskwrightError`` for other types.
        """
        check_type(usage, Usage, "usage", MaskwrightError)
        check_type(valid, _BOOLEANS, "valid", MaskwrightError)
        with self._lock:
            self._count(usage, valid)

    def judge(
        self,
        generation: Generation,
        *,
        expected: Any = _MISSING,
        execute: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Say whether an output of ``Generator.generate`` is right; what executing it returned, or None.

        ``execute(value)``: runs it, and raises where it cannot; by default a ready call of a function is called, and data are not
        executed.  ``expected``: the right arguments of a call by name (those with a default may be left out), or the right value, as
        data or as an instance of its type.  A success is valid, executes, where there is something to execute, and is exactly what was
        expected, where something was.  The output is counted, unless it was before.

        Raises ``MaskwrightError`` for what is no ``Generation``, and for an ``execute`` that cannot be called.
        """
        check_type(generation, Generation, "generation", MaskwrightError)
        if execute is not None and not callable(execute):
            raise MaskwrightError(
                f"execute is a function of the output's value, not {type(execute).__name__}"
            )
        value = generation.value
        given = _arguments(value)
        right = None
        if expected is not _MISSING:
            if given is not None and isinstance(expected, Mapping):
                right = exactness(*_with_defaults(value.func, given, expected))
            else:
                right = exactness(value if given is None else given, expected)
        result, executes = None, None
        if execute is None and given is not None:
            execute = _call
        if execute is not None:
            try:
                result = execute(value)
                executes = True
            except Exception:
                executes = False
        valid = generation.finish_reason in COMPLETE
        known = [each for each in (executes, None if right is None else right == 1.0) if each is not None]
        usage = generation.usage
        with self._lock:
            if self._counted.get(id(usage)) is not usage:
                self._count(usage, valid)
            self._note(
                executes=executes,
                exactness=right,
                success=valid and all(known) if known else None,
                paid=usage.generated_tokens,
            )
        return result

    def _count(self, usage: Usage, valid: bool | None) -> None:
        self._counted[id(usage)] = usage
        self._outputs += 1
        if valid is not None:
            seconds = usage.seconds if valid else None
            self._note(valid=valid, tokens=usage.generated_tokens, seconds=seconds)

    def _note(self, *, success: bool | None = None, paid: int | None = None, **values: float | None) -> None:
        """Add what is known; the lock is held."""
        for name, value in values.items():
            if value is not None:
                total, count = self._sums.get(name, (0.0, 0))
                self._sums[name] = total + float(value), count + 1
        if success is not None:
            self._paid += paid or 0
            self._successes += bool(success)
        if (seconds := values.get("seconds")) is not None:
            self._latencies.append(seconds)

    def rates(self) -> Rates:
        """The rates so far."""
        with self._lock:
            means = {name: total / count for name, (total, count) in self._sums.items()}
            low, high = None, None
            if self._latencies:
                low, high = map(float, np.quantile(np.array(self._latencies), (0.5, 0.95)))
            return Rates(
                outputs=self._outputs,
                schema_validity=means.get("valid"),
                executable_calls=means.get("executes"),
                argument_exactness=means.get("exactness"),
                cost_per_success=self._paid / self._successes if self._successes else None,
                tokens_per_output=means.get("tokens"),
                latency_p50_seconds=low,
                latency_p95_seconds=high,
            )


def exactness(given: Any, expected: Any) -> float:
    """The share of the leaves of both, by their places, that are equal: 1 only for equal data.

    Instances of pydantic models (by their names in JSON) and dataclasses are compared by their members, arrays by their items.
    """
    ours, theirs = _leaves(given), _leaves(expected)
    places = ours.keys() | theirs.keys()
    equal = sum(place in ours and place in theirs and _equal(ours[place], theirs[place]) for place in places)
    return equal / len(places)


def _equal(one: Any, other: Any) -> bool:
    for moment, text in ((one, other), (other, one)):
        if isinstance(moment, (date, time)) and isinstance(text, str):
            try:
                return bool(type(moment).fromisoformat(text) == moment)
            except ValueError:
                return False
    # In JSON, true is not 1.
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _leaves(value: Any) -> dict[tuple[Any, ...], Any]:
    """The leaves of nested data by their paths; an empty array or object is a leaf."""
    found: dict[tuple[Any, ...], Any] = {}
    work: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    while work:
        path, each = work.pop()
        each = _plain(each)
        if isinstance(each, Mapping) and each:
            work += [((*path, str(_plain(key))), part) for key, part in each.items()]
        elif isinstance(each, (list, tuple)) and each:
            work += [((*path, i), part) for i, part in enumerate(each)]
        else:
            found[path] = each
    return found


def _plain(value: Any) -> Any:
    """What an object of a type holds, its parts as they are; of other values, the value."""
    if isinstance(value, type):
        return value
    if hasattr(value, "model_dump"):  # of pydantic; a root model is what it wraps
        named = {
            _json_name(name, field): getattr(value, name) for name, field in type(value).model_fields.items()
        }
        return value.root if hasattr(value, "root") else {**named, **(value.model_extra or {})}
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "tolist") and hasattr(value, "shape"):
        return value.tolist()
    return value


def _json_name(name: str, field: Any) -> str:
    alias = field.validation_alias if isinstance(field.validation_alias, str) else field.alias
    return alias or name


def _arguments(value: Any) -> dict[str, Any] | None:
    """The arguments of a ready call, by name; None for what is none."""
    if not (callable(value) and hasattr(value, "func") and hasattr(value, "keywords")):
        return None
    try:
        signature = inspect.signature(value.func)
        bound = signature.bind_partial(*value.args, **value.keywords)
    except (TypeError, ValueError):  # a built-in function, or arguments that it does not take
        return {**{str(i): each for i, each in enumerate(value.args)}, **value.keywords}
    found: dict[str, Any] = {}
    for name, each in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            found.update(each)
        else:
            found[name] = each
    return found


def _with_defaults(
    function: Any, given: Mapping[str, Any], expected: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both with the default of each parameter that only one of them has."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return dict(given), dict(expected)
    defaults = {each.name: each.default for each in parameters if each.default is not each.empty}
    named = given.keys() | expected.keys()
    left_out = {name: default for name, default in defaults.items() if name in named}
    return {**left_out, **given}, {**left_out, **expected}


def _call(value: Callable[[], Any]) -> Any:
    return value()
