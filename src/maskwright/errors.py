"""Every error that maskwright raises on purpose, as one tree.

Names say whose fault it is.  A message says where, what, and what to do.
A token that the grammar does not allow is not an error: ``accept_token`` answers False.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator
from contextlib import ContextDecorator
from typing import Any, NamedTuple


class MaskwrightError(ValueError):
    """Base of all errors raised by this package; they can be pickled and copied."""

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is otherwise made again by calling its class with its message, which some classes do not take.
        return _remade, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        # Sources may have surrogates, which no output takes.
        return super().__str__().encode("utf-8", "backslashreplace").decode("utf-8")


def _remade(kind: type[MaskwrightError], args: tuple[Any, ...], content: dict[str, Any]) -> MaskwrightError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(content)
    return error


class GrammarError(MaskwrightError):
    """The source text or schema is not well formed.

    ``place`` is a JSON pointer (schemas) or ``line:column`` (texts), or None.  ``snippet`` is the line
    of a text with a caret below the place, or None.
    """

    def __init__(self, message: str, *, place: str | None = None, source: str | None = None) -> None:
        self.message = message
        self.place = place
        self.snippet = caret_snippet(source, place) if source is not None and place is not None else None
        described = f"{place}: {message}" if place is not None else message
        super().__init__(described if self.snippet is None else f"{described}\n{self.snippet}")


def line_column(text: str, at: int) -> str:
    """The place of an index into a text, as ``line:column``, both from 1 (columns are code points)."""
    return f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"


def line_columns(text: str, places: Iterable[int]) -> Iterator[str]:
    """``line_column`` of many places."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    for at in places:
        line = bisect(starts, at)
        yield f"{line}:{at - starts[line - 1] + 1}"


def caret_snippet(text: str, place: str) -> str:
    """The line of ``text`` at ``line:column``, and a caret below the column; long lines are cut around it."""
    line, _, column = place.partition(":")
    lines = text.split("\n")
    shown = lines[min(int(line), len(lines)) - 1].rstrip("\r")
    start = max(0, int(column) - 60)
    # A tab is as wide above the padding as in it.
    padding = re.sub(r"[^\t]", " ", shown[start : int(column) - 1]).ljust(int(column) - 1 - start)
    return f"  {shown[start : start + 100]}\n  {padding}^"


class Refusal(NamedTuple):
    """One keyword that cannot be enforced."""

    pointer: str
    keyword: str
    reason: str


class UnsupportedSchemaError(MaskwrightError):
    """Keywords that the compiler cannot enforce; all of them at once in ``refusals``."""

    def __init__(self, refusals: list[Refusal]) -> None:
        self.refusals = list(refusals)
        lines = "\n".join(f"  {r.pointer or '#'}: {r.keyword}: {r.reason}" for r in self.refusals)
        super().__init__(f"{len(self.refusals)} keyword(s) cannot be enforced:\n{lines}")


class Constraint(NamedTuple):
    """One keyword of one subschema; ``text`` shows what of its value matters, as in ``minimum 5``."""

    pointer: str
    keyword: str
    text: str


class UnsatisfiableError(MaskwrightError):
    """No output can satisfy the constraints; ``place`` says where they clash.

    ``constraints`` are those that exclude each other: leaving out any of them would remove the clash.
    Empty when they were not looked for, or are too many.
    """

    def __init__(
        self, message: str, *, place: str | None = None, constraints: tuple[Constraint, ...] = ()
    ) -> None:
        self.message = message
        self.place = place
        self.constraints = constraints
        super().__init__(f"{place}: {message}" if place is not None else message)


class LimitError(MaskwrightError):
    """A named limit was reached: a field of ``maskwright.Limits``, or what ``message`` says.

    ``subject`` says what of the source reaches it, in front of the usual message.
    """

    def __init__(
        self,
        limit: str,
        given: float,
        allowed: float,
        *,
        place: str | None = None,
        message: str | None = None,
        subject: str | None = None,
    ) -> None:
        self.limit = limit
        self.given = given
        self.allowed = allowed
        self.place = place
        where = f"{place}: " if place is not None else ""
        if message is None:
            what = f"{subject}: " if subject is not None else ""
            # How much time would be enough is not known.
            reached = "which are over" if limit == "max_seconds" else f"{_plain(given)} needed"
            message = (
                f"{what}{limit} is {_plain(allowed)}, {reached}; "
                f"simplify the source or raise it with Limits({limit}=...)"
            )
        self.message = message
        super().__init__(where + message)

    def at(self, place: str) -> LimitError:
        """The same error with its place, if it has none."""
        if self.place is not None:
            return self
        return LimitError(self.limit, self.given, self.allowed, place=place, message=self.message)


def _plain(value: float) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or abs(value) >= 10**15:
        try:
            return f"{value:g}"
        except OverflowError:
            return "over 1e308"
    return str(value)


class VocabularyError(MaskwrightError):
    """The tokenizer cannot be turned into exact token bytes, or does not fit the model."""


class BitmaskError(MaskwrightError):
    """A bitmask or logits array of the wrong type, shape, layout or row."""


class ModelError(MaskwrightError):
    """A language model's scores are no log-probabilities: wrong shape, NaN, not normalised."""


class ModelNotFoundError(MaskwrightError):
    """No model was named, and the default one cannot be had: why, and the commands that help."""


class ConstraintError(MaskwrightError):
    """A predicate, monitor, reward or twist gave an answer that makes no sense, and which one."""


class OutputError(MaskwrightError):
    """The type of an output refuses it: it checks what no JSON Schema says.  ``text`` is the output."""

    def __init__(self, message: str, text: str) -> None:
        self.text = text
        super().__init__(message)


class no_recursion(ContextDecorator):
    """What reads a source by recursion: Python's limit on that is an error of the source."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, RecursionError):
            message = (
                "the source is nested too deeply for Python: simplify it, or raise sys.setrecursionlimit"
            )
            raise GrammarError(message) from None


class CanvasError(MaskwrightError):
    """A canvas, or what a model says about it, is not well formed: kinds, ids, shapes or positions."""
