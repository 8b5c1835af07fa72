"""``maskwright batch``: a file of prompts in, a file of filled schemas out."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import ExitStack
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.cli.command import Command, add_format_option, is_json, print_document
from maskwright.cli.explain import add_source_argument
from maskwright.cli.generation import add_generation_options, generation_options, load_generator
from maskwright.cli.progress import progress
from maskwright.cli.sources import (
    UsageError,
    checked_values,
    leave_out_undeclared,
    read_source,
    schema_options,
    source_of,
)
from maskwright.errors import MaskwrightError

if TYPE_CHECKING:
    from maskwright.offline.run import BadRow, Fill, Summary

_DESCRIPTION = """\
Fill schemas for a file of prompts.  Rows are JSON, one a line, in OpenAI's batch format or plain:
  {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [...], ...}}
  {"id": "a", "prompt": "Ada Lovelace is 36.", "schema": {...}}

Rows come out as they are finished; --sort puts them into the order of the input at the end.  The same command again goes on where it
was killed."""
_SHOWN = 20
"""Bad rows that are told on standard error (count)."""
_OF_ENDPOINTS = ("concurrency", "retries", "timeout")
_OF_RAY = ("actors", "cpus_per_actor", "gpus_per_actor", "rows_per_task")
_NOT_FOR_ENDPOINTS = (
    "property_order", "escapes", "whitespace", "max_whitespace", "max_number_digits", "plain_integers", "additional_properties",
)  # fmt: skip


def add_batch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="IN.jsonl", help="rows to fill; a file, because it is read twice")
    parser.add_argument(
        "output", metavar="OUT.jsonl", help="filled rows are appended; those that are there stay"
    )
    add_source_argument(parser, required=False)
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="name or path of transformers (default: SmolLM2-135M-Instruct); with --endpoint the name that the server knows "
        "(default: the row's, else its only one)",
    )
    parser.add_argument("--system", metavar="TEXT", help="a system message for rows with a prompt")
    add_generation_options(parser)
    parser.add_argument(
        "--batch-size", type=_positive, default=8, metavar="N", help="outputs at a time (default 8)"
    )
    parser.add_argument(
        "--errors", metavar="FILE", help="write rows that were left out, with the reason, as JSON lines"
    )
    parser.add_argument("--overwrite", action="store_true", help="begin anew, whatever OUT.jsonl has")
    parser.add_argument(
        "--sort", action="store_true", help="at the end, put the output into the order of the input"
    )
    parser.add_argument(
        "--max-line-bytes", type=_positive, default=16 * 2**20, metavar="N", help="of a row (default 16 MiB)"
    )
    add_format_option(parser)
    servers = parser.add_argument_group("in front of OpenAI-compatible servers")
    servers.add_argument(
        "--endpoint",
        action="append",
        metavar="URL",
        help="a server, with or without /v1; may come several times; OPENAI_API_KEY is sent along",
    )
    servers.add_argument(
        "--concurrency", type=_positive, metavar="N", help="requests at a time to each (default 16)"
    )
    servers.add_argument("--retries", type=_count, metavar="N", help="of a row (default 4)")
    servers.add_argument("--timeout", type=_seconds, metavar="S", help="seconds for an answer (default 600)")
    cluster = parser.add_argument_group("on a Ray cluster")
    cluster.add_argument("--ray", metavar="ADDRESS", help='"auto", or HOST:PORT')
    cluster.add_argument(
        "--actors", type=_positive, metavar="N", help="models (default: as many as GPUs, or as CPUs less one)"
    )
    cluster.add_argument("--cpus-per-actor", type=_seconds, metavar="N", help="default 1")
    cluster.add_argument(
        "--gpus-per-actor", type=_share, metavar="N", help="default 1 where there are GPUs, else 0"
    )
    cluster.add_argument(
        "--rows-per-task", type=_positive, metavar="N", help="at a time to an actor (default 64)"
    )


def batch(args: argparse.Namespace) -> int:
    """Fill the rows; 1 when some were left out."""
    from maskwright.offline.journal import Journal
    from maskwright.offline.rows import Reader
    from maskwright.offline.run import open_input, run, write_record

    _check(args)
    source, of_schemas = _constraints(args)
    options = generation_options(args)
    settings = [repr(source), sorted(of_schemas.items()), options, args.system, args.model]
    reader = Reader(
        source=source,
        schema_options=of_schemas,
        options=options,
        system=args.system,
        settings=blake2b(json.dumps(settings, default=repr).encode("utf-8", "surrogatepass")).digest(),
        max_line_bytes=args.max_line_bytes,
        is_forwarded=bool(args.endpoint),
    )
    shown = _Shown(args.input)
    try:
        with ExitStack() as stack:
            # Before the output is touched.
            open_input(Path(args.input)).close()
            journal = stack.enter_context(Journal(args.output, overwrite=args.overwrite))
            errors = stack.enter_context(open(args.errors, "wb")) if args.errors else None

            def report(bad: BadRow) -> None:
                shown.report(bad)
                if errors is not None:
                    write_record(errors, bad)

            summary = run(
                Path(args.input), reader, journal, partial(_back_end, args), report=report, progress=shown.bar
            )
            if args.sort:
                journal.sort()
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the same command goes on from here") from None
    except OSError as error:
        # Of a disk that is full, nothing says which file was written.
        name = error.filename or ", ".join(filter(None, [args.output, args.errors]))
        raise UsageError(f"{name}: {error.strerror or error}") from None
    finally:
        shown.close()
    left = f"; {summary.bad} left out" if summary.bad else ""
    before = f" ({summary.before} of them before)" if summary.before else ""
    print(
        f"maskwright: {summary.before + summary.filled} of {summary.total} rows filled{before}{left}",
        file=sys.stderr,
    )
    if is_json(args):
        counts = {"total": summary.total, "before": summary.before, "filled": summary.filled}
        print_document(args, {"output": args.output, **counts, "left_out": summary.bad})
    return 1 if summary.bad else 0


def _check(args: argparse.Namespace) -> None:
    """What does not go together.  Raises ``UsageError``."""
    if args.endpoint and args.ray is not None:
        raise UsageError("--endpoint and --ray are two places to run on: leave one out")
    for names, where, is_there in (
        (_OF_ENDPOINTS, "--endpoint", bool(args.endpoint)),
        (_OF_RAY, "--ray", args.ray is not None),
    ):
        for name in names:
            if getattr(args, name) is not None and not is_there:
                raise UsageError(f"--{name.replace('_', '-')} is for {where}")
    if args.endpoint:
        for name in _NOT_FOR_ENDPOINTS:
            if hasattr(args, name):
                raise UsageError(f"--{name.replace('_', '-')}: a server cannot be told this by a request")
        for name in ("particles", "num_beams"):
            if getattr(args, name) not in (None, 1):
                raise UsageError(f"--{name.replace('_', '-')}: a server cannot be told this by a request")
        if args.start is not None:
            raise UsageError("--start: a server cannot be told this by a request")
        if args.flavour != "python":
            raise UsageError("--flavour: servers read Python's regular expressions")
    for name, what in (
        (args.input, "the input is read twice"),
        (args.output, "the output is read again"),
        (args.errors, "rows that were left out are written to one"),
    ):
        if name == "-":
            raise UsageError(f"-: {what}, so it must be a file: name one")
    read = [name for name in (args.input, args.schema) if name is not None]
    written = [name for name in (args.output, args.errors) if name is not None]
    for name in written:
        for other in (*read, *written[written.index(name) + 1 :]):
            if _is_same(name, other):
                raise UsageError(
                    f"{name} is {other}, and would be written over: the input, the schema, the output and the errors are files of their own"
                )


def _is_same(name: str, other: str) -> bool:
    """Whether two names are of one file, by links of either kind too."""
    if os.path.realpath(name) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(name, other)
    except OSError:
        return False  # One of them is not there.


def _constraints(args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """The source of ``--schema``, which compiles, and the options of schemas in rows."""
    from dataclasses import asdict

    from maskwright.check.grammars import compile_for_bytes
    from maskwright.compiling.compiler import compile as compile_source
    from maskwright.vocabulary.vocabulary import Vocabulary

    if not args.endpoint:  # A server reads schemas as it does.
        leave_out_undeclared(args)
    of_schemas = asdict(schema_options(args))
    if args.schema is None:
        return None, of_schemas
    source = source_of(args.schema, read_source(args.schema), args)
    try:
        compile_for_bytes(source)  # Else every row would say so, after the model has been loaded.
    except MaskwrightError:
        # The same, with what is known of the reason.
        compile_source(source, Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=256))
        raise
    return source, of_schemas


def _back_end(args: argparse.Namespace) -> Fill:
    """Where rows are filled."""
    from maskwright.offline.local import fill

    if args.endpoint:
        return _endpoints(args)
    from maskwright.generation.default_model import HUB_NAME

    name = args.model or HUB_NAME
    if args.ray is not None:
        return partial(fill, finish=partial(_ray(args), model=args.model), model=name)
    generator = load_generator(args.model)
    generator.batch_size = args.batch_size
    _bound_threads()
    return partial(fill, finish=generator.as_completed, model=name)


def _bound_threads() -> None:
    """torch sees the CPUs of the machine, and not a container's quota: threads above it stop each other."""
    import torch

    from maskwright.base.cpus import available_cpus

    torch.set_num_threads(min(torch.get_num_threads(), available_cpus()))


