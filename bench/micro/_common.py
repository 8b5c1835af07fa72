"""What the micro benches share: the tekken vocabulary, a schema, a state in it, and a timer."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import maskwright as mw

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 5},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
TEXT = '{"name": "Ada Lovelace", "age": 36, "tags": ["mathematics", "engines"]}'


def tekken() -> Any:
    """The 131 072-token tokenizer that ships with mistral-common."""
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    return Tekkenizer.from_file(Path(mistral_common.__file__).parent / "data" / "tekken_240911.json")


def example() -> tuple[mw.CompiledGrammar, list[int]]:
    """``SCHEMA`` compiled, and the tokens of ``TEXT``, an instance of it."""
    tokenizer = tekken()
    compiled = mw.compile_json_schema(SCHEMA, mw.Vocabulary.from_mistral_common(tokenizer))
    return compiled, tokenizer.encode(TEXT, bos=False, eos=False)


def warm_states(compiled: mw.CompiledGrammar, ids: list[int]) -> list[mw.Matcher]:
    """A matcher at every place of ``ids``; the masks of all have been computed."""
    bitmask = mw.allocate_token_bitmask(1, compiled.vocabulary.vocab_size)
    found = [compiled.matcher()]
    for token in ids:
        found[-1].fill_next_token_bitmask(bitmask)
        found.append(found[-1].fork())
        if not found[-1].accept_token(token):
            raise SystemExit(f"token {token} is not accepted")
    found[-1].fill_next_token_bitmask(bitmask)
    return found


def best(call: Callable[[], object], calls: int = 1000, rounds: int = 20) -> float:
    """Microseconds a call: the best round of ``calls`` calls in a row, the cost of the loop included."""
    lowest = float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        for _ in range(calls):
            call()
        lowest = min(lowest, time.perf_counter() - begun)
    return 1e6 * lowest / calls


def show(name: str, value: float, unit: str = "µs") -> None:
    print(f"{name}: {value:.3f} {unit}")
