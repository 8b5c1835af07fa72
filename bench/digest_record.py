"""What one source says, as digests: masks along texts, completions, forced text, rejections, errors, canvases.

A *record* is plain data for JSON.  Of every text it keeps the token ids, four bytes of digest a mask, a mark a state, and
*spots*: digests of everything else, each with the number of tokens before it.  So two records name the token at which they
begin to differ.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

import maskwright as mw
from maskwright._core import StateSets
from maskwright.diffusion import Canvas, Gap
from maskwright.diffusion.between import Middle
from maskwright.ir.grammar import Grammar

LIMITS = mw.Limits(max_seconds=300.0)
"""So long that no answer depends on how busy the machine is."""
MASK_HEX = 8
_SPOT_EVERY = 12
_SINGLE = 0.4
_PROBES = 6
_CANVAS_TOKENS = 32
_WALKED = 6


@dataclass(frozen=True)
class Words:
    """A vocabulary, and how texts are spelled in its tokens."""

    vocabulary: mw.Vocabulary
    encode: Callable[[str], list[int]]


@dataclass(frozen=True)
class Source:
    """Something to compile, with texts that it may or may not accept; ``walks``: random ones along the masks."""

    name: str
    content: Any
    words: str
    texts: Sequence[str] = ()
    walks: int = 0
    steps: int = 60
    canvas: bool = False
    limits: mw.Limits = LIMITS

    def identity(self) -> str:
        """Digest of what is asked.  Records of sources that differ in it say nothing about the engine."""
        kept = repr(self.content) if isinstance(self.content, Grammar) else _chosen(self.content)
        asked = (kept, self.words, tuple(self.texts), self.walks, self.steps, self.canvas)
        return digest(_ADDRESS.sub("", repr(asked)).encode("utf-8", "surrogatepass"), 8)


_ADDRESS = re.compile(" at 0x[0-9a-f]+")


def _chosen(content: Any) -> dict[str, Any]:
    """The options of a source that are not as by default, so that a new option makes no other source of it."""
    values = {option.name: getattr(content, option.name) for option in fields(content)}
    defaults = {option.name: option.default for option in fields(content)}
    return {name: value for name, value in values.items() if value != defaults[name]}


def digest(data: Any, size: int = MASK_HEX // 2) -> str:
    return hashlib.blake2b(data, digest_size=size).hexdigest()


def record(source: Source, words: Words, most_tokens: int) -> dict[str, Any]:
    """Everything that is asked of one source; ``digest`` sums it up."""
    texts: list[dict[str, Any]] = []
    found: dict[str, Any] = {"name": source.name, "source": source.identity(), "words": source.words}
    try:
        compiled = _compiled(source, words.vocabulary)
    except Exception as error:  # an error that is not ours is an answer too, which may not change unseen
        found["error"] = told(error)
    else:
        for number, text in enumerate(source.texts):
            ids = words.encode(text)[:most_tokens]
            texts.append(_Text(f"text {number}", compiled, source).follow(ids))
        for number in range(source.walks):
            texts.append(_Text(f"walk {number}", compiled, source).walk(source.steps))
        if source.canvas:
            texts.append(_Text("sets", compiled, source).sets())
            texts.append(_Text("canvas", compiled, source).canvas())
        texts.append(_Text("batch", compiled, source).batch([text["ids"] for text in texts]))
    found["texts"] = texts
    found["digest"] = digest(json.dumps(found, sort_keys=True).encode(), 16)
    return found


def _compiled(source: Source, vocabulary: mw.Vocabulary) -> Any:
    if isinstance(source.content, Grammar):
        return mw.compile_grammar(source.content, vocabulary, source.limits)
    return mw.compile(source.content, vocabulary, limits=source.limits)


@functools.cache
def single_bytes(vocabulary: mw.Vocabulary) -> npt.NDArray[np.int64]:
    return np.array([i for i, token in enumerate(vocabulary.tokens) if len(token) == 1], dtype=np.int64)


def told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


@dataclass
class _Text:
    """The record of one text while it is made."""

    name: str
    compiled: Any
    source: Source
    ids: list[int] = field(default_factory=list)
    masks: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    spots: list[tuple[int, str, str]] = field(default_factory=list)
    error: str = ""

    def __post_init__(self) -> None:
        self.rng = random.Random(f"{self.source.name} {self.name}")
        self.row = mw.allocate_token_bitmask(1, self.compiled.vocabulary.vocab_size)

    def data(self) -> dict[str, Any]:
        kept = {
            "name": self.name,
            "ids": self.ids,
            "masks": "".join(self.masks),
            "marks": "".join(self.marks),
        }
        return {**kept, "spots": [list(spot) for spot in self.spots], "error": self.error}

    @contextlib.contextmanager
    def _errors_kept(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.error = told(error)

    # --- texts, token by token

    def follow(self, ids: list[int]) -> dict[str, Any]:
        """A given text, up to the first token that is rejected."""
        self.ids = ids
        with self._errors_kept():
            matcher = self.compiled.matcher()
            for i, token in enumerate(ids):
                self._state(matcher, i)
                if not matcher.accept_token(token):
                    self.marks.append("r")
                    self._spot(i, "mask after the rejected token", self._mask(matcher))
                    break
            else:
                self._state(matcher, len(ids))
            self._turns(matcher)
        return self.data()

    def walk(self, steps: int) -> dict[str, Any]:
        """Tokens that the masks allow, more single bytes among them than there are, so that strings end and texts get somewhere."""
        with self._errors_kept():
            matcher = self.compiled.matcher()
            for i in range(steps):
                self._state(matcher, i)
                allowed = self._allowed()
                if matcher.is_terminated or not len(allowed):
                    break
                if self.rng.random() < _SINGLE and (single := self._single()):
                    token = self.rng.choice(single)
                else:
                    token = int(allowed[self.rng.randrange(len(allowed))])
                self.ids.append(token)
                if not matcher.accept_token(token):
                    self.marks.append("r")
                    break
            self._turns(matcher)
        return self.data()

    def _state(self, matcher: Any, i: int) -> None:
        self.masks.append(digest(self._mask(matcher)))
        self.marks.append("t" if matcher.is_terminated else "a" if matcher.is_accepting else ".")
        if i % _SPOT_EVERY == 0:
            self._ways_out(matcher, i)

    def _ways_out(self, matcher: Any, i: int) -> None:
        """Of several shortest completions any may be given: what counts is how long it is, and that it is one."""
        self._spot(i, "forced bytes", matcher.forced_bytes())
        shortest = len(matcher.shortest_completion_bytes())
        fork, ids = matcher.fork(), matcher.shortest_completion()
        whole = fork.accept_tokens(ids) == len(ids) and fork.is_accepting
        self._spot(i, "length of the shortest completion", repr((shortest, whole)).encode())

    def _turns(self, matcher: Any) -> None:
        """What else may happen behind a text: a token that is refused, forks, rollback, and all of it read as bytes."""
        read = matcher.accepted_tokens
        last = len(read)
        self._ways_out(matcher, last)
        self._mask(matcher)
        refused = self._refused()
        if refused >= 0 and not matcher.is_terminated:
            said = matcher.accept_token(refused)
            self._spot(last, f"token {refused} is refused", repr(said).encode() + self._mask(matcher))
        back = self.rng.randrange(last + 1)
        fork = matcher.fork()
        matcher.rollback(back)
        self._spot(last - back, f"mask after taking back {back} tokens", self._mask(matcher))
        again = matcher.accept_tokens(read[last - back :])
        self._spot(last, "mask after reading them again", repr(again).encode() + self._mask(matcher))
        fork.rollback(min(last, 3))
        self._spot(last - min(last, 3), "mask of a fork that went back", self._mask(fork))
        self._spot(last, "captures", repr(matcher.captures()).encode())
        whole = self.compiled.matcher()
        data = self.compiled.vocabulary.decode(read)
        answers = (whole.validate_tokens(self.ids), whole.longest_prefix(data), whole.accept_bytes(data))
        self._spot(last, "the text as bytes", repr(answers).encode() + self._mask(whole))

    def batch(self, texts: list[list[int]]) -> dict[str, Any]:
        """Masks of many matchers at once; some of them are new then."""
        with self._errors_kept():
            matchers = []
            for ids in texts:
                matcher = self.compiled.matcher()
                matcher.accept_tokens(ids[: max(len(ids) - 1, 0)])
                matchers.append(matcher)
            rows = mw.allocate_token_bitmask(len(matchers), self.compiled.vocabulary.vocab_size)
            mw.fill_next_token_bitmasks(matchers, rows)
            self.masks = [digest(row.tobytes()) for row in rows]
        return self.data()

    # --- many texts at once

    def sets(self) -> dict[str, Any]:
        """States of many texts: along a walk some tokens are unknown.  State numbers are not looked at."""
        with self._errors_kept():
            sets = StateSets(self.compiled._core)
            ids = self._short_text()
            state = sets.start
            for i, token in enumerate(ids):
                self._set(sets, state, i)
                after = sets.any(state) if i % 3 == 1 else sets.next(state, token)
                if after < 0:
                    self.marks.append("r")
                    break
                state = after
            self._set(sets, sets.join(state, sets.start), len(ids))
        return self.data()

    def _set(self, sets: StateSets, state: int, i: int) -> None:
        """Every class of tokens by its ids, and what is true where it leads."""
        classes = [(np.sort(np.frombuffer(ids, dtype=np.int32)), to) for to, ids in sets.classes(state)]
        classes.sort(key=lambda pair: pair[0].tobytes())
        told = [(sets.is_accepting(to), sets.cost(to)) for _, to in classes]
        self.masks.append(digest(b"".join(ids.tobytes() for ids, _ in classes)))
        self.marks.append("a" if sets.is_accepting(state) else ".")
        self._spot(i, "classes", repr([len(ids) for ids, _ in classes]).encode() + repr(told).encode())

    def canvas(self) -> dict[str, Any]:
        """A canvas with open slots, committed one by one, and a middle between two texts."""
        with self._errors_kept():
            ids = self._short_text()
            slots = [None if self.rng.random() < 0.4 else token for token in ids]
            canvas = Canvas(self.compiled, [*slots, Gap(0, 2)], limits=self.source.limits)
            for position in canvas.open[:_PROBES]:
                allowed = canvas.allowed(position)
                self.masks.append(digest(allowed.tobytes()))
                token = int(allowed.argmax())
                self.marks.append("a" if canvas.try_commit(position, token) else "r")
            cut = len(ids) // 2
            decode = self.compiled.vocabulary.decode
            middle = Middle(
                self.compiled, decode(ids[: cut - 1]), decode(ids)[len(decode(ids[: cut + 1])) :], 4
            )
            for token in ids[max(cut - 1, 0) : cut + 1]:
                self.masks.append(digest(middle.allowed().tobytes()))
                self.marks.append("a" if middle.accept_token(token) else "r")
            self.masks.append(digest(middle.allowed().tobytes()))
        return self.data()

    def _short_text(self) -> list[int]:
        """A whole text of few tokens: a short walk, and the least of its shortest completions, byte by byte."""
        matcher = self.compiled.matcher()
        for _ in range(_WALKED):
            self._mask(matcher)
            allowed = self._without_ends(self._allowed())
            if not allowed:
                break
            matcher.accept_token(self.rng.choice(allowed))
        self.ids = matcher.accepted_tokens
        for left in range(len(matcher.shortest_completion_bytes()), 0, -1):
            self._mask(matcher)
            for token in self._without_ends(self._single()):
                fork = matcher.fork()
                if fork.accept_token(token) and len(fork.shortest_completion_bytes()) < left:
                    break
            else:
                break
            matcher = fork
            self.ids = matcher.accepted_tokens
            if len(self.ids) >= _CANVAS_TOKENS:
                break
        return self.ids

    def _without_ends(self, ids: Iterable[int]) -> list[int]:
        ends = self.compiled.vocabulary.eos_ids
        return [int(token) for token in ids if token not in ends]

    def _single(self) -> list[int]:
        """The ids of the row that are one byte."""
        single = single_bytes(self.compiled.vocabulary)
        found: list[int] = single[
            np.unpackbits(self.row.view(np.uint8), bitorder="little")[single] == 1
        ].tolist()
        return found

    # --- rows

    def _mask(self, matcher: Any) -> bytes:
        matcher.fill_next_token_bitmask(self.row)
        return self.row.tobytes()

    def _allowed(self) -> npt.NDArray[np.int64]:
        """The ids of the row."""
        return np.flatnonzero(np.unpackbits(self.row.view(np.uint8), bitorder="little"))

    def _refused(self) -> int:
        """An id that the row does not allow; -1 where it allows all."""
        size = self.compiled.vocabulary.vocab_size
        bits = np.unpackbits(self.row.view(np.uint8), bitorder="little", count=size)
        others = np.flatnonzero(bits == 0)
        return int(others[self.rng.randrange(len(others))]) if len(others) else -1

    def _spot(self, i: int, label: str, data: bytes) -> None:
        self.spots.append((i, label, digest(data)))
