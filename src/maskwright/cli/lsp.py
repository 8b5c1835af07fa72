"""``maskwright lsp``: what ``check`` says, in an editor."""

from __future__ import annotations

import argparse

from maskwright.cli.check import add_profile_option
from maskwright.cli.command import FINDINGS, GOOD, Command
from maskwright.cli.sources import UsageError, add_grammar_options, add_schema_options, schema_options


def add_lsp_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stdio", action="store_true", help="there is no other way; editors like to say it")
    parser.add_argument(
        "--schemas",
        action="append",
        default=[],
        metavar="GLOB",
        help="JSON files that are schemas, such as 'api/*.json' (always: *.schema.json, and those whose $schema is one of json-schema.org)",
    )
    parser.add_argument("--verbose", action="store_true", help="also show hints")
    add_profile_option(parser)
    add_grammar_options(parser)
    add_schema_options(parser)


def lsp(args: argparse.Namespace) -> int:
    """Serve one editor until it ends; 0, or 1 where it says to exit and not to shut down before (LSP 3.17)."""
    try:
        from maskwright.cli.lsp_server import make_server
    except ImportError as error:
        raise UsageError(
            f'{error}; the language server needs: pip install "maskwright[lsp-server]"'
        ) from None
    schema_options(args)  # Bad ones are told now, not with every file.
    if not all(args.schemas):
        raise UsageError("--schemas: a pattern is a text that is not empty")
    server = make_server(args)
    try:
        server.start_io()
    except (MemoryError, OverflowError):
        raise UsageError("standard input: a Content-Length is more than fits into memory") from None
    return FINDINGS if server.was_cut_off else GOOD


COMMAND = Command(
    "lsp",
    "a language server (LSP): problems of schemas and grammars, in an editor",
    add_lsp_arguments,
    lsp,
    ("maskwright lsp", "maskwright lsp --schemas 'api/*.json' --profile openai-strict"),
    "A language server over standard input and output: problems of JSON Schemas, Lark, GBNF and regular expressions while one types.\n"
    "docs/editors.md has the settings of editors.",
)
