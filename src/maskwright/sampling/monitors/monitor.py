"""The monitor as a constraint: dormant until a trigger, then only known names may be written.

Monitor-guided decoding: Agrawal et al., "Monitor-Guided Decoding of Code LMs with Static Analysis of Repository
Context" (NeurIPS 2023).  A monitor has a trigger, an analysis that tells which names may follow, and a state that
remembers how much of a name has been written.  Here the analysis is one function of the text.

The language of a monitor: at every place of the text where ``options`` gives names, the longest run of word
characters that follows is one of them (at the end of an unfinished text: begins one of them).  What begins with a
digit is no name, and may follow where there need not be one.  Blanks may stand before the name where ``between`` has
them, and so may comments where ``comments`` has them.

While a name is being written the mask is computed from the names and is strict about the bytes of the name.  What
a token does behind the name, and tokens that reach a trigger themselves, need the analysis of a text that
does not exist yet.  These are decided token by token (``check``), so that adaptive rejection asks only about the
tokens that are drawn.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from maskwright.base.arguments import check_type
from maskwright.errors import ConstraintError, VocabularyError
from maskwright.sampling.constraints import END, Bitmask, Constraint
from maskwright.sampling.logspace import Booleans, Integers
from maskwright.vocabulary.vocabulary import Vocabulary

WORD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
UNICODE_WORD = WORD + bytes(range(128, 256))
"""Names of languages that take letters beyond ASCII."""
LINE_END = re.compile(r"\r\n|\r|\n")

_DIGITS = frozenset(b"0123456789")
_REMEMBERED = 4096
_NO_COMMENTS: Mapping[bytes, bytes] = MappingProxyType({})


class Names(NamedTuple):
    """The names that may follow, encoded."""

    sorted: tuple[bytes, ...]
    all: frozenset[bytes]

    def begins_one(self, written: bytes) -> bool:
        """Whether a name begins with ``written``."""
        at = bisect_left(self.sorted, written)
        return at < len(self.sorted) and self.sorted[at].startswith(written)


class MonitorState(NamedTuple):
    """The text so far; while a name is being written, its bytes and what it may be; whether tokens are read as at the very
    start of a text; where a comment before the name has begun, what of it has been read."""

    text: bytes
    written: bytes
    names: Names | None
    opening: bool = False
    aside: bytes = b""


class Monitor(Constraint):
    """Restrict names to what ``options(text)`` finds.

    ``options(text: str)`` is called at the start and behind every byte in ``triggers``; it returns the names that
    may come next (with ``""`` among them when there need not be one), or None where anything goes.  No name at all refuses the
    text.  It must be a function of the text; results are remembered.  ``word``: bytes that names consist of.  ``ignore_case``: compare
    ASCII letters without case.  ``between``: bytes that may stand before a name.  ``comments``: what else may, as a mapping of their first bytes to
    their last ones (``{b"//": b"\\n", b"/*": b"*/"}``; ``b"\\n"`` is any end of a line).  Texts end on a whole name.  ``analyses`` counts calls of ``options``.

    Raises ``ConstraintError`` for arguments and answers of ``options`` that are of another type, and for comments that begin with bytes
    of names or with a trigger.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        options: Callable[[str], Iterable[str] | None],
        *,
        triggers: bytes,
        word: bytes = WORD,
        ignore_case: bool = False,
        between: bytes = b"",
        comments: Mapping[bytes, bytes] = _NO_COMMENTS,
    ) -> None:
        check_type(vocabulary, Vocabulary, "vocabulary", VocabularyError)
        if not callable(options):
            raise ConstraintError(
                f"options: expected a function of the text, got {type(options).__name__}: {options!r}"[:300]
            )
        for given, name in ((triggers, "triggers"), (word, "word"), (between, "between")):
            check_type(given, bytes, name, ConstraintError)
        check_type(ignore_case, (bool, np.bool_), "ignore_case", ConstraintError)
        self.vocabulary = vocabulary
        self.analyses = 0
        self._options = options
        self._triggers = frozenset(triggers)
        self._word = frozenset(word)
        self._ignore_case = ignore_case
        self._between = frozenset(between)
        self._comments = _checked(comments, self._triggers | self._word | self._between)
        self._tokens = [_folded(token, ignore_case) for token in vocabulary.tokens]
        # Tokens by the word characters at their start, to find those that agree with a name.
        heads: dict[bytes, list[int]] = {}
        for i, token in enumerate(self._tokens):
            if token:
                heads.setdefault(self._head(token), []).append(i)
        self._heads = {head: np.array(ids) for head, ids in heads.items()}
        self._whole = {head: self._inside(ids) for head, ids in heads.items()}
        self._numbers = np.array(
            [i for i, token in enumerate(self._tokens) if token[:1].isdigit()], dtype=np.int64
        )
        apart = self._between | {begin[0] for begin, _ in self._comments}
        self._apart = np.array(
            [i for i, token in enumerate(self._tokens) if token and token[0] in apart], dtype=np.int64
        )
        self._known: OrderedDict[bytes, Names | None] = OrderedDict()
        self._masks: OrderedDict[tuple[bytes, Names], Bitmask] = OrderedDict()

    def _head(self, token: bytes) -> bytes:
        length = 0
        while length < len(token) and token[length] in self._word:
            length += 1
        return token[:length]

    def _inside(self, ids: list[int]) -> Integers:
        return np.array(
            [i for i in ids if all(byte in self._word for byte in self._tokens[i])], dtype=np.int64
        )

    def bind(self, vocab_size: int, eos_ids: Sequence[int]) -> None:
        if vocab_size != self.vocabulary.vocab_size:
            raise VocabularyError(
                f"the monitor's vocabulary has {self.vocabulary.vocab_size} ids, the model {vocab_size}"
            )

    def start(self) -> MonitorState:
        return self._consult(b"")._replace(opening=bool(self.vocabulary.start_tokens))

    def advance(self, state: MonitorState, token: int) -> MonitorState:
        found = self._read_token(state, token)
        if found is None:
            raise ConstraintError(f"token {token} writes a name that is not known; ask check first")
        return found

    def check(self, states: Sequence[MonitorState], tokens: Sequence[int]) -> Booleans:
        return np.array(
            [
                self.may_end(state) if token == END else self._allows_token(state, int(token))
                for state, token in zip(states, tokens, strict=True)
            ],
            dtype=bool,
        )

    def masks(self, states: Sequence[MonitorState]) -> Bitmask | None:
        if all(state.names is None for state in states):
            return None
        return np.stack([self._mask(state) for state in states])

    def _allows_token(self, state: MonitorState, token: int) -> bool:
        if not self.vocabulary.tokens[token]:
            return True  # no text; whatever forbids such ids, it is not this constraint
        return self._read_token(state, token) is not None

    def may_end(self, state: MonitorState) -> bool:
        """Whether the text may end here."""
        return state.names is None or state.written in state.names.all

    def _read_token(self, state: MonitorState, token: int) -> MonitorState | None:
        data = self.vocabulary.decode([token], start=state.opening)
        found = self._read(state, data)
        opening = state.opening and self.vocabulary.at_start([token])
        return found if found is None else found._replace(opening=opening)

    def _read(self, state: MonitorState, data: bytes) -> MonitorState | None:
        """The state behind ``data``, or None where a name is not one of those known."""
        start = 0
        for position, byte in enumerate(data):
            names = state.names
            if names is not None:
                aside = self._read_comment(state, byte)
                if aside is not None:
                    state = state._replace(aside=aside)
                    continue
                # Behind the first byte of a comment, and no second one, there is no name.
                if not state.aside and byte in self._word and (state.written or byte not in _DIGITS):
                    written = state.written + _folded(data[position : position + 1], self._ignore_case)
                    if not names.begins_one(written):
                        return None
                    state = state._replace(written=written)
                    continue
                if not state.written and not state.aside and byte in self._between:
                    continue
                if state.written not in names.all:
                    return None
                state = state._replace(names=None, aside=b"")
            if byte in self._triggers:
                state = self._consult(state.text + data[start : position + 1])
                start = position + 1
                if state.names is not None and not state.names.all:
                    return None
        return state._replace(text=state.text + data[start:])

    def _read_comment(self, state: MonitorState, byte: int) -> bytes | None:
        """What has been read of a comment behind ``byte`` (nothing: it is over), or None where no comment stands."""
        if state.written or not self._comments:
            return None
        read = state.aside + (b"\n" if byte == 13 else bytes([byte]))
        for begin, end in self._comments:
            if begin.startswith(read):
                return read
            if read.startswith(begin):
                return b"" if read[len(begin) :].endswith(end) else read
        return None

    def _consult(self, text: bytes) -> MonitorState:
        if text in self._known:
            self._known.move_to_end(text)
            return MonitorState(text, b"", self._known[text])
        self.analyses += 1
        found = self._options(text.decode("utf-8", "replace"))
        names = None
        if found is not None:
            if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
                raise ConstraintError(f"options({text!r}) is {found!r}; it must be a list of names, or None")
            encoded = frozenset(self._encoded(name, text) for name in found)
            names = Names(tuple(sorted(encoded)), encoded)
        self._known[text] = names
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return MonitorState(text, b"", names)

    def _encoded(self, name: object, text: bytes) -> bytes:
        if not isinstance(name, str) or not _is_unicode(name):
            raise ConstraintError(f"options({text!r}) has {name!r} among its names; each must be a text")
        return _folded(name.encode(), self._ignore_case)

    def _mask(self, state: MonitorState) -> Bitmask:
        words = (self.vocabulary.vocab_size + 31) // 32
        if state.names is None or state.opening or state.aside:
            return np.full(words, -1, dtype=np.int32)
        key = (state.written, state.names)
        if key not in self._masks:
            allowed = np.zeros(32 * words, dtype=bool)
            for name in state.names.sorted:
                if name.startswith(state.written):
                    for end in range(len(state.written), len(name) + 1):
                        chosen = self._heads if name[:end] in state.names.all else self._whole
                        ids = chosen.get(name[len(state.written) : end])
                        if ids is not None:
                            allowed[ids] = True
            if not state.written and b"" in state.names.all:
                allowed[self._numbers] = True
            if not state.written:
                allowed[self._apart] = True
            if state.written in state.names.all:
                allowed[list(self.vocabulary.eos_ids)] = True
            self._masks[key] = np.packbits(allowed, bitorder="little").view(np.int32)
            if len(self._masks) > _REMEMBERED:
                self._masks.popitem(last=False)
        return self._masks[key]


def _checked(comments: object, taken: frozenset[int]) -> list[tuple[bytes, bytes]]:
    """First and last bytes of comments; such as begin with others before those."""
    check_type(comments, Mapping, "comments", ConstraintError)
    assert isinstance(comments, Mapping)
    for begin, end in comments.items():
        if not (isinstance(begin, bytes) and isinstance(end, bytes) and begin and end):
            raise ConstraintError(
                f"comments: {begin!r}: {end!r} must be the first and the last bytes of a comment"
            )
        if not taken.isdisjoint(begin):
            raise ConstraintError(
                f"comments: {begin!r} has bytes that are among triggers, word or between; where it stands would be unclear"
            )
    return sorted(comments.items(), key=lambda pair: -len(pair[0]))


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _folded(data: bytes, ignore_case: bool) -> bytes:
    return data.lower() if ignore_case else data
