"""``maskwright playground``: a local page to try schemas and grammars on."""

from __future__ import annotations

import argparse

from maskwright.cli.command import Command, add_format_option, is_json, print_document
from maskwright.cli.generation import load_generator
from maskwright.cli.sources import UsageError
from maskwright.cli.vocabulary import add_tokenizer_option, vocabulary_of


def add_playground_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=8123, metavar="P", help="0: any free one (default 8123)")
    parser.add_argument(
        "--model",
        nargs="?",
        const="",
        metavar="NAME",
        help="also let a model write: name or path of transformers; without a name, SmolLM2-135M-Instruct",
    )
    add_tokenizer_option(
        parser, "whose tokens to list at the cursor (default: those of --model, else single bytes)"
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    add_format_option(parser)


def playground(args: argparse.Namespace) -> int:
    """Serve until a signal comes; 0."""
    from maskwright.playground.server import Playground

    if args.model is not None and args.tokenizer is not None:
        raise UsageError("--tokenizer does not go with --model, which has its own")
    generator = load_generator(args.model or None) if args.model is not None else None
    try:
        server = Playground(args.port, generator, vocabulary_of(args.tokenizer))
    except (OSError, OverflowError) as error:
        raise UsageError(f"port {args.port}: {getattr(error, 'strerror', None) or error}") from None
    with server:
        if is_json(args):
            print_document(args, {"address": server.address})
        else:
            print(f"maskwright: {server.address} (ends with Ctrl-C)", flush=True)
        if args.open:
            import webbrowser

            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


COMMAND = Command(
    "playground",
    "a local page to try schemas and grammars on",
    add_playground_arguments,
    playground,
    ("maskwright playground --open", "maskwright playground --model --port 0"),
)
