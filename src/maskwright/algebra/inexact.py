"""The reason why an operation on grammars has no exact result here."""

from __future__ import annotations


class Inexact(Exception):
    """Raised with a sentence that says what stands in the way; whoever knows the sources makes it a ``GrammarError``."""
