"""Blocks that end where a symbol of a grammar does: for ``smc(block=...)``."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from maskwright.base.arguments import listed
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.compiling.symbols import Reading, Symbols

_KEPT = 4096
"""Readings that are kept, the latest ones."""


class SymbolEnds:
    """Whether the last token made an occurrence of a symbol certain (``maskwright.compiling.symbols``).

    ``smc(model, GrammarConstraint(grammar), block=SymbolEnds(grammar, "statement"))`` resamples where each particle has written
    one more statement, however many tokens that took; a statement that only the next token ends is finished with that
    token.  ``symbols``: one name or several, as ``Symbols`` has them; values of a JSON Schema are JSON pointers.
    Raises ``GrammarError`` for names that the grammar does not have.
    """

    def __init__(self, grammar: CompiledGrammar, symbols: str | Iterable[str]) -> None:
        self._symbols = Symbols(grammar, symbols)
        self._vocabulary = grammar.vocabulary
        self._known: OrderedDict[tuple[int, ...], tuple[Reading, int]] = OrderedDict()

    def __call__(self, ids: list[int]) -> bool:
        key = tuple(listed(ids, "ids", "token ids"))
        return bool(key) and self._at(key)[1] > self._at(key[:-1])[1]

    def _at(self, ids: tuple[int, ...]) -> tuple[Reading, int]:
        """The reading behind a text, and how many occurrences are certain there."""
        known = self._known
        there = known.get(ids)
        if there is None:
            behind = known.get(ids[:-1])
            if behind is not None:
                reading = behind[0].read(
                    self._vocabulary.decode(ids[-1:], start=self._vocabulary.at_start(ids[:-1]))
                )
            else:
                reading = self._symbols.start.read(self._vocabulary.decode(ids))
            there = known[ids] = (reading, len(reading.occurrences()))
            if len(known) > _KEPT:
                known.popitem(last=False)
        else:
            known.move_to_end(ids)
        return there
