"""A grammar and an automaton at once (Bar-Hillel, Perles and Shamir 1961).

The texts of rule A that lead the automaton from state p to state q are a rule ``(p, A, q)``:

    A: B "x" C      (p, A, q): (p, B, r) "x" (s, C, q)      for all r, s such that "x" leads from r to s

First it is found which states each rule leads to, from the start on: the least solution, so there is a text behind every
triple.  Then the triples are made that the start needs.  So nothing in the result is a dead end.  Where the automaton accepts
whatever comes, the rules are those of the grammar, with its records, imports and arrays of different items.
"""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.algebra.automaton import Moves, States
from maskwright.algebra.forbidden import without_phrases
from maskwright.algebra.found import Found, FoundStates, Phrases, Shared, leaves_of
from maskwright.algebra.inexact import Inexact
from maskwright.algebra.inline_schemas import check_schemas
from maskwright.algebra.lexers import NO_TEXT, Variants, explicit, has_no_text, placed
from maskwright.algebra.rules import Rules, moved
from maskwright.algebra.written import text_of, textless
from maskwright.base.deadline import check_time
from maskwright.errors import LimitError
from maskwright.ir.grammar import (
    Boundary,
    Choice,
    Expr,
    Grammar,
    Import,
    Keyset,
    Lexeme,
    Lexing,
    Ref,
    Seq,
    Switch,
    Term,
    Tokens,
    Words,
)
from maskwright.ir.prune import is_satisfiable
from maskwright.limits import Limits
from maskwright.regular.expressions import Regular

_FEW = 8
"""States behind a lexeme up to which one automaton reads for all of them: for more, there would be too many sets of states."""


def product(grammar: Grammar, language: Regular, limits: Limits) -> Grammar | None:
    """The texts of a grammar that are in a regular language; None: there is none.

    Raises ``Inexact``, ``UnsatisfiableError`` for a grammar without a text, ``LimitError`` above ``limits.max_pairs``.
    """
    _check_captures(grammar)
    lexing = grammar.lexing
    states = States(language, limits, lexing)
    if not states.count:
        return None
    if lexing is None:
        return _Product(Rules(grammar, limits), states).grammar()
    check_schemas(grammar)
    return _LexedProduct(Rules(explicit(grammar), limits), states, lexing).grammar()


def with_phrases(
    grammar: Grammar, required: Sequence[str], forbidden: Sequence[str], limits: Limits
) -> Grammar | None:
    """The texts of a grammar that contain all of some phrases and none of others; None: there is none.

    Raises ``Shared`` where a phrase may lie in two lexemes, and the errors of ``product``.
    """
    _check_captures(grammar)
    if grammar.has_boundaries():
        raise Shared("a phrase may lie on both sides of a place where a grammar with a lexer begins or ends")
    lexing = grammar.lexing
    phrases = Phrases([*required, *forbidden], limits)
    is_restricted = lexing is not None and not required and not grammar.captures and not lexing.of
    rules = Rules(placed(grammar) if is_restricted else explicit(grammar), limits)
    leaves = leaves_of(rules)
    phrases.check_apart(leaves, grammar)
    if is_restricted:
        return without_phrases(grammar, leaves, phrases)
    if lexing is not None:
        check_schemas(grammar)
        return _LexedProduct(rules, FoundStates(phrases, len(required)), lexing).grammar()
    found = Found(rules, phrases, len(required))
    made = found.grammar()
    if is_satisfiable(made):
        return made
    found.check_names()
    return None


def _check_captures(grammar: Grammar) -> None:
    ignored = grammar.lexing is not None and grammar.lexing.ignored
    if grammar.captures and (grammar.blank is not None or ignored):
        raise Inexact("it captures parts of texts with ignored text between them")


