"""How long does a fork take, after a few tokens and after many?

python bench/micro/fork.py
"""

from __future__ import annotations

from _common import best, show, tekken

import maskwright as mw

tokenizer = tekken()
vocabulary = mw.Vocabulary.from_mistral_common(tokenizer)
matcher = mw.compile_json_schema({"type": "array"}, vocabulary).matcher()
ids = tokenizer.encode("[" + "1, " * 10_000, bos=False, eos=False)
for count in (10, 10_000):
    matcher.reset()
    if matcher.accept_tokens(ids[:count]) != count:
        raise SystemExit("the text is not accepted")
    show(f"fork after {count} tokens", best(matcher.fork, calls=200))
