"""``maskwright completion SHELL``: a completion script, written from the parser's own options.

Each script knows the subcommands, their options, and the values of options that have a choice; other values and
arguments are completed as file names.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from maskwright.cli.command import GOOD, Command

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True)
class _Option:
    names: tuple[str, ...]
    help: str
    values: tuple[str, ...] | None
    """None: it takes no value; empty: any file."""


@dataclass(frozen=True, slots=True)
class _Command:
    name: str
    help: str
    options: tuple[_Option, ...]
    values: tuple[str, ...]
    """Of its first argument; empty: files."""


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for one of ``SHELLS``, to be sourced (bash, zsh) or put among fish's completions."""
    writers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    return writers[shell](parser.prog, _commands(parser))


def _commands(parser: argparse.ArgumentParser) -> list[_Command]:
    (group,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    helps = {action.dest: action.help or "" for action in group._choices_actions}
    found = []
    for name, command in group.choices.items():
        options = tuple(
            _Option(tuple(a.option_strings), _plain(a.help), _values(a))
            for a in command._actions
            if a.option_strings
        )
        arguments = [a for a in command._actions if not a.option_strings]
        values = tuple(map(str, arguments[0].choices or ())) if arguments else ()
        found.append(_Command(name, _plain(helps.get(name)), options, values))
    return found


def _values(action: argparse.Action) -> tuple[str, ...] | None:
    if action.nargs == 0:
        return None
    return tuple(map(str, action.choices)) if action.choices is not None else ()


def _plain(text: str | None) -> str:
    """A help text without what shells would read as something else."""
    return "".join(" " if c in "'\"`$\\[]:\n" else c for c in text or "")


def _bash(program: str, commands: list[_Command]) -> str:
    cases = []
    for command in commands:
        names = " ".join(name for option in command.options for name in option.names)
        given = "".join(
            f"                {'|'.join(option.names)}) values='{' '.join(option.values)}' ;;\n"
            for option in command.options
            if option.values
        )
        files = [name for o in command.options if o.values == () for name in o.names]
        if files:
            given += f"                {'|'.join(files)}) files=1 ;;\n"
        cases.append(
            f"        {command.name})\n"
            f"            options='{names}'\n"
            f"            arguments='{' '.join(command.values)}'\n"
            f'            case "$before" in\n{given}                *) ;;\n            esac ;;\n'
        )
    return (
        f"# bash completion of {program}: source this, or put it among bash-completion's files.\n"
        f"_{program}() {{\n"
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"\n'
        "    local options='' arguments='' values='' files=''\n"
        "    if (( COMP_CWORD == 1 )); then\n"
        f'        COMPREPLY=($(compgen -W "{" ".join(c.name for c in commands)} --help --version" -- "$word"))\n'
        "        return\n"
        "    fi\n"
        f'    case "${{COMP_WORDS[1]}}" in\n{"".join(cases)}        *) return ;;\n    esac\n'
        '    if [[ -n "$values" ]]; then\n'
        '        COMPREPLY=($(compgen -W "$values" -- "$word"))\n'
        '    elif [[ -z "$files" && "$word" == -?* ]]; then\n'
        '        COMPREPLY=($(compgen -W "$options" -- "$word"))\n'
        '    elif [[ -z "$files" && -n "$arguments" ]]; then\n'
        '        COMPREPLY=($(compgen -W "$arguments" -- "$word"))\n'
        "    else\n"
        "        local IFS=$'\\n'\n"
        '        COMPREPLY=($(compgen -f -- "$word"))\n'
        "    fi\n"
        "}\n"
        f"complete -o filenames -F _{program} {program}\n"
    )


def _zsh(program: str, commands: list[_Command]) -> str:
    described = "\n".join(f"        '{command.name}:{command.help}'" for command in commands)
    cases = []
    for command in commands:
        specs = []
        for option in command.options:
            value = ""
            if option.values is not None:
                value = f":value:({' '.join(option.values)})" if option.values else ":file:_files"
            specs += [f"'*{name}[{option.help}]{value}'" for name in option.names]
        specs.append(f"'*:argument:({' '.join(command.values)})'" if command.values else "'*:file:_files'")
        lines = " \\\n                ".join(specs)
        cases.append(f"        {command.name})\n            _arguments \\\n                {lines} ;;\n")
    return (
        f"#compdef {program}\n"
        f"# zsh completion of {program}: source this, or put it as _{program} into a folder of $fpath.\n"
        f"_{program}() {{\n"
        f"    local -a commands=(\n{described}\n    )\n"
        "    if (( CURRENT == 2 )); then\n"
        "        _describe command commands\n"
        "        return\n"
        "    fi\n"
        "    local command=$words[2]\n"
        "    shift words\n"
        "    (( CURRENT-- ))\n"
        f"    case $command in\n{''.join(cases)}    esac\n"
        "}\n"
        f'if [ "$funcstack[1]" = "_{program}" ]; then _{program} "$@"; else compdef _{program} {program}; fi\n'
    )


def _fish(program: str, commands: list[_Command]) -> str:
    lines = [
        f"# fish completion of {program}: put this as {program}.fish into ~/.config/fish/completions.",
        f"complete -c {program} -n __fish_use_subcommand -f",
    ]
    for command in commands:
        lines.append(
            f"complete -c {program} -n __fish_use_subcommand -f -a {command.name} -d '{command.help}'"
        )
    for command in commands:
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        if command.values:
            lines.append(f"complete -c {program} {seen} -f -a '{' '.join(command.values)}'")
        for option in command.options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
            )
            value = (
                ""
                if option.values is None
                else f" -x -a '{' '.join(option.values)}'"
                if option.values
                else " -r"
            )
            lines.append(f"complete -c {program} {seen} {names}{value} -d '{option.help}'")
    return "\n".join(lines) + "\n"


def completion(make_parser: Callable[[], argparse.ArgumentParser]) -> Command:
    """The command, of the program that ``make_parser`` makes the parser of."""

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("shell", choices=SHELLS)

    def run(args: argparse.Namespace) -> int:
        print(script(make_parser(), args.shell), end="")
        return GOOD

    return Command(
        "completion",
        "print a script that completes commands and options",
        add_arguments,
        run,
        (
            'eval "$(maskwright completion bash)"',
            "maskwright completion zsh > ~/.zfunc/_maskwright",
            "maskwright completion fish > ~/.config/fish/completions/maskwright.fish",
        ),
    )
