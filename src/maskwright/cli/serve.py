"""``maskwright serve``: an OpenAI-compatible server over one model."""

from __future__ import annotations

import argparse
import socket
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from maskwright.cli.command import Command
from maskwright.cli.progress import progress
from maskwright.cli.sources import UsageError, checked_values
from maskwright.errors import MaskwrightError
from maskwright.serve.settings import Settings

if TYPE_CHECKING:
    from maskwright.generation.generator import Generator


def add_serve_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", metavar="NAME", help="name or path of transformers; default: SmolLM2-135M-Instruct"
    )
    parser.add_argument(
        "--served-model-name", metavar="NAME", help="what clients call it (default: its name)"
    )
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="(default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, metavar="P", help="0: any free one (default 8000)")
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:1, mps, ... (default: cpu)")
    parser.add_argument(
        "--dtype", metavar="NAME", help="of the weights: float32, bfloat16, ... (default: as saved)"
    )
    parser.add_argument(
        "--log-level",
        choices=("critical", "error", "warning", "info", "debug"),
        default="info",
        help="(default info)",
    )
    group = parser.add_argument_group("limits and defaults (docs/server.md)")
    for each in fields(Settings):
        told = each.metadata["help"]
        name = "--" + each.name.replace("_", "-")
        if each.type == "bool":
            group.add_argument(
                name, action=argparse.BooleanOptionalAction, default=each.default, help=each.metadata["help"]
            )
            continue
        kind = {"int": int, "float": float}.get(str(each.type), str)
        metavar = "N" if kind is not str else "TEXT"
        shown = f" (default {each.default})" if each.default != "" else ""
        group.add_argument(name, type=kind, default=each.default, metavar=metavar, help=told + shown)


def settings_of(args: argparse.Namespace) -> Settings:
    """The settings given on the command line.  Raises ``UsageError`` for values out of range."""
    with checked_values():
        return Settings(**{each.name: getattr(args, each.name) for each in fields(Settings)})


def serve(args: argparse.Namespace) -> int:
    """Load the model, and serve until a signal comes; 0.  Raises ``UsageError`` and ``MaskwrightError``."""
    settings = settings_of(args)
    try:
        from maskwright.serve.running import make_server
        from maskwright.serve.service import Service
    except ImportError as error:
        raise UsageError(f'{error}; the server needs: pip install "maskwright[serve]"') from None
    # Before the model is loaded, which takes longer.
    with _bound(args) as bound:
        generator = _load(args)
        name = args.served_model_name or args.model or "SmolLM2-135M-Instruct"
        server = make_server(Service(generator, settings), name, log_level=args.log_level)
        server.run([bound])
    return 0


def _bound(args: argparse.Namespace) -> socket.socket:
    """A socket with the address, which does not listen yet.  Raises ``UsageError``."""
    found = socket.socket(socket.AF_INET6 if ":" in args.host else socket.AF_INET)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((args.host, args.port))
    except (OSError, OverflowError) as error:
        found.close()
        problem = getattr(error, "strerror", None) or error
        raise UsageError(f"--host {args.host} --port {args.port}: {problem}") from None
    return found


def _load(args: argparse.Namespace) -> Generator:
    import torch

    from maskwright.generation.generator import Generator

    options: dict[str, Any] = {}
    if args.dtype is not None:
        if args.dtype != "auto" and not isinstance(getattr(torch, args.dtype, None), torch.dtype):
            raise UsageError(f"--dtype {args.dtype}: torch has no type of this name")
        options["dtype"] = args.dtype
    try:
        with progress("loading the model"):
            generator = Generator.from_pretrained(args.model, **options)
    except MaskwrightError:
        raise
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"the model {args.model!r} cannot be loaded: {error}") from None
    if args.device is not None:
        try:
            generator.model.to(args.device)
        except (RuntimeError, AssertionError) as error:  # The second where torch was built without it.
            raise UsageError(f"--device {args.device}: {error}") from None
    return generator


COMMAND = Command(
    "serve",
    "serve a model as OpenAI's API, with every output constrained as asked",
    add_serve_arguments,
    serve,
    ("maskwright serve --port 8000", "maskwright serve --model NAME --device cuda --dtype bfloat16"),
)
