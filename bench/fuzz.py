"""Random schemas for as long as one likes: do the engine and ``jsonschema`` ever disagree?

The property is that of ``tests/frontends/json_schema/test_schema_fuzz.py``: every instance gets the validator's answer in
every spelling, and random walks end in valid text.  Each round has a seed of its own, which is
printed with a disagreement (shrunk by hypothesis).

    python bench/fuzz.py --minutes 60
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "frontends" / "json_schema"))

import test_schema_fuzz as fuzz
from schema_strategies import conditional_documents, documents, objects, values

#: Schemas of one round; a disagreement ends the round only.
ROUND = 200


def round_of(schemas: Any, instances: Any, number: int, counts: Counter[str]) -> Callable[[], None]:
    @seed(number)
    @given(schemas, st.lists(instances, min_size=4, max_size=12), st.integers(0, 2**32), fuzz.orders)
    @settings(max_examples=ROUND, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    def agree(schema: Any, instances: list[Any], walk_seed: int, order: str) -> None:
        counts["schemas"] += 1
        result = fuzz.compiled_or_none(schema, order)
        counts[result if isinstance(result, str) else "compiled"] += 1
        counts["instances"] += 0 if result == "refused" else len(instances)
        fuzz.check(schema, instances, walk_seed, order)

    return agree


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="the first round's seed; random without")
    arguments = parser.parse_args()
    number = random.randrange(2**32) if arguments.seed is None else arguments.seed
    end = time.monotonic() + 60 * arguments.minutes
    counts: Counter[str] = Counter()
    strategies = [(documents(), values), (conditional_documents(), objects)]
    while time.monotonic() < end:
        try:
            round_of(*strategies[number % 2], number, counts)()
        except Exception as error:
            # An error that is not one of ours is a defect as well.
            counts["disagreements"] += 1
            print(f"seed {number}: {error!r}", *getattr(error, "__notes__", ()), sep="\n", flush=True)
        number += 1
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return 1 if counts["disagreements"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
