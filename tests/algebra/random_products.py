"""Random grammars beside a pattern: what becomes of each, by looking up short texts in both."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence

from test_algebra import VOCABULARY, accepts

import maskwright as mw
from maskwright.errors import GrammarError, UnsatisfiableError


def outcomes(
    grammar: Callable[[random.Random], str],
    patterns: Sequence[str],
    texts: Sequence[str],
    refusal: str,
    seeds: range,
) -> Counter[str]:
    """How many intersections are right, wrong, and refused with a sentence that contains ``refusal``."""
    found: Counter[str] = Counter()
    for seed in seeds:
        rng = random.Random(seed)
        source = mw.Lark(grammar(rng))
        pattern = rng.choice(patterns)
        try:
            alone = mw.compile(source, VOCABULARY)
        except (GrammarError, UnsatisfiableError):
            continue
        wanted = {text for text in texts if accepts(alone, text) and re.fullmatch(pattern, text)}
        try:
            both = mw.compile(source & mw.Regex(pattern), VOCABULARY)
        except UnsatisfiableError:
            found["right" if not wanted else "wrong"] += 1
            continue
        except GrammarError as error:
            assert refusal in str(error), (seed, error)
            found["refused"] += 1
            continue
        found["right" if {text for text in texts if accepts(both, text)} == wanted else "wrong"] += 1
    return found
