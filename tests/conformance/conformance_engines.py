"""Engines for the conformance kit that are wrong on purpose, each in one way, and an exact one for regular expressions."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Collection
from typing import Any

import regex

from maskwright.conformance import Tokens
from maskwright.conformance.engines import Maskwright


class Naive:
    """Regular expressions by partial matching of the whole text: slow, and obviously right."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens

    def compile(self, language: str, source: str) -> Callable[[], NaiveMatcher]:
        if language != "regex":
            raise ValueError("regular expressions only")
        return lambda: NaiveMatcher(self.tokens, regex.compile(source))


class NaiveMatcher:
    def __init__(self, tokens: Tokens, pattern: Any) -> None:
        self.tokens, self.pattern = tokens, pattern
        self.read: list[int] = []

    def fits(self, data: bytes, partial: bool) -> bool:
        # What ends within a character fits when some character that begins so does.
        whole = data.decode("utf-8", "ignore")
        if not partial:
            return whole.encode() == data and bool(self.pattern.fullmatch(whole))
        rest = data[len(whole.encode()) :]
        ends = [c for c in "é è日本𝄞" if c.encode().startswith(rest)] if rest else [""]
        return any(self.pattern.fullmatch(whole + end, partial=True) for end in ends)

    def allowed(self) -> Collection[int]:
        texts = self.tokens.texts
        before = b"".join(texts[token] for token in self.read)
        found = {t for t, text in enumerate(texts) if text and self.fits(before + text, True)}
        return found | set(self.tokens.ends) if self.fits(before, False) else found

    def accept(self, token: int) -> bool:
        if token not in self.allowed():
            return False
        self.read.append(token)
        return True

    def rollback(self, count: int) -> None:
        del self.read[len(self.read) - count :]


class Wrong:
    """maskwright's adapter, which subclasses spoil."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens, self.right = tokens, Maskwright(tokens)

    def compile(self, language: Any, source: str) -> Callable[[], Any]:
        start = self.right.compile(language, source)
        return lambda: self.spoil(start())

    def spoil(self, matcher: Any) -> Any:
        return matcher


def _masked(change: Callable[[Tokens, set[int]], Collection[int]]) -> type[Wrong]:
    """An engine whose masks are changed."""

    class Changed(Wrong):
        def spoil(self, matcher: Any) -> Any:
            allowed = matcher.allowed
            matcher.allowed = lambda: change(self.tokens, set(allowed()))
            return matcher

    return Changed


EndsAnywhere = _masked(lambda tokens, allowed: allowed | set(tokens.ends))
FirstEndOnly = _masked(lambda tokens, allowed: allowed - set(sorted(tokens.ends)[1:]))
AllowsPadding = _masked(lambda tokens, allowed: allowed | set(range(len(tokens.texts), tokens.width)))
AllowsHoles = _masked(
    lambda tokens, allowed: (
        allowed | {t for t, text in enumerate(tokens.texts) if not text} - set(tokens.ends)
    )
)
OneIdOfEachText = _masked(
    lambda tokens, allowed: {
        t for t in allowed if not tokens.texts[t] or tokens.by_text[tokens.texts[t]][0] == t
    }
)
NoNamesOfEnds = _masked(lambda tokens, allowed: {t for t in allowed if tokens.texts[t] not in (b"</", b"<|")})
NoLetters = _masked(lambda tokens, allowed: {t for t in allowed if tokens.texts[t] not in (b"a", b"ab")})


class AcceptsAll(Wrong):
    """Its masks are right, and it takes what they leave out."""

    def spoil(self, matcher: Any) -> Any:
        accept = matcher.accept
        matcher.accept = lambda token: accept(token) or True
        return matcher


class ForgetsTheEnd(Wrong):
    """Rolls back one token too many when an end id was read."""

    def spoil(self, matcher: Any) -> Any:
        accept, rollback = matcher.accept, matcher.rollback
        ended = [False]

        def read(token: int) -> bool:
            ended[0] = token in self.tokens.ends
            return bool(accept(token))

        matcher.accept = read
        matcher.rollback = lambda count: rollback(count + ended[0])
        return matcher


class StaysBehind(Wrong):
    """Rolls back one token too few, from the second one on."""

    def spoil(self, matcher: Any) -> Any:
        rollback = matcher.rollback
        matcher.rollback = lambda count: rollback(max(1, count - 1))
        return matcher


class NoRollback(Wrong):
    def spoil(self, matcher: Any) -> Any:
        def rollback(count: int) -> None:
            raise NotImplementedError("no way back")

        matcher.rollback = rollback
        return matcher


def _failing(act: Callable[[], object]) -> type[Wrong]:
    """An engine that does something else where a schema has the word "ok"."""

    class Failing(Wrong):
        def compile(self, language: Any, source: str) -> Callable[[], Any]:
            start = super().compile(language, source)
            if "ok" not in source:
                return start

            def begin() -> Any:
                matcher = start()
                accept = matcher.accept
                matcher.accept = lambda token: act() or accept(token)
                return matcher

            return begin

    return Failing


def _raise() -> None:
    raise OverflowError("too much")


def _die() -> None:
    print("last words", flush=True)
    os.abort()


Raises = _failing(_raise)
Hangs = _failing(lambda: time.sleep(600))
Dies = _failing(_die)
Segfaults = _failing(lambda: ctypes.string_at(0))
TakesAllMemory = _failing(lambda: not bytearray(1 << 40))


class CannotStart:
    def __init__(self, tokens: Tokens) -> None:
        raise RuntimeError("no licence")
