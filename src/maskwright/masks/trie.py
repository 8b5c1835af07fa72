"""Sets of token sequences, up to millions, as a trie in compressed sparse rows.

A text is one thing; a fixed set of *token sequences* is another: item identifiers of a recommender, say, in
exactly the tokens that the model was trained on.  No bytes are involved.

The layout is that of STATIC (constrained decoding with a vectorised trie): states in breadth-first order, children of a
state contiguous and sorted.  In a trie every state but the root has one edge that leads to it, so in this order edge
``e`` leads to state ``e + 1``, and no targets are stored.  ``TokenTrie.to`` gives the same as torch
tensors, with dense masks of states with many children and batched steps on any device.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence, Sized
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.base.arguments import each_of, token_ids, whole
from maskwright.errors import BitmaskError, LimitError, MaskwrightError, UnsatisfiableError, VocabularyError

if TYPE_CHECKING:
    from maskwright.masks.trie_torch import TorchTrie
    from maskwright.vocabulary.vocabulary import Vocabulary

_DEAD = -1
_ENDED = -2
_PADDING = -1
_MOST_BYTES = 1 << 31
_MOST_IDS = 1 << 31
"""What an edge's token can hold."""


class TokenTrie:
    """A set of token sequences.

    ``sequences``: lists of token ids, or an integer array [N, L] whose rows may be padded at the end with -1.
    ``vocab_size``: width of the model's logits.  ``eos_ids``: allowed exactly behind a whole sequence, and never part of one.
    Duplicates count once; the empty sequence may be in the set.

    ``tokens``: int32 [E], the token of each edge; ``offsets``: int64 [S + 1], the edges of state ``s`` are
    ``offsets[s]`` to ``offsets[s + 1]``, and edge ``e`` leads to state ``e + 1``; ``final``: bool [S]; state 0 is the root.
    While it is built, all sequences are as long as the longest, eight bytes an id; ``max_bytes``: what that may take.
    Raises ``VocabularyError`` for ids outside the vocabulary and for end tokens in a sequence, ``UnsatisfiableError`` for an empty set,
    ``LimitError`` (``max_bytes``).
    """

    def __init__(
        self,
        sequences: Sequence[Sequence[int]] | npt.NDArray[np.integer[Any]],
        vocab_size: int,
        eos_ids: Iterable[int] = (),
        *,
        max_bytes: int = _MOST_BYTES,
    ) -> None:
        self.vocab_size = vocab_size = whole(vocab_size, "vocab_size", VocabularyError, 1)
        if vocab_size > _MOST_IDS:
            raise VocabularyError(f"vocab_size: expected at most {_MOST_IDS} ids, got {vocab_size}")
        self.eos_ids = tuple(token_ids(eos_ids, "eos_ids", VocabularyError))
        for each in self.eos_ids:
            if not 0 <= each < vocab_size:
                raise VocabularyError(f"eos_ids: {each} is no token id (0 to {vocab_size - 1})")
        max_bytes = whole(max_bytes, "max_bytes", low=1)
        rows, lengths = _table(sequences, max_bytes)
        if not len(rows):
            raise UnsatisfiableError("a trie needs at least one sequence")
        _check_ids(rows, lengths, vocab_size, self.eos_ids)
        order = _order(rows, vocab_size)
        self._build(rows[order], lengths[order])

    def _build(self, rows: npt.NDArray[np.integer[Any]], lengths: npt.NDArray[np.int64]) -> None:
        # Rows are sorted: a row makes new states from the first column on in which it differs from the last one.
        differs = np.full(len(rows), 0, dtype=np.int64)
        width = rows.shape[1]
        if width:
            unequal = rows[1:] != rows[:-1]
            differs[1:] = np.where(unequal.any(axis=1), unequal.argmax(axis=1), width)
        state = np.zeros(len(rows), dtype=np.int64)
        parents, tokens = [], []
        final = [np.array([bool((lengths == 0).any())])]
        count = 1
        for depth in range(width):
            new = (differs <= depth) & (lengths > depth)
            parents.append(state[new])
            tokens.append(rows[new, depth])
            state = np.where(lengths > depth, count + np.cumsum(new) - 1, state)
            made = int(new.sum())
            ends = np.zeros(made, dtype=bool)
            ends[state[lengths == depth + 1] - count] = True
            final.append(ends)
            count += made
        self.tokens: npt.NDArray[np.int32] = np.concatenate([*tokens, np.zeros(0, np.int32)]).astype(np.int32)
        degrees = np.bincount(np.concatenate([*parents, np.zeros(0, np.int64)]), minlength=count)
        self.offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(degrees)])
        self.final = np.concatenate(final)

    @property
    def n_states(self) -> int:
        """How many states there are, the root included."""
        return len(self.final)

    def children(self, state: int) -> npt.NDArray[np.int32]:
        """The tokens that may follow in a state, sorted.  Raises ``MaskwrightError`` for a number that no state has."""
        try:
            if state >= 0:
                found: npt.NDArray[np.int32] = self.tokens[self.offsets[state] : self.offsets[state + 1]]
                return found
        except (IndexError, TypeError, ValueError):
            pass
        raise MaskwrightError(f"state: expected a number from 0 to {self.n_states - 1}, got {state!r}"[:300])

    def next(self, state: int, token: int) -> int:
        """The state behind a token, or -1.  Raises as ``children``."""
        children = self.children(state)
        first = int(self.offsets[state])
        try:
            at = int(children.searchsorted(token))
        except TypeError:
            raise MaskwrightError(f"token: expected a token id, got {token!r}"[:300]) from None
        return first + at + 1 if at < len(children) and children[at] == token else _DEAD

    def to(self, device: Any, dense_bytes: int = 64 << 20) -> TorchTrie:
        """The same as torch tensors on a device; masks of states with many children take at most ``dense_bytes``."""
        from maskwright.masks.trie_torch import TorchTrie

        dense_bytes = whole(dense_bytes, "dense_bytes", low=0)
        return TorchTrie(self, device, dense_bytes)


