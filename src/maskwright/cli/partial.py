"""``maskwright generate --holes``: what a model wrote, with holes where it may be wrong."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from maskwright.cli.sources import UsageError, read_source
from maskwright.sources import GBNF

if TYPE_CHECKING:
    from maskwright.generation.generator import Generator
    from maskwright.generation.results import Generation
    from maskwright.search.partial import PartialPrograms

_BATCH = 8
"""Examples that are written at a time."""
_ERROR_RATE = 0.1
_CONFIDENCE = 0.95


def add_hole_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("holes where the model may be wrong (see docs/partial-programs.md)")
    group.add_argument(
        "--holes",
        metavar="NATS|FILE",
        help="keep what costs less than so many nats; or choose that by a file of examples, "
        'one a line: {"prompt": ..., "text": the right output}',
    )
    group.add_argument(
        "--error-rate",
        type=float,
        metavar="P",
        help=f"of outputs whose holes miss the right one (default {_ERROR_RATE:g})",
    )
    group.add_argument(
        "--confidence",
        type=float,
        metavar="P",
        help=f"in that, over draws of the examples (default {_CONFIDENCE:g})",
    )
    group.add_argument(
        "--hole", action="append", metavar="SYMBOL", help="a symbol that may be left open; default: all rules"
    )


def check_hole_options(args: argparse.Namespace) -> None:
    """What does not go together.  Raises ``UsageError``."""
    if args.hole and args.holes is None:
        raise UsageError("--hole is for --holes")
    for name in ("error_rate", "confidence"):
        option, value = f"--{name.replace('_', '-')}", getattr(args, name)
        if value is None:
            continue
        if args.holes is None or _number(args.holes) is not None:
            raise UsageError(f"{option} is for --holes with a file of examples")
        if not 0 < value < 1:
            raise UsageError(f"{option} lies between 0 and 1, not at {value:g}")


def messages(args: argparse.Namespace, text: str) -> Any:
    """A prompt with the system message, if there is one."""
    if args.system is None:
        return text
    return [{"role": "system", "content": args.system}, {"role": "user", "content": text}]


def with_holes(
    args: argparse.Namespace, source: Any, generator: Generator, prompt: Any, options: dict[str, Any]
) -> tuple[float, list[dict[str, Any]]]:
    """The threshold, in nats, and the outputs: ``text``, and what was ``written`` before there were holes in it."""
    from maskwright.search.partial import PartialPrograms, scored

    if isinstance(source, GBNF) and args.hole:
        source = replace(source, symbols=args.hole)
    grammar = generator.compile(source)
    programs = PartialPrograms(grammar, args.hole)
    threshold = _number(args.holes)
    if threshold is None:
        threshold = _calibrated(args, source, generator, programs, {**options, "n": 1})
    results = generator.generate([prompt], source, logprobs=True, **options)
    partial = [
        programs.at(scored(grammar, each.token_ids, each.logprobs or []), threshold) for each in results
    ]
    return threshold, [
        {"text": str(shown), "written": each.text} for shown, each in zip(partial, results, strict=True)
    ]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _calibrated(
    args: argparse.Namespace,
    source: Any,
    generator: Generator,
    programs: PartialPrograms,
    options: dict[str, Any],
) -> float:
    from maskwright.search.partial import check_examples, scored

    examples = list(_examples(args.holes))
    error_rate = _ERROR_RATE if args.error_rate is None else args.error_rate
    confidence = _CONFIDENCE if args.confidence is None else args.confidence
    # Before the model is asked.
    check_examples(len(examples), error_rate, confidence)
    results: list[Generation] = []
    for at in range(0, len(examples), _BATCH):
        prompts = [messages(args, prompt) for prompt, _ in examples[at : at + _BATCH]]
        results += generator.generate(prompts, source, logprobs=True, **options)
    found = programs.calibrate(
        [
            (scored(programs.grammar, result.token_ids, result.logprobs or []), right)
            for result, (_, right) in zip(results, examples, strict=True)
        ],
        error_rate=error_rate,
        confidence=confidence,
    )
    print(
        f"maskwright: --holes {found.threshold!r}: {found.misses} of {found.examples} examples are missed; with confidence "
        f"{found.confidence:g} at most {100 * found.error_rate:g} % of outputs are",
        file=sys.stderr,
    )
    return found.threshold


def _examples(path: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(read_source(path).split("\n"), 1):
        if line.strip():
            try:
                row = json.loads(line)
                prompt, text = row["prompt"], row["text"]
            except (ValueError, KeyError, TypeError, RecursionError):
                prompt = text = None
            if not isinstance(prompt, str) or not isinstance(text, str):
                raise UsageError(f'{path}:{number}: expected {{"prompt": "...", "text": "..."}}')
            yield prompt, text
