"""A constraint given by two Python functions, called here, in threads or in processes."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np

from maskwright.base.arguments import check_function, one_of, token_ids, whole
from maskwright.errors import ConstraintError
from maskwright.sampling.adaptive import boolean
from maskwright.sampling.constraints import END, Constraint
from maskwright.sampling.logspace import Booleans

_CONSISTENCY_CHECKS = 64

Ids = tuple[int, ...]


class Predicate(Constraint):
    """Texts for which ``complete(ids)`` holds, found through ``prefix(ids)``.

    Both get the ids written so far as a list, EOS not among them.  Left out, ``prefix`` allows everything and
    ``complete`` is what ``prefix`` says of the text.  ``prefix`` must hold for everything that can become
    complete.  A text that ``complete`` accepts and ``prefix`` refuses is a ``ConstraintError``; that is tried
    for the first 64 refusals, and wherever both are known.  So is an answer that is no boolean.

    ``workers``: call the functions in a pool of that many ``pool="thread"``\\ s (for checkers that release the
    interpreter or wait) or ``"process"``\\ es (for slow Python ones; the functions must be picklable).  Samplers
    ask about one candidate of every particle at once.  ``calls`` counts evaluations.
    """

    def __init__(
        self,
        prefix: Callable[[list[int]], bool] | None = None,
        complete: Callable[[list[int]], bool] | None = None,
        *,
        workers: int = 0,
        pool: str = "thread",
    ) -> None:
        check_function(prefix, "prefix", optional=True)
        check_function(complete, "complete", optional=True)
        one_of(pool, ("thread", "process"), "pool")
        workers = whole(workers, "workers", low=0)
        self._prefix = prefix
        self._complete = complete
        self._workers = workers
        self._pool = pool
        self._executor: Executor | None = None
        self._consistency_left = _CONSISTENCY_CHECKS
        self.calls = 0

    def start(self) -> Ids:
        return ()

    def advance(self, state: Ids, token: int) -> Ids:
        return (*state, token)

    def check(self, states: Sequence[Ids], tokens: Sequence[int]) -> Booleans:
        jobs = [
            (token == END, state if token == END else (*state, operator.index(token)))
            for state, token in zip(states, tokens, strict=True)
        ]
        verdicts = np.array(self._ask(jobs), dtype=bool)
        if self._complete is not None and self._prefix is not None and self._consistency_left:
            refused = [ids for (end, ids), good in zip(jobs, verdicts, strict=True) if not end and not good]
            self._find_contradictions(refused[: self._consistency_left])
        return verdicts

    def prefix(self, ids: Sequence[int]) -> bool:
        return bool(self._ask([(False, tuple(token_ids(ids)))])[0])

    def complete(self, ids: Sequence[int]) -> bool:
        ids = tuple(token_ids(ids))
        good = self._ask([(True, ids)])[0]
        if good and self._complete is not None and self._prefix is not None:
            for length in range(len(ids) + 1):
                if not self._ask([(False, ids[:length])])[0]:
                    raise _contradiction(ids, ids[:length])
        return good

    def _find_contradictions(self, refused: list[Ids]) -> None:
        self._consistency_left -= len(refused)
        for ids, good in zip(refused, self._ask([(True, ids) for ids in refused]), strict=True):
            if good:
                raise _contradiction(ids, ids)

    def _ask(self, jobs: list[tuple[bool, Ids]]) -> list[bool]:
        # Each job is (whether the text is to be complete, the text).
        found: list[bool] = [True] * len(jobs)
        asked: list[tuple[int, Callable[[list[int]], bool], Ids]] = []
        for index, (end, ids) in enumerate(jobs):
            function = (self._complete or self._prefix) if end else self._prefix
            if function is not None:
                asked.append((index, function, ids))
        self.calls += len(asked)
        answers: Iterable[Any]
        if self._workers and len(asked) > 1:
            answers = self._executor_now().map(_call, [(function, ids) for _, function, ids in asked])
        else:
            answers = (function(list(ids)) for _, function, ids in asked)
        for (index, _, ids), answer in zip(asked, answers, strict=True):
            found[index] = boolean(answer, "complete" if jobs[index][0] else "prefix", list(ids))
        return found

    def _executor_now(self) -> Executor:
        if self._executor is None:
            kind = ThreadPoolExecutor if self._pool == "thread" else ProcessPoolExecutor
            self._executor = kind(self._workers)
            weakref.finalize(self, self._executor.shutdown, wait=False)
        return self._executor

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None


def _call(job: tuple[Callable[[list[int]], bool], Ids]) -> Any:
    function, ids = job
    return function(list(ids))


def _contradiction(complete: Ids, refused: Ids) -> ConstraintError:
    return ConstraintError(
        f"complete accepts {list(complete)}, but prefix refuses {list(refused)}; prefix must hold for all that "
        "can become complete, or texts are lost silently"
    )
