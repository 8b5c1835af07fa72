"""Grammar -> the engine's flat tables.

Expressions become epsilon-free automata over lexemes and rule calls ("plain states"), built from
the right: the states of an expression are those of what follows it, preceded by its own moves.
Counted repetitions and records are handed over as definitions with a register.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from json.encoder import encode_basestring

from maskwright._core import AutomatonHandle, CompiledCore, Engine
from maskwright.automata import build_nfa
from maskwright.deadline import check_time
from maskwright.errors import GrammarError, LimitError
from maskwright.grammar import (
    Body,
    Choice,
    Distinct,
    Expr,
    Grammar,
    Keyset,
    Lexeme,
    Record,
    Ref,
    Repeated,
    Seq,
    Term,
)
from maskwright.limits import MAX_COUNT, Limits

PLAIN, REPEATED, RECORD = 0, 1, 2
NO_TAG = -1
_NEVER_FREE = 1 << 29


@dataclass(slots=True)
class _PlainState:
    terms: list[tuple[int, int]] = field(default_factory=list)  # (automaton, next plain state)
    calls: list[tuple[int, int]] = field(default_factory=list)  # (rule, next plain state)
    final: bool = False
    guard: int = 0  # of an array of different items: one more than its index

    def add(self, other: _PlainState) -> None:
        self.terms.extend(t for t in other.terms if t not in self.terms)
        self.calls.extend(c for c in other.calls if c not in self.calls)
        self.final = self.final or other.final


class _Lowering:
    def __init__(self, grammar: Grammar, engine: Engine, limits: Limits) -> None:
        self.grammar = grammar
        self.engine = engine
        self.limits = limits
        self.nullable = _nullable_rules(grammar)
        self.automata: list[AutomatonHandle] = []
        self.automaton_index: dict[object, int] = {}
        self.plain: list[_PlainState] = [_PlainState(final=True)]
        self.repeated: list[tuple[int, int, int, int]] = []
        self.guards: list[tuple[int, int, bool]] = []
        self.records: list[tuple[object, ...]] = []

    def rule(self, index: int, body: Body) -> tuple[int, int, bool]:
        check_time()
        nullable = self.nullable[index]
        if isinstance(body, Repeated):
            self.repeated.append((body.first, body.rest, body.min, _most(body.max)))
            return REPEATED, len(self.repeated) - 1, nullable
        if isinstance(body, Record):
            self.records.append(self.record(body))
            return RECORD, len(self.records) - 1, nullable
        if isinstance(body, Distinct):
            moves = self.expression(body.array, 0)
            if moves.calls or moves.final:
                raise GrammarError(
                    "an array of different items must begin with a term", place=self.grammar.names[index]
                )
            free = _NEVER_FREE if body.free is None else min(body.free, _NEVER_FREE)
            self.guards.append((free, body.least, body.repeats))
            moves.guard = len(self.guards)
            return PLAIN, self.state(moves), nullable
        return PLAIN, self.state(self.expression(body, 0)), nullable

    # --- expressions

    def state(self, moves: _PlainState) -> int:
        self.plain.append(moves)
        return len(self.plain) - 1

    def expression(self, expr: Expr, behind: int) -> _PlainState:
        """The moves of ``expr`` followed by plain state ``behind``."""
        if isinstance(expr, Term):
            return _PlainState(terms=[(self.automaton(expr.lexeme), behind)])
        if isinstance(expr, Ref):
            return _PlainState(calls=[(expr.rule, behind)])
        moves = _PlainState()
        if isinstance(expr, Choice):
            for item in expr.items:
                moves.add(self.expression(item, behind))
            return moves
        if not expr.items:
            moves.add(self.plain[behind])
            return moves
        for item in reversed(expr.items[1:]):
            behind = self.state(self.expression(item, behind))
        return self.expression(expr.items[0], behind)

    # --- lexemes

    def automaton(self, lexeme: Lexeme | Keyset) -> int:
        key = lexeme.key if isinstance(lexeme, Lexeme) else lexeme
        found = self.automaton_index.get(key)
        if found is None:
            if isinstance(lexeme, Lexeme):
                handle = lexeme_automaton(self.engine, lexeme, self.limits)
            else:
                names = list(lexeme.names)
                others = () if lexeme.other is None else (lexeme.other,)
                handle = self.keyset(names, list(range(len(names))), len(names), others)
            found = self.automaton_index[key] = self.add_automaton(handle)
        return found

    def add_automaton(self, handle: AutomatonHandle) -> int:
        self.automata.append(handle)
        return len(self.automata) - 1

    def keyset(
        self, names: list[str], tags: list[int], other_tag: int, others: tuple[Lexeme | None, ...]
    ) -> AutomatonHandle:
        base = tagged_automaton(self.engine, others, self.limits) if others else None
        spelled = [canonical_spelling(name) for name in names]
        return self.engine.add_keyset(spelled, tags, other_tag, base, max(len(others), 1))

    def record(self, body: Record) -> tuple[object, ...]:
        allowed = [m for m in body.members if m.values]
        tags = {m.name: i for i, m in enumerate(allowed)}
        names = [m.name for m in body.members]
        name_tags = [tags.get(name, NO_TAG) for name in names]
        goals = (1 << body.goals) - 1
        for member in body.members:
            if not member.values:
                goals &= ~member.absent
        # Whether a kind of other members may come depends on the goals that it may reach, and on nothing else.
        by_goals: dict[frozenset[int], int] = {}
        sorts = [
            by_goals.setdefault(frozenset(reached & goals for _, reached in other.values), len(by_goals))
            for other in body.others
        ]
        # By set of sorts; the empty set needs none of its own, and not all can occur.
        together = _allowed_together(list(by_goals), self.limits)
        keys = [-1] * (1 << len(by_goals))
        if not body.others:
            keys[0] = self.add_automaton(self.keyset(names, name_tags, len(allowed), ()))
        for chosen in together:
            check_time()
            others = tuple(
                other.keys if chosen >> sort & 1 else None
                for other, sort in zip(body.others, sorts, strict=True)
            )
            keys[chosen] = self.add_automaton(self.keyset(names, name_tags, len(allowed), others))
        return (
            keys,
            sorts,
            [list(values) for values in [*(m.values for m in allowed), *(o.values for o in body.others)]],
            [m.absent for m in allowed],
            [len(canonical_spelling(m.name)) + 2 for m in allowed],
            [m.required for m in allowed],
            body.min,
            _most(body.max),
            goals,
            body.ordered,
            body.unique,
            body.bare,
            self.automaton(body.open.lexeme),
            self.automaton(body.close_empty.lexeme),
            self.automaton(body.colon.lexeme),
            self.automaton(body.comma.lexeme),
            self.automaton(body.close.lexeme),
        )


def lower(grammar: Grammar, engine: Engine, limits: Limits) -> CompiledCore:
    """Hand a pruned grammar to the engine.

    Raises ``LimitError`` when the grammar or one of its lexemes is too large.
    """
    if len(grammar.rules) > limits.max_rules:
        raise LimitError("max_rules", len(grammar.rules), limits.max_rules)
    lowering = _Lowering(grammar, engine, limits)
    rules = []
    for i, body in enumerate(grammar.rules):
        if body is not None:
            try:
                rules.append(lowering.rule(i, body))
            except LimitError as error:
                name = grammar.names[i]
                raise (error.at(name) if name.startswith(("#", "/")) else error) from None
    return CompiledCore(
        engine,
        lowering.automata,
        [state.terms for state in lowering.plain],
        [state.calls for state in lowering.plain],
        bytes(state.final for state in lowering.plain),
        [state.guard for state in lowering.plain],
        lowering.guards,
        rules,
        lowering.repeated,
        lowering.records,
        grammar.start,
        limits.max_parser_states,
        limits.max_lexer_states,
        limits.max_search_steps,
        limits.max_seconds,
    )


def lexeme_automaton(engine: Engine, lexeme: Lexeme, limits: Limits) -> AutomatonHandle:
    """The engine's automaton for a lexeme, built when its content is new to the engine."""
    return tagged_automaton(engine, (lexeme,), limits)


