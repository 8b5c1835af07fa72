"""``maskwright infill``: a masked-diffusion model fills a canvas, with a live view of the slots."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from maskwright.cli.command import Command, add_format_option, is_json, print_document
from maskwright.cli.generation import loading
from maskwright.cli.progress import progress
from maskwright.cli.sources import (
    UsageError,
    add_schema_options,
    checked_values,
    json_schema_of,
    read_source,
    read_text,
    write_output,
)

if TYPE_CHECKING:
    from maskwright.diffusion import Step
    from maskwright.diffusion.adapters import HuggingFaceDiffusionModel
    from maskwright.sources import JsonSchema
    from maskwright.vocabulary.vocabulary import Vocabulary

_OPEN_SLOT = "░"


def add_infill_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--schema", required=True, metavar="FILE")
    parser.add_argument("--prompt", required=True, help="the request; - is standard input")
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="name or path; default: the demo masked-diffusion model of this package",
    )
    parser.add_argument("--slots", type=int, default=72, metavar="N", help="open slots (default 72)")
    parser.add_argument(
        "--prefix", default="", metavar="TEXT", help="fixed text before the slots; - is standard input"
    )
    parser.add_argument(
        "--suffix", default="", metavar="TEXT", help="fixed text behind the slots; - is standard input"
    )
    parser.add_argument("--steps", type=int, metavar="N", help="model calls (default: one for every slot)")
    parser.add_argument("--block", type=int, metavar="N", help="fill blocks of N slots from left to right")
    parser.add_argument(
        "--temperature", type=float, default=0.0, metavar="T", help="default 0: the likeliest token"
    )
    parser.add_argument("--seed", type=int, metavar="N")
    parser.add_argument(
        "--criterion",
        choices=("exact", "prefix", "gaps", "none"),
        default="exact",
        help="what a token must satisfy; all but exact are baselines and may fail",
    )
    parser.add_argument(
        "--live", choices=("auto", "always", "never"), default="auto", help="show the canvas in every step"
    )
    add_format_option(parser)
    add_schema_options(parser)
    parser.add_argument(
        "--html",
        metavar="OUT",
        help="write a film of the steps there, as a page; - is standard output, in place of the text",
    )


def infill(args: argparse.Namespace) -> int:
    """Fill, and print the text; 1 when a baseline's text is not in the language."""
    from maskwright.compiling.compiler import compile as compile_source
    from maskwright.diffusion import Schedule, frames, infill_steps
    from maskwright.pages.film import film

    if args.html == "-" and is_json(args):
        raise UsageError("--html - and --json both write to standard output: name a file")
    if args.slots < 0:
        raise UsageError(f"--slots: expected an integer of at least 0, got {args.slots}")
    source = json_schema_of(read_source(args.schema), args)
    text = read_text(args.prompt)
    args.prefix, args.suffix = read_text(args.prefix), read_text(args.suffix)
    # Bad options and schemas are reported before a model is loaded.
    with checked_values():
        schedule = Schedule(steps=args.steps, block=args.block, temperature=args.temperature)
    with loading(args.model), progress("loading the model"):
        model, vocabulary = _load(args, source, text)
    compiled = compile_source(source, vocabulary)
    canvas: list[Any] = [None] * args.slots
    canvas = [*([args.prefix] if args.prefix else []), *canvas, *([args.suffix] if args.suffix else [])]
    view = _View(vocabulary, args.live)
    calls, seconds, tokens = 0, 0.0, []
    steps: list[Step] = []
    for step in infill_steps(
        model, compiled, canvas, schedule=schedule, criterion=args.criterion, seed=args.seed
    ):
        view.show(step)
        if args.html is not None:
            steps.append(step)
        if step.number:
            calls += step.calls
        seconds, tokens = seconds + step.constraint_seconds, step.tokens
    view.close()
    ids = [token for token in tokens if token >= 0 and token not in model.eos_ids]
    matcher = compiled.matcher()
    valid = matcher.accept_tokens(ids) == len(ids) and matcher.is_accepting
    text = vocabulary.decode(ids).decode("utf-8", "replace")
    if args.html is not None:
        write_output(args.html, film(frames(steps, vocabulary)))
    if is_json(args):
        content = {"text": text, "valid": valid, "model_calls": calls, "constraint_seconds": seconds}
        print_document(args, content)
        return 0 if valid else 1
    if args.html != "-":
        print(text)
    print(f"maskwright: {calls} model calls, {1e3 * seconds:.1f} ms in the constraint", file=sys.stderr)
    if not valid:
        print("maskwright: the text does not follow the schema", file=sys.stderr)
    return 0 if valid else 1


def _load(
    args: argparse.Namespace, source: JsonSchema, text: str
) -> tuple[HuggingFaceDiffusionModel, Vocabulary]:
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer
    from transformers.utils import logging

    from maskwright.demo import demo_diffusion_path, format_prompt
    from maskwright.diffusion.adapters import HuggingFaceDiffusionModel
    from maskwright.frontends.json_text import read_json
    from maskwright.vocabulary.vocabulary import Vocabulary

    logging.disable_progress_bar()
    path = args.model or str(demo_diffusion_path())
    tokenizer = AutoTokenizer.from_pretrained(path)
    module = AutoModelForMaskedLM.from_pretrained(path).eval()
    prompt = text if args.model else format_prompt(text, read_json(str(source.schema)))
    if not args.model:
        # For so small a model, waiting for a second thread takes longer than its help saves.
        torch.set_num_threads(1)
    model = HuggingFaceDiffusionModel(module, tokenizer, prompt=tokenizer(prompt)["input_ids"])
    vocabulary = Vocabulary.from_huggingface(
        tokenizer, vocab_size=module.config.vocab_size, eos_ids=model.eos_ids
    )
    return model, vocabulary


class _View:
    """The canvas as text: fixed and filled slots spelled out, open ones as blocks."""

    def __init__(self, vocabulary: Vocabulary, live: str) -> None:
        self.vocabulary = vocabulary
        self.terminal = sys.stderr.isatty()
        self.shown = live == "always" or (live == "auto" and self.terminal)
        self.lines = 0

    def show(self, step: Step) -> None:
        if not self.shown:
            return
        text = self.spelled(step.tokens)
        if not self.terminal:
            print(f"{step.number:4d}  {text}", file=sys.stderr)
            return
        import shutil

        width = shutil.get_terminal_size().columns
        rows = [text[i : i + width] for i in range(0, len(text), width)] or [""]
        if self.lines:
            sys.stderr.write(f"\x1b[{self.lines}A\x1b[J")
        sys.stderr.write("\n".join(rows) + "\n")
        sys.stderr.flush()
        self.lines = len(rows)

    def close(self) -> None:
        if self.shown and self.terminal:
            # The text itself follows on standard output.
            sys.stderr.write(f"\x1b[{self.lines}A\x1b[J")
            sys.stderr.flush()

    def spelled(self, tokens: list[int]) -> str:
        from maskwright.diffusion.showing import slot_texts

        texts = slot_texts(tokens, self.vocabulary)
        joined = "".join(_OPEN_SLOT if text is None else text for text in texts)
        return joined.replace("\n", "⏎").replace("\t", " ").replace("\r", "")


COMMAND = Command(
    "infill",
    "let a masked-diffusion model fill a canvas, before your eyes",
    add_infill_arguments,
    infill,
    (
        "maskwright infill --schema person.json --prompt 'Ada Lovelace, 36'",
        "maskwright infill --schema person.json --prompt 'Ada Lovelace, 36' --slots 48 --steps 12 --json",
    ),
)
