"""How long does accepting a token on a known edge take?

python bench/micro/accept_known.py
"""

from __future__ import annotations

from _common import best, example, show, warm_states

compiled, ids = example()
warm_states(compiled, ids)
matcher = compiled.matcher()


def one_by_one() -> None:
    matcher.reset()
    for token in ids:
        matcher.accept_token(token)


def all_at_once() -> None:
    matcher.reset()
    matcher.accept_tokens(ids)


show("accept_token", best(one_by_one, calls=200) / len(ids))
show("accept_tokens, per token", best(all_at_once, calls=200) / len(ids))
