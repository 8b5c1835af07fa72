"""Which rules derive the empty text."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from maskwright.grammar import Body, Choice, Grammar, Import, Ref, Repeated, Seq, Term


def nullable_rules(grammar: Grammar, imports: Mapping[Hashable, bool]) -> list[bool]:
    """For each rule, whether it derives the empty text; ``imports`` has the answers for imported grammars."""
    nullable = [False] * len(grammar.rules)
    changed = True
    while changed:
        changed = False
        for i in range(len(grammar.rules) - 1, -1, -1):
            if not nullable[i] and _is_nullable(grammar.rules[i], nullable, imports):
                nullable[i] = changed = True
    return nullable


def _is_nullable(body: Body | None, nullable: list[bool], imports: Mapping[Hashable, bool]) -> bool:
    # Loops, not generators: this runs over every rule of every schema, more than once.
    if isinstance(body, Seq):
        for item in body.items:
            if isinstance(item, Term) or not _is_nullable(item, nullable, imports):
                return False
        return True
    if isinstance(body, Choice):
        for item in body.items:
            if not isinstance(item, Term) and _is_nullable(item, nullable, imports):
                return True
        return False
    if isinstance(body, Ref):
        return nullable[body.rule]
    if isinstance(body, Import):
        return imports[body.key]
    if isinstance(body, Repeated):
        return body.min == 0 or (nullable[body.first] and (body.min == 1 or nullable[body.rest]))
    return False
