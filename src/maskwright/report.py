"""Findings about a source, as data: what ``check_...`` returns and the CLI prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: ``code`` is a short stable name, ``place`` a JSON pointer or ``line:column``."""

    severity: Severity
    code: str
    place: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """All findings about one source."""

    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the source compiles: no finding is an error."""
        return all(finding.severity != "error" for finding in self.findings)
