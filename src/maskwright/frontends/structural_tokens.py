"""Tokens as structural tags name them: an id, or the name of a special token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from maskwright.errors import GrammarError
from maskwright.ir.grammar import Tokens


def named_tokens(values: Sequence[object], place: str) -> Tokens:
    """One of some tokens: ids, and names.  Raises ``GrammarError``; which there are, only a vocabulary says."""
    names: dict[str, None] = {}
    ids: set[int] = set()
    for value in values:
        if isinstance(value, str) and value:
            names[value] = None
        elif type(value) is int and value >= 0:
            ids.add(value)
        else:
            raise GrammarError(f"a token is an id or a name, not {value!r}", place=place)
    return Tokens(tuple(names), tuple((i, i) for i in sorted(ids)), place=place)


def all_but(tokens: Iterable[Tokens], place: str) -> Tokens:
    """Any token that is none of these."""
    listed = list(tokens)
    names = dict.fromkeys(name for each in listed for name in each.names)
    ids = sorted({pair for each in listed for pair in each.ids})
    return Tokens(tuple(names), tuple(ids), excluded=True, place=place)


def is_one_of(token: Tokens, others: Tokens) -> bool:
    """Whether each token that one value names is named by the other."""
    return set(token.names) <= set(others.names) and set(token.ids) <= set(others.ids)