class CompiledTrie:
    """A set of token sequences bound to a vocabulary, where a ``CompiledGrammar`` is expected.

    Raises ``VocabularyError`` for a trie with another number of ids or other end tokens.
    """

    def __init__(self, trie: TokenTrie, vocabulary: Vocabulary) -> None:
        if trie.vocab_size != vocabulary.vocab_size or set(trie.eos_ids) != set(vocabulary.eos_ids):
            raise VocabularyError(
                f"a trie of {trie.vocab_size} ids that ends with {list(trie.eos_ids)} does not fit a vocabulary of {vocabulary.vocab_size} that "
                f"ends with {list(vocabulary.eos_ids)}"
            )
        self.trie = trie
        self.vocabulary = vocabulary

    def matcher(self, max_rollback: int | None = None) -> TrieMatcher:
        """A new matcher at the root.  All of its tokens, which are few, can be taken back, whatever ``max_rollback`` says."""
        return TrieMatcher(self.trie)


class TrieMatcher:
    """The state of one sequence in a trie; behaves like a ``Matcher`` that knows no bytes."""

    def __init__(self, trie: TokenTrie) -> None:
        self._trie = trie
        self._history = [0]
        self._tokens: list[int] = []

    def __copy__(self) -> TrieMatcher:
        return self.fork()

    def __deepcopy__(self, memo: Any) -> TrieMatcher:
        return self.fork()

    @property
    def compiled(self) -> TokenTrie:
        """What its states are of: equal ones of one trie have equal numbers."""
        return self._trie

    def next_token_bitmask(self) -> memoryview:
        """The mask as a read-only view (int32 [ceil(V / 32)], a buffer).  It stays what it was when the matcher moves on."""
        packed: Any = self._packed(self._history[-1])
        return memoryview(packed).toreadonly()

    def fill_next_token_bitmask(self, bitmask: Any, row: int = 0) -> None:
        """Write which tokens may come next into ``bitmask[row]``; see ``Matcher.fill_next_token_bitmask``."""
        row = whole(row, "row", BitmaskError)
        rows = self._rows(bitmask)
        if not 0 <= row < rows:
            raise BitmaskError(f"there is no row {row} in a bitmask {list(bitmask.shape)}")
        self._write(bitmask, row, self._history[-1])

    def _rows(self, bitmask: Any) -> int:
        """How many rows a bitmask has."""
        words = (self._trie.vocab_size + 31) // 32
        shape = tuple(getattr(bitmask, "shape", ()))
        if str(getattr(bitmask, "dtype", "")).removeprefix("torch.") != "int32" or shape[-1:] != (words,):
            raise BitmaskError(f"a bitmask is int32 [batch, {words}], not {list(shape)}")
        if len(shape) > 2:
            raise BitmaskError(f"a bitmask is a table, not {list(shape)}")
        if getattr(bitmask, "is_sparse", False) or (
            isinstance(bitmask, np.ndarray) and not bitmask.flags.writeable
        ):
            raise BitmaskError("a bitmask is dense, and can be written to")
        return int(shape[0]) if len(shape) == 2 else 1

    def _packed(self, state: int) -> npt.NDArray[np.int32]:
        allowed = np.zeros((self._trie.vocab_size + 31) // 32 * 32, dtype=np.uint8)
        allowed[self._allowed(state)] = 1
        return np.packbits(allowed, bitorder="little").view(np.int32)

    def _write(self, bitmask: Any, row: int, state: int) -> None:
        packed = self._packed(state)
        target = bitmask[row] if len(bitmask.shape) == 2 else bitmask
        if isinstance(target, np.ndarray):
            target[:] = packed
        else:
            target.copy_(target.new_tensor(packed))

    def _allowed(self, state: int) -> list[int] | npt.NDArray[np.int32]:
        if state == _ENDED:
            return list(self._trie.eos_ids)
        if state == _DEAD:
            return []
        children = self._trie.children(state)
        return (
            np.concatenate([children, self._trie.eos_ids]).astype(np.int32)
            if self._trie.final[state]
            else children
        )

    def _next(self, state: int, token: int) -> int:
        """The state behind a token, or -1."""
        if state < 0:
            return _DEAD
        if self._trie.final[state] and token in self._trie.eos_ids:
            return _ENDED
        return self._trie.next(state, token)

    def fill_tree_bitmasks(self, tokens: Iterable[int], parents: Iterable[int], bitmask: Any) -> int:
        """Write what may follow each node of a draft tree; how many are legal.  See ``Matcher.fill_tree_bitmasks``."""
        states = self._tree(tokens, parents)
        rows = self._rows(bitmask)
        if rows < len(states):
            raise BitmaskError(
                f"a tree of {len(states)} nodes needs a row for each, the bitmask has {rows} row(s)"
            )
        for row, state in enumerate(states):
            self._write(bitmask, row, state)
        return sum(state != _DEAD for state in states)

    def validate_tree(self, tokens: Iterable[int], parents: Iterable[int]) -> npt.NDArray[np.bool_]:
        """Which nodes of a draft tree are legal: bool [nodes].  See ``Matcher.fill_tree_bitmasks``."""
        return np.array([state != _DEAD for state in self._tree(tokens, parents)], dtype=bool)

    def _tree(self, tokens: Iterable[int], parents: Iterable[int]) -> list[int]:
        """The state behind each node, or -1."""
        from maskwright._core import checked_tree

        states: list[int] = []
        for token, parent in zip(*checked_tree(tokens, parents, self._trie.vocab_size), strict=True):
            states.append(self._next(self._history[-1] if parent < 0 else states[parent], token))
        return states

    def accept_token(self, token: int) -> bool:
        """Advance by one token; False, and nothing changed, when it is not allowed."""
        token = whole(token, "token id", VocabularyError)
        if not 0 <= token < self._trie.vocab_size:
            raise VocabularyError(
                f"token id {token} is outside the vocabulary (0 to {self._trie.vocab_size - 1})"
            )
        target = self._next(self._history[-1], token)
        if target == _DEAD:
            return False
        self._history.append(target)
        self._tokens.append(token)
        return True

    def accept_tokens(self, ids: Iterable[int]) -> int:
        """Advance by the longest allowed prefix of ``ids``; its length.  Nothing changes when it raises."""
        count = 0
        try:
            for token in each_of(ids, "ids", "token ids", VocabularyError):
                if not self.accept_token(token):
                    break
                count += 1
        except BaseException:
            self.rollback(count)
            raise
        return count

    def validate_tokens(self, ids: Iterable[int]) -> int:
        """How many of ``ids`` could be accepted one after another; nothing changes."""
        return self.fork().accept_tokens(ids)

    def rollback(self, count: int) -> None:
        """Take back the last ``count`` accepted tokens.  Raises ``MaskwrightError`` when there are fewer."""
        count = whole(count, "count")
        if not 0 <= count < len(self._history):
            raise MaskwrightError(f"cannot roll back {count} of {len(self._tokens)} accepted tokens")
        del self._history[len(self._history) - count :]
        del self._tokens[len(self._tokens) - count :]

    def fork(self) -> TrieMatcher:
        """An independent matcher in the same state."""
        other = TrieMatcher(self._trie)
        other._history = self._history.copy()
        other._tokens = self._tokens.copy()
        return other

    def reset(self) -> None:
        """Back to the root."""
        self.rollback(len(self._tokens))

    def shortest_completion(self) -> list[int]:
        """The fewest tokens (without EOS) that make the sequence complete."""
        found: dict[int, list[int]] = {} if self.is_terminated else {self._history[-1]: []}
        while found:
            for state, path in found.items():
                if self._trie.final[state]:
                    return path
            found = {
                int(self._trie.offsets[state]) + i + 1: [*path, int(token)]
                for state, path in found.items()
                for i, token in enumerate(self._trie.children(state))
            }
        return []

    @property
    def is_accepting(self) -> bool:
        """Whether the sequence so far is complete (EOS is allowed)."""
        return self.is_terminated or bool(self._trie.final[self._history[-1]])

    @property
    def is_terminated(self) -> bool:
        """Whether EOS has been accepted."""
        return self._history[-1] == _ENDED

    @property
    def accepted_tokens(self) -> list[int]:
        """The ids accepted so far."""
        return self._tokens.copy()

    def captures(self) -> dict[str, bytes | list[bytes]]:
        """None: token sequences have no parts."""
        return {}

    @property
    def state_id(self) -> int:
        """Number of the state."""
        return self._history[-1]


def _table(sequences: Any, max_bytes: int) -> tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.int64]]:
    """Rows padded with -1, and their lengths."""
    if isinstance(sequences, np.ndarray):
        if sequences.ndim != 2 or not np.issubdtype(sequences.dtype, np.integer):
            raise VocabularyError(
                f"sequences are an integer array [N, L], not {sequences.dtype} {list(sequences.shape)}"
            )
        lengths = (sequences != _PADDING).sum(axis=1)
        return sequences, lengths.astype(np.int64)
    try:
        lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
        flat = np.fromiter(map(operator.index, chain.from_iterable(sequences)), np.int64, int(lengths.sum()))
    except (TypeError, ValueError, OverflowError) as error:
        raise VocabularyError(
            f"options are all texts, or all lists of token ids; {_reason(sequences, error)}"
        ) from None
    width = int(lengths.max(initial=0))
    if (needed := 8 * width * len(lengths)) > max_bytes:
        message = f"max_bytes is {max_bytes}: {len(lengths)} sequences of up to {width} ids take {needed} while the trie is built"
        raise LimitError("max_bytes", needed, max_bytes, message=message)
    rows = np.full((len(lengths), width), _PADDING, dtype=np.int64)
    rows[np.arange(width) < lengths[:, None]] = flat
    return rows, lengths


