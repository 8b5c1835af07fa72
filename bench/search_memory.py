"""What a model says behind prefixes, kept for many searches: the memory of ``bench/search_strategies.py``."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import maskwright as mw
from maskwright.sampling import CallableModel, HuggingFaceModel

OTHERS = 50
"""So many of the other tokens are kept behind each prefix, the likeliest ones."""
REST = 1000
"""As so many equal tokens the rest is seen."""
BATCH = 32
STATES = 64
"""So many of the latest prefixes are kept with the model's cache, to go on from."""


class Remembered:
    """A model in a small vocabulary, which remembers; ``model`` counts what it is asked.

    Ids are places in ``tokens``, those that texts are made of; ``end`` comes next, then the ``OTHERS`` likeliest tokens behind a prefix, by
    rank, and ``REST`` that share what is left.  No text has those, but they count where a temperature normalises again.
    ``file``: where rows are kept for another run.
    """

    def __init__(self, source: HuggingFaceModel, tokens: Sequence[int], file: Path | None = None) -> None:
        self.source, self.file = source, file
        self.tokens = list(tokens)
        self.end = len(self.tokens)
        self.size = self.end + 1 + OTHERS + REST
        texts = [source.vocabulary.decode([token]) for token in self.tokens]
        others = [b"\xff%d" % i for i in range(OTHERS + REST)]
        self.vocabulary = mw.Vocabulary.from_bytes([*texts, b"", *others], eos_ids=self.end)
        self.rows: dict[tuple[int, ...], Any] = {}
        if file is not None and file.exists():
            self.rows = pickle.loads(file.read_bytes())
        self.states: dict[tuple[int, ...], Any] = {}
        self.model = CallableModel(self, self.size, self.end)

    def __call__(self, prefixes: Sequence[Sequence[int]]) -> Any:
        self.learn(map(tuple, prefixes))
        kept = np.stack([self.rows[tuple(prefix)] for prefix in prefixes]).astype(np.float64)
        rest = np.repeat(kept[:, -1:] - np.log(REST), REST, axis=1)
        rows = np.concatenate([kept[:, :-1], rest], axis=1)
        return rows - np.logaddexp.reduce(rows, axis=1, keepdims=True)

    def decode(self, ids: Sequence[int]) -> str:
        return self.vocabulary.decode(ids).decode()

    def learn(self, prefixes: Iterable[tuple[int, ...]]) -> None:
        """Ask about those that are not known, some at once."""
        lengths: dict[int, list[tuple[int, ...]]] = {}
        for key in dict.fromkeys(prefixes):
            if key not in self.rows:
                lengths.setdefault(len(key), []).append(key)
        for keys in lengths.values():
            for start in range(0, len(keys), BATCH):
                some = keys[start : start + BATCH]
                parent = self.states.get(some[0][:-1]) if len(some) == 1 else None
                if parent is not None:
                    state = parent.extend(np.zeros(1, dtype=np.int64), np.array([self.tokens[some[0][-1]]]))
                else:
                    state = self.source.state([[self.tokens[i] for i in key] for key in some])
                if len(some) == 1:
                    self.states[some[0]] = state
                self._keep(some, state.logprobs)
        while len(self.states) > STATES:
            del self.states[next(iter(self.states))]

    def ahead(self, constraint: Any, width: int, length: int) -> None:
        """Ask about the likeliest prefixes of each length, all of one length at once, before searches do one by one."""
        if self.rows:
            return
        state = self.source.state([[]])
        self._keep([()], state.logprobs)
        level = [((), 0.0, constraint.start())]
        for _ in range(length):
            following = []
            for row, (key, log_p, each) in enumerate(level):
                bits = np.unpackbits(constraint.masks([each]).view(np.uint8), bitorder="little")
                for token in np.flatnonzero(bits[: self.end]).tolist():
                    following.append((log_p + float(self.rows[key][token]), row, token))
            following = sorted(following, reverse=True)[:width]
            if not following:
                return
            rows, tokens = np.array([[row, self.tokens[token]] for _, row, token in following]).T
            state = state.extend(rows, tokens)
            level = [
                ((*level[row][0], token), log_p, constraint.advance(level[row][2], token))
                for log_p, row, token in following
            ]
            self._keep([key for key, *_ in level], state.logprobs)

    def save(self) -> None:
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_bytes(pickle.dumps(self.rows))

    def _keep(self, keys: Iterable[tuple[int, ...]], logprobs: Any) -> None:
        ends = list(self.source.eos_ids)
        for key, row in zip(keys, np.asarray(logprobs, dtype=np.float64), strict=True):
            known = np.append(row[self.tokens], np.logaddexp.reduce(row[ends]))
            others = row.copy()
            others[[*self.tokens, *ends]] = -np.inf
            likeliest = -np.sort(-others)[:OTHERS]
            rest = max(1e-12, 1 - np.exp(known).sum() - np.exp(likeliest).sum())
            self.rows[key] = np.concatenate([known, likeliest, [np.log(rest)]]).astype(np.float32)
