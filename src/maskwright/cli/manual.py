"""``maskwright man``: the manual page, written from the parser's own options, in the macros of man(7)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from maskwright import __version__
from maskwright.cli.command import ENVIRONMENT, EXIT_CODES, GOOD, Command


def page(parser: argparse.ArgumentParser) -> str:
    """The whole page, for section 1."""
    return "\n".join(_lines(parser)) + "\n"


def _lines(parser: argparse.ArgumentParser) -> Iterator[str]:
    (group,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    name = parser.prog
    yield f'.TH {name.upper()} 1 "" "{name} {__version__}" "User Commands"'
    yield from (".SH NAME", f"{name} \\- structured output of language models that always validates")
    yield from (".SH SYNOPSIS", f".B {name}", "[\\-h] [\\-\\-version] COMMAND ...")
    yield from (".SH DESCRIPTION", _text(parser.description))
    yield ".SH COMMANDS"
    for command, inner in group.choices.items():
        yield f".SS {name} {command}"
        yield _text(inner.description)
        for section in inner._action_groups:
            if not section._group_actions:
                continue
            title = section.title or ""
            if title not in ("positional arguments", "options"):
                yield from (".PP", _text(f"{title[0].upper()}{title[1:]}:"))
            for action in section._group_actions:
                if action.help is not argparse.SUPPRESS:
                    yield from (".TP", _invocation(inner, action), _text(_help(inner, action)))
        yield from (".PP", ".nf", _text(inner.epilog), ".fi")
    for title, table in (("EXIT STATUS", EXIT_CODES), ("ENVIRONMENT", ENVIRONMENT)):
        yield f".SH {title}"
        for key, meaning in table.items():
            yield from (".TP", f".B {key}", _text(meaning))


def _invocation(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return f".B {_text(parser._get_formatter()._format_action_invocation(action))}"


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return parser._get_formatter()._expand_help(action) if action.help else ""


def _text(text: str | None) -> str:
    """What roff reads as something else is escaped: backslashes, hyphens, and what begins a line with a dot or a quote (groff(7))."""
    lines = (text or "").replace("\\", "\\e").replace("-", "\\-").split("\n")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)


def manual(make_parser: Callable[[], argparse.ArgumentParser]) -> Command:
    """The command, of the program that ``make_parser`` makes the parser of."""

    def run(args: argparse.Namespace) -> int:
        print(page(make_parser()), end="")
        return GOOD

    return Command(
        "man",
        "print the manual page",
        lambda parser: None,
        run,
        ("maskwright man | man -l -", "maskwright man > ~/.local/share/man/man1/maskwright.1"),
    )
