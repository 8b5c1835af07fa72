"""Which MaskBench schemas pass: every valid instance accepted, every invalid one rejected?

Instances are fed as ``json.dumps(data, ensure_ascii=False)``, byte by byte.  A schema that does not
compile counts by its error; one that accepts an invalid instance is listed as such even when it
also rejects a valid one.  A schema that rejects a valid instance in the order of its properties is tried
again with ``property_order="any"``: when that passes, it counts as MEMBER_ORDER.

    python bench/conformance.py --data ../shared/data/maskbench-dev.jsonl.gz --show 20
    python bench/conformance.py --property-order any --ids results.json
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import maskwright as mw

MEMBER_ORDER = "valid rejected for member order only"
DEFAULT_DATA = Path(__file__).parents[2] / "shared" / "data" / "maskbench-dev.jsonl.gz"


def byte_vocabulary() -> mw.Vocabulary:
    """One token a byte, and EOS."""
    return mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


def judge(case: dict[str, Any], vocabulary: mw.Vocabulary, property_order: str = "schema") -> tuple[str, str]:
    """The outcome of one case and a word about it."""
    try:
        compiled = mw.compile_json_schema(case["schema"], vocabulary, property_order=property_order)
    except mw.MaskwrightError as error:
        return type(error).__name__, str(error)
    outcome, detail = "pass", ""
    for test in case["tests"]:
        text = json.dumps(test["data"], ensure_ascii=False)
        try:
            data = text.encode()
        except UnicodeEncodeError:
            continue
        matcher = compiled.matcher()
        read = matcher.longest_prefix(data)
        accepted = read == len(data) and matcher.accept_bytes(data) and matcher.is_accepting
        if accepted and not test["valid"]:
            return "invalid accepted", text[:200]
        if not accepted and test["valid"]:
            outcome, detail = (
                "valid rejected",
                f"...{text[max(0, read - 60) : read]}<HERE>{text[read : read + 40]}",
            )
    if outcome == "valid rejected" and property_order == "schema":
        again, _ = judge(case, vocabulary, "any")
        if again == "pass":
            return MEMBER_ORDER, detail
    return outcome, detail


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--property-order", default="schema", choices=("schema", "any"))
    parser.add_argument("--cases", type=int, default=None, help="stop after this many")
    parser.add_argument("--show", type=int, default=0, help="list this many cases of each outcome but pass")
    parser.add_argument("--ids", type=Path, help="write the cases of each outcome but pass to this file")
    args = parser.parse_args()
    vocabulary = byte_vocabulary()
    outcomes: Counter[str] = Counter()
    ids: dict[str, list[str]] = {}
    slowest = (0.0, "")
    started = time.perf_counter()
    with gzip.open(args.data, "rt", encoding="utf-8") as lines:
        for index, line in enumerate(lines):
            if index == args.cases:
                break
            case = json.loads(line)
            before = time.perf_counter()
            outcome, detail = judge(case, vocabulary, args.property_order)
            slowest = max(slowest, (time.perf_counter() - before, case["id"]))
            outcomes[outcome] += 1
            if outcome != "pass":
                ids.setdefault(outcome, []).append(case["id"])
            if outcome != "pass" and outcomes[outcome] <= args.show:
                print(f"{outcome}: {case['id']}: {detail[:400]}")
    total = sum(outcomes.values())
    for outcome, count in outcomes.most_common():
        print(f"{count:6} {100 * count / total:6.2f} %  {outcome}")
    print(f"{total} cases in {time.perf_counter() - started:.1f} s; slowest {slowest[0]:.2f} s: {slowest[1]}")
    if args.ids:
        args.ids.write_text(json.dumps(ids, indent=1, ensure_ascii=False), encoding="utf-8")
    return 1 if outcomes["invalid accepted"] or outcomes["valid rejected"] else 0


if __name__ == "__main__":
    sys.exit(main())
