"""What was captured of a text: the texts of rules that have a name (``grammar.Capture``).

Captures are no part of a state, so masks know nothing of them: a text is read again when somebody asks.  This is
Earley's algorithm over the rules, with the engine's automata for lexemes.  Of several readings, one counts:

- of a complete text, one that ends with it; else one that goes on: a lexeme that can still be longer is not done, and a
  rule is done when nothing can be added to it, or when something behind it was read;
- of alternatives, the one written first; in it, the first part is as long as it can be, then the second, and so on.

    productions.py  the grammar as productions
    chart.py        all readings of a text
    reading.py      the one that counts
    plain.py        the grammar as plain data, to be read elsewhere
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from maskwright._core import AutomatonHandle, CompiledCore, Tables
from maskwright.base.deadline import deadline
from maskwright.compiling.captures.chart import MARK
from maskwright.compiling.captures.productions import Productions
from maskwright.compiling.captures.reading import Reading
from maskwright.ir.grammar import Grammar, Import, Lexeme, Tokens


class CaptureReader:
    """Reads texts of one grammar again; the arguments are those of ``Productions``, how long one text may take, and the tables of
    the grammar's imports, by key.

    Raises ``GrammarError`` for rules that are more than sequences and choices.
    """

    def __init__(
        self,
        grammar: Grammar,
        automaton: Callable[[Lexeme], AutomatonHandle],
        part: Callable[[Import], CompiledCore],
        token_ids: Callable[[Tokens], list[int]],
        max_seconds: float = 0,
        imports: Mapping[Hashable, Tables] | None = None,
    ) -> None:
        self.imports = known = imports or {}
        self.productions = Productions(
            grammar, automaton, part, token_ids, lambda each: known[each.key].nullable
        )
        self.max_seconds = max_seconds
        self.lists = {c.name for each in grammar.captures.values() for c in each if c.append}

    def read(self, pieces: Sequence[tuple[int, bytes]], begun: bool) -> dict[str, bytes | list[bytes]]:
        """The captures of accepted tokens (ids with their bytes; -1 for bytes that were given as such).

        ``begun``: whether a lexeme may be under way.  Raises ``LimitError`` after ``max_seconds``.
        """
        data = bytearray()
        units: dict[int, tuple[int, int]] = {}
        for token, text in pieces:
            if token >= 0:
                units[len(data)] = token, len(data) + max(len(text), 1)
                text = text or MARK
            data += text
        found: dict[str, bytes | list[bytes]] = {}
        with deadline(self.max_seconds):
            for capture, text in Reading(self.productions, bytes(data), units).captures(begun):
                known = found.setdefault(capture.name, [])
                if isinstance(known, list) and capture.name in self.lists:
                    known.append(text)
                else:
                    found[capture.name] = text
        return found