class _Product:
    def __init__(self, rules: Rules, states: Moves) -> None:
        self.rules = rules
        self.states = states
        self.limits = rules.limits
        self.ends: dict[tuple[int, int], set[int]] = {}
        """By rule and state before it, the states behind it, as far as they are known."""
        self.users: dict[tuple[int, int], dict[tuple[int, int], None]] = {}
        self.work: dict[tuple[int, int], None] = {}
        self.asking: tuple[int, int] | None = None
        self.out = Grammar()
        self.made: dict[tuple[int, int, int], int] = {}
        self.kept: dict[int, int] = {}
        self.tails: dict[tuple[int, int, int], int] = {}
        self.rests: dict[int, Seq] = {}
        self.alike: dict[Seq, Seq] = {}
        self.to_make: list[tuple[int, Expr, int, int]] = []
        """Rules, and what is to be in them: the texts of an expression that lead from one state to another."""
        self.reached: dict[tuple[int, int], list[int]] = {}
        """By expression (its id) and state, once all is known."""

    def grammar(self) -> Grammar | None:
        """The grammar of the start's triples; None: there is no text."""
        start = self.rules.start
        self.solve(start)
        if self.states.accepting.isdisjoint(self.ends[start, 0]):
            return None
        self.asking = None
        self.out.start = self.out.add(self.rules.names[start], Choice(tuple(self.whole_texts(start))))
        while self.to_make:
            check_time()
            index, expr, state, end = self.to_make.pop()
            self.out.rules[index] = self.make(expr, state, end)
        return self.out

    def whole_texts(self, start: int) -> list[Expr]:
        """The triples of the start."""
        return [
            Ref(self.rule(start, 0, end))
            for end in sorted(self.ends[start, 0])
            if end in self.states.accepting
        ]

    # --- which states a rule leads to

    def solve(self, start: int) -> None:
        """Find what the start leads to, and whatever it asks for."""
        self.ask(start, 0)
        while self.work:
            check_time()
            pair = next(iter(self.work))
            del self.work[pair]
            self.asking = pair
            found = set(self.reach(self.rules.plain(pair[0]), pair[1]))
            if len(found) > len(self.ends[pair]):
                self.ends[pair] = found
                self.work.update(self.users[pair])

    def ask(self, rule: int, state: int) -> set[int]:
        """The states behind a rule; while these are looked for, whoever asks is told of more."""
        pair = (rule, state)
        known = self.ends.get(pair)
        if known is None:
            known = self.ends[pair] = set()
            self.users[pair] = {}
            self.work[pair] = None
            self.check(len(self.ends))
        if self.asking is not None:
            self.users[pair][self.asking] = None
        return known

    def check(self, count: int) -> None:
        if count > self.limits.max_pairs:
            raise LimitError("max_pairs", count, self.limits.max_pairs)

    def reach(self, expr: Expr, state: int) -> list[int]:
        """The states behind an expression."""
        if state in self.states.settled:
            return [state]
        if isinstance(expr, Ref):
            return sorted(self.ask(expr.rule, state))
        if isinstance(expr, Import):
            return sorted(self.ask(self.rules.imported(expr), state))
        if isinstance(expr, Term):
            return self.reach_term(expr, state)
        if self.asking is not None:
            return self.reach_parts(expr, state)
        key = (id(expr), state)
        found = self.reached.get(key)
        if found is None:
            found = self.reached[key] = self.reach_parts(expr, state)
        return found

    def reach_term(self, term: Term, state: int) -> list[int]:
        lexeme = term.lexeme
        if isinstance(lexeme, Tokens):
            raise textless(lexeme)
        if isinstance(lexeme, Boundary) or has_no_text(lexeme):
            return [state]
        if isinstance(lexeme, Words):
            return list(self.states.words(lexeme, state))
        return self.states.exits(lexeme, state)

    def reach_parts(self, expr: Expr, state: int) -> list[int]:
        check_time()
        found: dict[int, None] = {}
        if isinstance(expr, Seq):
            found = {state: None}
            for item in expr.items:
                found = dict.fromkeys([end for at in found for end in self.reach(item, at)])
        elif isinstance(expr, Choice):
            for item in expr.items:
                found.update(dict.fromkeys(self.reach(item, state)))
        elif isinstance(expr, Switch):
            for _, at, case in self.first(expr, state):
                found.update(dict.fromkeys(self.reach(case, at)))
        return list(found)

    def first(self, switch: Switch, state: int) -> list[tuple[Lexeme | Words, int, Expr]]:
        """What a switch reads first: a lexeme (or the words of a case), the state behind it, and its case."""
        if isinstance(switch.lexemes, Words):
            return [
                (words.where(tag.__eq__), at, switch.cases[tag])
                for at, words in self.states.words(switch.lexemes, state).items()
                for tag in sorted(set(words.tags))
            ]
        return [
            (lexeme, at, case)
            for lexeme, case in zip(switch.lexemes, switch.cases, strict=True)
            for at in self.states.exits(lexeme, state)
        ]

    # --- triples

    def rule(self, rule: int, state: int, end: int) -> int:
        """The rule of the texts that lead from one state to another."""
        if state in self.states.settled:
            return self.keep(rule)
        key = (rule, state, end)
        if key not in self.made:
            index = self.made[key] = self.out.reserve(self.rules.names[rule])
            self.check(len(self.out.rules))
            self.to_make.append((index, self.rules.plain(rule), state, end))
            self.note(rule, index)
        return self.made[key]

    def keep(self, rule: int) -> int:
        """A rule of the grammar as it is, with all that it refers to."""
        work: list[int] = []

        def to(rule: int) -> int:
            if rule not in self.kept:
                self.kept[rule] = self.out.reserve(self.rules.names[rule])
                self.note(rule, self.kept[rule])
                work.append(rule)
            return self.kept[rule]

        index = to(rule)
        while work:
            check_time()
            each = work.pop()
            self.out.rules[self.kept[each]] = moved(self.rules.bodies[each], to)
        return index

    def note(self, rule: int, index: int) -> None:
        """What is said of a rule holds for what is made of it."""
        if rule in self.rules.captures:
            self.out.captures[index] = self.rules.captures[rule]
        if rule in self.rules.helpers:
            self.out.helpers.add(index)

    def make(self, expr: Expr, state: int, end: int) -> Expr:
        """The texts of an expression that lead from one state to another; there are some."""
        check_time()
        if isinstance(expr, Seq):
            return self.make_sequence(expr, state, end)
        if state in self.states.settled:
            return self.keep_expr(expr)
        if isinstance(expr, Ref):
            return Ref(self.rule(expr.rule, state, end))
        if isinstance(expr, Import):
            return Ref(self.rule(self.rules.imported(expr), state, end))
        if isinstance(expr, Term):
            return self.make_term(expr, state, end)
        if isinstance(expr, Choice):
            ways = [self.make(item, state, end) for item in expr.items if end in self.reach(item, state)]
            return ways[0] if len(ways) == 1 else Choice(tuple(ways))
        return self.make_switch(expr, state, end)

    def keep_expr(self, expr: Expr) -> Expr:
        body = moved(expr, self.keep)
        assert isinstance(body, (Term, Ref, Seq, Choice, Switch, Import))
        return body

    def make_term(self, term: Term, state: int, end: int) -> Expr:
        lexeme = term.lexeme
        assert not isinstance(lexeme, Tokens)
        if isinstance(lexeme, Boundary) or has_no_text(lexeme):
            return term
        if isinstance(lexeme, Words):
            return Term(self.states.words(lexeme, state)[end])
        return Term(self.states.between(lexeme, state, end))

    def make_switch(self, switch: Switch, state: int, end: int) -> Expr:
        ways = [way for way in self.first(switch, state) if end in self.reach(way[2], way[1])]
        cases = tuple([self.make(case, at, end) for _, at, case in ways])
        if isinstance(switch.lexemes, Words):
            tags = {
                word: number
                for number, (words, _, _) in enumerate(ways)
                if isinstance(words, Words)
                for word, _ in words.items()
            }
            return Switch(Words.tagged(tags), cases)
        lexemes = [
            self.states.between(lexeme, state, at) for lexeme, at, _ in ways if isinstance(lexeme, Lexeme)
        ]
        return Switch(_of_one_spelling(lexemes), cases)

    def make_sequence(self, sequence: Seq, state: int, end: int) -> Expr:
        found: list[Expr] = []
        while sequence.items:
            item = sequence.items[0]
            if len(sequence.items) == 1:
                found.append(self.make(item, state, end))
                break
            if state in self.states.settled:
                found.append(self.keep_expr(sequence))
                break
            rest = self.rest_of(sequence)
            between = [each for each in self.reach(item, state) if end in self.reach(rest, each)]
            if len(between) > 1:
                cases = tuple([self.tail(rest, each, end) for each in between])
                found.append(self.make_branches(item, state, between, cases))
                break
            found.append(self.make(item, state, between[0]))
            sequence, state = rest, between[0]
        return found[0] if len(found) == 1 else Seq(tuple(found))

    def make_branches(self, item: Expr, state: int, between: list[int], cases: tuple[Expr, ...]) -> Expr:
        """An item that may lead to several states, each with what follows: one automaton reads for all of them."""
        if isinstance(item, Term) and isinstance(item.lexeme, Words):
            words = self.states.words(item.lexeme, state)
            tags = {word: number for number, each in enumerate(between) for word, _ in words[each].items()}
            return Switch(Words.tagged(tags), cases)
        if isinstance(item, Term) and isinstance(item.lexeme, (Lexeme, Keyset)) and len(between) <= _FEW:
            lexemes = [self.states.between(item.lexeme, state, each) for each in between]
            return Switch(_of_one_spelling(lexemes), cases)
        return Choice(
            tuple(
                [Seq((self.make(item, state, each), case)) for each, case in zip(between, cases, strict=True)]
            )
        )

    def rest_of(self, sequence: Seq) -> Seq:
        """A sequence without its first item: one object, however often it is asked for."""
        found = self.rests.get(id(sequence))
        if found is None:
            rest = Seq(sequence.items[1:])
            # Sequences that end alike have one end.
            found = self.rests[id(sequence)] = self.alike.setdefault(rest, rest)
        return found

    def tail(self, sequence: Seq, state: int, end: int) -> Ref:
        """A rule of what is left of a sequence."""
        key = (id(sequence), state, end)
        if key not in self.tails:
            self.tails[key] = index = self.out.reserve("rest of a sequence")
            self.check(len(self.out.rules))
            self.to_make.append((index, sequence, state, end))
        return Ref(self.tails[key])


