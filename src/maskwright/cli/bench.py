"""``maskwright bench``: what a schema or grammar costs on this machine, in the tokens of a vocabulary.

*Compile* and *first mask* are measured on fresh copies of the vocabulary, which know no language yet; the least of some
repetitions counts.  Then texts of the language (given ones, else random sentences) are followed token by token: in
the *first pass* every state is new, and the *steady* figures are each step's least time over later passes, when
its state is known, as in serving.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maskwright.check.grammars import compile_for_bytes
from maskwright.check.sentences import sentences
from maskwright.cli.command import Command, add_format_option, print_document
from maskwright.cli.explain import add_source_argument
from maskwright.cli.progress import progress
from maskwright.cli.sources import UsageError, count, read_instances, read_source, source_of, write_output
from maskwright.cli.vocabulary import add_tokenizer_option, vocabulary_of
from maskwright.compiling.compiler import CompiledGrammar, compile_grammar, compile_regex
from maskwright.compiling.compiler import compile as compile_source
from maskwright.ir.grammar import Grammar
from maskwright.masks.bitmask import allocate_token_bitmask
from maskwright.pages.bench import report
from maskwright.vocabulary.engine_cache import engine_for
from maskwright.vocabulary.vocabulary import Vocabulary

_QUANTILES = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
_STEPS = {
    "first_pass": "mask + accept, new states",
    "steady_mask": "mask, known states",
    "steady_accept": "accept, known states",
}
"""What is measured at each token, in words."""


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_argument(parser)
    parser.add_argument(
        "--instance",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE",
        help="texts to follow (default: random sentences)",
    )
    parser.add_argument(
        "--sentences", type=count, default=20, metavar="N", help="random sentences to follow (default 20)"
    )
    parser.add_argument(
        "--repeat", type=count, default=5, metavar="N", help="repetitions of everything (default 5)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the sentences")
    add_format_option(parser)
    parser.add_argument(
        "--html",
        metavar="OUT",
        help="also write the figures there, as a page; - is standard output, in place of the text",
    )
    add_tokenizer_option(parser, "whose tokens to read (default: demo)", "demo")


def bench(args: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    if not args.repeat:
        raise UsageError("--repeat must be at least 1")
    if args.html == "-" and args.format == "json":
        raise UsageError("--html - and --json both write to standard output: name a file")
    source = source_of(args.schema, read_source(args.schema), args)
    instances = read_instances(args.instance)
    grammar, over_bytes = compile_for_bytes(source)
    vocabulary = vocabulary_of(args.tokenizer) or over_bytes.vocabulary
    texts = [_accepted(over_bytes, path, text) for path, text in instances.items()]
    if not texts:
        texts = [text.encode() for text in sentences(over_bytes, args.sentences, seed=args.seed)]
    with progress("measuring", 2 * args.repeat + 1, "rounds") as bar:
        figures = measure(source, grammar, vocabulary, texts, args.repeat, bar.update)
    if args.html is not None:
        write_output(args.html, report({args.schema: _titled(figures)}))
    if args.html == "-":
        return 0
    if args.format == "json":
        print_document(args, figures)
    else:
        print(_text(figures))
    return 0


COMMAND = Command(
    "bench",
    "what a schema or grammar costs on this machine",
    add_bench_arguments,
    bench,
    (
        "maskwright bench --schema person.json",
        "maskwright bench --grammar grammar.lark --instance program.txt --tokenizer default --json",
    ),
    "What a schema or grammar costs on this machine: compiling, the first mask, and masks and tokens along texts of the language.",
)


def _accepted(compiled: CompiledGrammar, path: str, text: str) -> bytes:
    for given in dict.fromkeys((text, text.rstrip(" \t\r\n"))):
        matcher = compiled.matcher()
        data = given.encode()
        if (not data or matcher.accept_bytes(data)) and matcher.is_accepting:
            return data
    raise UsageError(f"{path}: not in the language; maskwright check --instance says why")


def measure(
    source: Any,
    grammar: Grammar,
    vocabulary: Vocabulary,
    texts: Sequence[bytes],
    repeat: int,
    over: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """The figures, in milliseconds (``..._ms``) and microseconds (all others); ``over`` is called behind each round."""
    fresh = [copy.copy(vocabulary) for _ in range(repeat)]
    compile_seconds, first_seconds = [], []
    row = allocate_token_bitmask(1, vocabulary.vocab_size)
    for each in fresh:
        compile_regex("maskwright", each)  # The engine itself is loaded once for a vocabulary.
        begun = time.perf_counter()
        compiled = compile_source(source, each)
        compile_seconds.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        compiled.matcher().fill_next_token_bitmask(row)
        first_seconds.append(time.perf_counter() - begun)
        over()
    compiled = compile_grammar(grammar, fresh[-1])
    rows = [engine_for(compiled.vocabulary).segment(text, True) for text in texts]
    passes = []
    for _ in range(repeat + 1):
        passes.append(_follow(compiled, rows, row))
        over()
    steady = np.min(np.array(passes[1:]), axis=0) if rows else np.zeros((0, 2))
    return {
        "vocabulary": vocabulary.vocab_size,
        "texts": len(texts),
        "tokens": sum(map(len, rows)),
        "compile_ms": round(min(compile_seconds) * 1e3, 3),
        "first_mask_ms": round(min(first_seconds) * 1e3, 3),
        "first_pass": _quantiles(np.sum(passes[0], axis=1) if rows else np.zeros(0)),
        "steady_mask": _quantiles(steady[:, 0]),
        "steady_accept": _quantiles(steady[:, 1]),
        "statistics": compiled.statistics,
    }


def _follow(compiled: CompiledGrammar, rows: Sequence[Sequence[int]], row: Any) -> list[tuple[float, float]]:
    """Seconds of mask and accept at each token."""
    found: list[tuple[float, float]] = []
    clock: Callable[[], float] = time.perf_counter
    for ids in rows:
        matcher = compiled.matcher()
        for token in ids:
            begun = clock()
            matcher.fill_next_token_bitmask(row)
            between = clock()
            matcher.accept_token(token)
            found.append((between - begun, clock() - between))
    return found


def _quantiles(seconds: Any) -> dict[str, float]:
    if not len(seconds):
        return {}
    return {name: round(float(np.quantile(seconds, share)) * 1e6, 2) for name, share in _QUANTILES}


def _titled(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures with words and units, for people."""
    return {
        "vocabulary, tokens": figures["vocabulary"],
        "texts followed": figures["texts"],
        "tokens followed": figures["tokens"],
        "compile, ms": figures["compile_ms"],
        "first mask, ms": figures["first_mask_ms"],
        "microseconds a token": {label: figures[name] for name, label in _STEPS.items()},
        "the grammar holds": figures["statistics"],
    }


def _text(figures: dict[str, Any]) -> str:
    lines = [
        f"vocabulary: {figures['vocabulary']} tokens; followed: {figures['texts']} texts, {figures['tokens']} tokens",
        f"compile: {figures['compile_ms']:.2f} ms; first mask: {figures['first_mask_ms']:.2f} ms",
    ]
    for name, label in _STEPS.items():
        found = figures[name]
        lines.append(
            f"{label}: "
            + (
                ", ".join(f"{key} {value:.2f}" for key, value in found.items()) + " us"
                if found
                else "no tokens"
            )
        )
    return "\n".join(lines)
