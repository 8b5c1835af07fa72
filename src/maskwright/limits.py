"""Every limit of the compiler and the engine, with its unit and default."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on the work that one source may cause; reaching one raises ``LimitError``."""

    max_depth: int = 200
    """Nesting of the source: schema objects inside each other, groups in a regex (levels)."""
    max_schema_values: int = 500_000
    """JSON values in one schema (count)."""
    max_schema_branches: int = 5_000
    """Alternatives of one subschema once anyOf and allOf are multiplied out (count)."""
    max_regex_states: int = 100_000
    """NFA states of one terminal, or DFA states of an intersection (count)."""
    max_rules: int = 500_000
    """Rules of one grammar (count)."""
    max_lexer_states: int = 500_000
    """Determinised lexer states of one terminal (count)."""
    max_parser_states: int = 5_000_000
    """Interned parser states of one compiled grammar (count)."""
    max_search: int = 200_000
    """Threads looked at in one engine operation to prove, of grammars whose terminals can swallow each other,
    that a text can be completed (count)."""
    max_seconds: float = 30.0
    """Time of one engine operation (a mask, a token, a completion); 0 is no limit (seconds)."""


DEFAULT_LIMITS = Limits()
