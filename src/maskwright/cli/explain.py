"""``maskwright mask`` and ``maskwright explain``: what may come next after a text, and why; pages of a grammar, a schema, a generation."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import Any

from maskwright.check.grammars import compile_for_bytes
from maskwright.check.texts import Expectation, Explainer, allowed_tokens
from maskwright.cli.command import Command, add_format_option, print_document
from maskwright.cli.generation import (
    add_generation_options,
    check_stop_texts,
    generation_options,
    given_options,
    load_generator,
    writing,
)
from maskwright.cli.progress import progress
from maskwright.cli.sources import (
    UsageError,
    add_language_options,
    add_schema_options,
    count,
    leave_out_undeclared,
    read_source,
    read_text,
    source_of,
    write_output,
)
from maskwright.cli.vocabulary import add_tokenizer_option, vocabulary_of
from maskwright.compiling.compiler import compile_grammar
from maskwright.errors import GrammarError
from maskwright.sources import JsonSchema


def add_source_argument(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """``--schema`` (or ``--grammar``), with the options of every language that it may be written in."""
    parser.add_argument(
        "--schema",
        "--grammar",
        required=required,
        metavar="FILE",
        help="a JSON Schema, grammar, regular expression",
    )
    add_language_options(parser)
    add_schema_options(parser)


def add_mask_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_argument(parser)
    parser.add_argument("--prefix", default="", metavar="TEXT", help="the output so far; - is standard input")
    parser.add_argument("--limit", type=count, default=50, metavar="N", help="bytes to list (default 50)")
    add_format_option(parser)


def add_explain_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_argument(parser)
    given = parser.add_mutually_exclusive_group()
    given.add_argument("--prefix", default="", metavar="TEXT", help="the output so far; - is standard input")
    given.add_argument("--prefix-file", metavar="FILE", help="the output so far, all of a file's text")
    parser.add_argument(
        "--token",
        action="append",
        default=[],
        metavar="TEXT",
        help="say whether this may come next, and if not, how far it fits and what was expected there",
    )
    parser.add_argument("--limit", type=count, default=20, metavar="N", help="tokens to list (default 20)")
    add_format_option(parser)
    add_tokenizer_option(parser, "whose tokens to list (default: single bytes)")
    page = parser.add_argument_group(
        "pages",
        "With --html alone: railroad diagrams of a grammar, the compiled form of a schema as a tree. With --prompt as well, a model writes an output, and "
        "each of its tokens is shown with what was allowed, what the model wanted, and what the mask removed.",
    )
    page.add_argument("--html", metavar="OUT", help="write a page there; - is standard output")
    page.add_argument("--prompt", metavar="TEXT", help="what the user asks a model; - is standard input")
    page.add_argument(
        "--model", metavar="NAME", help="name or path of transformers; default: SmolLM2-135M-Instruct"
    )
    add_generation_options(page)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a text may come next.  Of one that may not, ``fits`` is the part that could, and then ``expected`` was."""

    text: str
    allowed: bool
    fits: str
    expected: str


# --- mask -----------------------------------------------------------------------------------


def mask(args: argparse.Namespace) -> int:
    """Print what may come next, in bytes; 1 when the prefix is none."""
    place = _Place(args, read_text(args.prefix))
    matcher = place.matcher
    allowed = allowed_tokens(place.compiled, matcher)
    if args.format == "json":
        content = {
            **_of_matcher(matcher),
            "expected": str(place.expected()),
            "allowed": len(allowed),
            "bytes": [token[0] for token in allowed[: args.limit]],
        }
        print_document(args, content)
        return 0
    print(f"complete: {'yes' if matcher.is_accepting else 'no'}")
    print(f"forced: {matcher.forced_bytes().decode('utf-8', 'replace')!r}")
    print(f"shortest completion: {matcher.shortest_completion_bytes().decode('utf-8', 'replace')!r}")
    if not place.explainer.is_schema:
        print(place.expected())
    print(f"allowed bytes: {len(allowed)}")
    _list([repr(token) for token in allowed], args.limit)
    return 0


# --- explain --------------------------------------------------------------------------------


