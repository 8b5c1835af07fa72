"""The time that compiling one source may take.

Compiling is many small steps that call each other deeply.  Those that can be repeated very often call
``check_time``; the time itself belongs to the thread, so that no step has to hand it on.
"""

from __future__ import annotations

import threading
from _thread import _count as threads_begun
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from gc import get_referents, is_tracked
from math import inf
from sys import exc_info
from time import sleep
from typing import Any, TypeVar

import cython

from maskwright.base.collection import collect_young
from maskwright.base.frames import taken_from_frames
from maskwright.errors import LimitError

if not cython.compiled:
    from time import monotonic

    def PyErr_CheckSignals() -> None:
        """Python does it itself."""

    def Py_REFCNT(of: object) -> int:
        """Not known: as many as of what others have, too."""
        return 2

    def PyObject_IS_GC(of: object) -> bool:
        """Whether it may refer to other objects."""
        return is_tracked(of)


class Cancelled(BaseException):
    """What is being compiled is not wanted any more (``Cancellation``): caught by whoever made that, and by nobody on the way."""


class Cancellation:
    """By which another thread ends what is compiled within ``cancellable``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched = False
        self.is_set = False

    def set(self) -> None:
        """End it soon; before it has begun, or behind it, that changes nothing else."""
        with self._lock:
            if not self.is_set:
                self.is_set = True
                if self._watched:
                    _ends.append(-inf)
                    _note(_ends)

    def _watch(self, watched: bool) -> None:
        with self._lock:
            self._watched = watched
            if self.is_set:
                # Everybody looks, until the thread that it is meant for has ended.
                (_ends.append if watched else _ends.remove)(-inf)
                _note(_ends)


class _Clock:
    """The deadline of one thread, and what else may end its work."""

    end: float
    seconds: float
    cancellation: Cancellation | None

    long_at: float
    """When the operation under way has taken long; infinity: there is none."""

    def __init__(self) -> None:
        self.end = self.long_at = inf
        self.seconds = 0.0
        self.cancellation = None


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.clock = _Clock()


_T = TypeVar("_T")
_PIECE = 64
_thread = _OfThread()
_ends: list[float] = []
"""The deadlines of all threads."""
_TURN_SECONDS: float = 0.001
_python: Any = eval("lambda: None")
"""Something that is not compiled: here, who has waited for the interpreter long enough gets it.  Letting it go for a moment is not
enough.  It wakes those who wait, they seldom are in time, and count anew how long they have waited."""
_turn: float = 0.0
"""When compiled code next lets other threads run."""
_REST_SECONDS: float = 0.01
_PAUSE_SECONDS: float = 0.0003
"""As long as a thread may take to wake up."""
_PAUSE_ALONE_SECONDS: float = 0.00005
"""Where Python began no other thread: others may have."""
_rest: float = 0.0
"""When it next pauses, of what has taken so long already: who lets the interpreter go again and again, as engine operations do, would
otherwise keep it, since each time those who wait count anew."""
_COLLECTION_SECONDS: float = 0.004
_collection: float = 0.0
"""When what takes long collects its young objects: since its beginning, so many seconds are over."""
_LONG_COLLECTION_SECONDS: float = 0.002
_collects_long: bool = True
"""Whether the next collection may take longer than that."""
_LONG_SECONDS: float = 0.1
"""What has taken so long may have made so much that freeing it at once takes longer than others should wait; taking it apart takes a
quarter of the time that making it took."""
_WORKING_SHARE: float = 0.85
"""Of the seconds that work may take.  The rest is for freeing what it made when it fails, which belongs to the same deadline."""
_AT_ONCE_SECONDS: float = 0.001
_UNREAD: int = 7
"""In the first moment of an operation, so many calls of ``check_time`` between two do not read the clock: reading it at each takes a
fortieth of compiling a small schema."""
_unread: int = 0
"""How many of these are left."""
_at_once: float = 0.0
"""When that moment is over."""
_soonest: float = inf
"""Before the first of them there is nothing to look at."""


def _note(ends: list[float]) -> None:
    global _soonest
    soonest: float = inf
    end: float
    for end in ends:
        soonest = min(soonest, end)
    _soonest = soonest


class deadline:
    """Work that must end within so many seconds (0: no limit), or the fewer that an outer deadline leaves.

    What fails after it has taken long loses the variables of its frames here: others have their turns meanwhile."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        global _rest, _collection, _collects_long, _unread, _at_once
        clock: _Clock = _thread.clock
        self._clock = clock
        self._end_before, self._seconds_before = clock.end, clock.seconds
        self._outside = exc_info()[1]
        now: float = monotonic()
        self._long_before = clock.long_at
        if clock.long_at == inf:
            # Work within work counts on: of many small parts, each would begin anew, and none of them ever pause.
            clock.long_at = now + _LONG_SECONDS
            _rest = now + _REST_SECONDS
            _collection = now + _COLLECTION_SECONDS
            # The first one meets what the caller made, which may be large.
            _collects_long = True
            _unread = 0
            _at_once = now + _AT_ONCE_SECONDS
        if self._seconds and now + self._seconds * _WORKING_SHARE < clock.end:
            clock.end, clock.seconds = now + self._seconds * _WORKING_SHARE, self._seconds
        self._end = clock.end
        _ends.append(self._end)
        _note(_ends)

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        _ends.remove(self._end)
        self._clock.end, self._clock.seconds = self._end_before, self._seconds_before
        _note(_ends)
        long_at: float = self._clock.long_at
        self._clock.long_at = self._long_before
        outside, self._outside = self._outside, None
        if error is not None and monotonic() > long_at:
            _take_apart(taken_from_frames(error, outside))


