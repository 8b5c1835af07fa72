"""``%mode name`` and ``rule[mode=name]``: terminals and ignored text that hold inside one part of a grammar only.

Start conditions of flex (Paxson, *Flex*, "Start Conditions"), modes of ANTLR 4 ("Lexical Modes"); here the rules enter
and leave a mode, so that there is nothing to push or pop.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from maskwright.base.deadline import check_time
from maskwright.errors import GrammarError, LimitError, line_column
from maskwright.frontends.lark.literals import REGEXP, STRING
from maskwright.frontends.lark.reader import MODE_MARK, LarkText
from maskwright.limits import Limits

MAIN = "main"
"""The mode in which a grammar begins."""

# Rules that are shared have the callers of all their copies, so that less is known of what may come behind them (adjacency.py).  That costs
# more than the copies where these are few: Python has 666, JavaScript 2 712.
_MANY_RULES = 1_000

_HEAD = re.compile(r"^[ \t]*%mode\b[ \t]*([^\n]*)", re.MULTILINE)
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_USE = re.compile(r"([a-z][a-z0-9_]*)[ \t]*->[ \t]*([a-z][a-z0-9_]*)")
_TOKEN = re.compile(
    rf"{STRING}|{REGEXP}|(?://|\#)[^\n]*|%(?P<directive>\w+)|(?P<name>[_A-Za-z]\w*)|(?P<line>\n)"
)
_PATTERN = re.compile(rf"{STRING}|<[^<>\n]+>|/(?!/)(?:\\.|[^/\\])*/|(?://|\#)[^\n]*", re.DOTALL)
"""Of a grammar, what a slash may be part of; patterns may have several lines."""
_COLON = re.compile(r"(?:\{[^}\n]*\}|\[[^\]\n]*\])?(?:\.-?\d+)?[ \t]*:")
_REST = re.compile(r"[ \t]*([^\n]*?)[ \t\r]*(?=(?://|\#)[^\n]*$|$)", re.MULTILINE)
_MAIN_DIRECTIVE = re.compile(r"^[ \t]*%(?:without|use)\b", re.MULTILINE)
_DEFINED = r"^[ \t]*(?:%(?:override|extend)[ \t]+)?{name}[ \t]*(?:\.[ \t]*-?\d+)?[ \t]*:|%(?:import|declare)\b[^\n]*\b{name}\b"


@dataclass(slots=True)
class Mode:
    """What holds in a mode."""

    ignored: list[str] = field(default_factory=list)
    own: dict[str, str] = field(default_factory=dict)
    """What stands in it for a terminal's name."""
    without: set[str] = field(default_factory=set)
    """Terminals that do not come in it."""
    elsewhere: set[str] = field(default_factory=set)
    """Of the main one: terminals that only other modes define."""
    entered: dict[str, str] = field(default_factory=dict)
    """By mode that a rule names within it, the one that is entered instead."""


@dataclass(slots=True)
class _Section:
    """What stands behind one ``%mode``: places in the whole text."""

    name: str
    start: int
    end: int
    mode: Mode = field(default_factory=Mode)
    edits: list[tuple[int, int, str]] = field(default_factory=list)
    uses: list[tuple[int, str]] = field(default_factory=list)


