"""Going forward and back in a text by symbols of its grammar.

The interface is that of IterGen (Ugare et al., ICLR 2025, arXiv 2410.07295): generate up to the end of the
next column name, look at it, take it back if it is wrong.  Symbols are those of ``maskwright.compiling.symbols``, so any
context-free grammar will do, and an occurrence counts when it is certain.  Going back leads to a token boundary; nothing is tokenised anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from maskwright.base.arguments import check_type, generator, one_of, real
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.compiling.symbols import Occurrence, Reading, Symbols
from maskwright.errors import LimitError, MaskwrightError
from maskwright.sampling.constraints import GrammarConstraint
from maskwright.sampling.logspace import MINUS_INFINITY
from maskwright.sampling.models import LanguageModel, ModelState
from maskwright.sampling.rows import in_time
from maskwright.search.result import allowed_scores, check_problem

MAX_RETRIES = 1000
TOKEN = "token"
"""In place of a symbol: each token."""


class _Node:
    """A prefix that was written at some time: its next tokens, and how often each was taken back."""

    __slots__ = ("children", "taken_back")

    def __init__(self) -> None:
        self.children: dict[int, _Node] = {}
        self.taken_back = 0


class Texts(list[str]):
    """The texts of the occurrences of a symbol; asking for one that is not there says what to do."""

    def __init__(self, texts: Iterable[str], symbol: str) -> None:
        super().__init__(texts)
        self._symbol = symbol

    def __getitem__(self, at: Any) -> Any:
        try:
            return super().__getitem__(at)
        except IndexError:
            raise MaskwrightError(
                f"view({self._symbol!r})[{at}]: {len(self)} occurrences of {self._symbol!r} are certain; "
                f"forward({self._symbol!r}) writes until there is one more"
            ) from None


class Session:
    """A text under way: ``forward`` writes, ``backward`` takes back, ``view`` shows the occurrences of a symbol.

    ``symbols``: those that will be asked for (None: any).  ``max_tokens``: the most that the text may have, EOS included; tokens
    behind which its shortest end no longer fits are not written, so the text is complete in time.  ``max_retries``: how
    often ``backward`` may be called.
    ``greedy``: the likeliest allowed token instead of a drawn one.  ``penalty``: what the log-probability of a token
    loses for each time that it was taken back in this place, so that another try differs (in nats; IterGen's
    recurrence penalty, which multiplies logits and so rewards negative ones).  ``seed``: equal seeds give equal texts.

    Raises ``VocabularyError`` when model and grammar differ in ids, ``GrammarError`` for symbols that the grammar
    does not have, ``LimitError`` when the shortest text exceeds ``max_tokens``, ``MaskwrightError`` for bad options.  Whatever raises leaves the text as it was.
    """

    def __init__(
        self,
        model: LanguageModel,
        grammar: CompiledGrammar,
        *,
        symbols: list[str] | None = None,
        max_tokens: int = 1024,
        max_retries: int = MAX_RETRIES,
        greedy: bool = False,
        penalty: float = 0.0,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        self._symbols = Symbols(grammar, symbols)
        self._constraint = GrammarConstraint(grammar)
        check_problem(model, self._constraint, max_tokens=(max_tokens, 1), max_retries=(max_retries, 0))
        check_type(greedy, bool, "greedy", MaskwrightError)
        penalty = real(penalty, "penalty")
        if penalty == float("inf"):
            raise MaskwrightError("penalty is finite")
        self._model = model
        self._vocabulary = grammar.vocabulary
        self._max_tokens = max_tokens
        self._max_retries = max_retries
        self._greedy = greedy
        self._penalty = penalty
        self._rng = generator(seed)
        self._matcher = self._constraint.start()
        self._writing = False
        self._state: ModelState | None = None
        self._read = 0
        """How many tokens ``_state`` has read; those of the text are the first of them."""
        self._readings: list[Reading] = [self._symbols.start]
        self._path = [_Node()]
        self._scores: list[float] = []
        self.ids: list[int] = []
        """The tokens so far, EOS excluded."""
        self.finished = False
        """Whether EOS was written; it is within ``max_tokens``."""
        self.retries = 0
        """How often something was taken back."""

    def __copy__(self) -> Session:
        raise MaskwrightError("a session cannot be copied: begin another one, with the same seed")

    def __deepcopy__(self, _: dict[int, Any]) -> Session:
        return self.__copy__()

    @property
    def text(self) -> str:
        """What was written so far."""
        return self._vocabulary.decode(self.ids).decode("utf-8", "replace")

    @property
    def log_probability(self) -> float:
        """log p of what was written, EOS included when it was; the grammar does not change it."""
        return sum(self._scores)

    def forward(self, symbol: str | None = None, n: int = 1) -> str:
        """Write until ``n`` more occurrences of ``symbol`` are certain, or the text is finished; what was written.

        ``"token"`` counts tokens; None goes on to the end.  A symbol whose end only the next token shows is
        certain with that token.
        """
        self._check_idle()
        if symbol is not None:
            self._check_symbol(symbol)
        start, length, matcher = self._length, len(self.ids), self._matcher
        _at_least_one(n)
        goal = 0 if symbol is None else self._count(symbol) + n
        self._writing = True
        try:
            while not self.finished and (symbol is None or self._count(symbol) < goal):
                self._step()
        except BaseException:
            self._keep(length, matcher)
            self._state = None
            raise
        finally:
            self._writing = False
        return self._bytes()[start:].decode("utf-8", "replace")

    def _check_idle(self) -> None:
        if self._writing:
            raise MaskwrightError(
                "this session is writing: neither its model nor another thread may change it"
            )

    def _check_symbol(self, symbol: str) -> None:
        one_of(symbol, (TOKEN, *self._symbols.names), "symbol")

    def backward(self, symbol: str, n: int = 1) -> str:
        """Take back the last ``n`` occurrences of ``symbol`` and all that is behind; what was taken back.

        They are counted by their starts.  A token that holds the start of the first one goes as a whole.
        Raises ``MaskwrightError`` when there are fewer, ``LimitError`` (``max_retries``) when too much was taken back before.
        """
        self._check_idle()
        self._check_symbol(symbol)
        _at_least_one(n)
        if self.retries >= self._max_retries:
            message = (
                f"max_retries: backward was called {self.retries} times, which is all that this session may"
            )
            raise LimitError("max_retries", self.retries + 1, self._max_retries, message=message)
        found = self._count(symbol)
        if found < n:
            raise MaskwrightError(f"there are {found} occurrences of {symbol!r}, so {n} cannot be taken back")
        if symbol == TOKEN:
            length = len(self.ids) - n
        else:
            start = sorted(each.start for each in self._occurrences(symbol))[-n]
            length = max(i for i, reading in enumerate(self._readings) if reading.length <= start)
        before = self._bytes()
        self._cut(length)
        self.retries += 1
        return before[self._length :].decode("utf-8", "replace")

    def view(self, symbol: str) -> Texts:
        """The texts of all certain occurrences of ``symbol``, by their starts; with ``"token"`` the tokens'.

        A list; ``view(symbol)[-1]`` is a ``MaskwrightError`` where there is none yet.
        """
        self._check_symbol(symbol)
        data = self._bytes()
        if symbol == TOKEN:
            ends = [reading.length for reading in self._readings]
            spans = list(itertools.pairwise(ends))
        else:
            spans = sorted((each.start, each.end) for each in self._occurrences(symbol))
        return Texts((data[start:end].decode("utf-8", "replace") for start, end in spans), symbol)

    @property
    def _length(self) -> int:
        return self._readings[-1].length

    def _bytes(self) -> bytes:
        return self._vocabulary.decode(self.ids)

    def _occurrences(self, symbol: str) -> list[Occurrence]:
        reading = self._readings[-1]
        found = reading.occurrences_at_end() if self.finished else reading.occurrences()
        return [each for each in found or () if each.symbol == symbol]

    def _count(self, symbol: str) -> int:
        return len(self.ids) if symbol == TOKEN else len(self._occurrences(symbol))

    def _step(self) -> None:
        """Write one token."""
        behind = self._behind()
        logprobs = np.asarray(behind.logprobs, dtype=np.float64)
        [scores] = allowed_scores(self._model, self._constraint, [self._matcher], logprobs)
        end = self._model.eos_ids[0]
        node = self._path[-1]
        weighed = scores.copy()
        for token, child in node.children.items():
            weighed[token] -= self._penalty * child.taken_back
        if not self._greedy:
            weighed = weighed - np.log(self._rng.standard_exponential(len(weighed)))
        room = self._max_tokens - len(self.ids) - 1
        while True:
            token = int(weighed.argmax())
            if weighed[token] == MINUS_INFINITY:
                raise MaskwrightError(
                    "the model gives no probability to any token that the grammar allows here"
                )
            if token == end or in_time(self._constraint, self._matcher, token, room):
                break
            weighed[token] = MINUS_INFINITY
        if token == end:
            self.finished = True
        else:
            matcher = self._constraint.advance(self._matcher, token)
            reading = self._readings[-1].read(
                self._vocabulary.decode([token], start=self._vocabulary.at_start(self.ids))
            )
            state = behind.extend(np.zeros(1, dtype=np.int64), np.array([token]))
            self._matcher, self._state = matcher, state
            self._read = len(self.ids) + 1
            self._readings.append(reading)
            self.ids.append(token)
            self._path.append(node.children.setdefault(token, _Node()))
        self._scores.append(float(scores[token]))

    def _behind(self) -> ModelState:
        """The model's state behind the text."""
        if self._state is None:
            self._state = self._model.state([self.ids])
        elif self._read > len(self.ids):
            self._state = self._model.rewound(self._state, [self.ids])
        self._read = len(self.ids)
        return self._state

    def _cut(self, length: int) -> None:
        """Take back all but so many tokens."""
        if self.finished:
            self._path[-1].children.setdefault(self._model.eos_ids[0], _Node()).taken_back += 1
        for node in self._path[length + 1 :]:
            node.taken_back += 1
        matcher = self._matcher.fork()
        matcher.rollback(len(self.ids) - length)
        self._keep(length, matcher)

    def _keep(self, length: int, matcher: Any) -> None:
        """Be what a text of so many tokens is; ``matcher`` stands behind them."""
        self._matcher = matcher
        del self.ids[length:], self._scores[length:], self._readings[length + 1 :], self._path[length + 1 :]
        self.finished = False


def _at_least_one(n: int) -> None:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise MaskwrightError(f"n is a number of occurrences, at least 1, not {n!r}")