def _take_turns(now: float) -> None:
    global _turn, _rest, _collection, _collects_long
    if now > _turn:
        _turn = now + _TURN_SECONDS
        _python()
        collects: bool = now > _collection
        if now > _rest or (collects and _collects_long):
            # Who waits when a long collection begins would have waited before it as well.
            _rest = now + _REST_SECONDS
            sleep(_PAUSE_SECONDS if threads_begun() else _PAUSE_ALONE_SECONDS)
        if collects:
            begun: float = monotonic()
            collect_young()
            ended: float = monotonic()
            _collects_long = ended - begun > _LONG_COLLECTION_SECONDS
            _collection = ended + _COLLECTION_SECONDS


@contextmanager
def cancellable(cancellation: Cancellation) -> Iterator[None]:
    """Work of this thread that ends with ``Cancelled`` soon after it was told so."""
    clock: _Clock = _thread.clock
    before = clock.cancellation
    clock.cancellation = cancellation
    cancellation._watch(True)
    try:
        yield
    finally:
        cancellation._watch(False)
        clock.cancellation = before


def is_cancelled() -> bool:
    """Whether the work of this thread is not wanted any more."""
    cancellation: Cancellation | None = _thread.clock.cancellation
    return cancellation is not None and cancellation.is_set


def cancellation_of_thread() -> Cancellation | None:
    """What may end the work of this thread, besides its deadline."""
    cancellation: Cancellation | None = _thread.clock.cancellation
    return cancellation


def check_time() -> None:
    """Raises ``LimitError`` (max_seconds) when the deadline of this thread is over, again and again; ``Cancelled``; and what
    handlers of signals raise, such as KeyboardInterrupt: compiled code has no other place for them."""
    global _unread
    if _unread:
        _unread -= 1
    else:
        check_time_now()


def check_time_now() -> None:
    """``check_time`` for where calls are few, or what came before may have taken long."""
    global _unread
    PyErr_CheckSignals()
    now: float = monotonic()
    _take_turns(now)
    if now <= _soonest:
        if now < _at_once:
            _unread = _UNREAD
        return
    if is_cancelled():
        raise Cancelled
    clock: _Clock = _thread.clock
    late = now - clock.end
    if late > 0:
        raise LimitError("max_seconds", clock.seconds + late, clock.seconds)


def out_of_time() -> None:
    """To be called where another clock says that the deadline is over: raises what ``check_time`` does, and does so in any case."""
    check_time_now()
    seconds = _thread.clock.seconds
    raise LimitError("max_seconds", seconds, seconds)


def in_time(items: Iterable[_T]) -> Iterator[_T]:
    """The same items, with a look at the clock every few of them: for what goes through many in one expression."""
    i: int
    for i, item in enumerate(items):
        if i & 31 == 31:
            check_time_now()
        yield item


def if_many(items: Collection[_T]) -> Iterable[_T]:
    """``in_time`` of many; few as they are, which costs nothing."""
    return items if len(items) <= _PIECE else in_time(items)


def let_go(*held: dict[Any, Any] | list[Any] | set[Any]) -> None:
    """Empty them, and free what nobody else has, piece by piece while others have their turns: all of what a large source
    became takes long."""
    clock: _Clock = _thread.clock
    if monotonic() < clock.long_at:
        for each in held:
            each.clear()
        return
    apart: list[Any] = []
    for each in held:
        while each:
            if isinstance(each, list):
                apart += each[-_PIECE:]
                del each[-_PIECE:]
            else:
                apart += [
                    each.popitem() if isinstance(each, dict) else each.pop()
                    for _ in range(min(len(each), _PIECE))
                ]
            _take_apart(apart)


def let_frames_go(error: BaseException) -> None:
    """The same for what the calls had made that an error came through: for where a limit ends the work, and is no error."""
    if monotonic() > _thread.clock.long_at:
        _take_apart(taken_from_frames(error, None))


def _take_apart(held: list[Any]) -> None:
    # The last reference to a tree frees all of it at once.  So whatever is about to be freed hands over first what it refers to.
    steps: int = 0
    while held:
        if steps & 63 == 0:
            _take_turns(monotonic())
        steps += 1
        part = held.pop()
        if Py_REFCNT(part) == 1 and PyObject_IS_GC(part):
            held += part if type(part) is tuple or type(part) is list else get_referents(part)


def ends_at() -> float:
    """When the deadline of this thread is over, by the clock of ``time.monotonic``; infinity: there is none."""
    end: float = _thread.clock.end
    return end


def seconds_left() -> float:
    """What the deadline of this thread leaves; 0: there is none.  Raises ``LimitError`` when it is over."""
    check_time_now()
    end: float = _thread.clock.end
    return 0.0 if end == inf else max(end - monotonic(), 1e-9)


def check_time_again(error: LimitError) -> None:
    """To be called where a limit is no error: the deadline remains one."""
    if error.limit == "max_seconds":
        raise error
