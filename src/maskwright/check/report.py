"""Findings about a source, as data: what ``check_...`` returns and the CLI prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from maskwright.base.html import escape, some
from maskwright.errors import Constraint

Severity = Literal["error", "warning", "note"]
Status = Literal["enforced", "annotation", "refused"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: ``code`` is a short stable name, ``place`` a JSON pointer or ``line:column``.

    ``constraints`` are what excludes each other, where that is the finding.
    """

    severity: Severity
    code: str
    place: str
    message: str
    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True, slots=True)
class KeywordUse:
    """What becomes of one keyword of one subschema (``pointer``, "#" for the root); ``reason`` says why
    it is not enforced, where its name does not."""

    pointer: str
    keyword: str
    status: Status
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All findings about one source; what each keyword is; and ``hints``, which are no problems."""

    findings: list[Finding] = field(default_factory=list)
    keywords: list[KeywordUse] = field(default_factory=list)
    hints: list[Finding] = field(default_factory=list)

    profile: str | None = None
    """The profile that was asked for; findings with its name as code say nothing about compiling."""

    @property
    def compiles(self) -> bool:
        """Whether the source compiles."""
        return all(f.severity != "error" or f.code == self.profile for f in self.findings)

    @property
    def ok(self) -> bool:
        """Whether no finding is an error: the source compiles and is within the profile, if one was asked for."""
        return all(finding.severity != "error" for finding in self.findings)

    def _repr_html_(self) -> str:
        """What a notebook shows: whether it compiles, all findings and hints, and keywords that are not enforced."""
        verdict = "It compiles." if self.compiles else "It does not compile."
        if self.compiles and not self.ok:
            verdict += f" It is not within {self.profile}."
        made = f"<p><strong>{escape(verdict)}</strong></p>\n"
        heads = ("", "code", "place", "message")
        for caption, found in (("Findings", self.findings), ("Hints", self.hints)):
            if found:
                made += some(caption, heads, [(f.severity, f.code, f.place, f.message) for f in found])
        others = [k for k in self.keywords if k.status != "enforced"]
        if others:
            rows = [(k.keyword, k.pointer, k.status, k.reason) for k in others]
            made += some("Keywords that are not enforced", ("keyword", "subschema", "is", "because"), rows)
        # Names of schemas may have lone surrogates, which no notebook can send.
        return made.encode("utf-8", "backslashreplace").decode()
