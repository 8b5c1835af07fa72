"""The command line: the table of commands, and what becomes of their errors."""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress

from maskwright import __version__
from maskwright.cli import (
    batch,
    bench,
    check,
    completion,
    conformance,
    explain,
    generate,
    infill,
    lsp,
    manual,
    playground,
    serve,
)
from maskwright.cli.command import (
    DEFECT,
    EXIT_CODES,
    FINDINGS,
    GOOD,
    INTERRUPTED,
    USAGE,
    is_json,
    print_document,
    without_controls,
)
from maskwright.cli.sources import UsageError
from maskwright.errors import MaskwrightError

_DESCRIPTION = """\
Structured output that always validates: JSON Schemas, grammars and regular expressions as exact masks for language models.
- is standard input wherever a file to read, a prompt, a prefix or a suffix is asked for."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns one of ``EXIT_CODES``.  Raises ``SystemExit`` (2) for arguments that are none, as argparse does."""
    if sys.stderr is None:
        # ``print`` would write messages for it to standard output.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Texts may have characters that the encoding of a terminal does not.
            stream.reconfigure(errors="backslashreplace")
    args = make_parser().parse_args(arguments)
    if sys.stdout is None:
        return _failed(args, USAGE, "UsageError", "standard output is closed")
    try:
        code: int = args.run(args)
        _flush()
        return code
    except BrokenPipeError:
        # Whoever reads has enough.
        sys.stderr.close()
        return GOOD
    except UsageError as error:
        return _failed(args, USAGE, "UsageError", str(error))
    except MaskwrightError as error:
        return _failed(
            args, FINDINGS, type(error).__name__, _located(args, error), getattr(error, "place", None)
        )
    except OSError as error:
        # A full disk, say, below what is written to.
        return _failed(args, USAGE, type(error).__name__, str(error))
    except KeyboardInterrupt as error:
        return _failed(
            args, INTERRUPTED, "KeyboardInterrupt", "; ".join(["interrupted", *map(str, error.args)])
        )
    except Exception as error:
        traceback.print_exc()
        return _failed(args, DEFECT, type(error).__name__, f"this is a defect of maskwright: {error}")


def _flush() -> None:
    """Notice here, and not when Python ends, that something cannot be written."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def _located(args: argparse.Namespace, error: MaskwrightError) -> str:
    """The message of an error, in front of it the file if the place is one in that."""
    file = getattr(args, "schema", None)
    return f"{file}:{error}" if file and getattr(error, "place", None) is not None else str(error)


def _failed(args: argparse.Namespace, code: int, kind: str, message: str, place: str | None = None) -> int:
    with suppress(OSError):
        print(without_controls(f"maskwright: {message}"), file=sys.stderr, flush=True)
    try:
        if is_json(args):
            print_document(
                args, {"error": {"kind": kind, "message": message, "place": place, "exit_code": code}}
            )
        _flush()
    except OSError:
        # Nothing can be written.  What is left to write is not tried again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def make_parser() -> argparse.ArgumentParser:
    """The parser of the program, with all commands."""
    parser = argparse.ArgumentParser(
        prog="maskwright",
        description=_DESCRIPTION,
        epilog="\n".join(
            ["exit codes:", *(f"  {code:3}  {meaning}" for code, meaning in EXIT_CODES.items())]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"maskwright {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands)
    return parser


COMMANDS = (
    check.COMMAND,
    generate.COMMAND,
    batch.COMMAND,
    infill.COMMAND,
    explain.MASK,
    explain.EXPLAIN,
    bench.COMMAND,
    playground.COMMAND,
    conformance.COMMAND,
    serve.COMMAND,
    lsp.COMMAND,
    completion.completion(make_parser),
    manual.manual(make_parser),
)


if __name__ == "__main__":
    sys.exit(main())
