"""Constraints: which texts are good, told token by token, composable.

A constraint is a set of complete texts, given as two predicates on token ids (EOS not among them):
``complete(ids)``, and ``prefix(ids)`` for what may still become complete.  ``prefix`` may be too generous but
not too strict: a text whose prefix is refused is never complete.

For sampling, a constraint is followed in *states*, which are values: ``advance`` returns a new one, so that
particles share and fork them at no cost.  A constraint answers in two ways.  ``masks`` is what it can tell about
all tokens at once, cheaply: a bitmask of tokens that are possible.  ``check`` decides about single tokens that
pass the mask.  An ``exact`` constraint says everything with its masks and needs no ``check``; samplers then take
the exact step, and adaptive rejection otherwise.

A ``measured`` constraint also tells how many tokens a text still needs, so that samplers end within their budget.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.base.arguments import check_type, listed
from maskwright.compiling.compiled import CompiledGrammar
from maskwright.errors import MaskwrightError, VocabularyError
from maskwright.masks.bitmask import allocate_token_bitmask, fill_next_token_bitmasks
from maskwright.masks.trie import CompiledTrie
from maskwright.sampling.logspace import Booleans

if TYPE_CHECKING:
    from maskwright._core import Matcher

END = -1
"""Stands for EOS, whichever of a model's EOS ids that is."""

Bitmask = npt.NDArray[np.int32]
_LENGTHS_KEPT = 1 << 16


class Constraint(ABC):
    """A set of texts; see the module's docstring.  Combine with ``*``: all must hold."""

    exact = False
    measured = False
    """Whether ``needed`` tells anything."""

    def bind(self, vocab_size: int, eos_ids: Sequence[int]) -> None:  # noqa: B027
        """Raise ``VocabularyError`` unless the constraint fits models of this width and these EOS ids."""

    @abstractmethod
    def start(self) -> Any:
        """The state of the empty text."""

    @abstractmethod
    def advance(self, state: Any, token: int) -> Any:
        """The state behind a token that is allowed; ``state`` itself does not change."""

    def masks(self, states: Sequence[Any]) -> Bitmask | None:
        """Bitmasks [states, words] of the tokens that may be allowed; EOS ids stand for the end.

        None when nothing can be told.  Read it at once: the array may be used again.
        """
        return None

    def check(self, states: Sequence[Any], tokens: Sequence[int]) -> Booleans:
        """For each pair, whether the token (or ``END``) may follow, given that ``masks`` allows it."""
        return np.ones(len(tokens), dtype=bool)

    def needed(self, state: Any) -> int:
        """How many tokens (EOS not counted) complete the text behind ``state`` in the shortest way known."""
        return 0

    def needed_behind(self, state: Any, token: int) -> int:
        """``needed`` behind a token (not EOS) that ``masks`` allows, whatever ``check`` says of it."""
        return self.needed(self.advance(state, token)) if self.measured else 0

    def prefix(self, ids: Sequence[int]) -> bool:
        """Whether a complete text may begin with ``ids``."""
        return self._walk(ids) is not None

    def complete(self, ids: Sequence[int]) -> bool:
        """Whether ``ids`` is a complete text."""
        found = self._walk(ids)
        return found is not None and self._allows(found[0], END)

    def _walk(self, ids: Sequence[int]) -> tuple[Any] | None:
        state = self.start()
        for token in ids:
            if not self._allows(state, token):
                return None
            state = self.advance(state, token)
        return (state,)

    def _allows(self, state: Any, token: int) -> bool:
        return bool(self.check([state], [token])[0])

    def close(self) -> None:  # noqa: B027
        """Stop worker threads or processes, if there are any."""

    def __mul__(self, other: Constraint) -> Product:
        if not isinstance(other, Constraint):
            return NotImplemented
        return Product([self, other])


class Everything(Constraint):
    """No constraint."""

    exact = True

    def start(self) -> None:
        return None

    def advance(self, state: None, token: int) -> None:
        return None


