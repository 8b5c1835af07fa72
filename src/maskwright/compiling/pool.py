"""Compiling beside a program that must not wait: threads of its own, futures, and one compile for all who ask for the same.

A *flight* is one compile that is under way, with all who wait for it.  It is known under what the source is known under, so
equal sources that come meanwhile join it.  What is finished is kept by the vocabulary (``compile_cache``).
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from types import TracebackType
from typing import Any

from maskwright._core import Stop
from maskwright.base.arguments import check_limits, check_type, whole
from maskwright.base.deadline import Cancellation, Cancelled, cancellable
from maskwright.compiling.compiled import CompiledGrammar
from maskwright.compiling.compiler import Job, compile, compile_job, job_of, own_copy
from maskwright.compiling.shared_cache import SharedCache, check_shared
from maskwright.errors import MaskwrightError, VocabularyError
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.sources import Choice
from maskwright.vocabulary.vocabulary import Vocabulary

_CHOICES_READ = 10_000
"""Options of a choice that are looked at before anything waits: more take too long."""
_COUNTS = ("requested", "compiled", "shared", "cached", "failed", "cancelled")


class _Flight:
    """One compile, and who waits for it; its fields belong to the lock of the compiler."""

    def __init__(self, key: Hashable, job: Job | None, source: Any, limits: Limits) -> None:
        self.key = key
        self.job = job
        self.source = source
        self.limits = limits
        self.waiters: list[Future[Any]] = []
        self.cancellation = Cancellation()
        self.stop = Stop()

    def cancel(self) -> None:
        self.cancellation.set()
        self.stop.set()


class Compiler:
    """Compiles sources for one vocabulary on threads of its own.

    ``workers``: threads (count).  ``cache_bytes``: about what finished grammars that are kept may take together, those that are in
    use or not; what was used longest ago goes first (bytes).  They are kept by the vocabulary, for all who compile for it: what was
    said last counts.
    ``limits``: of sources that come without.  ``shared``: a dict, a ``DirectoryCache``, or any object with ``get(name)`` and
    ``set(name, bytes)``, that other processes have as well: looked into before a source is compiled, and written to.

    Safe for threads; a forked child begins with nothing under way.  Raises ``VocabularyError`` or ``MaskwrightError`` for other arguments.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        workers: int = 2,
        cache_bytes: int = 2**28,
        limits: Limits = DEFAULT_LIMITS,
        shared: SharedCache | None = None,
    ) -> None:
        check_type(vocabulary, Vocabulary, "vocabulary", VocabularyError)
        check_limits(limits)
        check_shared(shared)
        self.vocabulary = vocabulary
        self._workers = whole(workers, "workers", MaskwrightError, 1)
        self._cache_bytes = whole(cache_bytes, "cache_bytes", MaskwrightError, 0)
        self._limits = limits
        self._shared = shared
        self._closed = False
        vocabulary._compiled.most_bytes = self._cache_bytes
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._flights: dict[Hashable, _Flight] = {}
        self._thread = threading.local()
        self._pool = ThreadPoolExecutor(
            self._workers, "maskwright-compile", setattr, (self._thread, "is_own", True)
        )
        self._counts = dict.fromkeys(_COUNTS, 0)
        self._seconds = 0.0

    def compile(self, source: Any, *, limits: Limits | None = None) -> Future[CompiledGrammar]:
        """A future of what ``maskwright.compile`` returns for a source, or of the error that it raises.

        A source that was compiled before is there at once; one that is just being compiled is compiled once for all who wait.
        Errors are not kept.  ``cancel`` of the future, or of an ``asyncio`` one around it, ends the compile soon if nobody else
        waits for it.  What the source consists of may be changed as soon as this returns.
        Raises ``MaskwrightError`` when the compiler is closed.
        """
        if self._process != os.getpid():
            self._begin()
        if self._closed:
            raise MaskwrightError("this compiler is closed: make another one")
        future: Future[CompiledGrammar] = Future()
        try:
            flight = self._flight_for(source, self._limits if limits is None else limits)
        except Exception as error:
            with self._lock:
                self._counts["requested"] += 1
                self._counts["failed"] += 1
            future.set_exception(error)
            return future
        with self._lock:
            self._counts["requested"] += 1
            if self._closed:
                raise MaskwrightError("this compiler is closed: make another one")
            known = self._flights.get(flight.key)
            found = self.vocabulary._compiled.get(flight.key) if known is None else None
            if known is not None:
                self._counts["shared"] += 1
                known.waiters.append(future)
                flight = known
            elif found is None:
                self._submit(flight)
                self._flights[flight.key] = flight
                flight.waiters.append(future)
            else:
                self._counts["cached"] += 1
        if found is not None:
            future.set_result(found)
        else:
            future.add_done_callback(lambda done: self._left(flight, done))
        return future

    def _flight_for(self, source: Any, limits: Limits) -> _Flight:
        check_limits(limits)
        if isinstance(source, Choice) and not _is_small(source.options):
            return _Flight(object(), None, source, limits)
        job = job_of(source, limits, own_copy)
        return _Flight(job.part.key, job, None, limits)

    def _submit(self, flight: _Flight) -> None:
        try:
            self._pool.submit(self._run, flight)
        except RuntimeError:
            raise MaskwrightError("this program is ending: nothing more is compiled") from None

    def _left(self, flight: _Flight, future: Future[CompiledGrammar]) -> None:
        """Somebody has what he waits for, or waits no more."""
        if not future.cancelled():
            return
        with self._lock:
            if future not in flight.waiters:
                return
            flight.waiters.remove(future)
            self._counts["cancelled"] += 1
            alone = not flight.waiters
            # Whoever comes now must not join what is about to end.
            if alone and self._flights.get(flight.key) is flight:
                del self._flights[flight.key]
        future.set_running_or_notify_cancel()
        if alone:
            flight.cancel()

    def _run(self, flight: _Flight) -> None:
        began = perf_counter()
        result: Any = None
        error: BaseException | None = None
        try:
            with flight.stop, cancellable(flight.cancellation):
                if flight.cancellation.is_set:
                    return
                if flight.job is None:
                    result = compile(flight.source, self.vocabulary, limits=flight.limits)
                else:
                    result = compile_job(flight.job, self.vocabulary, self._shared)
        except Cancelled:
            error = MaskwrightError("the compile was cancelled")
        except BaseException as raised:
            error = raised
        self._land(flight, result, error, perf_counter() - began)

    def _land(self, flight: _Flight, result: Any, error: BaseException | None, seconds: float) -> None:
        with self._lock:
            self._seconds += seconds
            if self._flights.get(flight.key) is flight:
                del self._flights[flight.key]
            waiters, flight.waiters = flight.waiters, []
            if error is None or waiters:
                self._counts["compiled" if error is None else "failed"] += 1
        for i, future in enumerate(waiters):
            if not future.set_running_or_notify_cancel():
                with self._lock:
                    self._counts["cancelled"] += 1
            elif error is None:
                future.set_result(result)
            else:
                # Each with a traceback of its own.
                future.set_exception(error if i == 0 else _copied(error))

    @property
    def statistics(self) -> dict[str, int | float]:
        """Counts since the beginning: sources ``requested``; ``compiled`` (those read from a shared cache among them), ``failed``; requests that were
        ``shared`` (they joined a compile that was under way), ``cached`` or ``cancelled``.  ``in_progress``: compiles under way or
        queued now.  ``cached_bytes``: about what the vocabulary's grammars took when the last one was finished.  ``seconds``:
        spent on compiles, by all threads together."""
        with self._lock:
            return {
                **self._counts,
                "in_progress": len(self._flights),
                "cached_bytes": self.vocabulary._compiled.held_bytes,
                "seconds": self._seconds,
            }

    def close(self, *, cancel: bool = True) -> None:
        """Take no more sources, and wait until the threads have ended.

        ``cancel``: whoever still waits gets ``CancelledError``; else what is under way is finished first.
        In a callback of one of its own futures it does not wait.
        """
        if self._process != os.getpid():
            self._begin()
        with self._lock:
            self._closed = True
            flights = list(self._flights.values()) if cancel else []
            waiters = [future for flight in flights for future in flight.waiters]
        for future in waiters:
            future.cancel()
        self._pool.shutdown(wait=not hasattr(self._thread, "is_own"))

    def __enter__(self) -> Compiler:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close(cancel=kind is not None)

    def __repr__(self) -> str:
        return f"Compiler({self.vocabulary!r}, workers={self._workers}, cache_bytes={self._cache_bytes})"


