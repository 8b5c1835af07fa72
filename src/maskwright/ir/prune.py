"""Remove what can never be completed, so that the engine has no dead ends.

A rule is productive when it derives some finite text.  Unproductive alternatives, members
and items are dropped; a grammar whose start rule is unproductive is unsatisfiable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import is_

import cython

from maskwright.base.deadline import check_time, let_go
from maskwright.errors import UnsatisfiableError
from maskwright.ir.grammar import (
    EMPTY,
    FAIL,
    Body,
    Choice,
    Distinct,
    Expr,
    Grammar,
    Import,
    Indented,
    Keyset,
    Lexeme,
    Member,
    OtherMembers,
    Record,
    Ref,
    Repeated,
    Seq,
    Switch,
    Term,
    Values,
    Words,
)
from maskwright.regular.expressions import is_nothing

_SWEEPS = 3


def prune(grammar: Grammar) -> Grammar:
    """A grammar for the same language in which every rule is productive, or empty and unreferenced.

    Raises ``UnsatisfiableError`` when the language is empty.
    """
    good = productive_rules(grammar)
    if not good[grammar.start]:
        name = grammar.names[grammar.start]
        raise UnsatisfiableError(
            "no finite text satisfies this: every alternative contains itself or a contradiction", place=name
        )
    whole = True
    # Rules that share a body go on doing so.
    changed: dict[int, Body] = {}
    rules: list[Body | None] = []
    for i, body in enumerate(grammar.rules):
        if i & 31 == 0:
            check_time()
        if not good[i]:
            whole = False
            rules.append(FAIL)
            continue
        pruned = _prune_body(body, good)
        if pruned is not body:
            whole = False
            pruned = changed.setdefault(id(body), pruned)
        rules.append(pruned)
    return grammar if whole else replace(grammar, rules=rules)


def is_satisfiable(grammar: Grammar) -> bool:
    """Whether the language has a text."""
    return productive_rules(grammar)[grammar.start]


def productive_rules(grammar: Grammar, known: list[bool] | None = None) -> list[bool]:
    """For each rule, whether it derives some finite text.

    ``known`` has the answers for the first rules, when these refer to no later ones, and is given back with the others.
    """
    rules: list[Body | None] = grammar.rules
    good: list[bool] = [] if known is None else known
    work: Sequence[int] = range(len(rules) - 1, len(good) - 1, -1)
    good += [False] * len(work)
    # Most rules refer to later ones only: from the back, these settle at once.
    for _ in range(_SWEEPS):
        left: list[int] = []
        for i in work:
            if i & 63 == 0:
                check_time()
            good[i] = _body_is_productive(rules[i], good)
            if not good[i]:
                left.append(i)
        if len(left) == len(work):
            return good
        work = left
    # What is left is looked at again when a rule that it refers to has become productive.
    waiting: dict[int, list[int]] = {}
    for i in work:
        check_time()
        for rule in references(rules[i]):
            if not good[rule]:
                waiting.setdefault(rule, []).append(i)
    while work:
        touched: set[int] = set()
        for i in work:
            check_time()
            if _body_is_productive(rules[i], good):
                good[i] = True
                touched.update(waiting.get(i, ()))
        # Once a round, however many of those that it waits for have become productive.
        work = sorted([i for i in touched if not good[i]], reverse=True)
    let_go(waiting)
    return good


def references(body: Body | None) -> set[int]:
    """The rules that a body refers to."""
    found: set[int] = set()
    work = [body]
    seen: int = 0
    while work:
        part = work.pop()
        seen += 1
        if seen & 255 == 0:
            check_time()
        if isinstance(part, Ref):
            found.add(part.rule)
        elif isinstance(part, (Seq, Choice)):
            work += part.items
        elif isinstance(part, Switch):
            work += part.cases
        elif isinstance(part, Repeated):
            found.update((part.first, part.rest))
        elif isinstance(part, Indented):
            found.add(part.rule)
        elif isinstance(part, Distinct):
            work.append(part.array)
        elif isinstance(part, Record):
            for values in (*[m.values for m in part.members], *[o.values for o in part.others]):
                seen += 1
                if seen & 255 == 0:
                    check_time()
                found.update([rule for rule, _ in values])
    return found


@cython.cfunc
def _body_is_productive(body: Body | None, good: list[bool]) -> bool:
    if isinstance(body, Choice):
        return _expr_is_productive(body, good)
    if isinstance(body, Repeated):
        repeated: Repeated = body
        if repeated.max is not None and repeated.max < repeated.min:
            return False
        if repeated.min == 0:
            return True
        return good[repeated.first] and (repeated.min == 1 or good[repeated.rest])
    if isinstance(body, Record):
        record: Record = body
        if record.obligations == 0 and record.min == 0 and record.max is None:
            # The usual case: nothing is counted.
            for m in record.members:
                member: Member = m
                if member.required and not _any_good(member.values, good):
                    return False
            return True
        return is_completable(record, good)
    if isinstance(body, Indented):
        return good[body.rule]
    if isinstance(body, Distinct):
        return _expr_is_productive(body.array, good)
    return body is not None and _expr_is_productive(body, good)


@cython.cfunc
def _any_good(values: Values, good: list[bool]) -> bool:
    for rule, _ in values:  # noqa: SIM110
        if good[rule]:
            return True
    return False


@cython.cfunc
def _expr_is_productive(expr: Expr, good: list[bool]) -> bool:
    i: int
    if isinstance(expr, Term):
        return _term_is_productive(expr)
    if isinstance(expr, Ref):
        ref: Ref = expr
        return good[ref.rule]
    if isinstance(expr, Choice):
        choice: Choice = expr
        for i, item in enumerate(choice.items):
            if i & 255 == 255:
                check_time()
            if _expr_is_productive(item, good):
                return True
        return False
    if isinstance(expr, Seq):
        sequence: Seq = expr
        for i, item in enumerate(sequence.items):
            if i & 255 == 255:
                check_time()
            if not _expr_is_productive(item, good):
                return False
        return True
    if isinstance(expr, Switch):
        return bool(_good_cases(expr, good))
    return True


def _good_cases(switch: Switch, good: list[bool]) -> set[int]:
    """The cases that can be reached and completed."""
    lexemes = switch.lexemes
    reached = set(lexemes.tags) if isinstance(lexemes, Words) else set(range(len(lexemes)))
    return {
        i
        for i in reached
        if _expr_is_productive(switch.cases[i], good)
        and (isinstance(lexemes, Words) or not is_nothing(lexemes[i].regular))
    }


@cython.cfunc
def _term_is_productive(term: Term) -> bool:
    lexeme = term.lexeme
    if isinstance(lexeme, Lexeme):
        of_characters: Lexeme = lexeme
        return not is_nothing(of_characters.regular)
    if isinstance(lexeme, Keyset):
        return bool(lexeme.names) or lexeme.other is not None
    # Which tokens there are, only the vocabulary knows; none is an error.
    return len(lexeme) > 0 if isinstance(lexeme, Words) else True


@cython.cfunc
def _prune_body(body: Body | None, good: list[bool]) -> Body:
    """The same object where nothing is left out."""
    if isinstance(body, Repeated):
        return _prune_repeated(body, good)
    if isinstance(body, Record):
        return _prune_record(body, good)
    if isinstance(body, Indented):
        return body
    if isinstance(body, Distinct):
        distinct: Distinct = body
        array = _prune_expr(distinct.array, good)
        known = True
        for rule in distinct.provided:
            known = known and good[rule]
        if array is distinct.array and known:
            return distinct
        return replace(distinct, array=array, free=distinct.free if known else None, provided=())
    return FAIL if body is None else _prune_expr(body, good)


@cython.cfunc
def _prune_repeated(body: Repeated, good: list[bool]) -> Body:
    most = body.max
    if good[body.first] and good[body.rest] and most != 0:
        return body
    if not good[body.first]:
        most = 0
    elif not good[body.rest]:
        most = 1 if most is None else min(most, 1)
    if most == 0:
        return EMPTY if body.min == 0 else FAIL
    return Repeated(body.first, body.rest if good[body.rest] else body.first, body.min, most)


@cython.cfunc
def _prune_record(body: Record, good: list[bool]) -> Record:
    if _is_whole(body, good):
        return body
    members: list[Member] = []
    for m in body.members:
        member: Member = m
        if not _all_good(member.values, good):
            member = Member(member.name, _good_values(member.values, good), member.required, member.absent)
        members.append(member)
    others: list[OtherMembers] = []
    for o in body.others:
        other: OtherMembers = o
        if not _all_good(other.values, good):
            other = OtherMembers(other.keys, _good_values(other.values, good))
        if other.values:
            others.append(other)
    return replace(body, members=tuple(members), others=tuple(others))


@cython.cfunc
def _is_whole(record: Record, good: list[bool]) -> bool:
    for m in record.members:
        member: Member = m
        if not _all_good(member.values, good):
            return False
    for o in record.others:
        other: OtherMembers = o
        if not other.values or not _all_good(other.values, good):
            return False
    return True


@cython.cfunc
def _all_good(values: Values, good: list[bool]) -> bool:
    for rule, _ in values:  # noqa: SIM110
        if not good[rule]:
            return False
    return True


def _good_values(values: Values, good: list[bool]) -> Values:
    return tuple([way for way in values if good[way[0]]])


def is_completable(record: Record, good: list[bool]) -> bool:
    """Whether the counts, obligations and required members of a record can be met at once, with values of rules that are ``good``."""
    members = record.members
    for m in members:
        if m.required and not _any_good(m.values, good):
            return False
    # Each obligation set, with the numbers of members by which it is reached, as bits.
    everything = (1 << record.obligations) - 1
    reached: dict[int, int] = {0: 1}
    for member in members:
        check_time()
        after: dict[int, int] = {}
        for obligations, counts in reached.items():
            if not member.required:
                left_out = obligations | member.absent
                after[left_out] = after.get(left_out, 0) | counts
            for bits in {bits for rule, bits in member.values if good[rule]}:
                after[obligations | bits] = after.get(obligations | bits, 0) | counts << 1
        reached = after
    ways = _most_reached(record, good)
    if record.max is None and ways:
        # They may come as often as somebody wants.
        together = 0
        for bits in ways:
            together |= bits
        return any(obligations | together == everything for obligations in reached)
    for _ in range(record.obligations + 1 if ways else 0):
        for obligations, counts in list(reached.items()):
            for bits in ways:
                check_time()
                reached[obligations | bits] = reached.get(obligations | bits, 0) | counts << 1
    counts = reached.get(everything, 0)
    if not counts:
        return False
    if ways:
        least = (counts & -counts).bit_length() - 1
        return record.max is None or least <= record.max
    if record.max is not None:
        counts &= (1 << min(record.max, len(members)) + 1) - 1
    return counts.bit_length() > record.min


def _most_reached(record: Record, good: list[bool]) -> list[int]:
    """The obligations that one member that is not declared can reach, as sets that are in no other."""
    every = {bits for other in record.others for rule, bits in other.values if good[rule]}
    most: list[int] = []
    for bits in sorted(every, key=int.bit_count, reverse=True):
        check_time()
        if all(bits & ~larger for larger in most):
            most.append(bits)
    return most


@cython.cfunc
def _prune_expr(expr: Expr, good: list[bool]) -> Expr:
    """The same object where nothing is left out."""
    if isinstance(expr, Ref):
        ref: Ref = expr
        return ref if good[ref.rule] else FAIL
    if isinstance(expr, Term):
        return expr if _term_is_productive(expr) else FAIL
    if isinstance(expr, Switch):
        return _prune_switch(expr, good)
    if isinstance(expr, Import):
        return expr
    items: tuple[Expr, ...]
    kept: list[Expr] | None = None
    if isinstance(expr, Seq):
        sequence: Seq = expr
        items = sequence.items
        for i in range(len(items)):
            pruned = _prune_expr(items[i], good)
            if _is_fail(pruned):
                return FAIL
            if kept is None and pruned is not items[i]:
                kept = list(items[:i])
            if kept is not None:
                kept.append(pruned)
        return sequence if kept is None else Seq(tuple(kept))
    choice: Choice = expr
    items = choice.items
    for i in range(len(items)):
        if i & 255 == 255:
            check_time()
        pruned = _prune_expr(items[i], good)
        failed = _is_fail(pruned)
        if kept is None and (failed or pruned is not items[i]):
            kept = list(items[:i])
        if kept is not None and not failed:
            kept.append(pruned)
    return choice if kept is None else Choice(tuple(kept))


@cython.cfunc
def _is_fail(expr: Expr) -> bool:
    if isinstance(expr, Choice):
        choice: Choice = expr
        return not choice.items
    return False


def _prune_switch(switch: Switch, good: list[bool]) -> Expr:
    """Without the cases that cannot be completed: the lexer must not read what leads to them."""
    kept = _good_cases(switch, good)
    if not kept:
        return FAIL
    if isinstance(switch.lexemes, Words):
        cases = tuple(_prune_expr(case, good) if i in kept else FAIL for i, case in enumerate(switch.cases))
        lexemes: tuple[Lexeme, ...] | Words = switch.lexemes.where(kept.__contains__)
    else:
        order = sorted(kept)
        cases = tuple(_prune_expr(switch.cases[i], good) for i in order)
        lexemes = tuple(switch.lexemes[i] for i in order)
    if len(kept) == len(switch.cases) and all(map(is_, cases, switch.cases)):
        return switch
    return Switch(lexemes, cases)