def tagged_automaton(engine: Engine, lexemes: tuple[Lexeme | None, ...], limits: Limits) -> AutomatonHandle:
    """The automaton of several lexemes of one spelling; it accepts with the index as tag."""
    keys = [None if lexeme is None else lexeme.key for lexeme in lexemes]
    key = keys[0] if len(keys) == 1 else ("tagged", *keys)
    handle = engine.get_automaton(key)
    if handle is None:
        parts = [(lexeme.regular, tag) for tag, lexeme in enumerate(lexemes) if lexeme is not None]
        nfa = build_nfa(parts, limits)
        handle = engine.add_automaton(
            key,
            nfa.n_states,
            nfa.start,
            nfa.sets,
            nfa.edges,
            nfa.epsilons,
            nfa.loops,
            nfa.accepts,
            any(lexeme is not None and lexeme.spelling == "quoted" for lexeme in lexemes),
        )
    return handle


def _allowed_together(sorts: list[frozenset[int]], limits: Limits) -> list[int]:
    """The sets of sorts of other members, as bits, that may be allowed at one place.

    A sort is the sets of goals that a member of it may reach.  Where it is allowed, so is every sort
    that may reach all of that and more.
    """
    if len(sorts) > limits.max_key_sorts:
        raise LimitError("max_key_sorts", len(sorts), limits.max_key_sorts)
    better = [
        sum(1 << j for j, other in enumerate(sorts) if j != i and _reaches_more(other, sort))
        for i, sort in enumerate(sorts)
    ]
    found = [0]
    for i in sorted(range(len(sorts)), key=lambda i: better[i].bit_count()):
        found += [chosen | 1 << i for chosen in found if chosen & better[i] == better[i]]
        if len(found) > limits.max_key_sets:
            raise LimitError("max_key_sets", len(found), limits.max_key_sets)
    return found[1:]


def _reaches_more(other: frozenset[int], sort: frozenset[int]) -> bool:
    """Whether ``other`` reaches at least the goals of ``sort``, in each of its ways, and the two differ."""
    return all(any(goals | more == more for more in other) for goals in sort) and not all(
        any(goals | more == more for more in sort) for goals in other
    )


def _most(bound: int | None) -> int:
    """A bound as the engine has it; what it cannot count to is none."""
    return -1 if bound is None or bound > MAX_COUNT else bound


def canonical_spelling(name: str) -> bytes:
    """A key between its quotes: raw UTF-8, escapes only where RFC 8259 requires them."""
    return encode_basestring(name)[1:-1].encode()


def _nullable_rules(grammar: Grammar) -> list[bool]:
    nullable = [False] * len(grammar.rules)
    changed = True
    while changed:
        changed = False
        for i in range(len(grammar.rules) - 1, -1, -1):
            if not nullable[i] and _is_nullable(grammar.rules[i], nullable):
                nullable[i] = changed = True
    return nullable


def _is_nullable(body: Body | None, nullable: list[bool]) -> bool:
    if isinstance(body, Ref):
        return nullable[body.rule]
    if isinstance(body, Seq):
        return all(_is_nullable(item, nullable) for item in body.items)
    if isinstance(body, Choice):
        return any(_is_nullable(item, nullable) for item in body.items)
    if isinstance(body, Repeated):
        return body.min == 0 or (nullable[body.first] and (body.min == 1 or nullable[body.rest]))
    return False
