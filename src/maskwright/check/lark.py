"""What can be said about a Lark grammar: names, rules, and what its terminals do to each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from maskwright.base.deadline import let_frames_go, let_go
from maskwright.check.outline import Outline, check_rules, finding_of, located
from maskwright.check.report import Report
from maskwright.check.terminals import Terminals, check_terminals
from maskwright.errors import GrammarError, LimitError, MaskwrightError, line_column, line_columns
from maskwright.frontends.characters import Items, Node, Ways
from maskwright.frontends.lark import Reading, check_size
from maskwright.frontends.lark.attributes import Attributed, take_attributes
from maskwright.frontends.lark.inline import take_inline
from maskwright.frontends.lark.reader import LarkText, TerminalText, owner_of, read
from maskwright.frontends.lark.terminals import TerminalLanguages
from maskwright.ir.grammar import Ref
from maskwright.limits import Limits
from maskwright.regular.expressions import NOTHING, Lit, Regular
from maskwright.sources import Lark

_MANY_UNDEFINED = 50
_UNDEFINED = re.compile(
    r"(?:Rule|Terminal) '(\w+)' used but not defined|Terminal used but not defined: (\w+)|Terminals \{(.*)\} were marked"
)
_TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|/(?!/)(?:\\.|[^/\\\n])+/|(?://|\#)[^\n]*|(?P<directive>%\w+)|(?P<arrow>->)'
    r"|(?P<name>[_A-Za-z]\w*)|(?P<line>\n)"
)
_COLON = re.compile(r"(?:\{[^}\n]*\})?[ \t]*(?:\.[ \t]*-?\d+)?\s*:")
_IMPORT = re.compile(r"%import\s+\.*(?:\w+\.)*(\w+)[ \t]*(?:->[ \t]*(\w+)|\(([^)]*)\))?")


@dataclass(slots=True)
class Names:
    """Where a text defines names, and where it uses them, as indices."""

    defined: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)


def find_names(text: str) -> Names:
    """The names of a grammar text.  Aliases and what stands in texts are none."""
    names = Names()
    at, directive, first, alias = 0, "", True, False
    while (found := _TOKEN.search(text, at)) is not None:
        at = found.end()
        if found["line"]:
            directive, first, alias = "", True, False
        elif found["directive"]:
            directive = found[0]
            imported = _IMPORT.match(text, found.start())
            if imported is not None:
                at = imported.end()
                group = 3 if imported[3] else 2 if imported[2] else 1
                for each in re.finditer(r"\w+", imported[group]):
                    names.defined.setdefault(each[0], imported.start(group) + each.start())
        elif found["arrow"]:
            alias = True
        elif found["name"]:
            name = found[0]
            if directive == "%declare" or (first and _COLON.match(text, at)):
                names.defined.setdefault(name, found.start())
            elif not alias:
                names.used.setdefault(name, found.start())
            first, alias = False, False
    return names


def check_lark(source: Lark, limits: Limits) -> tuple[Report, Reading | None]:
    """All findings about a grammar, but whether it compiles; and the grammar as it was read, if it is well-formed."""
    report = Report()
    text = source.text
    try:
        check_size(text, limits)
        taken = take_attributes(text)
        inlined = take_inline(taken.text)
        plain = inlined.text
        names = find_names(plain)
        _rename(names, taken)
        whole = _read_with_stubs(text, plain, names, source, limits, report)
    except (GrammarError, LimitError) as error:
        report.findings.append(
            finding_of(error)
            if isinstance(error, GrammarError)
            else located(text, "error", "limit", error.place, error.message)
        )
        let_frames_go(error)
        return report, None
    places = dict(zip(names.defined, line_columns(plain, names.defined.values()), strict=True))
    outline = _outline(whole, source, places)
    check_rules(outline, report)
    _check_unused_terminals(outline, names, report)
    if not report.ok:
        return report, None
    reading = Reading.of(text, taken, inlined, whole, source.start, limits)
    _check_terminals(source, reading.source, reading.languages, outline, limits, report)
    let_go(outline.rules)
    return report, reading


def _read_with_stubs(
    text: str, plain: str, names: Names, source: Lark, limits: Limits, report: Report
) -> LarkText:
    """Everything that a text says.  The package names one undefined symbol; each gets a stub, to find the next."""
    paths = list(source.import_paths)
    undefined: list[str] = []
    while True:
        stubs = "".join(f'\n{name}: "{name}"' for name in undefined)
        try:
            return read(plain + stubs, source.start, paths, limits)
        except GrammarError as error:
            found = _UNDEFINED.search(error.message)
            if found is None or len(undefined) >= _MANY_UNDEFINED:
                raise
            for name in re.findall(r"\w+", next(group for group in found.groups() if group)):
                if name in undefined:
                    raise
                undefined.append(name)
                _report_undefined(text, plain, name, names, report)


def _report_undefined(text: str, plain: str, name: str, names: Names, report: Report) -> None:
    kind = "terminal" if name.isupper() else "rule"
    others = [other for other in names.defined if other != name and other.isupper() == name.isupper()]
    close = get_close_matches(name, others, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"add {name}: ..."
    at = names.used.get(name)
    place = None if at is None else line_column(plain, at)
    report.findings.append(
        located(text, "error", f"undefined-{kind}", place, f"there is no {kind} {name!r}: {hint}")
    )


def _outline(whole: LarkText, source: Lark, places: dict[str, str]) -> Outline:
    numbers = {name: i for i, name in enumerate(whole.rules)}
    ignored = set(whole.ignored) if source.lexer == "contextual" else set()

    def symbol(name: str, is_terminal: bool) -> Node:
        if not is_terminal:
            return Ref(numbers[name])
        return NOTHING if name in ignored else Lit("x")

    rules: list[Node] = [
        Ways(tuple(Items(tuple(symbol(*each) for each in expansion)) for expansion in expansions))
        for expansions in whole.rules.values()
    ]
    owners = [owner_of(name) for name in whole.rules]
    return Outline(source.text, rules, owners, numbers[source.start], places)


def _check_unused_terminals(outline: Outline, names: Names, report: Report) -> None:
    for name in names.defined:
        if name.isupper() and name not in names.used:
            message = f"nothing uses the terminal {name}"
            report.findings.append(outline.finding("warning", "unused-terminal", name, message))


def _rename(names: Names, taken: Attributed) -> None:
    """Rules that became terminals are defined where these are; nobody wrote the names of these and of their ends."""
    for rule, each in taken.attributes.items():
        if each.lexeme:
            names.defined[rule] = names.defined.pop(each.lexeme)
        names.defined.pop(each.end, None)
    for mode in taken.modes.values():
        for name in (*mode.own.values(), *mode.own, *mode.ignored):
            names.defined.pop(name, None)


def _check_terminals(
    source: Lark,
    used: LarkText,
    known: TerminalLanguages,
    outline: Outline,
    limits: Limits,
    report: Report,
) -> None:
    ranked = known.ranked()
    languages: list[Regular] = []
    for terminal in ranked:
        try:
            languages.append(known.match(terminal).language)
        except LimitError as error:
            report.findings.append(outline.finding("error", "limit", terminal.name, str(error)))
        except GrammarError as error:
            place = error.place or outline.places.get(terminal.name)
            report.findings.append(located(source.text, "error", "bad-terminal", place, error.message))
        except MaskwrightError as error:
            report.findings.append(outline.finding("error", "bad-terminal", terminal.name, str(error)))
    if not report.ok:
        return
    if source.lexer == "contextual":
        _check_ignored_in_rules(used, outline, report)
    number = {terminal.name: i for i, terminal in enumerate(ranked)}
    labels = [known.rule_of(terminal.name) or _label(terminal, outline) for terminal in ranked]
    terminals = Terminals(
        outline,
        ranked,
        labels,
        languages,
        [number[name] for name in dict.fromkeys(used.ignored)],
        used,
        source.start,
    )
    check_terminals(terminals, report, limits, lexer=source.lexer == "contextual")


def _label(terminal: TerminalText, outline: Outline) -> str:
    """A terminal's name, or what stands in the text where the package gave the name."""
    if terminal.name in outline.places or not (terminal.is_string or terminal.name.startswith("__")):
        return terminal.name
    return f'"{terminal.pattern}"' if terminal.is_string else f"/{terminal.pattern}/"


def _check_ignored_in_rules(used: LarkText, outline: Outline, report: Report) -> None:
    ignored = set(used.ignored)
    for rule, name in _uses(used.rules, ignored):
        message = (
            f"the rule {rule} asks for {name}, which is ignored everywhere: that alternative never matches"
        )
        report.findings.append(outline.finding("warning", "ignored-in-rule", rule, message))


def _uses(rules: dict[str, list[list[tuple[str, bool]]]], wanted: set[str]) -> Sequence[tuple[str, str]]:
    return list(
        dict.fromkeys(
            (owner_of(rule), name)
            for rule, expansions in rules.items()
            for expansion in expansions
            for name, is_terminal in expansion
            if is_terminal and name in wanted
        )
    )
