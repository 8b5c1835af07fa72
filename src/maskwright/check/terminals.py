"""Terminals that take each other's texts: by rank where they match the same, by length where one matches more.

Which terminals compete is taken from what may follow what: behind each terminal, those that may come next, and
the ignored ones.  This is never less than what competes at one place of a text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from maskwright.base.deadline import check_time, in_time
from maskwright.check.blowup import BLOWUP_CODE, blowup
from maskwright.check.outline import BLANKS_MESSAGE, Outline, is_blank
from maskwright.check.report import Report
from maskwright.errors import LimitError
from maskwright.frontends.lark.modes import mode_of
from maskwright.frontends.lark.reader import LarkText, TerminalText
from maskwright.ir.adjacency import Adjacency, Places, members
from maskwright.limits import Limits
from maskwright.regular.determinize import leaf_sets
from maskwright.regular.dfa import difference, intersect, is_empty, length_bounds, matcher, some_text
from maskwright.regular.expressions import Lit, Regular, alt

_SHOWN = 5
_MANY_TERMINALS = 400
"""Of more terminals than this, pairs of patterns are not compared."""

_MANY_RANGES = 200
"""Patterns whose character sets have more ranges, such as letters of all scripts, are not compared either."""

_MANY_STATES = 10_000
"""Nor are those whose common texts take more states (of ``Limits.max_regex_states``) to tell."""


@dataclass(frozen=True, slots=True)
class Terminals:
    """The terminals that a grammar uses, those of higher rank first, with their languages."""

    outline: Outline
    ranked: list[TerminalText]
    labels: list[str]
    languages: list[Regular]
    ignored: list[int]
    source: LarkText
    start: str

    def competitors(self) -> list[int]:
        """By what came last (the last one: nothing), the terminals that may come next, as sets of bits."""
        numbers = {terminal.name: i for i, terminal in enumerate(self.ranked)}
        rules = {name: i for i, name in enumerate(self.source.rules)}
        places = Places()
        for rule, expansions in self.source.rules.items():
            ignored = self.source.ignored_in.get(mode_of(rule), ())
            start = places.add()
            places.starts.append(start)
            for expansion in expansions:
                at = start
                for i, (name, is_terminal) in enumerate(expansion):
                    behind = places.add(final=i == len(expansion) - 1)
                    if is_terminal:
                        places.terms[at].append((numbers.get(name, -1), behind))
                        places.ignored[at] += [numbers[each] for each in ignored]
                    else:
                        places.calls[at].append((rules[name], behind))
                    at = behind
                if not expansion:
                    places.final[start] = True
        follow = Adjacency(places, rules[self.start]).follow(len(self.ranked))
        everywhere = 0
        for each in () if self.source.ignored_in else self.ignored:
            everywhere |= 1 << each
        return [each | everywhere for each in in_time(follow)]


def check_terminals(terminals: Terminals, report: Report, limits: Limits, *, lexer: bool) -> None:
    """Shadowed terminals, reserved words, patterns that overlap, white space without a bound."""
    _check_blanks(terminals, report)
    _check_blowups(terminals, report, limits)
    if not lexer:
        return
    found = _Shadows(terminals, terminals.competitors(), limits)
    for i in range(len(terminals.ranked)):
        found.look_at(i, report)
    found.reserved(report)
    if len(terminals.ranked) <= _MANY_TERMINALS:
        found.overlaps(report)


def _check_blanks(terminals: Terminals, report: Report) -> None:
    for terminal, label, language in zip(
        terminals.ranked, terminals.labels, terminals.languages, strict=True
    ):
        bounds = length_bounds(language)
        if is_blank(language) and bounds is not None and bounds[1] is None:
            message = f"{label}: {BLANKS_MESSAGE}"
            report.hints.append(
                terminals.outline.finding("note", "unbounded-blanks", terminal.name, message, shown=False)
            )


def _check_blowups(terminals: Terminals, report: Report, limits: Limits) -> None:
    for terminal, label, language in zip(
        terminals.ranked, terminals.labels, terminals.languages, strict=True
    ):
        check_time()
        message = blowup(language, limits)
        if message is not None:
            report.findings.append(
                terminals.outline.finding("warning", BLOWUP_CODE, terminal.name, f"{label}: {message}")
            )


class _Shadows:
    def __init__(self, terminals: Terminals, contexts: list[int], limits: Limits) -> None:
        self.terminals = terminals
        self.contexts = list(dict.fromkeys(contexts))
        """Sets of bits: terminals that may come at one place."""
        self.limits = replace(limits, max_regex_states=min(limits.max_regex_states, _MANY_STATES))
        self.matches = [matcher(language, limits) for language in in_time(terminals.languages)]
        self.texts = [_fixed_text(language) for language in in_time(terminals.languages)]
        self.samples = [some_text(language) for language in in_time(terminals.languages)]
        self.shadowed: set[int] = set()

    def within(self, inner: int, outer: list[int]) -> bool:
        """Whether every text of a terminal is one of the others; False where that takes too many states."""
        text = self.texts[inner]
        if text is not None:
            return any(self.takes(each, text) for each in outer)
        sample = self.samples[inner]
        # One text that none of the others has settles most pairs; the difference settles the rest.
        if sample is not None and not any(self.takes(each, sample) for each in outer):
            return False
        languages = self.terminals.languages
        try:
            return is_empty(
                difference(languages[inner], alt(*(languages[each] for each in outer)), self.limits)
            )
        except LimitError:
            check_time()
            return False

    def takes(self, terminal: int, text: str) -> bool:
        check_time()
        try:
            return self.matches[terminal](text)
        except LimitError:
            check_time()
            return False

    def look_at(self, i: int, report: Report) -> None:
        """A terminal: whether others of higher rank match all its texts, wherever it may come, or somewhere."""
        check_time()
        places = [context for context in in_time(self.contexts) if context >> i & 1]
        if not places:
            return
        labels, outline = self.terminals.labels, self.terminals.outline
        name = self.terminals.ranked[i].name
        everywhere, anywhere = places[0], 0
        for context in in_time(places):
            everywhere &= context
            anywhere |= context
        higher = (1 << i) - 1
        always = members(everywhere & higher)
        if always and self.within(i, always):
            self.shadowed.add(i)
            takers = [each for each in always if self.within(i, [each])] or always
            message = (
                f"{labels[i]} may never be matched: each of its texts is one of {_listed(labels, takers)} as well, which "
                f"{self.reason(takers, i)}, and which may come behind all that {labels[i]} may come behind"
            )
            report.findings.append(outline.finding("warning", "shadowed-terminal", name, message))
            return
        text = self.texts[i]
        somewhere = members(anywhere & ~everywhere & higher)
        takers = [each for each in somewhere if text is not None and self.takes(each, text)]
        if takers:
            message = (
                f"the keyword {labels[i]} is read as {_listed(labels, takers)} where that may come as well: it "
                f"{self.reason(takers, i)}"
            )
            report.findings.append(outline.finding("warning", "shadowed-keyword", name, message))

    def reason(self, takers: list[int], i: int) -> str:
        first, other = self.terminals.ranked[takers[0]], self.terminals.ranked[i]
        reasons = ("a higher priority", "strings before patterns", "longer matches", "a longer pattern")
        for reason, a, b in zip(reasons, first.rank, other.rank, strict=False):
            if a != b:
                return f"ranks higher ({reason})"
        return "ranks higher (the order of names)"

    def reserved(self, report: Report) -> None:
        """Patterns of which some texts are keywords."""
        labels = self.terminals.labels
        for i, terminal in enumerate(self.terminals.ranked):
            check_time()
            if self.texts[i] is not None or i in self.terminals.ignored:
                continue
            beside = 0
            for context in in_time(self.contexts):
                beside |= context if context >> i & 1 else 0
            above = members(beside & (1 << i) - 1)
            words = [each for each in above if (text := self.texts[each]) is not None and self.takes(i, text)]
            if words:
                message = f"{labels[i]} is never {_listed(labels, words)} where that may come as well (reserved words)"
                report.hints.append(
                    self.terminals.outline.finding(
                        "note", "reserved-words", terminal.name, message, shown=False
                    )
                )

    def overlaps(self, report: Report) -> None:
        """Patterns that match some text both, so that rank decides."""
        patterns = [
            i
            for i, text in enumerate(self.texts)
            if text is None
            and i not in self.shadowed
            and _ranges(self.terminals.languages[i]) <= _MANY_RANGES
        ]
        for a, b in in_time((a, b) for a in patterns for b in patterns if a < b):
            if not any(context >> a & context >> b & 1 for context in self.contexts):
                continue
            check_time()
            try:
                both = intersect([self.terminals.languages[a], self.terminals.languages[b]], self.limits)
            except LimitError:
                check_time()
                continue
            if not is_empty(both):
                first, second = self.terminals.labels[a], self.terminals.labels[b]
                message = (
                    f"{first} and {second} match the same texts in part: where both may come, {first} wins"
                )
                report.hints.append(
                    self.terminals.outline.finding(
                        "note", "overlapping-terminals", self.terminals.ranked[b].name, message, shown=False
                    )
                )


def _ranges(language: Regular) -> int:
    return sum(len(ranges) for ranges in leaf_sets(language))


def _fixed_text(language: Regular) -> str | None:
    return language.text if isinstance(language, Lit) else None


def _listed(labels: list[str], chosen: list[int]) -> str:
    shown = ", ".join(labels[i] for i in chosen[:_SHOWN])
    return shown if len(chosen) <= _SHOWN else f"{shown} and {len(chosen) - _SHOWN} more"
