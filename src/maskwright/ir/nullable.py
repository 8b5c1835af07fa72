"""Which rules derive the empty text."""

from __future__ import annotations

from collections.abc import Hashable

import cython

from maskwright.base.deadline import check_time
from maskwright.ir.grammar import Body, Choice, Grammar, Import, Ref, Repeated, Seq, Term


def nullable_rules(grammar: Grammar, imports: dict[Hashable, bool]) -> list[bool]:
    """For each rule, whether it derives the empty text; ``imports`` has the answers for imported grammars."""
    nullable = [False] * len(grammar.rules)
    changed = True
    while changed:
        changed = False
        for i in range(len(grammar.rules) - 1, -1, -1):
            if i & 1023 == 1023:
                check_time()
            if not nullable[i] and _is_nullable(grammar.rules[i], nullable, imports):
                nullable[i] = changed = True
    return nullable


@cython.cfunc
def _is_nullable(body: Body | None, nullable: list[bool], imports: dict[Hashable, bool]) -> bool:
    if isinstance(body, Seq):
        sequence: Seq = body
        for item in sequence.items:
            if isinstance(item, Term) or not _is_nullable(item, nullable, imports):
                return False
        return True
    if isinstance(body, Choice):
        choice: Choice = body
        for item in choice.items:
            if not isinstance(item, Term) and _is_nullable(item, nullable, imports):
                return True
        return False
    if isinstance(body, Ref):
        ref: Ref = body
        return nullable[ref.rule]
    if isinstance(body, Import):
        return imports[body.key]
    if isinstance(body, Repeated):
        repeated: Repeated = body
        return repeated.min == 0 or (
            nullable[repeated.first] and (repeated.min == 1 or nullable[repeated.rest])
        )
    return False
