"""Which terminals of a grammar make blocks of lines."""

from __future__ import annotations

from dataclasses import dataclass

from maskwright.base.arguments import check_type
from maskwright.errors import GrammarError
from maskwright.frontends.lark.reader import LarkText


@dataclass(frozen=True, slots=True)
class Indentation:
    """Blocks by indentation, as ``lark.indenter.Indenter`` makes them.

    ``newline`` is the terminal that ends a line; it takes in the blanks in front of the next line.  ``indent`` and
    ``dedent`` are declared terminals: where a block begins, its lines are further in than those around; where it ends,
    the next line is further out, in the column of a block that is still open.  Between the texts ``open`` and
    ``close``, which must be terminals of one rule, line breaks mean nothing.  Columns are below ``columns``, and
    tabs do not count as indentation.
    """

    newline: str = "_NEWLINE"
    indent: str = "_INDENT"
    dedent: str = "_DEDENT"
    open: tuple[str, ...] = ("(", "[", "{")
    close: tuple[str, ...] = (")", "]", "}")
    columns: int = 100


def find_indentation(source: LarkText, given: Indentation | None) -> Indentation | None:
    """What is given, or the default where the grammar uses its names.  Raises ``GrammarError``."""
    check_type(given, (Indentation, type(None)), "indentation", GrammarError)
    used = {name for expansions in source.rules.values() for e in expansions for name, _ in e}
    default = Indentation()
    found = given
    if given is None and {default.indent, default.dedent} <= used - source.terminals.keys():
        found = default
    if found is not None:
        for name in (found.indent, found.dedent):
            if name in source.terminals:
                raise GrammarError(f"terminal {name} has a pattern: indentation makes it, so only declare it")
        if found.newline not in source.terminals:
            raise GrammarError(
                f"indentation needs a terminal {found.newline} that ends a line; there is none"
            )
        if not 1 < found.columns <= 1000:
            raise GrammarError(f"columns must be between 2 and 1000, not {found.columns}")
        _check_ends(source, found)
    return found


def _check_ends(source: LarkText, names: Indentation) -> None:
    """The lines of a block must end with the newline, which tells where it ends: the end of the text does not."""
    empty: set[str] = set()
    ends = set(source.rules)
    while True:
        nullable = {
            name
            for name, expansions in source.rules.items()
            if any(all(not is_terminal and part in empty for part, is_terminal in e) for e in expansions)
        }
        ending = {
            name
            for name in ends
            if all(_ends_line(expansion, names, empty, ends) for expansion in source.rules[name])
        }
        if nullable == empty and ending == ends:
            break
        empty, ends = nullable, ending
    for name, expansions in source.rules.items():
        for expansion in expansions:
            for at, (symbol, _) in enumerate(expansion):
                if symbol == names.dedent and not _ends_line(expansion[:at], names, empty, ends):
                    raise GrammarError(
                        f"in rule {name}, what stands before {names.dedent} must end with {names.newline}: "
                        "a block ends where a line begins"
                    )


def _ends_line(
    expansion: list[tuple[str, bool]], names: Indentation, empty: set[str], ends: set[str]
) -> bool:
    """Whether it ends with a newline or a block, or is empty."""
    for symbol, is_terminal in reversed(expansion):
        if symbol in (names.newline, names.dedent, names.indent):
            return True
        if is_terminal or symbol not in ends:
            return False
        if symbol not in empty:
            return True
    return True