class _LexedProduct(_Product):
    """With a lexer, terminals compete that the grammar accepts at a place, also those that lead to no text of the language.

    So the automaton is complete, and all triples are made: behind what ends in a wrong state, something stands that has no text.
    The engine, which looks for a completion of every thread where terminals clash, finds that there is none.
    """

    def __init__(self, rules: Rules, states: Moves, lexing: Lexing) -> None:
        super().__init__(rules, states)
        self.variants = Variants(lexing)

    def grammar(self) -> Grammar | None:
        made = super().grammar()
        if made is not None:
            made.lexing = self.variants.lexing()
        return made

    def whole_texts(self, start: int) -> list[Expr]:
        ends = sorted(self.ends[start, 0])
        wrong = [
            Seq((Ref(self.rule(start, 0, end)), NO_TEXT)) for end in ends if end not in self.states.accepting
        ]
        return [*super().whole_texts(start), *wrong]

    def make_term(self, term: Term, state: int, end: int) -> Expr:
        made = super().make_term(term, state, end)
        assert isinstance(made, Term)
        return Term(self.variants.terminal(term.lexeme, made.lexeme))

    def make_branches(self, item: Expr, state: int, between: list[int], cases: tuple[Expr, ...]) -> Expr:
        if not (isinstance(item, Term) and self.variants.is_terminal(item.lexeme)):
            return super().make_branches(item, state, between, cases)
        pairs = zip(between, cases, strict=True)
        return Choice(tuple([Seq((self.make(item, state, each), case)) for each, case in pairs]))


def _of_one_spelling(lexemes: list[Lexeme | Keyset]) -> tuple[Lexeme, ...]:
    """Lexemes that one automaton can read: as they are, or all of them as what is written."""
    kept = [each for each in lexemes if isinstance(each, Lexeme)]
    if len(kept) == len(lexemes) and len({each.spelling for each in kept}) == 1:
        return tuple(kept)
    return tuple([Lexeme(("regular", language), language) for language in map(text_of, lexemes)])
