"""What can be said about a grammar in GBNF."""

from __future__ import annotations

from maskwright.errors import MaskwrightError, line_column
from maskwright.frontends.gbnf import read
from maskwright.limits import Limits
from maskwright.report import Report
from maskwright.sources import GBNF
from maskwright.validation.outline import Outline, check_rules, finding_of, located


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
    places = {name: line_column(source.text, at) for name, at in whole.defined_at.items()}
    owners = [name.partition(" (")[0] for name in whole.names]
    check_rules(Outline(source.text, whole.rules, owners, start, places), report, left_recursion=True)
    return report
