"""How long does a small schema take, from a dict to the first mask?

python bench/micro/compile_small.py
"""

from __future__ import annotations

import copy

from _common import SCHEMA, best, example, show

import maskwright as mw

compiled, _ = example()
vocabulary = compiled.vocabulary
bitmask = mw.allocate_token_bitmask(1, vocabulary.vocab_size)
numbers = iter(range(10**9))


def same() -> None:
    mw.compile_json_schema(copy.deepcopy(SCHEMA), vocabulary).matcher().fill_next_token_bitmask(bitmask)


def another() -> None:
    schema = copy.deepcopy(SCHEMA)
    schema["properties"][f"extra_{next(numbers)}"] = {"type": "boolean"}  # type: ignore[index]
    mw.compile_json_schema(schema, vocabulary).matcher().fill_next_token_bitmask(bitmask)


copying = best(lambda: copy.deepcopy(SCHEMA), calls=50)
show("first mask, an equal schema again", best(same, calls=50) - copying)
show("first mask, a schema never seen", best(another, calls=50) - copying)
