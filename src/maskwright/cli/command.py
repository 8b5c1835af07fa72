"""What a command is made of: its arguments, how it ends, and how it says what it found."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

GOOD, FINDINGS, USAGE, DEFECT, INTERRUPTED = 0, 1, 2, 70, 130
EXIT_CODES = {
    GOOD: "good: nothing is wrong, or what was asked for is written",
    FINDINGS: "findings: errors in a source or a text (warnings and notes alone leave 0), rows that were left out, or a constraint that cannot be met",
    USAGE: "usage: bad arguments, files that cannot be read, packages or models that are not there",
    DEFECT: "a defect of maskwright; please report the traceback on standard error",
    INTERRUPTED: "interrupted (Ctrl-C)",
}
"""What the process returns: 70 is EX_SOFTWARE of sysexits.h, 130 what shells give for SIGINT."""

ENVIRONMENT = {
    "NO_COLOR": "not empty: no colours",
    "FORCE_COLOR": "not empty: colours also where the output is no terminal",
    "MASKWRIGHT_CACHE_DIR": "the folder of caches (default: maskwright in XDG_CACHE_HOME, else in ~/.cache); empty: none",
    "OPENAI_API_KEY": "what batch --endpoint sends along",
}
"""What is read of the environment."""

VERSION = 1
"""Of the JSON output (docs/output.schema.json): another one where a member is changed or taken away; new ones may come any time."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command: ``arguments`` adds its own to a parser, ``run`` returns one of ``EXIT_CODES``; ``examples`` are lines of a shell."""

    name: str
    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    examples: Sequence[str]
    description: str = ""

    def add_to(self, commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
        """Make the command's own parser."""
        parser = commands.add_parser(
            self.name,
            help=self.help,
            description=self.description or f"{self.help[0].upper()}{self.help[1:]}.",
            epilog="examples:\n" + "\n".join(f"  {line}" for line in self.examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.arguments(parser)
        parser.set_defaults(run=self.run, command=self.name)


def add_format_option(
    parser: argparse.ArgumentParser, *more: str, names: Sequence[str] = ("--format",)
) -> None:
    """``--format text|json``, and ``--json`` for short; ``more``: other formats."""
    choices = ("text", "json", *more)
    parser.add_argument(*names, dest="format", choices=choices, default="text", help="(default text)")
    parser.add_argument(
        "--json",
        action="store_const",
        const="json",
        dest="format",
        help="one JSON document on standard output, as docs/output.schema.json says; short for --format json",
    )


def is_json(args: argparse.Namespace) -> bool:
    """Whether the answer is a JSON document."""
    return getattr(args, "format", "text") == "json"


def print_document(args: argparse.Namespace, content: Mapping[str, Any]) -> None:
    """The one document of a command: its ``version``, the ``command``, and the content."""
    print(printable_json({"version": VERSION, "command": args.command, **content}), flush=True)


def printable_json(document: Mapping[str, Any]) -> str:
    """A document with the characters that standard output has, and escapes for others."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        # No output can have lone surrogates, as names in a schema may, and some have few characters.
        text = json.dumps(document, indent=2)
    return text


_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def without_controls(text: str) -> str:
    """For a terminal, which control characters steer: those that names in strangers' schemas and files have, as escapes."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def has_colours(stream: TextIO) -> bool:
    """Whether to write ANSI colours: to a terminal, unless NO_COLOR (https://no-color.org) or TERM=dumb says no; FORCE_COLOR says yes."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()
