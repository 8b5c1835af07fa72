"""The terminals of a lexer -> one automaton, and the engine's."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from maskwright._core import AutomatonHandle, Engine
from maskwright.base.deadline import check_time, seconds_left
from maskwright.errors import GrammarError, LimitError
from maskwright.ir.grammar import Lexing
from maskwright.limits import Limits
from maskwright.regular.automata import Nfa, build_lexer
from maskwright.regular.columns import column_automaton
from maskwright.regular.merging import merge_states
from maskwright.regular.refusals import Refusal, refusals


def lexer_automaton(
    lexing: Lexing, follow: list[int] | None, limits: Limits
) -> tuple[Nfa, list[int], list[tuple[int, int, list[int]]]]:
    """The automaton of all terminals, where in it each begins, and what is refused beside some of them only.

    ``follow``: sets of terminals that may be waited for together, as bits; None: not known.
    """
    terminals = [terminal.regular for terminal in lexing.terminals]
    lines = None
    if lexing.newline is not None:
        told = lexing.lines or column_automaton(terminals[lexing.newline], lexing.columns, limits)
        lines = lexing.newline, told
    everywhere = 0 if lexing.placed else sum(1 << terminal for terminal in set(lexing.ignored))
    together = None if follow is None else [some | everywhere for some in follow]
    refused = refusals(terminals, lexing.refused, together, limits, lexing.parts)
    refused += [Refusal(owner, language) for owner, language in lexing.forbidden]
    built = build_lexer(terminals, refused, lines, limits)
    _check_alive(built[0], lexing)
    nfa, starts = merge_states(*built, len(terminals))
    guarded = [each for each in refused if each.unless]
    guards = [
        (start, each.owner, list(each.unless))
        for start, each in zip(starts[len(terminals) :], guarded, strict=True)
    ]
    return nfa, starts[: len(terminals)], guards


def _check_alive(nfa: Nfa, lexing: Lexing) -> None:
    """The engine's lexers rely on a text for each terminal."""
    matched = {tag for _, tag in nfa.accepts}
    for position in range(len(lexing.terminals)):
        if position not in matched:
            name = lexing.names[position] if lexing.names else position
            if position == lexing.newline:
                raise GrammarError(
                    f"terminal {name} must match some line end with no blanks behind it: lines begin in column 0"
                )
            raise GrammarError(f"terminal {name} matches nothing")


def add_lexer(engine: Engine, key: Hashable, content: tuple[Any, ...], limits: Limits) -> AutomatonHandle:
    """The engine's lexer, made within what is left of the time."""
    try:
        return engine.add_lexer(
            key,
            *content,
            max_lexer_states=limits.max_lexer_states,
            max_bytes=limits.max_bytes,
            max_seconds=seconds_left(),
        )
    except LimitError as error:
        if error.limit == "max_seconds":
            # That of the whole source is what was reached.
            check_time()
        raise
