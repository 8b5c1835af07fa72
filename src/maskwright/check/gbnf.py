"""What can be said about a grammar in GBNF."""

from __future__ import annotations

from maskwright.check.blowup import BLOWUP_CODE, blowup
from maskwright.check.outline import Outline, check_rules, finding_of, located
from maskwright.check.report import Report
from maskwright.errors import MaskwrightError, line_column, line_columns
from maskwright.frontends.gbnf import GbnfText, read
from maskwright.ir.grammar import Body, Choice, Grammar, Lexeme, Seq, Term
from maskwright.limits import Limits
from maskwright.regular.expressions import Regular
from maskwright.sources import GBNF


def check_gbnf(source: GBNF, limits: Limits) -> Report:
    """All findings about a grammar, but whether it compiles."""
    report = Report()
    try:
        whole = read(source.text, limits)
        start = whole.start(source.root)
    except MaskwrightError as error:
        report.findings.append(finding_of(error))
        return report
    for message, at in whole.undefined():
        place = line_column(source.text, at)
        report.findings.append(located(source.text, "error", "undefined-rule", place, message))
    owners = [_owner(name) for name in whole.names]
    check_rules(
        Outline(source.text, whole.rules, owners, start, _places(source.text, whole)),
        report,
        left_recursion=True,
    )
    return report


def check_lexemes(source: GBNF, grammar: Grammar, report: Report, limits: Limits) -> None:
    """The regular parts that a grammar was compiled to: those whose automata blow up."""
    places = _places(source.text, read(source.text, limits))
    for name, body in zip(grammar.names, grammar.rules, strict=True):
        for language in regular_parts(body):
            message = blowup(language, limits)
            if message is not None:
                owner = _owner(name)
                message = f"part of the rule {owner}: {message}"
                report.findings.append(
                    located(source.text, "warning", BLOWUP_CODE, places.get(owner), message)
                )


def _owner(name: str) -> str:
    return name.partition(" (")[0]


def _places(text: str, whole: GbnfText) -> dict[str, str]:
    return dict(zip(whole.defined_at, line_columns(text, whole.defined_at.values()), strict=True))


def regular_parts(body: Body | None) -> list[Regular]:
    """The languages of a rule's terminals."""
    found: list[Regular] = []
    work: list[object] = [body]
    while work:
        part = work.pop()
        if isinstance(part, (Seq, Choice)):
            work.extend(part.items)
        elif isinstance(part, Term) and isinstance(part.lexeme, Lexeme):
            found.append(part.lexeme.regular)
    return found
