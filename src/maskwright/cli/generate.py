"""``maskwright generate``: a model writes what a schema or a grammar allows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from maskwright.cli.command import Command, add_format_option, is_json, print_document
from maskwright.cli.explain import add_source_argument
from maskwright.cli.generation import (
    add_generation_options,
    check_stop_texts,
    check_system,
    generation_options,
    load_generator,
    writing,
)
from maskwright.cli.partial import add_hole_options, check_hole_options, messages, with_holes
from maskwright.cli.sources import UsageError, leave_out_undeclared, read_source, read_text, source_of

if TYPE_CHECKING:
    from maskwright.generation.results import Generation


def add_generate_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_argument(parser)
    parser.add_argument("--prompt", required=True, help="what the user asks; - is standard input")
    parser.add_argument("--system", metavar="TEXT", help="a system message")
    parser.add_argument(
        "--model", metavar="NAME", help="name or path of transformers; default: SmolLM2-135M-Instruct"
    )
    add_generation_options(parser)
    add_hole_options(parser)
    parser.add_argument("--n", type=int, default=1, metavar="N", help="outputs, one a line")
    parser.add_argument("--stream", action="store_true", help="print the text as it is written")
    parser.add_argument(
        "--stats", action="store_true", help="say on standard error what it took, and what masks removed"
    )
    add_format_option(parser)


def generate(args: argparse.Namespace) -> int:
    """Print the outputs; 0."""
    if args.stream and (args.holes is not None or is_json(args)):
        raise UsageError("--holes and --json need whole outputs: leave out --stream")
    check_hole_options(args)
    leave_out_undeclared(args)
    options = generation_options(args, n=args.n)
    if args.stream and (args.n > 1 or args.particles is not None or args.num_beams > 1):
        raise UsageError("--stream shows one output: leave out --n, --particles and --num-beams")
    source = source_of(args.schema, read_source(args.schema), args)
    check_stop_texts(source, args)
    prompt = messages(args, read_text(args.prompt))
    generator = load_generator(args.model)
    check_system(generator, args)
    if args.holes is not None:
        with writing(generator):
            threshold, partial = with_holes(args, source, generator, prompt, options)
        if is_json(args):
            print_document(args, {"outputs": partial, "threshold": threshold})
        else:
            print("\n".join(each["text"] for each in partial))
        return 0
    if args.stream:
        shown = 0
        for step in generator.steps(prompt, source, **options):
            print(step.text[shown:], end="", flush=True)
            shown = len(step.text)
        print()
        return 0
    with writing(generator):
        results = generator.generate([prompt], source, **options)
    if is_json(args):
        print_document(args, {"outputs": [_as_dict(result) for result in results]})
    else:
        _print(args, results)
    return 0


def _as_dict(result: Generation) -> dict[str, Any]:
    return {
        "text": result.text,
        "finish_reason": result.finish_reason,
        "usage": asdict(result.usage),
        "removed_mass": result.removed_mass.total,
    }


def _print(args: argparse.Namespace, results: Sequence[Generation]) -> None:
    for result in results:
        print(result.text)
        if result.finish_reason == "budget":
            print(
                "maskwright: the token budget ran short; the shortest completion was written", file=sys.stderr
            )
        if args.stats:
            usage = result.usage
            print(
                f"maskwright: {usage.generated_tokens} tokens ({usage.forced_tokens} forced) in {usage.model_calls} "
                f"forward passes and {usage.seconds:.2f} s, {1000 * usage.mask_seconds:.1f} ms of it in masks; masks "
                f"removed {100 * result.removed_mass.total:.1f} % of what the model would have written",
                file=sys.stderr,
            )


COMMAND = Command(
    "generate",
    "let a model write what a schema or grammar allows",
    add_generate_arguments,
    generate,
    (
        "maskwright generate --schema person.json --prompt 'Ada Lovelace, 36, as JSON'",
        "maskwright generate --schema person.json --prompt 'Three people' --n 3 --temperature 0.8 --seed 1 --json",
        "maskwright generate --grammar query.lark --prompt - --model NAME --stream < question.txt",
        "maskwright generate --grammar query.lark --prompt '...' --holes examples.jsonl",
    ),
)
