"""``maskwright generate``: a model writes what a schema or a grammar allows."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from maskwright.cli.explain import add_source_argument
from maskwright.cli.generation import add_generation_options, generation_options
from maskwright.cli.partial import add_hole_options, generate_with_holes, messages
from maskwright.cli.sources import read_source

if TYPE_CHECKING:
    from maskwright.generation.generator import Generator


def add_generate_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_argument(parser)
    # Whoever lists members wants no others, if there can be a value without.
    parser.set_defaults(additional_properties="needed")
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


def generate(args: argparse.Namespace, source: Any, generator: Generator) -> int:
    """Print the outputs; 0."""
    text = read_source("-") if args.prompt == "-" else args.prompt
    prompt = messages(args, text)
    options = {**generation_options(args), "n": args.n}
    if args.holes is not None:
        return generate_with_holes(args, source, generator, prompt, options)
    if args.stream:
        shown = 0
        for step in generator.steps(prompt, source, **options):
            print(step.text[shown:], end="", flush=True)
            shown = len(step.text)
        print()
        return 0
    for result in generator.generate([prompt], source, **options):
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
    return 0