def _is_small(options: object) -> bool:
    """Whether a choice is one among texts, few enough to be looked at right now; token sequences are no grammar."""
    return (
        isinstance(options, (list, tuple, set, frozenset))
        and len(options) <= _CHOICES_READ
        and all(isinstance(option, (str, bytes)) for option in options)
    )


def _copied(error: BaseException) -> BaseException:
    try:
        return copy.copy(error) if isinstance(error, MaskwrightError) else error
    except Exception:
        return error


_making = threading.Lock()


async def acompile(
    source: Any, vocabulary: Vocabulary, *, limits: Limits = DEFAULT_LIMITS
) -> CompiledGrammar:
    """What ``maskwright.compile`` returns, without holding up the event loop: compiled on two threads that the vocabulary has
    for this.

    Tasks that wait for equal sources share one compile; cancelling the last one of them ends it soon.  Raises what ``compile`` raises.
    """
    from asyncio import wrap_future

    check_type(vocabulary, Vocabulary, "vocabulary", VocabularyError)
    with _making:
        compiler: Compiler | None = vocabulary._compiler
        if compiler is None:
            compiler = vocabulary._compiler = Compiler(vocabulary)
    return await wrap_future(compiler.compile(source, limits=limits))


def _renew_lock() -> None:
    global _making
    _making = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
