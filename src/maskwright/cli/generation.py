"""Options of commands in which a model writes, and the model that they load."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from maskwright.cli.progress import progress
from maskwright.cli.sources import UsageError, checked_values
from maskwright.errors import LimitError, MaskwrightError

if TYPE_CHECKING:
    from maskwright.generation.generator import Generator


def add_generation_options(parser: argparse._ActionsContainer) -> None:
    """How an output is written: the fields of ``GenerationOptions``."""
    parser.add_argument(
        "--schema-in-prompt", action="store_true", help="show the schema or grammar to the model"
    )
    parser.add_argument("--max-tokens", type=int, default=512, metavar="N", help="EOS included (default 512)")
    parser.add_argument("--temperature", type=float, metavar="T", help="default: the likeliest token")
    parser.add_argument("--top-p", type=float, metavar="P")
    parser.add_argument("--top-k", type=int, metavar="K")
    parser.add_argument("--min-p", type=float, metavar="P")
    parser.add_argument("--repetition-penalty", type=float, metavar="R")
    parser.add_argument("--stop", action="append", metavar="TEXT", help="end there; may come several times")
    parser.add_argument(
        "--particles", type=int, metavar="N", help="write so many candidates, and return the likeliest text"
    )
    parser.add_argument("--num-beams", type=int, default=1, metavar="N", help="search with so many beams")
    parser.add_argument("--seed", type=int, metavar="N")


def generation_options(args: argparse.Namespace, **more: Any) -> dict[str, Any]:
    """What ``add_generation_options`` read, and ``more``, for a ``Generator``.  Raises ``UsageError`` for values that it does not take."""
    from maskwright.generation.options import GenerationOptions, useless_cut

    cut = useless_cut(args)
    if cut is not None:
        raise UsageError(
            f"--{cut.replace('_', '-')} cuts the distribution that tokens are sampled from: pass --temperature as well "
            "(1 leaves probabilities as they are)"
        )
    names = (
        "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "stop", "particles", "num_beams", "seed",
        "schema_in_prompt",
    )  # fmt: skip
    given = {"max_new_tokens": args.max_tokens, **{name: getattr(args, name) for name in names}, **more}
    with checked_values():
        GenerationOptions(**given)
    return given


def given_options(args: argparse.Namespace) -> list[str]:
    """What was said of a model and how it writes, for commands that need not have one: names as they are typed."""
    names = {
        "schema_in_prompt": False, "max_tokens": 512, "temperature": None, "top_p": None, "top_k": None, "min_p": None,
        "repetition_penalty": None, "stop": None, "particles": None, "num_beams": 1, "seed": None, "model": None,
    }  # fmt: skip
    return [name.replace("_", "-") for name, default in names.items() if getattr(args, name) != default]


def check_stop_texts(source: Any, args: argparse.Namespace) -> None:
    """Before a model is loaded.  Raises ``UsageError`` for a ``--stop`` that no output of the source can end at."""
    from maskwright.generation.outputs import Output
    from maskwright.generation.stops import check_stops
    from maskwright.limits import DEFAULT_LIMITS

    with checked_values():
        check_stops(Output(source), args.stop or (), DEFAULT_LIMITS)


def check_system(generator: Generator, args: argparse.Namespace) -> None:
    """Raises ``UsageError`` for a ``--system`` that the model has no place for."""
    if args.system is not None and not getattr(generator.tokenizer, "chat_template", None):
        raise UsageError("--system: the tokenizer has no chat template, so there are no system messages")


def load_generator(name: str | None) -> Generator:
    """The generator of a model.  Raises ``UsageError`` when it cannot be loaded."""
    with loading(name), progress("loading the model"):
        from transformers.utils import logging

        from maskwright.generation.generator import Generator

        if not sys.stderr.isatty():
            logging.disable_progress_bar()
        return Generator.from_pretrained(name)


@contextmanager
def writing(generator: Generator) -> Iterator[None]:
    """While a model writes, a terminal sees how many forward passes it took."""
    with progress("writing", unit="forward passes") as bar:
        hook = generator.model.register_forward_hook(lambda *_: bar.update())
        try:
            yield
        except LimitError as error:
            message = error.message.replace("max_new_tokens", "--max-tokens")
            raise LimitError(
                error.limit, error.given, error.allowed, place=error.place, message=message
            ) from None
        finally:
            hook.remove()


@contextmanager
def loading(name: str | None) -> Iterator[None]:
    """What goes wrong while a model is loaded is a ``UsageError``."""
    try:
        yield
    except ImportError as error:
        raise UsageError(f'{error}; models need: pip install "maskwright[hf]"') from None
    except MaskwrightError:
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"the model {name!r} cannot be loaded: {error}") from None