def found_outside_of_patterns(sought: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """What is found at the beginning of lines, but for those within a pattern of several lines (flag ``x``)."""
    heads = list(sought.finditer(text))
    if not heads:
        return heads
    patterns = [found.span() for found in _PATTERN.finditer(text) if "\n" in found[0]]
    ends = [end for _, end in patterns]
    # Where the first pattern begins that ends behind a head.
    begins = [*(begin for begin, _ in patterns), len(text)]
    return [head for head in heads if head.start() < begins[bisect_right(ends, head.start())]]


def take_modes(text: str) -> tuple[str, dict[str, Mode]]:
    """The text with a terminal of its own for each one that a mode defines, and the modes by name; without modes, none.

    Of the main one, it is only said which terminals do not come in it.  Lines stay where they are.  Raises ``GrammarError`` for what a mode cannot have.
    """
    heads = found_outside_of_patterns(_HEAD, text)
    if not heads:
        return text, {}
    sections = {MAIN: _Section(MAIN, 0, heads[0].start())}
    for head, end in zip(heads, [*(each.start() for each in heads[1:]), len(text)], strict=True):
        rest = _REST.match(head[1])
        name = "" if rest is None else rest[1]
        if _NAME.fullmatch(name) is None:
            raise _error("a mode has a name in small letters: %mode name", text, head.start())
        if name in sections:
            what = "the one in which a grammar begins" if name == MAIN else "there twice"
            raise _error(f"the mode {name} is {what}: choose another name", text, head.start(1))
        sections[name] = _Section(name, head.end(), end, edits=[(head.start(), head.end(), "")])
    main = text[: heads[0].start()]
    for found in found_outside_of_patterns(_MAIN_DIRECTIVE, main):
        _directive(text, sections[MAIN], _TOKEN.search(text, found.start()) or found)
    for section in list(sections.values())[1:]:
        _read(text, section)
    out, at = [], 0
    for section in sections.values():
        for start, end, put in _edits(text, section, main):
            out += [text[at:start], put]
            at = end
    for section in sections.values():
        for name in (each for pair in section.mode.entered.items() for each in pair):
            bad = check_mode(name, sections)
            if bad is not None:
                raise _error(bad, text, section.edits[0][0])
    out.append(text[at:])
    names = {name for section in sections.values() for name in section.mode.own}
    elsewhere = sorted(name for name in names if not _is_defined(name, main))
    sections[MAIN].mode.elsewhere.update(elsewhere)
    if elsewhere:
        out.append(f"\n%declare {' '.join(elsewhere)}\n")
    return "".join(out), {name: section.mode for name, section in sections.items()}


def _read(text: str, section: _Section) -> None:
    at, first = section.start, True
    while (found := _TOKEN.search(text, at, section.end)) is not None:
        at = found.end()
        if found["line"]:
            first = True
        elif found["directive"]:
            if first:
                at = _directive(text, section, found)
            # Otherwise one within a terminal, as %regex is.
            first = False
        elif found["name"]:
            name = found[0]
            if first and _COLON.match(text, at):
                if not name.isupper():
                    message = (
                        f"the rule {name} stands behind %mode {section.name}, which has terminals only: rules stand "
                        f"before the first %mode, as in {name}[mode={section.name}]: ..."
                    )
                    raise _error(message, text, found.start())
                section.mode.own[name] = f"{name}__{section.name.upper()}"
                section.edits.append((found.start(), found.end(), section.mode.own[name]))
            else:
                section.uses.append((found.start(), name))
            first = False


def _directive(text: str, section: _Section, found: re.Match[str]) -> int:
    """Take in a directive; where to read on."""
    rest = _REST.match(text, found.end(), section.end)
    value = "" if rest is None else rest[1]
    end = found.end() if rest is None else rest.end(1)
    match found["directive"]:
        case "ignore" if value.isidentifier():
            section.mode.ignored.append(value)
            section.edits.append((found.start(), end, ""))
            section.uses.append((end, value))
            return end
        case "ignore":
            name = f"IGNORED_{section.name.upper()}_{len(section.mode.ignored)}"
            section.mode.ignored.append(name)
            section.edits.append((found.start(), found.end(), f"{name}:"))
            return found.end()
        case "without":
            if not value or not all(name.isidentifier() and name.isupper() for name in value.split()):
                raise _error("%without has names of terminals behind it", text, found.start())
            section.mode.without.update(value.split())
            section.edits.append((found.start(), end, ""))
            return end
        case "use":
            names = _USE.fullmatch(value)
            if names is None:
                raise _error("%use has two modes behind it: %use loop -> function_loop", text, found.start())
            section.mode.entered[names[1]] = names[2]
            section.edits.append((found.start(), end, ""))
            return end
    raise _error(
        f"a mode has terminals, %ignore, %without and %use; {found[0]} stands before the first %mode",
        text,
        found.start(),
    )


def _edits(text: str, section: _Section, main: str) -> list[tuple[int, int, str]]:
    """What changes in a section: names of terminals of its own, wherever they are used."""
    own, edits = section.mode.own, list(section.edits)
    for at, name in section.uses:
        is_named = text.startswith(name, at)
        if name in own and is_named:
            edits.append((at, at + len(name), own[name]))
        elif name not in own and not is_named and not _is_defined(name, main):
            raise _error(f"the mode {section.name} ignores {name}, which is no terminal", text, at)
    section.mode.ignored[:] = [own.get(name, name) for name in section.mode.ignored]
    for name in sorted(section.mode.without):
        if name in own or not _is_defined(name, main):
            what = "defines it as well" if name in own else "there is none outside of it"
            message = f"the mode {section.name} is to be without {name}, but {what}"
            raise _error(message, text, section.edits[0][0])
    return sorted(edits)


def _is_defined(name: str, main: str) -> bool:
    return re.search(_DEFINED.format(name=re.escape(name)), main, re.MULTILINE) is not None


def check_lexeme(text: str, rule: str, at: int, end: str, mode: str, modes: Mapping[str, Mode]) -> None:
    """Raise ``GrammarError`` where a rule that is one terminal uses what a mode defines anew: it would be read as elsewhere.

    ``at``: behind the rule's colon; ``end``: its stop or suffix; ``mode``: that of the rule, if it names one.
    """
    anew = {name: each for each in ([mode] if mode else modes) if each != MAIN for name in modes[each].own}
    used = [*_names(text, at), end] if anew else []
    for name in used:
        if name in anew:
            message = (
                f"{rule} is read as one terminal, and the mode {anew[name]} defines {name} anew: write in place of {name} what it is, "
                "or read the rule in another mode"
            )
            raise _error(message, text, at)


def _names(text: str, at: int) -> Iterator[str]:
    """The terminals in the body of a rule."""
    first = False
    while (found := _TOKEN.search(text, at)) is not None:
        at = found.end()
        if first and (found["directive"] or (found["name"] and _COLON.match(text, at))):
            return
        if found["name"]:
            yield found[0]
        first = bool(found["line"])


def check_mode(name: str, modes: Mapping[str, object]) -> str | None:
    """What is wrong with the name of a mode, if anything."""
    if name == MAIN or name in modes:
        return None
    close = get_close_matches(name, modes, 1)
    hint = f"did you mean {close[0]}?" if close else f"write %mode {name} behind the rules, and its terminals"
    return f"there is no mode {name!r}: {hint}"


def mode_of(rule: str) -> str:
    """The mode in which a rule is read."""
    return rule.partition(MODE_MARK)[2] or MAIN


def without_mode(rule: str) -> str:
    """The name that a rule has in the text."""
    return rule.partition(MODE_MARK)[0]


def by_mode(
    source: LarkText,
    start: str,
    keep: Collection[str],
    modes: Mapping[str, Mode],
    given: Mapping[str, str],
    limits: Limits,
) -> LarkText:
    """A copy of each rule for each mode in which it is read; ``given``: modes by rule; ``keep``: terminals that count as used.

    A rule without a mode is read in that of the rule that uses it.  An alternative with a terminal that does not come
    in the mode is left out.  Raises ``GrammarError`` for a terminal that is ignored in one mode and used in another,
    ``LimitError`` (max_rules).
    """
    if not modes:
        return source
    whole = {**modes, MAIN: replace(modes[MAIN], ignored=source.ignored)}
    _check_texts(source, modes)
    elsewhere = modes[MAIN].elsewhere - source.terminals.keys()
    rules: dict[str, list[list[tuple[str, bool]]]] = {}
    ignored_in: dict[str, list[str]] = {
        MAIN: source.ignored
    }  # also at the end of a text that is read in other modes

    def named(rule: str, mode: str) -> str:
        if rule in given:
            mode = whole[mode].entered.get(given[rule], given[rule])
        name = rule if mode == MAIN else f"{rule}{MODE_MARK}{mode}"
        if name not in rules:
            rules[name] = []
            work.append(name)
            ignored_in.setdefault(mode, whole[mode].ignored)
            if len(rules) > limits.max_rules:
                raise LimitError("max_rules", len(rules), limits.max_rules)
        return name

    work: list[str] = []
    first = named(start, MAIN)
    for name in work:  # It grows.
        check_time()
        mode = whole[mode_of(name)]
        for expansion in source.rules[without_mode(name)]:
            used = [mode.own.get(symbol, symbol) for symbol, is_terminal in expansion if is_terminal]
            if not (mode.without | elsewhere | {*mode.ignored}).isdisjoint(used):
                continue
            rules[name].append(
                [
                    (
                        mode.own.get(symbol, symbol) if is_terminal else named(symbol, mode_of(name)),
                        is_terminal,
                    )
                    for symbol, is_terminal in expansion
                ]
            )
    ignored = list(dict.fromkeys(each for names in ignored_in.values() for each in names))
    for name, expansions in rules.items():
        for symbol in (symbol for e in expansions for symbol, is_terminal in e if is_terminal):
            if symbol in ignored:
                where = next(mode for mode, names in ignored_in.items() if symbol in names)
                raise GrammarError(
                    f"{symbol} is ignored in the mode {where}, and the rule {without_mode(name)} uses it in the mode "
                    f"{mode_of(name)}: define it in one of them (%mode) as a terminal of its own"
                )
    if len(rules) > _MANY_RULES:
        rules = _shared(rules, ignored_in, source.terminals)
    if first != start:
        rules[start] = [[(first, False)]]
    return LarkText(source.terminals, rules, ignored, ignored_in, source.text).used(start, keep)


def _shared(
    rules: dict[str, list[list[tuple[str, bool]]]],
    ignored_in: Mapping[str, list[str]],
    patterns: Collection[str],
) -> dict[str, list[list[tuple[str, bool]]]]:
    """The rules, with one copy in place of those that say the same: expressions do not change where a loop begins.

    Copies of a rule are equal where as much is ignored in their modes, and their expansions are equal in turn: the coarsest such
    partition, by refinement (Hopcroft's question for automata).  ``patterns``: terminals that have one; without it, one may be an
    indentation, which the main mode alone has.
    """
    lined = any(
        is_terminal and symbol not in patterns
        for expansions in rules.values()
        for expansion in expansions
        for symbol, is_terminal in expansion
    )
    called = {
        name: [s for each in e for s, is_terminal in each if not is_terminal] for name, e in rules.items()
    }
    copies: dict[object, list[str]] = {}
    for name, expansions in rules.items():
        mode = mode_of(name)
        shape = tuple([tuple([s if is_terminal else None for s, is_terminal in each]) for each in expansions])
        kind = without_mode(name), shape, tuple(ignored_in[mode]), lined and mode == MAIN
        copies.setdefault(kind, []).append(name)
    # By rule and by copy: the first one of its class, as far as they have been told apart.
    first: dict[str, str] = {}
    classes: list[list[str]] = []
    parts = [*copies.values()]
    while len(parts) != len(classes):
        check_time()
        first |= {name: names[0] for names in parts for name in names}
        classes, parts = [names for names in parts if len(names) > 1], []
        for names in classes:
            split: dict[tuple[str, ...], list[str]] = {}
            for name in names:
                split.setdefault(tuple([first[s] for s in called[name]]), []).append(name)
            parts += split.values()
    return {
        name: [
            [(first.get(symbol, symbol), is_terminal) for symbol, is_terminal in each] for each in expansions
        ]
        for name, expansions in rules.items()
        if first[name] == name
    }


def _check_texts(source: LarkText, modes: Mapping[str, Mode]) -> None:
    # The package lark names a text in a rule by what it is ("if" is IF): a mode's terminal of that name would stand for it.
    for name in sorted(modes[MAIN].elsewhere & source.terminals.keys()):
        text = source.terminals[name].pattern
        for mode, each in modes.items():
            if name in each.own and source.terminals[each.own[name]].pattern != text:
                raise GrammarError(
                    f"a rule has the text {text!r}, which the package lark calls {name}, as a terminal of the mode {mode} is called: "
                    "give the terminal another name"
                )


def _error(message: str, text: str, at: int) -> GrammarError:
    return GrammarError(message, place=line_column(text, at), source=text)
