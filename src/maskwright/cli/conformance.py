"""``maskwright conformance``: recorded cases with any engine, and what came of them as a table."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any

from maskwright.cli.command import Command, add_format_option, print_document
from maskwright.cli.progress import progress
from maskwright.cli.sources import UsageError
from maskwright.conformance import ENGINES, OUTCOMES, Case, ConformanceError, Result, load_cases, run
from maskwright.conformance.runner import MEMORY, SECONDS

_DESCRIPTION = """\
Recorded cases (every JSON Schema keyword, unicode, numbers, white space, end tokens, padding ids, rollback, deep nesting) with any engine.
Right and wrong come from the specifications.  Each engine runs in a process of its own: a crash or a hang there is an outcome.
docs/conformance.md says what an engine looks like to the kit.  Exit code 1 when a case fails."""


def add_conformance_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        action="append",
        required=True,
        metavar="NAME",
        help=f"{', '.join(ENGINES)}, or module:factory; several are compared",
    )
    parser.add_argument(
        "--group", action="append", metavar="NAME", help="only this group of cases (repeatable)"
    )
    parser.add_argument(
        "--cases",
        action="append",
        default=[],
        metavar="FILE",
        help="cases of a file instead of the recorded ones",
    )
    parser.add_argument(
        "--time-limit",
        type=_positive,
        default=SECONDS,
        metavar="SECONDS",
        help=f"of a case (default {SECONDS:g})",
    )
    parser.add_argument(
        "--memory-limit",
        type=_positive,
        default=MEMORY / 2**20,
        metavar="MB",
        help=f"of an engine's process (default {MEMORY >> 20})",
    )
    parser.add_argument("--verbose", action="store_true", help="also list every case that fails, and why")
    add_format_option(parser)


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number <= 1e9:  # No clock and no system takes numbers of any size.
        raise argparse.ArgumentTypeError("must be above 0, and at most 1e9")
    return number


def conformance(args: argparse.Namespace) -> int:
    """Run, and print; 1 when any case fails."""
    cases = _chosen(args)
    found: dict[str, list[Result]] = {}
    for engine in dict.fromkeys(args.engine):
        try:
            results = run(engine, cases, seconds=args.time_limit, memory=int(args.memory_limit * 2**20))
            found[engine] = []
            with progress(engine, len(cases), "cases") as bar:
                for result in results:
                    found[engine].append(result)
                    bar.update()
        except ConformanceError as error:
            raise UsageError(str(error)) from None
    if args.format == "json":
        print_document(args, _document(found))
    else:
        print(_text(found, args.verbose))
    return int(any(result.outcome != "pass" for results in found.values() for result in results))


def _chosen(args: argparse.Namespace) -> list[Case]:
    try:
        cases = load_cases(args.cases)
    except (OSError, ConformanceError) as error:
        raise UsageError(str(error)) from None
    groups = dict.fromkeys(case.group for case in cases)
    for name in args.group or ():
        if name not in groups:
            raise UsageError(f"no group {name!r}; there are {', '.join(groups)}")
    return [case for case in cases if not args.group or case.group in args.group]


COMMAND = Command(
    "conformance",
    "recorded cases with any engine: too loose, too strict, refused, crash",
    add_conformance_arguments,
    conformance,
    (
        "maskwright conformance --engine maskwright",
        "maskwright conformance --engine llguidance --engine xgrammar --engine outlines-core",
        "maskwright conformance --engine my_engine:Engine --group unicode --verbose",
    ),
    _DESCRIPTION,
)

# --- output ---------------------------------------------------------------------------------


def _counts(results: Sequence[Result]) -> dict[str, int]:
    counted = Counter(result.outcome for result in results)
    return {name: counted[name] for name in OUTCOMES}


def _by_group(results: Sequence[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.case.group, []).append(result)
    return groups


def _document(found: dict[str, list[Result]]) -> dict[str, Any]:
    return {
        "engines": {
            engine: {
                "total": _counts(results),
                "groups": {name: _counts(group) for name, group in _by_group(results).items()},
                "cases": [
                    {
                        "case": result.case.id,
                        "basis": result.case.basis,
                        "outcome": result.outcome,
                        "problems": list(result.problems),
                        "seconds": round(result.seconds, 3),
                    }
                    for result in results
                ],
            }
            for engine, results in found.items()
        },
    }


def _text(found: dict[str, list[Result]], verbose: bool) -> str:
    lines: list[str] = []
    for engine, results in found.items():
        groups = _by_group(results)
        failing = {name: group for name, group in groups.items() if _counts(group)["pass"] < len(group)}
        rows = [(name, _counts(group)) for name, group in failing.items()]
        if len(groups) > len(failing):
            rest = [result for name, group in groups.items() if name not in failing for result in group]
            rows.append((f"{len(groups) - len(failing)} groups without a failure", _counts(rest)))
        lines += [*_table(engine, [*rows, ("total", _counts(results))]), ""]
        if verbose:
            for result in results:
                if result.outcome != "pass":
                    lines.append(f"{result.outcome}: {result.case.id}")
                    lines += [f"    {problem}" for problem in result.problems]
            lines.append("")
    if len(found) > 1:
        lines += [*_table("all cases", [(engine, _counts(results)) for engine, results in found.items()]), ""]
    if not verbose and any(r.outcome != "pass" for results in found.values() for r in results):
        lines.append("--verbose lists the cases that fail")
    return "\n".join(lines).rstrip()


def _table(title: str, rows: Sequence[tuple[str, dict[str, int]]]) -> list[str]:
    width = max(len(title), *(len(name) for name, _ in rows)) + 2
    lines = [f"{title:{width}}{'cases':>7}" + "".join(f"{name:>12}" for name in OUTCOMES)]
    for name, counts in rows:
        cells = "".join(f"{counts[outcome] or '-':>12}" for outcome in OUTCOMES)
        lines.append(f"{name:{width}}{sum(counts.values()):>7}{cells}")
    return lines
