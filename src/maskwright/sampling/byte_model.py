"""A model of tokens seen as a model of bytes.

A text is what its tokens spell, so the probability that a text begins with some bytes is that of all token sequences that
*cover* them: their bytes begin with these, and all tokens but the last one lie strictly within.

    bytes "the"    covered by  the · them · theatre · …     one token that begins so
                               t|he · t|her · th|e · th|en · …   and every other way to spell it
                               t|h|e · t|h|ear · …

Taking the usual spelling only, or only sequences that end where the bytes end, is wrong: a model of tokens that has
read " Pari" as " Par", "i" hardly ever goes on with "s".  (Phan et al. 2024, arXiv 2410.09303; Vieira et al. 2024, arXiv
2412.03719; Hayase et al. 2025, arXiv 2506.14123.)

Behind some bytes we keep the *sequences* of tokens that end before them or with them, each with what is known of its next token: the place in
the trie of the vocabulary that the rest of the bytes leads to, and the log-probabilities of the tokens below.  The next
byte sums over the place's children.  A sequence is followed by longer ones where the bytes reach the end of a token, and given up
where no token goes on.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from maskwright.base.arguments import check_type, exact_bytes, real, whole
from maskwright.errors import LimitError, MaskwrightError, ModelError, VocabularyError
from maskwright.sampling.byte_trie import ByteTrie, Node
from maskwright.sampling.logspace import MINUS_INFINITY, Floats, Integers, log_sum_exp
from maskwright.sampling.models import STAY, LanguageModel, ModelState, check_equally_long
from maskwright.vocabulary.vocabulary import Vocabulary

END_OF_BYTES = 256
"""The id that ends a text of bytes; the others are the bytes themselves."""
_FEWEST, _MOST = 64, 1 << 16
_SCORES_KEPT = 1 << 22
"""Numbers that the sequences behind one prefix keep (32 MiB) where ``max_sequences`` is not given, within these bounds."""
_SHARE = 1e-3
"""The least share of a prefix's mass that is kept where exactness was given up and ``prune`` is not given."""
_PREFIXES_KEPT = 16


def byte_vocabulary() -> Vocabulary:
    """The vocabulary of texts of bytes: 256 tokens of one byte, and the end."""
    return Vocabulary.from_bytes([*(bytes((byte,)) for byte in range(256)), b""], eos_ids=END_OF_BYTES)


