"""White space as ``json.dumps(value, indent=n)`` writes it: a grammar with a copy of its rules for each depth.

How far a line is indented depends on how many arrays and objects are open.  The rules of a schema do not
know that, so they are copied: one copy of a rule for each depth at which it is needed, with the marks of
that depth.  Rules that write no mark, the scalars, are shared.  A schema that is no recursion needs
few copies; one that is ends at ``Limits.max_indented_depth``.

Depth changes inside a rule only at marks: it is one more behind an opening one, and one less behind a closing
one.  A rule that closes what another one opened is the last in its sequence.
"""

from __future__ import annotations

from dataclasses import fields, replace

from maskwright.base.deadline import check_time
from maskwright.errors import LimitError
from maskwright.frontends.json_schema.texts.lexemes import Punctuation
from maskwright.ir.grammar import (
    FAIL,
    Body,
    Choice,
    Distinct,
    Expr,
    Grammar,
    Indented,
    Lexeme,
    Record,
    Ref,
    Repeated,
    Seq,
    Term,
    Values,
)
from maskwright.ir.prune import is_satisfiable, prune
from maskwright.limits import Limits
from maskwright.regular.expressions import Lit


def indented(grammar: Grammar, marks: Punctuation, width: int, limits: Limits) -> Grammar:
    """The texts of a grammar written with ``marks`` without white space, with an indentation of ``width`` blanks.

    Values with more than ``limits.max_indented_depth`` arrays and objects inside each other are left out.
    Raises ``UnsatisfiableError``, and ``LimitError`` when there are no others.
    """
    grammar = prune(grammar)
    copy = _Copies(grammar, marks, width, limits).grammar
    # Whatever a pruned grammar has is finite: only the depth can be missing.
    if not is_satisfiable(copy):
        raise LimitError("max_indented_depth", limits.max_indented_depth + 1, limits.max_indented_depth)
    return copy


class _Copies:
    def __init__(self, source: Grammar, marks: Punctuation, width: int, limits: Limits) -> None:
        self.source = source
        self.marks = marks
        self.width = width
        self.limits = limits
        self.flat = _without_marks(source, marks)
        self.grammar = Grammar()
        self.empty_array = Term(Lexeme("indented []", Lit("[]")))
        self.empty_object = Term(Lexeme("indented {}", Lit("{}")))
        self.colon = Term(Lexeme("indented :", Lit(": ")))
        self._terms: dict[tuple[str, int], Term] = {}
        self._known: dict[tuple[int, int], int] = {}
        self._work: list[tuple[int, int]] = []
        self.grammar.start = self.rule(source.start, 0)
        while self._work:
            check_time()
            rule, depth = self._work.pop()
            self.grammar.rules[self._known[rule, depth]] = self.body(source.rules[rule], depth)

    def rule(self, rule: int, depth: int) -> int:
        """The copy of a rule that begins where so many arrays and objects are open."""
        if rule in self.flat:
            depth = 0
        found = self._known.get((rule, depth))
        if found is None:
            found = self._known[rule, depth] = self.grammar.reserve(self.source.names[rule])
            self._work.append((rule, depth))
            if found >= self.limits.max_rules:
                raise LimitError("max_rules", found + 1, self.limits.max_rules)
        return found

    def body(self, body: Body | None, depth: int) -> Body:
        if isinstance(body, Repeated):
            return replace(body, first=self.rule(body.first, depth), rest=self.rule(body.rest, depth))
        if isinstance(body, Record):
            return self.record(body, depth)
        if isinstance(body, Distinct):
            array = self.expression(body.array, depth)[0]
            provided = () if array is FAIL else tuple(self.rule(rule, depth + 1) for rule in body.provided)
            return replace(body, array=array, provided=provided)
        assert not isinstance(body, Indented), "schemas make no lines"
        return FAIL if body is None else self.expression(body, depth)[0]

    def expression(self, expr: Expr, depth: int) -> tuple[Expr, int]:
        """The copy of an expression, and the depth behind it."""
        if isinstance(expr, Ref):
            return Ref(self.rule(expr.rule, depth)), depth
        if isinstance(expr, Term):
            return self.term(expr, depth)
        if isinstance(expr, Choice):
            return Choice(tuple(self.expression(item, depth)[0] for item in expr.items)), depth
        assert isinstance(expr, Seq), "schemas make no other expressions"
        if expr.items == (self.marks.open_array, self.marks.close_empty_array):
            return FAIL if self.is_too_deep(depth) else self.empty_array, depth
        items: list[Expr] = []
        for item in expr.items:
            copy, depth = self.expression(item, depth)
            if copy is FAIL:
                # What follows would go ever deeper.
                return FAIL, depth
            items.append(copy)
        return Seq(tuple(items)), depth

    def term(self, term: Term, depth: int) -> tuple[Expr, int]:
        marks = self.marks
        if term is marks.open_array:
            return FAIL if self.is_too_deep(depth) else self.mark("[", depth + 1, ""), depth + 1
        if term is marks.close_array:
            return self.mark("", depth - 1, "]"), depth - 1
        if term is marks.comma:
            return self.mark(",", depth, ""), depth
        return term, depth

    def is_too_deep(self, depth: int) -> bool:
        """Whether no array and no object may be opened inside so many."""
        return depth >= self.limits.max_indented_depth

    def mark(self, before: str, depth: int, behind: str) -> Term:
        """A line break and the indentation of a depth, between two characters."""
        key = (before + behind, depth)
        found = self._terms.get(key)
        if found is None:
            text = f"{before}\n{' ' * (self.width * depth)}{behind}"
            found = self._terms[key] = Term(Lexeme(("indented", text), Lit(text)))
        return found

    def record(self, record: Record, depth: int) -> Expr:
        if self.is_too_deep(depth):
            return FAIL
        ways: list[Expr] = []
        if record.max != 0:
            filled = replace(
                record,
                members=tuple(replace(m, values=self.values(m.values, depth + 1)) for m in record.members),
                others=tuple(replace(o, values=self.values(o.values, depth + 1)) for o in record.others),
                open=self.mark("{" if record.has_colons else "[", depth + 1, ""),
                close=self.mark("", depth, "}" if record.has_colons else "]"),
                colon=self.colon,
                comma=self.mark(",", depth + 1, ""),
                min=max(record.min, 1),
            )
            ways.append(Ref(self.grammar.add("indented members", filled)))
        if _may_be_empty(record):
            ways.append(self.empty_object if record.has_colons else self.empty_array)
        return Choice(tuple(ways))

    def values(self, values: Values, depth: int) -> Values:
        return tuple((self.rule(rule, depth), obligations) for rule, obligations in values)


def _may_be_empty(record: Record) -> bool:
    reached = 0
    for member in record.members:
        if member.required:
            return False
        reached |= member.absent
    return record.min == 0 and reached == (1 << record.obligations) - 1


def _without_marks(grammar: Grammar, marks: Punctuation) -> frozenset[int]:
    """The rules that write no mark and refer to no rule: they are the same at every depth."""
    known = {id(getattr(marks, field.name)) for field in fields(marks)}

    def flat(expr: Expr) -> bool:
        if isinstance(expr, Term):
            return id(expr) not in known
        return isinstance(expr, (Seq, Choice)) and all(flat(item) for item in expr.items)

    return frozenset(
        i for i, body in enumerate(grammar.rules) if isinstance(body, (Term, Seq, Choice)) and flat(body)
    )