def _reason(sequences: Any, error: Exception) -> str:
    """What is no list among sequences; else what is said of the ids."""
    items = sequences if isinstance(sequences, Iterable) else [sequences]
    kinds = [type(each) for each in items if isinstance(each, (str, bytes)) or not isinstance(each, Sized)]
    odd = next((kind for kind in kinds if not issubclass(kind, (str, bytes))), next(iter(kinds), None))
    return str(error) if odd is None else f"got {odd.__name__}"


def _check_ids(
    rows: npt.NDArray[Any], lengths: npt.NDArray[np.int64], vocab_size: int, eos_ids: Sequence[int]
) -> None:
    within = np.arange(rows.shape[1]) < lengths[:, None]
    wrong = np.where(within, (rows < 0) | (rows >= vocab_size), rows != _PADDING)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise VocabularyError(
            f"sequence {row}, position {column}: {rows[row, column]} is no token id (0 to {vocab_size - 1})"
        )
    # The end would come before the end: what follows it is not generated, and the sequence would not be recognised.
    for end in eos_ids:
        if (found := rows == end).any():
            row, column = np.argwhere(found)[0]
            raise VocabularyError(
                f"sequence {row}, position {column}: {end} is an end token, which comes behind a whole sequence by itself: leave it out"
            )


def _order(rows: npt.NDArray[Any], vocab_size: int) -> npt.NDArray[np.int64]:
    """The order of the rows by their columns; several columns are compared as one number."""
    bits = int(vocab_size).bit_length()
    together = max(1, 63 // bits)
    keys = []
    for first in range(0, rows.shape[1], together):
        key = np.zeros(len(rows), dtype=np.int64)
        for column in range(first, min(first + together, rows.shape[1])):
            # Padding is 0; the array's own type may not hold one more.
            key = (key << bits) | (rows[:, column].astype(np.int64) + 1)
        keys.append(key)
    if not keys:
        return np.arange(len(rows))
    return np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])
