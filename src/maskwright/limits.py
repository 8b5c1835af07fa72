"""Every limit of the compiler and the engine, with its unit and default."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_COUNT = 2**31 - 1
"""The engine counts in 32 bits, with a sign."""
# The greatest value of a limit, where something else ends there.
_CAPS = {
    "max_object_obligations": (32, "the engine keeps the obligations of an object as 32 bits"),
    "max_key_sorts": (16, "there is a table of all their sets"),
    "max_count": (MAX_COUNT, "the engine counts in 32 bits"),
    "max_constant_digits": (4_000, "Python writes no longer integers"),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on the work that one source may cause; reaching one raises ``LimitError``.

    Raises ``ValueError`` for a value that is no number, is below 1 (``max_seconds``: below 0), or above what
    the engine can do; the message says which.
    """

    max_depth: int = 200
    """Nesting of the source: groups in a regex, or schemas, where two JSON values inside each other are one level, as
    those of ``{"properties": {"a": {}}}`` (levels).  Schemas nested much deeper than the default also need a higher
    ``sys.setrecursionlimit``."""
    max_source_chars: int = 4_000_000
    """Characters of JSON text or GBNF that one source is read from (count; of bytes, so many bytes)."""
    max_schema_values: int = 500_000
    """JSON values in one schema, and in the documents that it refers to, each of which counts as 100 more (count)."""
    max_schema_branches: int = 5_000
    """Alternatives of one subschema once anyOf and allOf are multiplied out (count)."""
    max_object_obligations: int = 16
    """Alternatives that one object must meet at once, such as those of ``not``, ``oneOf`` and ``anyOf`` over its
    members (count; 32 at most).  Work may double with each."""
    max_member_ways: int = 256
    """Ways to write the value of one member or item, by the alternatives that it meets (count)."""
    max_key_sorts: int = 16
    """Sorts of undeclared members that meet different alternatives of one object (count; 16 at most)."""
    max_key_sets: int = 64
    """Sets of these sorts that may be allowed together (count).  Each has an automaton of its own."""
    max_listed_names: int = 4_096
    """Names of undeclared members that are told apart one by one, where an object could run out of them (count)."""
    max_multiple_remainders: int = 16_384
    """Largest ``multipleOf``, as an integer without zeros at its end, of which all multiples can be written: so many
    remainders are told apart (count).  Of larger ones, the least multiples are written."""
    max_constant_digits: int = 1_000
    """Digits of a number in the schema, before the point or behind it, written without exponent (count; 4000
    at most)."""
    max_count: int = 1_000_000_000
    """Items, members, characters or repetitions that can be demanded (count; 2**31 - 1 at most)."""
    max_indented_depth: int = 32
    """Arrays and objects inside each other in output with an indentation (levels).  Each level has rules of
    its own; deeper values are not written."""
    max_regex_states: int = 100_000
    """NFA states of one terminal, or DFA states of an intersection (count).  A pattern may have so many characters and
    classes that stand for themselves, and ten times as many in all."""
    max_lark_tokens: int = 25_000
    """Names, texts, patterns, signs and comments in one text of a Lark grammar (count).  It may have ten times as many
    characters, and one of these twice as many."""
    max_expansion: int = 5_000_000
    """Size of a Lark grammar without names for parts (characters): of the patterns of its terminals, each with those of
    all that it consists of, which is how long reading them takes; and of the rules that its templates make (a symbol as
    20 or more)."""
    max_nested_looks: int = 10
    """Look-arounds inside each other in a regex (levels)."""
    max_pairs: int = 100_000
    """Where a grammar is intersected with a regular language: rules and terminals with the states of the automaton before
    and behind them (count)."""
    max_phrases: int = 10
    """Phrases that a text must contain in any order (count).  States may double with each."""
    max_rules: int = 500_000
    """Rules of one grammar (count)."""
    max_lexer_states: int = 500_000
    """Determinised lexer states of one terminal, or of all together where a grammar has a lexer (count).  Keys that
    must not come twice count in what is kept of texts (``Vocabulary.state_budget``)."""
    max_bytes: int = 2**29
    """Memory of the determinised states of one terminal, or of all together where a grammar has a lexer, and of the parser
    states that one operation reaches: counted as they are made (bytes)."""
    max_parser_states: int = 5_000_000
    """Interned parser states of one compiled grammar, in one operation and for the texts at hand (count)."""
    max_search: int = 200_000
    """Threads looked at to prove that a text can be completed: in one engine operation, of grammars whose terminals can
    swallow each other; in one search, of arrays whose items must be different (count)."""
    max_canvas_steps: int = 2_000_000
    """States and slots looked at for the first filling of a canvas (count; ``maskwright.diffusion.Canvas``)."""
    max_set_bytes: int = 2**30
    """Memory for what is known about all fillings of the canvases of one grammar, and of middles of texts
    (``maskwright.diffusion``; bytes).  It is only a cache: a canvas that reaches the limit begins anew, and a proposal that
    needs more by itself is refused as undecided."""
    max_lattice_states: int = 50_000
    """States of all fillings of a canvas (count; ``maskwright.diffusion.Lattice``)."""
    max_seconds: float = 5.0
    """Time to compile one source, and of one engine operation (a mask, a token, a completion); 0 is no
    limit (seconds)."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        values = []
        for name in LIMIT_NAMES:
            value = getattr(self, name)
            values.append(value)
            if name == "max_seconds":
                if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
                    raise ValueError(f"max_seconds={value!r} is no number from 0 on")
                if isinstance(value, int) and value > 2**62:
                    raise ValueError(f"max_seconds is above {2**62}: counters end there")
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name}={value!r} is no integer above 0")
            most, reason = _CAPS.get(name, (2**62, "counters end there"))
            if value > most:
                raise ValueError(f"{name}={value} is above {most}: {reason}")
        # Limits are part of the keys of many caches.
        object.__setattr__(self, "_hash", hash(tuple(values)))

    def __hash__(self) -> int:
        return self._hash


LIMIT_NAMES = tuple(name for name in Limits.__dataclass_fields__ if not name.startswith("_"))
DEFAULT_LIMITS = Limits()
