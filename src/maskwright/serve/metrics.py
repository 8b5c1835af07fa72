"""What Prometheus reads at ``/metrics``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from maskwright.compiling.pool import Compiler
from maskwright.generation.metrics import Metrics as Rates
from maskwright.generation.row import Row

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_MASSES = (0.0001, 0.001, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0)


class Metrics:
    """Counts of one server.  ``compiler``: whose statistics are shown."""

    def __init__(self, compiler: Compiler) -> None:
        self.registry = CollectorRegistry()
        own = self.registry
        self._requests = Counter(
            "maskwright_requests", "Requests by outcome", ["endpoint", "outcome"], registry=own
        )
        self._seconds = Histogram(
            "maskwright_request_seconds",
            "From a request to its end",
            ["endpoint"],
            buckets=_SECONDS,
            registry=own,
        )
        self._first = Histogram(
            "maskwright_first_token_seconds",
            "From queueing an output to its first token",
            buckets=_SECONDS,
            registry=own,
        )
        self._prompt = Counter("maskwright_prompt_tokens", "Tokens of prompts", registry=own)
        self._generated = Counter("maskwright_generated_tokens", "Tokens of outputs", registry=own)
        self._forced = Counter(
            "maskwright_forced_tokens", "Of these, those that the grammar left no choice about", registry=own
        )
        self._masks = Counter(
            "maskwright_mask_seconds", "Spent on masks and on following tokens", registry=own
        )
        self._mass = Histogram(
            "maskwright_removed_probability_mass",
            "Of each output with a constraint: how likely the model would have left it",
            buckets=_MASSES,
            registry=own,
        )
        self.running = Gauge("maskwright_rows_running", "Outputs that are being written", registry=own)
        self.waiting = Gauge("maskwright_rows_waiting", "Outputs that wait for a place", registry=own)
        self.registry.register(_Compiles(compiler))
        self._rates = Rates()
        self.registry.register(_Rates(self._rates))

    def request(self, endpoint: str, outcome: str, seconds: float) -> None:
        """A request has ended.  ``outcome``: ok, refused, overloaded, disconnected, timeout or failed."""
        self._requests.labels(endpoint, outcome).inc()
        self._seconds.labels(endpoint).observe(seconds)

    def first_token(self, seconds: float) -> None:
        """An output has begun."""
        self._first.observe(seconds)

    def output(self, row: Row, constrained: bool) -> None:
        """An output has ended, or was given up."""
        if constrained:
            # Of one whose client went away, nobody knows.
            self._rates.count(row.usage, valid=row.error is None if row.done else None)
        self._prompt.inc(row.usage.prompt_tokens)
        self._generated.inc(len(row.ids))
        self._forced.inc(row.usage.forced_tokens)
        self._masks.inc(row.usage.mask_seconds)
        if constrained and row.removed.steps:
            self._mass.observe(row.removed.total)

    def text(self) -> bytes:
        """All of it, in Prometheus' text format."""
        return generate_latest(self.registry)


class _Rates:
    """``Metrics.rates`` of outputs with a constraint, by the names of its fields.  A server sees no calls run, and knows no right answers."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates

    def collect(self) -> Iterator[Any]:
        found = self._rates.rates().asdict()
        yield CounterMetricFamily(
            "maskwright_outputs", "Outputs with a constraint, left ones included", value=found["outputs"]
        )
        for name, help_text in (
            (
                "schema_validity",
                "Share of outputs with a constraint that follow it; others ended with an error",
            ),
            ("tokens_per_output", "Mean number of tokens of an output with a constraint"),
            ("latency_p50_seconds", "Median time of an output with a constraint"),
            ("latency_p95_seconds", "95th percentile of the time of an output with a constraint"),
        ):
            if found[name] is not None:
                yield GaugeMetricFamily(f"maskwright_{name}", help_text, value=found[name])


class _Compiles:
    """The statistics of a compiler, read when they are asked for."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler

    def collect(self) -> Iterator[Any]:
        found = self._compiler.statistics
        for name, help_text, key in (
            ("maskwright_compiles", "Sources that were compiled", "compiled"),
            ("maskwright_compile_failures", "Sources that were refused", "failed"),
            ("maskwright_compile_seconds", "Spent on compiles, by all threads", "seconds"),
            ("maskwright_grammar_cache_hits", "Requests whose source was compiled before", "cached"),
            ("maskwright_compiles_shared", "Requests that joined a compile under way", "shared"),
            (
                "maskwright_compiles_cancelled",
                "Requests that left before their compile was done",
                "cancelled",
            ),
        ):
            yield CounterMetricFamily(name, help_text, value=found[key])
        yield GaugeMetricFamily(
            "maskwright_compiles_in_progress", "Compiles under way or queued", value=found["in_progress"]
        )
        yield GaugeMetricFamily(
            "maskwright_grammar_cache_bytes", "About what compiled grammars take", value=found["cached_bytes"]
        )
