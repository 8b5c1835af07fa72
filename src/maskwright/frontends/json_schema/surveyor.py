"""One grammar of many conjunctions, which says of each whether anything satisfies it."""

from __future__ import annotations

from maskwright.base.deadline import check_time, check_time_again, in_time, let_go
from maskwright.errors import GrammarError, LimitError, Refusal, UnsupportedSchemaError, no_recursion
from maskwright.frontends.json_schema.algebra.groups import Conjunction
from maskwright.frontends.json_schema.algebra.normalize import Normalizer
from maskwright.frontends.json_schema.emit.emitter import Emitter
from maskwright.frontends.json_schema.read.document import Document
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.ir.grammar import EMPTY, Choice, Expr
from maskwright.ir.prune import productive_rules, references
from maskwright.limits import Limits


class Surveyor(Emitter):
    """Emits the rules of any conjunctions; where the compiler would give up, one counts as satisfiable."""

    def __init__(self, document: Document, options: SchemaOptions, limits: Limits) -> None:
        super().__init__(Normalizer(document, options, limits), options, limits)
        self.document = document
        self.refusals: list[Refusal] = []
        """What would not be enforced."""
        self.errors: list[GrammarError | LimitError | UnsupportedSchemaError] = []
        """What would end compiling."""
        self._good: list[bool] = []

    def refuse(self, refusal: Refusal) -> Expr:
        self.refusals.append(refusal)
        return EMPTY

    def is_empty(self, conjunction: Conjunction) -> bool:
        """Whether nothing satisfies a conjunction."""
        self.add(conjunction)
        return not self._good[self._rules[conjunction]]

    @no_recursion()
    def add(self, conjunction: Conjunction) -> None:
        """Emits a conjunction and all that it leads to."""
        self.rule(conjunction)
        while self._pending:
            index, next_one = self._pending.pop()
            body: Expr = EMPTY
            try:
                body = Choice(tuple(self.group(g) for g in self.normalizer.groups(next_one)))
            except LimitError as error:
                check_time_again(error)
                self.errors.append(error.at(next_one[0].pointer or "#" if next_one else "#"))
            except (GrammarError, UnsupportedSchemaError) as error:
                self.errors.append(error)
            self.grammar.rules[index] = body
        if len(self._good) < len(self.grammar.rules):
            self._good = productive_rules(self.grammar, self._good)

    def release(self) -> None:
        super().release()
        let_go(self.grammar.rules, self.grammar.names)

    def in_use(self) -> list[Conjunction]:
        """Those that the root of the document leads to, without those behind ones that nothing satisfies."""
        given_up = {rule for rule in in_time(self._rules.values()) if not self._good[rule]}
        start = self.rule((self.document.root,))
        seen = {start}
        work = [start]
        while work:
            check_time()
            rule = work.pop()
            below = references(self.grammar.rules[rule]) - seen if rule not in given_up else ()
            seen.update(below)
            work += below
        return [conjunction for conjunction, rule in in_time(self._rules.items()) if rule in seen]
