"""Grammars over single bytes, for what is checked without the vocabulary of a model."""

from __future__ import annotations

from maskwright.compiling.compiler import CompiledGrammar, compile_grammar
from maskwright.errors import GrammarError
from maskwright.ir.grammar import Grammar, Tokens
from maskwright.limits import Limits
from maskwright.vocabulary.vocabulary import Vocabulary

_MOST_TOKENS = 1 << 21
"""More than any vocabulary has."""


def compiled_for_bytes(grammar: Grammar, limits: Limits) -> CompiledGrammar:
    """A grammar over single bytes: ids 0 to 255, and the end is 256.  Raises what compiling it raises."""
    return compile_grammar(grammar, _bytes_and_tokens(grammar.tokens()), limits)


def _bytes_and_tokens(used: list[Tokens]) -> Vocabulary:
    """The bytes, the end, and special tokens: those that a grammar names, and as many as it has ids."""
    names = dict.fromkeys(name for tokens in used for name in tokens.names)
    highest = max((high for tokens in used for _, high in tokens.ids), default=0)
    if highest >= _MOST_TOKENS:
        raise GrammarError(f"no vocabulary has a token {highest}")
    # One more than is named: there are others.
    size = max(257 + len(names) + 1, highest + 1) if used else 257
    vocabulary = Vocabulary(
        [*(bytes([i]) for i in range(256)), *[b""] * (size - 256)],
        eos_ids=[256],
        special_ids=range(257, size),
        special_tokens={name: 257 + i for i, name in enumerate(names)},
    )
    # What is explained of a text refers to the states behind its beginnings.
    vocabulary.state_budget = 2**62 - 1
    return vocabulary
