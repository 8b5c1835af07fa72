"""Do samples of the demo model always validate, at temperature 1 and within a token budget?

python bench/demo_samples.py --samples 500
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

import jsonschema

import maskwright as mw
from maskwright.demo import demo_schemas


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--max-tokens", type=int, default=120, help="EOS included")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    generator = mw.Generator.from_pretrained()
    cases = demo_schemas()
    reasons: Counter[str] = Counter()
    invalid: list[str] = []
    mask_seconds = 0.0
    started = time.perf_counter()
    for index, (name, case) in enumerate(cases.items()):
        validator = jsonschema.Draft202012Validator(
            case["schema"], format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
        )
        share = args.samples // len(cases) + (index < args.samples % len(cases))
        results = generator.generate(
            [case["request"]] * share,
            case["schema"],
            max_new_tokens=args.max_tokens,
            temperature=1.0,
            seed=args.seed + index,
        )
        mask_seconds += results[0].mask_seconds
        for result in results:
            reasons[result.finish_reason] += 1
            error = next(validator.iter_errors(result.value), None)
            if error is not None or len(result.token_ids) >= args.max_tokens:
                invalid.append(f"{name}: {result.text}: {error}")
    seconds = time.perf_counter() - started
    total = sum(reasons.values())
    print(f"{total - len(invalid)} of {total} samples validate; finished by {dict(reasons)}")
    print(f"{seconds:.1f} s, {100 * mask_seconds / seconds:.1f} % of it in masks")
    for line in invalid:
        print("INVALID", line)
    return 1 if invalid else 0


if __name__ == "__main__":
    sys.exit(main())
