"""Tables from the records of ``quality.py``: means for each engine, and paired differences with intervals.

A record is one answer: what the engine took (``quality_engines.Answer``) and what the judge says (``quality_judges.Score``).
Means are over the tasks that every reported engine has answered, so that all rows speak of the same tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maskwright import Metrics

Record = dict[str, Any]
RESAMPLES = 10_000
MEASURES = ("valid", "fields", "whole")


@dataclass(frozen=True)
class Interval:
    """A mean difference, and the 95 % interval of its bootstrap."""

    mean: float
    low: float
    high: float


def paired_interval(differences: Sequence[float], seed: int = 0) -> Interval:
    """The mean of paired differences; tasks are drawn with replacement."""
    values = np.asarray(differences, dtype=float)
    random = np.random.default_rng(seed)
    means = values[random.integers(len(values), size=(RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(values.mean()), float(low), float(high))


def by_engine(records: Iterable[Record], mode: str, engines: Sequence[str]) -> dict[str, list[Record]]:
    """The records of one mode by engine, in the same order of tasks: those that all engines have."""
    found: dict[str, dict[str, Record]] = {engine: {} for engine in engines}
    for record in records:
        if record["mode"] == mode and record["engine"] in found:
            found[record["engine"]][record["task"]] = record
    common = set.intersection(*(set(each) for each in found.values()))
    tasks = [task for task in found[engines[0]] if task in common]
    return {engine: [each[task] for task in tasks] for engine, each in found.items()}


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of what is there."""
    known = [float(value) for value in values if value is not None]
    return float(np.mean(known)) if known else None


def figures(records: Sequence[Record], finished_by_all: set[str]) -> dict[str, Any]:
    """The figures of one engine.  Shares are of all tasks; what an answer took, of those that were not refused.

    ``cost_per_success``: tokens of all candidates on executed tasks, for each right result.  ``tokens_all_finish``: mean tokens
    on the tasks that every engine finished.  ``rates``: ``maskwright.Metrics`` of the answers, as ``Generator.metrics`` and servers have them.
    """
    taken = [each for each in records if each["refused"] is None]
    metrics = Metrics()
    for each in records:
        metrics.add(
            valid=bool(each["valid"]),
            executes=each["executes"],
            exactness=each["fields"],
            success=None if each["executes"] is None else bool(each["whole"]),
            tokens=each["paid_tokens"],
            seconds=each["seconds"] if each["refused"] is None else None,
        )
    rates = metrics.rates()
    return {
        **{measure: mean(each[measure] for each in records) for measure in MEASURES},
        "executes": rates.executable_calls,
        "cost_per_success": rates.cost_per_success,
        "rates": rates.asdict(),
        "removed": mean(each["removed"] for each in taken),
        "tokens": mean(each["tokens"] for each in taken),
        "tokens_all_finish": mean(each["tokens"] for each in records if each["task"] in finished_by_all),
        "model_calls": mean(each["model_calls"] for each in taken),
        "seconds": mean(each["seconds"] for each in taken),
        "finished": mean(each["finished"] for each in records),
        "refused": float(len(records) - len(taken)),
        "escaped": float(sum(each["escaped"] for each in records)),
        "blanks": float(sum(each["blanks"] for each in records)),
    }


def summary(records: Sequence[Record], engines: Sequence[str], base: str) -> dict[str, Any]:
    """Figures, differences to ``base``, and shares of right fields by kind, for each mode that has records."""
    result: dict[str, Any] = {}
    for mode in ("no", "yes"):
        found = by_engine(records, mode, engines)
        tasks = [each["task"] for each in found[engines[0]]]
        if not tasks:
            continue
        finished = set(tasks)
        for engine, each in found.items():
            if engine != "free":
                finished &= {record["task"] for record in each if record["finished"]}
        kinds = list(dict.fromkeys(each["kind"] for each in found[engines[0]]))
        result[mode] = {
            "tasks": len(tasks),
            "tasks_all_finish": len(finished),
            "engines": {engine: figures(each, finished) for engine, each in found.items()},
            "differences": _differences(found, base),
            "fields_by_kind": {
                engine: {
                    kind: mean(record["fields"] for record in each if record["kind"] == kind)
                    for kind in kinds
                }
                for engine, each in found.items()
            },
            "executes_by_kind": {
                engine: {
                    kind: mean(record["executes"] for record in each if record["kind"] == kind)
                    for kind in kinds
                }
                for engine, each in found.items()
            },
        }
    return result


def _differences(found: dict[str, list[Record]], base: str) -> dict[str, Any]:
    if base not in found:
        return {}
    return {
        engine: {
            measure: paired_interval(
                [
                    float(one[measure]) - float(other[measure])
                    for one, other in zip(each, found[base], strict=True)
                ]
            ).__dict__
            for measure in MEASURES
        }
        for engine, each in found.items()
        if engine != base
    }


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f}"


def _one(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


COLUMNS: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("valid %", "valid", _percent),
    ("fields %", "fields", _percent),
    ("objects %", "whole", _percent),
    ("runs %", "executes", _percent),
    ("cost", "cost_per_success", _count),
    ("removed %", "removed", _percent),
    ("tokens", "tokens", _one),
    ("tokens*", "tokens_all_finish", _one),
    ("calls", "model_calls", _one),
    ("s", "seconds", _one),
    ("finished %", "finished", _percent),
    ("refused", "refused", _count),
    ("escaped", "escaped", _count),
    ("blank,", "blanks", _count),
)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def render(result: dict[str, Any], base: str) -> str:
    """The summary as Markdown."""
    parts = []
    for mode, found in result.items():
        where = "in the prompt" if mode == "yes" else "not in the prompt"
        parts.append(
            f"## Schema {where}: {found['tasks']} tasks (tokens*: the {found['tasks_all_finish']} that all masks finish)"
        )
        rows = [
            [name, *(show(each[key]) for _, key, show in COLUMNS)] for name, each in found["engines"].items()
        ]
        parts.append(table(["engine", *(title for title, _, _ in COLUMNS)], rows))
        if found["differences"]:
            parts.append(f"Points above {base} (95 % interval)")
            rows = [
                [name, *(_interval(each[measure]) for measure in MEASURES)]
                for name, each in found["differences"].items()
            ]
            parts.append(table(["engine", "valid", "fields", "objects"], rows))
        kinds = list(next(iter(found["fields_by_kind"].values())))
        parts.append("Fields right, %, by kind")
        rows = [
            [name, *(_percent(each[kind]) for kind in kinds)]
            for name, each in found["fields_by_kind"].items()
        ]
        parts.append(table(["engine", *kinds], rows))
    return "\n\n".join(parts)


def _interval(found: dict[str, float]) -> str:
    return f"{100 * found['mean']:+.1f} [{100 * found['low']:+.1f}, {100 * found['high']:+.1f}]"