class GrammarConstraint(Constraint):
    """The language of a compiled grammar; exact and measured, with masks and shortest completions from the engine."""

    exact = True
    measured = True

    def __init__(self, grammar: CompiledGrammar) -> None:
        if isinstance(grammar, CompiledTrie):
            raise MaskwrightError(
                "grammar: this is a set of token sequences; use TrieConstraint(grammar.trie)"
            )
        check_type(grammar, CompiledGrammar, "grammar", MaskwrightError)
        self.grammar = grammar
        self._root: Matcher = grammar.matcher()
        self._needed: dict[int, int] = {}
        """By the number of the state, which matchers share that were forked from one."""

    def bind(self, vocab_size: int, eos_ids: Sequence[int]) -> None:
        vocabulary = self.grammar.vocabulary
        if vocabulary.vocab_size != vocab_size:
            raise VocabularyError(
                f"the grammar's vocabulary has {vocabulary.vocab_size} ids, the model {vocab_size}; build it with "
                f"vocab_size={vocab_size}"
            )
        if set(eos_ids) != set(vocabulary.eos_ids):
            raise VocabularyError(
                f"the model ends with ids {sorted(eos_ids)}, the grammar's vocabulary with "
                f"{sorted(vocabulary.eos_ids)}; pass the same eos_ids to both"
            )

    def start(self) -> Matcher:
        return self._root.fork()

    def advance(self, state: Matcher, token: int) -> Matcher:
        following = state.fork()
        if not following.accept_token(token):
            raise MaskwrightError(f"token {token} is not allowed here; ask the mask first")
        return following

    def masks(self, states: Sequence[Matcher]) -> Bitmask:
        bitmask = allocate_token_bitmask(len(states), self.grammar.vocabulary.vocab_size)
        fill_next_token_bitmasks(states, bitmask)
        return bitmask

    def needed(self, state: Matcher) -> int:
        number = state.state_id
        found = self._needed.get(number)
        if found is None:
            if len(self._needed) >= _LENGTHS_KEPT:
                self._needed.clear()
            found = self._needed[number] = len(state.shortest_completion())
        return found

    def _allows(self, state: Matcher, token: int) -> bool:
        return state.is_accepting if token == END else state.validate_tokens([token]) == 1

    def prefix(self, ids: Sequence[int]) -> bool:
        return self._accepted(ids) is not None

    def complete(self, ids: Sequence[int]) -> bool:
        matcher = self._accepted(ids)
        return matcher is not None and matcher.is_accepting

    def _accepted(self, ids: Sequence[int]) -> Matcher | None:
        matcher = self.start()
        return matcher if matcher.accept_tokens(ids) == len(ids) and not matcher.is_terminated else None


class Product(Constraint):
    """All of several constraints.  Those that need ``check`` are asked in order, each for what is left."""

    def __init__(self, factors: Iterable[Constraint]) -> None:
        self.factors: tuple[Constraint, ...]
        flat: list[Constraint] = []
        for factor in listed(factors, "factors", "constraints"):
            check_type(factor, Constraint, "factors", MaskwrightError)
            flat.extend(factor.factors if isinstance(factor, Product) else [factor])
        if not flat:
            raise MaskwrightError("a product needs at least one constraint")
        self.factors = tuple(flat)
        self.exact = all(factor.exact for factor in flat)
        self.measured = any(factor.measured for factor in flat)

    def bind(self, vocab_size: int, eos_ids: Sequence[int]) -> None:
        for factor in self.factors:
            factor.bind(vocab_size, eos_ids)

    def start(self) -> tuple[Any, ...]:
        return tuple(factor.start() for factor in self.factors)

    def advance(self, state: tuple[Any, ...], token: int) -> tuple[Any, ...]:
        return tuple(factor.advance(part, token) for factor, part in zip(self.factors, state, strict=True))

    def masks(self, states: Sequence[tuple[Any, ...]]) -> Bitmask | None:
        found = None
        for index, factor in enumerate(self.factors):
            mask = factor.masks([state[index] for state in states])
            if mask is not None:
                found = mask if found is None else found & mask
        return found

    def check(self, states: Sequence[tuple[Any, ...]], tokens: Sequence[int]) -> Booleans:
        verdicts = np.ones(len(tokens), dtype=bool)
        for index, factor in enumerate(self.factors):
            left = np.flatnonzero(verdicts)
            if not factor.exact and len(left):
                verdicts[left] = factor.check([states[i][index] for i in left], [tokens[i] for i in left])
        return verdicts

    def needed(self, state: tuple[Any, ...]) -> int:
        return max(factor.needed(part) for factor, part in zip(self.factors, state, strict=True))

    def needed_behind(self, state: tuple[Any, ...], token: int) -> int:
        return max(
            factor.needed_behind(part, token) for factor, part in zip(self.factors, state, strict=True)
        )

    def _allows(self, state: tuple[Any, ...], token: int) -> bool:
        return all(factor._allows(part, token) for factor, part in zip(self.factors, state, strict=True))

    def prefix(self, ids: Sequence[int]) -> bool:
        return all(factor.prefix(ids) for factor in self.factors)

    def complete(self, ids: Sequence[int]) -> bool:
        return all(factor.complete(ids) for factor in self.factors)

    def close(self) -> None:
        for factor in self.factors:
            factor.close()
