"""The command line: ``maskwright check``, ``generate``, ``infill``, ``mask``.

Exit codes: 0 good, 1 findings, 2 usage (bad arguments, unreadable files).  ``-`` is standard input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from maskwright import __version__
from maskwright.cli_infill import add_infill_arguments
from maskwright.errors import MaskwrightError
from maskwright.report import Finding, Report

if TYPE_CHECKING:
    from maskwright.frontends.json_schema.options import SchemaOptions

GOOD, FINDINGS, USAGE = 0, 1, 2
PROFILES = ("openai-strict",)
_OTHER_KINDS = (".lark", ".gbnf", ".ebnf", ".g4")


class UsageError(Exception):
    """Something on the command line cannot be used."""


def read_source(path: str) -> str:
    """The text of a file or of standard input.  Raises ``UsageError`` when it cannot be read."""
    try:
        if path == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text (byte {error.start})") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = _parser()
    args = parser.parse_args(arguments)
    try:
        code: int = args.run(args)
        return code
    except UsageError as error:
        print(f"maskwright: {error}", file=sys.stderr)
        return USAGE
    except MaskwrightError as error:
        print(f"maskwright: {error}", file=sys.stderr)
        return FINDINGS
    except BrokenPipeError:
        sys.stderr.close()
        return GOOD


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="maskwright", description="Structured output that always validates."
    )
    parser.add_argument("--version", action="version", version=f"maskwright {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    check = commands.add_parser(
        "check", help="report what a schema enforces and every problem of it, or of texts against it"
    )
    check.add_argument("schema", nargs="+", metavar="SCHEMA", help="JSON Schema files")
    check.add_argument(
        "--instance", action="extend", nargs="+", default=[], metavar="FILE", help="texts to check against it"
    )
    check.add_argument(
        "--output-format", "--format", choices=("text", "json", "sarif", "github"), default="text"
    )
    check.add_argument(
        "--profile", choices=PROFILES, help="also report what that service's documented subset does not have"
    )
    check.add_argument(
        "--verbose",
        action="store_true",
        help="also list hints, and for each subschema which keywords are enforced, annotations, or refused "
        "(JSON output always has both)",
    )
    _schema_options(check)
    check.set_defaults(run=run_check)

    generate = commands.add_parser("generate", help="let a model write JSON that follows a schema")
    generate.add_argument("--schema", required=True, metavar="FILE")
    generate.add_argument("--prompt", required=True)
    generate.add_argument(
        "--model", metavar="NAME", help="name or path; default: the demo model of this package"
    )
    generate.add_argument(
        "--max-tokens", type=int, default=512, metavar="N", help="EOS included (default 512)"
    )
    generate.add_argument("--temperature", type=float, metavar="T", help="default: the likeliest token")
    generate.add_argument("--seed", type=int, metavar="N")
    generate.add_argument("--stream", action="store_true", help="print the text as it is written")
    generate.set_defaults(run=run_generate)

    infill = commands.add_parser(
        "infill", help="let a masked-diffusion model fill a canvas, before your eyes"
    )
    add_infill_arguments(infill)
    infill.set_defaults(run=run_infill)

    mask = commands.add_parser("mask", help="what may come next after a text, and what is forced")
    mask.add_argument("--schema", required=True, metavar="FILE")
    mask.add_argument("--prefix", default="", metavar="TEXT", help="the output so far")
    mask.add_argument("--limit", type=int, default=50, metavar="N", help="bytes to list (default 50)")
    _schema_options(mask)
    mask.set_defaults(run=run_mask)
    return parser


def _schema_options(parser: argparse.ArgumentParser) -> None:
    # The names are those of SchemaOptions, which has the defaults and checks the values.
    group = parser.add_argument_group("options of JSON Schema (see docs/json-schema.md)")

    def option(name: str, **settings: Any) -> None:
        group.add_argument(name, default=argparse.SUPPRESS, **settings)

    option("--property-order", choices=("schema", "any"), help="order of members (default: schema)")
    option(
        "--whitespace",
        type=_whitespace,
        metavar="flexible|compact|N",
        help="between tokens; N: an indentation of N blanks (default: flexible)",
    )
    option("--max-whitespace", type=int, metavar="N", help="blanks behind a line break (default: 64)")
    option(
        "--max-number-digits", type=int, metavar="N", help="digits before and behind a point (default: 40)"
    )
    option(
        "--no-additional-properties",
        dest="additional_properties",
        action="store_false",
        help="only members that the schema mentions, where it does not say otherwise",
    )
    option("--formats", choices=("assert", "annotate"), help="enforce formats, or not (default: assert)")
    option("--dialect", metavar="NAME", help="draft4, 2020-12, openapi-3.0, ... (default: what $schema says)")


def _whitespace(text: str) -> str | int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else text


def schema_options(args: argparse.Namespace) -> SchemaOptions:
    """The options given on the command line.  Raises ``UsageError`` for values that they do not have."""
    from maskwright.frontends.json_schema.options import SchemaOptions

    names = [option.name for option in fields(SchemaOptions)]
    try:
        return SchemaOptions(**{name: getattr(args, name) for name in names if hasattr(args, name)})
    except MaskwrightError as error:
        raise UsageError(str(error)) from None


# --- check ----------------------------------------------------------------------------------


def run_check(args: argparse.Namespace) -> int:
    from maskwright.cli_check import check_instance, check_schema, compile_for_bytes, render

    if [*args.schema, *args.instance].count("-") > 1:
        raise UsageError("standard input ('-') can be read only once")
    instances = [(path, read_source(path)) for path in args.instance]
    findings: list[tuple[str, Finding]] = []
    reports: list[tuple[str, Report]] = []
    options = schema_options(args)
    for path in args.schema:
        if path.endswith(_OTHER_KINDS):
            raise UsageError(f"{path}: this version checks JSON Schemas only")
        text = read_source(path)
        report = check_schema(text, options, args.profile)
        reports.append((path, report))
        findings.extend((path, finding) for finding in report.findings)
        if report.compiles and instances:
            compiled = compile_for_bytes(text, options)
            for instance, data in instances:
                findings.extend((instance, finding) for finding in check_instance(compiled, data))
    # Names in a schema may have lone surrogates, which no output can.
    print(render(findings, reports, args).encode("utf-8", "backslashreplace").decode(), end="")
    return FINDINGS if any(finding.severity == "error" for _, finding in findings) else GOOD


# --- generate -------------------------------------------------------------------------------


def run_generate(args: argparse.Namespace) -> int:
    schema = read_source(args.schema)
    try:
        from maskwright.generator import Generator

        generator = Generator.from_pretrained(args.model)
    except ImportError as error:
        raise UsageError(f'{error}; models need: pip install "maskwright[hf]"') from None
    except MaskwrightError:
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"the model {args.model!r} cannot be loaded: {error}") from None
    options: dict[str, Any] = {
        "max_new_tokens": args.max_tokens,
        "temperature": args.temperature,
        "seed": args.seed,
    }
    if args.stream:
        shown = 0
        for step in generator.steps(args.prompt, schema, **options):
            print(step.text[shown:], end="", flush=True)
            shown = len(step.text)
        print()
        return GOOD
    (generation,) = generator.generate([args.prompt], schema, **options)
    print(generation.text)
    if generation.finish_reason == "budget":
        print("maskwright: the token budget ran short; the shortest completion was written", file=sys.stderr)
    return GOOD


# --- infill ---------------------------------------------------------------------------------


def run_infill(args: argparse.Namespace) -> int:
    from maskwright.cli_infill import infill

    schema = read_source(args.schema)
    try:
        return infill(args, schema)
    except ImportError as error:
        raise UsageError(f'{error}; models need: pip install "maskwright[hf]"') from None
    except MaskwrightError:
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"the model {args.model!r} cannot be loaded: {error}") from None


# --- mask -----------------------------------------------------------------------------------


def run_mask(args: argparse.Namespace) -> int:
    from maskwright.cli_check import compile_for_bytes

    compiled = compile_for_bytes(read_source(args.schema), schema_options(args))
    matcher = compiled.matcher()
    prefix = args.prefix.encode("utf-8", "surrogateescape")  # as it came from the shell
    read = matcher.longest_prefix(prefix)
    if read < len(prefix):
        allowed = prefix[:read].decode("utf-8", "replace")
        print(f"maskwright: the output cannot begin like this; it can as far as {allowed!r}", file=sys.stderr)
        return FINDINGS
    matcher.accept_bytes(prefix)
    allowed_tokens = _allowed(compiled, matcher)
    print(f"complete: {'yes' if matcher.is_accepting else 'no'}")
    print(f"forced: {matcher.forced_bytes().decode('utf-8', 'replace')!r}")
    completion = matcher.shortest_completion_bytes().decode("utf-8", "replace")
    print(f"shortest completion: {completion!r}")
    print(f"allowed bytes: {len(allowed_tokens)}")
    for token in allowed_tokens[: max(args.limit, 0)]:
        print(f"  {token!r}")
    if len(allowed_tokens) > max(args.limit, 0):
        print(f"  ... and {len(allowed_tokens) - max(args.limit, 0)} more")
    return GOOD


def _allowed(compiled: Any, matcher: Any) -> list[bytes]:
    from maskwright.bitmask import allocate_token_bitmask

    vocabulary = compiled.vocabulary
    mask = allocate_token_bitmask(1, vocabulary.size)
    matcher.fill_next_token_bitmask(mask)
    return [token for i, token in enumerate(vocabulary.tokens) if token and mask[0, i >> 5] >> (i & 31) & 1]


if __name__ == "__main__":
    sys.exit(main())
