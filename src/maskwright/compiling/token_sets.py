"""Which tokens of a vocabulary a ``Tokens`` of a grammar is."""

from __future__ import annotations

from difflib import get_close_matches

from maskwright._core import Engine
from maskwright.errors import GrammarError
from maskwright.ir.grammar import Tokens


def token_ids(tokens: Tokens, engine: Engine) -> list[int]:
    """The ids, ascending.

    A name is that of a special token, or what a token spells.  Ids that no text and no special token has are left out;
    those that end a text are left out of what is ``excluded`` from.  Raises ``GrammarError`` for an unknown name, an id
    outside the vocabulary, and when no token is left.
    """
    found: set[int] = set()
    for name in tokens.names:
        found.update(_named(name, tokens, engine))
    for low, high in tokens.ids:
        if not 0 <= low <= high < engine.vocab_size:
            raise GrammarError(
                f"{tokens}: token ids are 0 to {engine.vocab_size - 1} in this vocabulary", place=tokens.place
            )
        found.update(range(low, high + 1))
    if tokens.excluded:
        every = range(engine.vocab_size)
        kept = [i for i in every if i not in found and i not in engine.eos_ids and _is_known(i, engine)]
    else:
        kept = sorted(i for i in found if i in engine.eos_ids or _is_known(i, engine))
    if not kept:
        raise GrammarError(f"{tokens}: the vocabulary has no such token", place=tokens.place)
    return kept


def _named(name: str, tokens: Tokens, engine: Engine) -> list[int]:
    special = engine.special_tokens.get(name)
    found = [special] if special is not None else engine.spelled_alike(name.encode("utf-8", "replace"))
    if not found:
        close = get_close_matches(name, list(engine.special_tokens), 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise GrammarError(f"the vocabulary has no token {name!r}{hint}", place=tokens.place)
    return found


def _is_known(token: int, engine: Engine) -> bool:
    """Whether an id is text or special, and no padding."""
    return token in engine.special_ids or bool(engine.token_bytes(token))