def columns(prefixes: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """The ids of prefixes in step.  Raises ``MaskwrightError`` unless they are equally long."""
    check_equally_long(prefixes)
    return zip(*prefixes, strict=True)


class PrefixStates:
    """States of a model behind single prefixes, those lately asked for kept."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._kept: OrderedDict[bytes, ModelState] = OrderedDict()

    def next_byte_logprobs(self, prefix: bytes) -> Floats:
        """log p(next byte | prefix), [257].  Raises ``ModelError`` where the prefix is impossible."""
        logprobs = np.array(self.behind(prefix).logprobs[0], dtype=np.float64)
        if not (logprobs > MINUS_INFINITY).any():
            raise ModelError(f"the model gives no probability to texts that begin with {prefix[-60:]!r}")
        return logprobs

    def behind(self, prefix: bytes) -> ModelState:
        """The state, with one row."""
        check_type(prefix, (bytes, bytearray, memoryview), "prefix", MaskwrightError)
        prefix = exact_bytes(bytes(prefix))
        length = next((n for n in range(len(prefix), -1, -1) if prefix[:n] in self._kept), 0)
        state = self._kept.get(prefix[:length])
        if state is None:
            state = self._model.state([[]])
        for byte in prefix[length:]:
            state = state.extend(np.zeros(1, dtype=np.int64), np.array([byte]))
        self._kept[prefix] = state
        self._kept.move_to_end(prefix)
        if len(self._kept) > _PREFIXES_KEPT:
            self._kept.popitem(last=False)
        return state


class ByteModel(LanguageModel):
    """The distribution over texts of bytes that a model of tokens has: ids 0 to 255 are bytes, 256 is the end.

    ``vocabulary``: the bytes of the model's tokens, with the model's width and EOS ids.  Tokens that add no bytes where they stand,
    special ones and padding, get no probability, and what is left is normalised in every step, as masks do it.

    ``prompt``: bytes that every text goes on from; all probabilities are conditional on them (*token healing*: the end
    of a prompt may lie within a token).  ``start``: the bytes begin a text (``Vocabulary.start_tokens``); else they come in the middle of one.

    Exact where it can be: every token sequence counts, as long as at most ``max_sequences`` spell a prefix (None: 65 536 for small
    vocabularies, 64 for large ones).  Their number can double with every byte.  Beyond that, with ``prune``
    0 it is a ``LimitError``, and by default a warning, and as with 0.001 from there on.

    With ``prune`` above 0, sequences with less than that share of a prefix's mass are dropped, and all but the ``max_sequences`` largest; ``bounds``
    says what was lost.  The likeliest one of those that end with the prefix stays in any case, so what any token behind it can begin with
    stays possible; a byte that only dropped sequences lead to does not.

    ``rows`` counts the token sequences evaluated, ``calls`` the calls of the model; ``has_dropped``: whether any was.  Raises ``VocabularyError`` when the vocabulary
    does not fit the model or has no bytes, ``MaskwrightError`` for bad options; ``ModelError`` for an impossible prompt.
    """

    def __init__(
        self,
        model: LanguageModel,
        vocabulary: Vocabulary,
        *,
        prompt: bytes = b"",
        start: bool = True,
        prune: float | None = None,
        max_sequences: int | None = None,
    ) -> None:
        check_type(model, LanguageModel, "model", MaskwrightError)
        check_type(vocabulary, Vocabulary, "vocabulary", MaskwrightError)
        check_type(prompt, (bytes, bytearray, memoryview), "prompt", MaskwrightError)
        _check_fit(model, vocabulary)
        self.model = model
        self.prompt = exact_bytes(bytes(prompt))
        self.prune = None if prune is None else real(prune, "prune", high=1.0)
        self._warned = False
        if max_sequences is None:
            self.max_sequences = max(_FEWEST, min(_MOST, _SCORES_KEPT // model.vocab_size))
        else:
            self.max_sequences = whole(max_sequences, "max_sequences", low=1)
        self.vocab_size = END_OF_BYTES + 1
        self.eos_ids = (END_OF_BYTES,)
        # Each byte may be a token of its own.
        self.room = None if model.room is None else max(0, model.room - len(self.prompt))
        ends = set(model.eos_ids)
        text = {i: data for i, data in enumerate(vocabulary.tokens) if i not in ends}
        self._trie = ByteTrie(text)
        if not len(self._trie.ids):
            raise VocabularyError("no token of the vocabulary has bytes")
        self._start_trie = self._trie
        if start and vocabulary.start_tokens:
            self._start_trie = ByteTrie(
                text | {i: vocabulary.start_tokens[i] for i in vocabulary.start_tokens}
            )
        self.alphabet = frozenset(b"".join(text.values()))
        """The bytes that texts may hold."""
        self.rows = 0
        self.calls = 0
        self._prefixes = PrefixStates(self)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of bytes, for ``compile``."""
        return byte_vocabulary()

    def decode(self, ids: Sequence[int]) -> str:
        """The text of generated ids."""
        return self.vocabulary.decode(ids).decode("utf-8", "replace")

    def next_byte_logprobs(self, prefix: bytes) -> Floats:
        """log p(next byte | prompt and prefix), float64 [257]; the last one is the end of the text.

        Goes on from prefixes that were lately asked about.  Raises ``ModelError`` where the prefix is impossible,
        ``LimitError`` where it has too many token sequences.
        """
        return self._prefixes.next_byte_logprobs(prefix)

    def bounds(self, prefix: bytes) -> tuple[float, float]:
        """Two numbers between which log p(text begins with prompt and prefix) lies; equal when nothing was dropped.

        The second one counts everything that a dropped sequence could have been worth.
        """
        state = self._prefixes.behind(prefix)
        assert isinstance(state, _State)
        behind = state.rows[0]
        return behind.log_mass, float(np.logaddexp(behind.log_mass, behind.log_lost))

    def state(self, prefixes: Sequence[Sequence[int]]) -> ModelState:
        """The state behind the prompt and each of ``prefixes``, which are equally long."""
        rows = [self._begin] * len(prefixes)
        for column in columns(prefixes):
            rows = self._read(rows, [_byte(each) for each in column])
        return _State(self, rows)

    @cached_property
    def _begin(self) -> _Behind:
        """Behind the prompt."""
        source = self.model.state([[]])
        self._count(1)
        first = _Sequence(source, 0, 0.0, self._start_trie, self._start_trie.root)
        first.scores, first.end = (each[0] for each in self._scores(source.logprobs, self._start_trie))
        rows = [_Behind([first], MINUS_INFINITY)]
        for byte in self.prompt:
            rows = self._read(rows, [byte])
        if rows[0].log_mass == MINUS_INFINITY:
            raise ModelError(f"the model gives no probability to texts that begin with {self.prompt[-60:]!r}")
        return rows[0]

    def _count(self, rows: int) -> None:
        self.rows += rows
        self.calls += 1

    def _scores(self, logprobs: Any, trie: ByteTrie) -> tuple[Floats, Floats]:
        """Log-probabilities [rows, ranks] of the tokens of a trie and [rows] of the end, normalised over them."""
        found = np.asarray(logprobs)
        scores = found[:, trie.ids].astype(np.float64)
        end = log_sum_exp(found[:, list(self.model.eos_ids)])
        total = np.logaddexp(log_sum_exp(scores), end)
        total = np.where(total > MINUS_INFINITY, total, 0.0)
        return scores - total[:, None], end - total

    def _read(self, rows: Sequence[_Behind], bytes_read: Sequence[int]) -> list[_Behind]:
        """What is behind one more byte of each row."""
        found: list[_Behind] = []
        fresh: list[_Sequence] = []
        for row, byte in zip(rows, bytes_read, strict=True):
            sequences = [new for each in row.sequences for new in each.read(byte, self._trie)]
            lost = row.log_lost
            share = self._share(len(sequences), row)
            if share and sequences:
                sequences, dropped = self._pruned(sequences, share)
                self.has_dropped |= dropped > MINUS_INFINITY
                lost = float(np.logaddexp(lost, dropped))
            found.append(_Behind(sequences, lost))
            fresh += [each for each in sequences if each.token != STAY]
        self._evaluate(fresh)
        return found

    def _share(self, count: int, before: _Behind) -> float:
        """The least share of the mass that sequences must have, when so many spell a prefix."""
        if self.prune:
            return self.prune
        if count <= self.max_sequences:
            return 0.0 if before.log_lost == MINUS_INFINITY else _SHARE
        message = (
            f"max_sequences: {count} token sequences spell this prefix, and {self.max_sequences} may be kept"
        )
        if self.prune == 0:
            message += f"; raise it, or give up exactness with prune={_SHARE} (ByteModel.bounds says what that loses)"
            raise LimitError("max_sequences", count, self.max_sequences, message=message)
        if not self._warned:
            self._warned = True
            message += (
                f"; from here on as with prune={_SHARE}, which ends this warning; prune=0 makes it an error"
            )
            warnings.warn(message, stacklevel=2)
        return _SHARE

    def _pruned(self, sequences: list[_Sequence], share: float) -> tuple[list[_Sequence], float]:
        """The sequences to keep, and the log-mass of the others."""
        masses = np.array([each.log_mass for each in sequences])
        order = np.argsort(-masses, kind="stable")
        enough = masses[order] >= log_sum_exp(masses) + np.log(share)
        count = max(1, min(int(enough.sum()), self.max_sequences))
        ending = next((n for n, i in enumerate(order) if sequences[i].token != STAY), count)
        places = [*range(count), *([ending] if ending >= count and ending < len(order) else [])]
        return [sequences[order[n]] for n in places], float(log_sum_exp(np.delete(masses[order], places)))

    def _evaluate(self, sequences: list[_Sequence]) -> None:
        """Ask the model about new sequences, in one call for all that come from one of its states."""
        groups: dict[int, list[_Sequence]] = {}
        for each in sequences:
            groups.setdefault(id(each.source), []).append(each)
        for group in groups.values():
            parents = np.array([each.row for each in group], dtype=np.int64)
            tokens = np.array([each.token for each in group], dtype=np.int64)
            source = group[0].source.extend(parents, tokens)
            self._count(len(group))
            scores, ends = self._scores(source.logprobs, self._trie)
            for row, each in enumerate(group):
                each.source, each.row, each.token = source, row, STAY
                each.scores, each.end = scores[row], float(ends[row])


@dataclass(slots=True)
class _Sequence:
    """Tokens, and how far the bytes have gone on behind them.

    ``source``, ``row``: the model's state behind the tokens; as long as ``token`` is not ``STAY``, behind all but that one, which
    is the last.  ``log_weight``: log p(tokens).  ``scores``: log p of the next token, those of ``node``.
    """

    source: ModelState
    row: int
    log_weight: float
    trie: ByteTrie
    node: Node
    token: int = STAY
    scores: Floats = field(default_factory=lambda: np.zeros(0))
    end: float = MINUS_INFINITY
    """log p(the text ends here), which it can where no token has begun."""
    log_mass: float = MINUS_INFINITY
    """That of all texts that go on from here."""

    def read(self, byte: int, trie: ByteTrie) -> list[_Sequence]:
        """What it becomes behind one more byte: the place within its next token, and with each token that ends there a longer
        sequence, which goes on in ``trie``."""
        node = self.trie.child(self.node, byte)
        if node is None:
            return []
        scores = self.node.cut(self.scores, node)
        inside = _Sequence(self.source, self.row, self.log_weight, self.trie, node, scores=scores)
        inside.log_mass = self.log_weight + float(log_sum_exp(scores[node.exact :]))
        tokens = self.trie.ids[node.first : node.first + node.exact].tolist()
        weights = (self.log_weight + scores[: node.exact]).tolist()
        longer = [
            _Sequence(self.source, self.row, weight, trie, trie.root, token, log_mass=weight)
            for token, weight in zip(tokens, weights, strict=True)
        ]
        return [each for each in (inside, *longer) if each.log_mass > MINUS_INFINITY]


class _Behind:
    """What is known behind some bytes.  ``log_lost``: the log-mass of what was dropped on the way."""

    def __init__(self, sequences: list[_Sequence], log_lost: float) -> None:
        self.sequences = sequences
        self.log_lost = log_lost

    @cached_property
    def _masses(self) -> Floats:
        """log p(the text begins with these bytes and one more), [257]."""
        masses = np.full(END_OF_BYTES + 1, MINUS_INFINITY)
        for each in self.sequences:
            following = each.node.following
            masses[following] = np.logaddexp(
                masses[following], each.node.masses(each.scores) + each.log_weight
            )
            masses[END_OF_BYTES] = np.logaddexp(masses[END_OF_BYTES], each.end + each.log_weight)
        return masses

    @cached_property
    def log_mass(self) -> float:
        """log p(the text begins with these bytes), as far as sequences were kept."""
        return float(log_sum_exp(self._masses))

    @cached_property
    def logprobs(self) -> Floats:
        """log p(next byte), [257]; minus infinity everywhere where these bytes are impossible."""
        return self._masses - self.log_mass if self.log_mass > MINUS_INFINITY else self._masses


class _State(ModelState):
    def __init__(self, owner: ByteModel, rows: list[_Behind]) -> None:
        self.owner = owner
        self.rows = rows
        self.logprobs = np.array([row.logprobs for row in rows]).reshape(len(rows), END_OF_BYTES + 1)

    def extend(self, parents: Integers, tokens: Integers) -> ModelState:
        rows = [self.rows[parent] for parent in parents]
        moving = [i for i, token in enumerate(tokens.tolist()) if token != STAY]
        read = self.owner._read([rows[i] for i in moving], [_byte(tokens[i]) for i in moving])
        for i, row in zip(moving, read, strict=True):
            rows[i] = row
        return _State(self.owner, rows)


def _byte(value: Any) -> int:
    byte = whole(value, "prefix", VocabularyError)
    if not 0 <= byte < END_OF_BYTES:
        raise VocabularyError(f"a prefix consists of bytes, 0 to 255, not {byte}")
    return byte


def _check_fit(model: LanguageModel, vocabulary: Vocabulary) -> None:
    if vocabulary.vocab_size != model.vocab_size:
        raise VocabularyError(
            f"the vocabulary has {vocabulary.vocab_size} ids, the model {model.vocab_size}; build it with "
            f"vocab_size={model.vocab_size}"
        )
    if set(vocabulary.eos_ids) != set(model.eos_ids):
        raise VocabularyError(
            f"the model ends with ids {sorted(model.eos_ids)}, the vocabulary with {sorted(vocabulary.eos_ids)}; "
            f"pass the same eos_ids to both"
        )
