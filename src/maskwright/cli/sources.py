"""Files and standard input on the command line, and the language that each is written in."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

from maskwright.errors import MaskwrightError
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.sources import GBNF, JsonSchema, Lark, Regex

LANGUAGES = ("json-schema", "lark", "gbnf", "regex")
_SUFFIXES = {".lark": "lark", ".gbnf": "gbnf", ".ebnf": "gbnf", ".regex": "regex", ".g4": "ANTLR"}


class UsageError(Exception):
    """Something on the command line cannot be used."""


def read_instances(paths: Iterable[str]) -> dict[str, str]:
    """The texts that ``--instance`` names.  Raises ``UsageError``."""
    try:
        return {path: read_source(path) for path in paths}
    except UsageError as error:
        raise UsageError(f"{error} (--instance takes files; - is standard input)") from None


@contextmanager
def checked_values() -> Iterator[None]:
    """What the values of options are refused for is a ``UsageError``."""
    try:
        yield
    except MaskwrightError as error:
        raise UsageError(str(error)) from None


_read: Any = None
"""The standard input that was read."""


def read_source(path: str) -> str:
    """The text of a file or of standard input.  Raises ``UsageError`` when it cannot be read, or was read before."""
    global _read
    try:
        if path == "-":
            if sys.stdin is None:
                raise UsageError("standard input is closed")
            if sys.stdin is _read:
                raise UsageError("standard input ('-') can be read only once: name a file for one of them")
            _read = sys.stdin
            return sys.stdin.buffer.read().decode("utf-8-sig")
        with open(path, encoding="utf-8-sig", newline="") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text (byte {error.start})") from None


def read_text(text: str) -> str:
    """A text of the command line; of ``-`` what standard input has.  Raises ``UsageError`` as ``read_source`` does."""
    return read_source(text) if text == "-" else text


def write_output(path: str, text: str) -> None:
    """Write a file, or standard output.  Raises ``UsageError`` when it cannot be written."""
    if path == "-":
        # As in a file: pages say that they are UTF-8.
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
        return
    try:
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def language_of(path: str, args: argparse.Namespace) -> str:
    """What ``--language`` says, or the ending of the name; a JSON Schema where neither does."""
    chosen: str = args.language or language_named(path) or "json-schema"
    if chosen not in LANGUAGES:
        raise UsageError(f"{path}: grammars of {chosen} are not supported: use {', '.join(LANGUAGES)}")
    return chosen


def language_named(path: str) -> str | None:
    """What the ending of a name says; None: nothing.  It may be none of ``LANGUAGES``."""
    return _SUFFIXES.get(os.path.splitext(path)[1].lower())


def source_of(path: str, text: str, args: argparse.Namespace) -> Any:
    """The source that a text is, with the options of the command line.  Raises ``UsageError``."""
    language = language_of(path, args)
    if args.start is not None and language not in ("lark", "gbnf"):
        raise UsageError(f"{path}: --start is for Lark and GBNF")
    if getattr(args, "profile", None) is not None and language != "json-schema":
        raise UsageError(f"{path}: --profile is for JSON Schemas")
    if language == "lark":
        folder = os.path.dirname(path) or "."
        paths = () if path == "-" else (folder,)
        return Lark(text, start=args.start or "start", import_paths=paths)
    if language == "gbnf":
        return GBNF(text, root=args.start or "root")
    if language == "regex":
        # The line feed that ends a file is no part of the pattern.
        return Regex(text.removesuffix("\n").removesuffix("\r"), flavour=args.flavour)
    return json_schema_of(text, args)


def json_schema_of(text: str, args: argparse.Namespace) -> JsonSchema:
    """A JSON Schema with the options of ``add_schema_options``.  Raises ``UsageError``."""
    return JsonSchema(text, **asdict(schema_options(args)))


def schema_options(args: argparse.Namespace) -> SchemaOptions:
    """The options given on the command line.  Raises ``UsageError`` for values that they do not have."""
    names = [option.name for option in fields(SchemaOptions)]
    with checked_values():
        return SchemaOptions(**{name: getattr(args, name) for name in names if hasattr(args, name)})


def leave_out_undeclared(args: argparse.Namespace) -> None:
    """Of what a model writes: whoever lists members wants no others, if there can be a value without."""
    if not hasattr(args, "additional_properties"):
        args.additional_properties = "needed"


def add_language_options(parser: argparse.ArgumentParser) -> None:
    """``--language`` and what the languages other than JSON Schema take."""
    add_grammar_options(parser).add_argument(
        "--language",
        choices=LANGUAGES,
        help="default: by the name of the file (.lark, .gbnf, .ebnf, .regex), else json-schema",
    )


def add_grammar_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """What the languages other than JSON Schema take."""
    group = parser.add_argument_group("options of grammars (see docs/grammars.md)")
    group.add_argument("--start", metavar="RULE", help="where texts begin (default: Lark start, GBNF root)")
    group.add_argument(
        "--flavour", choices=("python", "ecma"), default="python", help="of a regular expression"
    )
    return group


def add_schema_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``SchemaOptions``, which has the defaults and checks the values."""
    group = parser.add_argument_group("options of JSON Schema (see docs/json-schema.md)")

    def option(name: str, **settings: Any) -> None:
        group.add_argument(name, default=argparse.SUPPRESS, **settings)

    option("--property-order", choices=("schema", "any"), help="order of members (default: schema)")
    option(
        "--escapes",
        choices=("printed", "any"),
        help="in strings: as printers write, or all (default: printed)",
    )
    option(
        "--whitespace",
        type=_whitespace,
        metavar="printed|flexible|compact|N",
        help="between tokens; N: an indentation of N blanks (default: printed)",
    )
    option("--max-whitespace", type=int, metavar="N", help="blanks behind a line break (default: 64)")
    option(
        "--max-number-digits", type=int, metavar="N", help="digits before and behind a point (default: 40)"
    )
    option("--plain-integers", action="store_true", help="integers without fraction and exponent")
    option(
        "--additional-properties",
        action=argparse.BooleanOptionalAction,
        help="whether objects may have members that the schema does not mention, where it says nothing about them (default: yes; "
        "what generate, batch and explain --prompt write has them only where nothing satisfies the schema without them)",
    )
    option("--formats", choices=("assert", "annotate"), help="enforce formats, or not (default: assert)")
    option("--dialect", metavar="NAME", help="draft4, 2020-12, openapi-3.0, ... (default: what $schema says)")


def _whitespace(text: str) -> str | int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else text


def count(text: str) -> int:
    """A number of things, for ``argparse``."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return number