def explain(args: argparse.Namespace) -> int:
    """Print what may come next and which rules wait for it; 1 when the prefix is none."""
    if args.prompt is not None and args.html is None:
        raise UsageError("a page about a generation needs both --html and --prompt")
    if args.prompt is None:
        for option in given_options(args):
            raise UsageError(f"--{option} is for a page about a generation: it needs --prompt")
    if args.html is not None:
        return _page(args)
    vocabulary = vocabulary_of(args.tokenizer)
    place = _Place(args, read_source(args.prefix_file) if args.prefix_file else read_text(args.prefix))
    compiled = place.compiled
    matcher = place.matcher
    if vocabulary is not None:
        compiled = compile_grammar(place.explainer.grammar, vocabulary)
        matcher = compiled.matcher()
        matcher.accept_bytes(place.prefix)
    tokens = [_shown(token) for token in allowed_tokens(compiled, matcher)]
    ends = compiled.vocabulary.eos_ids
    expected = place.expected()
    verdicts = [place.verdict(text) for text in args.token]
    if args.format == "json":
        content = {
            **_of_matcher(matcher),
            "expected": [{"terminals": names, "rules": rules} for names, rules in expected.groups],
            "characters": expected.characters,
            "allowed": len(tokens),
            "vocabulary": compiled.vocabulary.vocab_size - len(ends),
            "tokens": tokens[: args.limit],
            "verdicts": [
                {"text": v.text, "allowed": v.allowed, "fits": v.fits, "expected": v.expected}
                for v in verdicts
            ],
        }
        print_document(args, content)
        return 0
    print(f"complete: {'yes, the text may end here' if matcher.is_accepting else 'no'}")
    forced = _shown(matcher.forced_bytes())
    print(f"forced: {forced!r}" if forced else "forced: nothing, there is a choice")
    print(f"shortest completion: {_shown(matcher.shortest_completion_bytes())!r}")
    for names, rules in expected.groups:
        print(f"waiting: {', '.join(names) or expected.characters}{_within(rules)}")
    print(f"characters: {expected.characters or 'none'}")
    kind = "bytes" if vocabulary is None else "tokens"
    print(f"allowed {kind}: {len(tokens)} of {compiled.vocabulary.vocab_size - len(ends)}")
    _list([repr(token) for token in tokens], args.limit)
    for verdict in verdicts:
        if verdict.allowed:
            print(f"{verdict.text!r} may come next")
        else:
            behind = f"behind {verdict.fits!r}, " if verdict.fits else ""
            print(f"{verdict.text!r} may not come next: {behind}{verdict.expected}")
    return 0


def _page(args: argparse.Namespace) -> int:
    """Write the page of a source; or let a model write, and write the page about that."""
    if args.prefix or args.prefix_file or args.token or args.tokenizer:
        raise UsageError("--prefix, --prefix-file, --token and --tokenizer do not go with --html")
    if args.format == "json":
        raise UsageError("--html writes a page: leave out --json")
    if args.prompt is not None:
        leave_out_undeclared(args)
    source = source_of(args.schema, read_source(args.schema), args)
    name = "standard input" if args.schema == "-" else os.path.basename(args.schema)
    if args.prompt is None:
        if isinstance(source, JsonSchema):
            from maskwright.pages.tree import tree

            write_output(args.html, tree(source, title=f"The compiled form of {name}"))
        else:
            from maskwright.pages.railroad import railroad

            write_output(args.html, railroad(source, title=f"The grammar {name}"))
        return 0
    from maskwright.pages.explain import explain

    options = generation_options(args)
    check_stop_texts(source, args)
    prompt = read_text(args.prompt)
    generator = load_generator(args.model)
    with writing(generator):
        trace = generator.trace(prompt, source, **options)
    write_output(args.html, explain(trace))
    return 0


class _Place:
    """A place of a text, in the language of the command line's source.  Raises ``GrammarError`` where no text begins like this."""

    def __init__(self, args: argparse.Namespace, prefix: str) -> None:
        source = source_of(args.schema, read_source(args.schema), args)
        with progress("compiling"):
            grammar, self.compiled = compile_for_bytes(source)
        self.explainer = Explainer(grammar, self.compiled, is_schema=isinstance(source, JsonSchema))
        self.prefix = _bytes(prefix)
        self.matcher = self.compiled.matcher()
        self.read = self.matcher.longest_prefix(self.prefix)
        self.matcher.accept_bytes(self.prefix[: self.read])
        if self.read < len(self.prefix):
            before = self.prefix[: self.read].decode("utf-8", "replace")
            raise GrammarError(
                f"the output cannot begin like this; it can as far as {before!r}, where {self.expected()}"
            )

    def expected(self, behind: bytes = b"") -> Expectation:
        return self.explainer.expected(self.prefix[: self.read] + behind)

    def verdict(self, text: str) -> Verdict:
        data = _bytes(text)
        if not data:
            raise UsageError("--token needs a text")
        fits = self.matcher.longest_prefix(data)
        if fits == len(data):
            return Verdict(text, True, text, "")
        return Verdict(text, False, data[:fits].decode("utf-8", "replace"), str(self.expected(data[:fits])))


def _of_matcher(matcher: Any) -> dict[str, Any]:
    return {
        "complete": matcher.is_accepting,
        "forced": _shown(matcher.forced_bytes()),
        "shortest_completion": _shown(matcher.shortest_completion_bytes()),
    }


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")  # as it came from the shell


def _shown(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _within(rules: tuple[str, ...]) -> str:
    return f" in {' < '.join(rules)}" if rules else ""


def _list(shown: list[str], most: int) -> None:
    for each in shown[:most]:
        print(f"  {each}")
    if len(shown) > most:
        print(f"  ... and {len(shown) - most} more")


MASK = Command(
    "mask",
    "what may come next after a text, and what is forced",
    add_mask_arguments,
    mask,
    (
        """maskwright mask --schema person.json --prefix '{"name'""",
        "maskwright mask --grammar grammar.lark --prefix 'let ' --json",
    ),
    "What may come next after a text, byte by byte; what is forced, and the shortest text that ends it.",
)
EXPLAIN = Command(
    "explain",
    "which tokens may come next after a text, what waits for them, and why others may not",
    add_explain_arguments,
    explain,
    (
        "maskwright explain --grammar grammar.lark --prefix 'let ' --token 4",
        "maskwright explain --schema person.json --tokenizer default --json",
        "maskwright explain --schema person.json --prompt 'Ada Lovelace, 36, as JSON' --html page.html",
    ),
)