def _endpoints(args: argparse.Namespace) -> Fill:
    try:
        from maskwright.offline.endpoints import Endpoints
    except ImportError as error:
        raise UsageError(f'{error}; --endpoint needs: pip install "maskwright[batch]"') from None
    given = {name: getattr(args, name) for name in _OF_ENDPOINTS if getattr(args, name) is not None}
    key = os.environ.get("OPENAI_API_KEY") or None
    with checked_values():
        return Endpoints(args.endpoint, model=args.model, key=key, **given).fill


def _ray(args: argparse.Namespace) -> Any:
    try:
        import ray.data  # noqa: F401

        from maskwright.integrations.ray import as_completed
    except ImportError as error:
        raise UsageError(f'{error}; --ray needs: pip install "maskwright[ray]"') from None
    given = {name: getattr(args, name) for name in _OF_RAY if getattr(args, name) is not None}
    return partial(as_completed, address=args.ray, batch_size=args.batch_size, **given)


class _Shown:
    """What is told on standard error: a bar where that is a terminal, and the first bad rows."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._bars = ExitStack()
        self._bar = self._bars.enter_context(progress("checking rows"))
        self._reported = 0

    def bar(self, summary: Summary) -> Any:
        """A bar of all rows that can be filled, of which some are."""
        self._bars.close()
        total = summary.total - summary.bad
        self._bar = self._bars.enter_context(
            progress("filling", total, "rows", done=summary.before, leave=True)
        )
        return self._bar

    def report(self, bad: BadRow) -> None:
        self._reported += 1
        if self._reported <= _SHOWN:
            self._say(f"maskwright: {bad.shown(self._path)}")

    def _say(self, text: str) -> None:
        self._bar.write(text.encode("utf-8", "backslashreplace").decode(), file=sys.stderr)

    def close(self) -> None:
        self._bars.close()
        if self._reported > _SHOWN:
            self._say(
                f"maskwright: ... and {self._reported - _SHOWN} more rows that were left out: --errors FILE has all"
            )
            self._reported = 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("must be above 0")
    return number


def _share(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError("must not be negative")
    return number


COMMAND = Command(
    "batch",
    "fill schemas for a file of prompts; can be killed and run again",
    add_batch_arguments,
    batch,
    (
        "maskwright batch in.jsonl out.jsonl --schema person.json",
        "maskwright batch in.jsonl out.jsonl --schema person.json --errors bad.jsonl",
        "maskwright batch in.jsonl out.jsonl --schema person.json --endpoint http://a:8000 --endpoint http://b:8000",
        "maskwright batch in.jsonl out.jsonl --schema person.json --ray auto --model NAME",
    ),
    _DESCRIPTION,
)
