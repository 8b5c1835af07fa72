"""The command line: ``maskwright check``, ``generate``, ``batch``, ``infill``, ``mask``, ``explain``, ``bench``,
``playground``, ``conformance``, ``serve``, ``completion``.

Exit codes: 0 good, 1 findings, 2 usage (bad arguments, unreadable files).  ``-`` is standard input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from maskwright import __version__
from maskwright.check.report import Finding, Report
from maskwright.cli.batch import BATCH_DESCRIPTION, BATCH_EXAMPLES, add_batch_arguments, batch
from maskwright.cli.bench import add_bench_arguments, bench
from maskwright.cli.completion import SHELLS, script
from maskwright.cli.conformance import DESCRIPTION as CONFORMANCE
from maskwright.cli.conformance import EXAMPLES as CONFORMANCE_EXAMPLES
from maskwright.cli.conformance import add_conformance_arguments, conformance
from maskwright.cli.explain import add_explain_arguments, add_mask_arguments, explain, mask
from maskwright.cli.generate import add_generate_arguments, generate
from maskwright.cli.generation import load_generator, loading
from maskwright.cli.infill import add_infill_arguments
from maskwright.cli.playground import add_playground_arguments, playground
from maskwright.cli.serve import add_serve_arguments, serve
from maskwright.cli.sources import (
    UsageError,
    add_language_options,
    add_schema_options,
    count,
    json_schema_of,
    read_source,
    source_of,
)
from maskwright.errors import MaskwrightError

GOOD, FINDINGS, USAGE = 0, 1, 2
PROFILES = ("openai-strict",)


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
        "check", help="report every problem of schemas and grammars, or of texts against them"
    )
    check.add_argument("file", nargs="+", metavar="FILE", help="JSON Schemas, grammars, regular expressions")
    check.add_argument(
        "--instance", action="extend", nargs="+", default=[], metavar="FILE", help="texts to check against it"
    )
    check.add_argument(
        "--sample", type=count, default=0, metavar="N", help="also print N random sentences, as JSON strings"
    )
    check.add_argument("--seed", type=int, metavar="N", help="of the sentences")
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
    add_language_options(check)
    add_schema_options(check)
    check.set_defaults(run=run_check)

    written = commands.add_parser("generate", help="let a model write what a schema or grammar allows")
    add_generate_arguments(written)
    written.set_defaults(run=run_generate)

    many = commands.add_parser(
        "batch",
        help="fill schemas for a file of prompts; can be killed and run again",
        description=BATCH_DESCRIPTION,
        epilog=BATCH_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_batch_arguments(many)
    many.set_defaults(run=batch)

    infill = commands.add_parser(
        "infill", help="let a masked-diffusion model fill a canvas, before your eyes"
    )
    add_infill_arguments(infill)
    add_schema_options(infill)
    infill.set_defaults(run=run_infill)

    allowed = commands.add_parser("mask", help="what may come next after a text, and what is forced")
    add_mask_arguments(allowed)
    allowed.set_defaults(run=mask)

    explained = commands.add_parser(
        "explain", help="which tokens may come next after a text, what waits for them, and why others may not"
    )
    add_explain_arguments(explained)
    explained.set_defaults(run=explain)

    measured = commands.add_parser("bench", help="what a schema or grammar costs on this machine")
    add_bench_arguments(measured)
    measured.set_defaults(run=bench)

    tried = commands.add_parser("playground", help="a local page to try schemas and grammars on")
    add_playground_arguments(tried)
    tried.set_defaults(run=playground)

    tested = commands.add_parser(
        "conformance",
        help="recorded cases with any engine: too loose, too strict, refused, crash",
        description=CONFORMANCE,
        epilog=CONFORMANCE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_conformance_arguments(tested)
    tested.set_defaults(run=conformance)

    served = commands.add_parser(
        "serve", help="serve a model as OpenAI's API, with every output constrained as asked"
    )
    add_serve_arguments(served)
    served.set_defaults(run=serve)

    completion = commands.add_parser("completion", help="print a script that completes commands and options")
    completion.add_argument("shell", choices=SHELLS)
    completion.set_defaults(run=run_completion)
    return parser


# --- check ----------------------------------------------------------------------------------


def run_check(args: argparse.Namespace) -> int:
    from maskwright.check.sentences import sentences
    from maskwright.cli.check import check_file, render

    if [*args.file, *args.instance].count("-") > 1:
        raise UsageError("standard input ('-') can be read only once")
    if args.sample and args.output_format not in ("text", "json"):
        raise UsageError("--sample needs --format text or json")
    instances = [(path, read_source(path)) for path in args.instance]
    findings: list[tuple[str, Finding]] = []
    reports: list[tuple[str, Report]] = []
    samples: list[tuple[str, str]] = []
    for path in args.file:
        report, explainer = check_file(path, read_source(path), args, compiled=bool(instances or args.sample))
        reports.append((path, report))
        findings.extend((path, finding) for finding in report.findings)
        if explainer is not None:
            for instance, data in instances:
                findings.extend((instance, finding) for finding in explainer.check(data))
            drawn = sentences(explainer.compiled, args.sample, seed=args.seed)
            samples.extend((path, text) for text in drawn)
    # Names in a schema may have lone surrogates, which no output can.
    shown = render(findings, reports, samples, args)
    print(shown.encode("utf-8", "backslashreplace").decode(), end="")
    return FINDINGS if any(finding.severity == "error" for _, finding in findings) else GOOD


# --- generate -------------------------------------------------------------------------------


def run_generate(args: argparse.Namespace) -> int:
    source = source_of(args.schema, read_source(args.schema), args)
    return generate(args, source, load_generator(args.model))


# --- infill ---------------------------------------------------------------------------------


def run_infill(args: argparse.Namespace) -> int:
    from maskwright.cli.infill import infill

    source = json_schema_of(read_source(args.schema), args)
    with loading(args.model):
        return infill(args, source)


# --- completion -----------------------------------------------------------------------------


def run_completion(args: argparse.Namespace) -> int:
    print(script(_parser(), args.shell), end="")
    return GOOD


if __name__ == "__main__":
    sys.exit(main())
