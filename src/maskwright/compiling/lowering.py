"""Grammar -> the engine's flat tables.

Expressions become epsilon-free automata over lexemes and rule calls ("plain states"), built from
the right: the states of an expression are those of what follows it, preceded by its own moves.
Counted repetitions and records are handed over as definitions with a register.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import cython

from maskwright._core import AutomatonHandle, CompiledCore, Engine, Matcher, Tables
from maskwright.base.deadline import check_time, in_time, let_go
from maskwright.compiling.captures import CaptureReader
from maskwright.compiling.factoring import PlainState, factor
from maskwright.compiling.key_sorts import allowed_together
from maskwright.compiling.lexeme_automata import (
    canonical_spelling,
    lexeme_automaton,
    tagged_automaton,
    words_automaton,
)
from maskwright.compiling.lexer_automaton import add_lexer, lexer_automaton
from maskwright.compiling.token_sets import token_ids
from maskwright.errors import GrammarError, LimitError, UnsatisfiableError
from maskwright.ir.adjacency import BOUNDARY, Adjacency, Places
from maskwright.ir.grammar import (
    AnyLexeme,
    Body,
    Boundary,
    Choice,
    Distinct,
    Expr,
    Grammar,
    Import,
    Indented,
    Keyset,
    Lexeme,
    Lexing,
    Member,
    OtherMembers,
    Record,
    Ref,
    Repeated,
    Seq,
    Spelling,
    Switch,
    Term,
    Tokens,
    Values,
    Words,
)
from maskwright.ir.nullable import nullable_rules
from maskwright.limits import MAX_COUNT, Limits
from maskwright.regular.automata import Nfa

PLAIN, REPEATED, RECORD, INDENTED = 0, 1, 2, 3
NO_TAG = -1


@cython.cclass
class _Lowering:
    grammar: Grammar
    engine: Engine
    limits: Limits
    tables: dict[Hashable, Tables]
    imports: dict[Hashable, int]
    nullable: list[bool]
    automata: list[AutomatonHandle]
    automaton_index: dict[object, int]
    plain: list[PlainState]
    repeated: list[tuple[int, int, int, int]]
    tails: dict[tuple[int, int], int]
    guards: list[tuple[int, int, bool, int, int, int]]
    records: list[tuple[object, ...]]
    indented: list[int]
    ranks: dict[Hashable, int]
    shared: dict[int, tuple[int, int, bool]]
    """By the id of a body."""
    lexed: tuple[tuple[int, ...] | None, tuple[Nfa, list[int], list[tuple[int, int, list[int]]]]] | None
    """The automaton of the lexer, and the sets of terminals for which it was made."""

    def __init__(
        self, grammar: Grammar, engine: Engine, limits: Limits, imports: dict[Hashable, Tables]
    ) -> None:
        self.grammar = grammar
        self.engine = engine
        self.limits = limits
        self.tables = imports
        self.imports = {}
        self.nullable = nullable_rules(grammar, {key: tables.nullable for key, tables in imports.items()})
        self.automata = []
        self.automaton_index = {}
        self.plain = [PlainState(final=True)]
        self.repeated = []
        self.tails = {}
        self.guards = []
        self.records = []
        self.indented = []
        lexing = grammar.lexing
        self.ranks = (
            {} if lexing is None else {t.key: rank for rank, t in enumerate(in_time(lexing.terminals))}
        )
        self.shared = {}
        self.lexed = None

    @cython.cfunc
    def rule(self, index: int, body: Body) -> tuple[int, int, bool]:
        """How a rule begins; the same for rules that share their body."""
        found = self.shared.get(id(body))
        if found is None:
            check_time()
            if self.tails:
                let_go(self.tails)
            found = self.shared[id(body)] = self.body(index, body)
        return found

    @cython.cfunc
    def body(self, index: int, body: Body) -> tuple[int, int, bool]:
        nullable = self.nullable[index]
        if isinstance(body, Repeated):
            repeated: Repeated = body
            least = repeated.min
            if self.nullable[repeated.rest]:
                # What may be empty need not come: the engine would count to the bound without reading anything.
                least = min(least, 0 if self.nullable[repeated.first] else 1)
            self.repeated.append((repeated.first, repeated.rest, least, _most(repeated.max)))
            return REPEATED, len(self.repeated) - 1, nullable
        if isinstance(body, Record):
            self.records.append(self.record(body))
            return RECORD, len(self.records) - 1, nullable
        if isinstance(body, Indented):
            self.indented.append(body.rule)
            return INDENTED, len(self.indented) - 1, nullable
        if isinstance(body, Distinct):
            moves = self.expression(body.array, 0)
            if moves.calls or moves.final:
                name = self.grammar.names[index]
                raise GrammarError("an array of different items must begin with a term", place=name)
            tie = (-1, -1) if body.tie is None else body.tie
            self.guards.append((_most(body.free), body.least, body.repeats, _most(body.most), *tie))
            moves.guard = len(self.guards)
            return PLAIN, self.state(moves), nullable
        return PLAIN, self.state(self.expression(body, 0)), nullable

    # --- expressions

    @cython.cfunc
    def state(self, moves: PlainState) -> int:
        self.plain.append(moves)
        return len(self.plain) - 1

    @cython.cfunc
    def expression(self, expr: Expr, behind: int) -> PlainState:
        """The moves of ``expr`` followed by plain state ``behind``."""
        check_time()
        moves = PlainState()
        if isinstance(expr, Term):
            term: Term = expr
            moves.terms.append((self.term(term.lexeme), behind, NO_TAG))
            return moves
        if isinstance(expr, Ref):
            ref: Ref = expr
            moves.calls.append((ref.rule, behind))
            return moves
        if isinstance(expr, Switch):
            return self.switch(expr, behind)
        if isinstance(expr, Import):
            made: Import = expr
            number = self.imports.setdefault(made.key, len(self.imports))
            moves.calls.append((len(self.grammar.rules) + number, behind))
            return moves
        if isinstance(expr, Choice):
            choice: Choice = expr
            if len(choice.items) == 1:
                return self.expression(choice.items[0], behind)
            parts = [self.expression(item, behind) for item in choice.items]
            moves.add_all(parts)
            let_go(parts)
            return moves
        sequence: Seq = expr
        if not sequence.items:
            moves.add(self.plain[behind])
            return moves
        for item in reversed(sequence.items[1:]):
            behind = self.tail(item, behind)
        return self.expression(sequence.items[0], behind)

    @cython.cfunc
    def tail(self, expr: Expr, behind: int) -> int:
        """A state with the moves of ``expr``; the one that the same object has before the same state in this rule."""
        key = id(expr), behind
        found = self.tails.get(key)
        if found is None:
            found = self.tails[key] = self.state(self.expression(expr, behind))
        return found

    @cython.cfunc
    def switch(self, expr: Switch, behind: int) -> PlainState:
        cases = [self.state(self.expression(case, behind)) for case in expr.cases]
        if isinstance(expr.lexemes, Words):
            automaton = self.automaton(expr.lexemes)
            tags = sorted(set(expr.lexemes.tags))
        else:
            automaton = self.add_automaton(tagged_automaton(self.engine, expr.lexemes, self.limits))
            tags = list(range(len(cases)))
        moves = PlainState()
        moves.terms += [(automaton, cases[tag], tag) for tag in tags]
        return moves

    # --- lexemes

    @cython.cfunc
    def term(self, lexeme: AnyLexeme) -> int:
        """An automaton; of a terminal of the lexer, its rank from -1 downwards."""
        rank = self.ranks.get(lexeme.key) if isinstance(lexeme, Lexeme) else None
        return self.automaton(lexeme) if rank is None else -1 - rank

    def lexer(self, rules: list[tuple[int, int, bool]]) -> AutomatonHandle | None:
        """The lexer.  What may follow what is looked at only where terminals clash."""
        lexing = self.grammar.lexing
        if lexing is None:
            return None
        count = len(lexing.terminals)
        begins = self.begins()
        everywhere = list(range(count)) if begins else []
        handle = None if lexing.placed else self.lexer_for(lexing, None, (), opens=everywhere, begins=begins)
        adjacency = None if handle is not None and handle.clashes == [] else self.adjacency(rules)
        if adjacency is None:
            if handle is None:
                handle = self.lexer_for(lexing, None, (), opens=everywhere, begins=begins)
            return handle
        # What comes behind a line break between brackets could have come in its place.
        contexts = [each for each in adjacency.contexts(count) if each[0] != lexing.line_break]
        follow, after = [behind for _, behind in contexts], [terminal for terminal, _ in contexts]
        beside = adjacency.beside(count) if lexing.placed else []
        opens = adjacency.opens(count) if begins else []
        handle = self.lexer_for(lexing, follow, (), after, beside, opens, begins)
        clashes = handle.clashes
        if clashes and adjacency.avoidable(clashes, count):
            handle = self.lexer_for(lexing, follow, tuple(clashes), after, beside, opens, begins)
        return handle

    def begins(self) -> list[int]:
        """The bytes with which lexemes begin that the lexer does not read."""
        if self.records:
            return list(range(256))
        found: set[int] = set()
        no_bytes = {
            number for each, number in self.automaton_index.items() if isinstance(each, (Tokens, Boundary))
        }
        for number, automaton in enumerate(self.automata):
            if number not in no_bytes:
                found.update(
                    [byte for byte in range(256) if automaton.ends(bytes([byte]), 0, 1) != ([], False)]
                )
        for key in self.imports:
            matcher = Matcher(link(self.tables[key], self.limits))
            found.update([byte for byte in range(256) if matcher.fork().accept_bytes(bytes([byte]))])
        return sorted(found)

    def lexer_for(
        self,
        lexing: Lexing,
        follow: list[int] | None,
        avoided: tuple[tuple[int, int], ...],
        after: Sequence[int] = (),
        beside: Sequence[list[int]] = (),
        opens: Sequence[int] = (),
        begins: Sequence[int] = (),
    ) -> AutomatonHandle:
        pairs = None if follow is None else tuple(follow)
        newline = -1 if lexing.newline is None else lexing.newline
        key = (
            "lexer", tuple(self.ranks), lexing.ignored, lexing.refused, lexing.parts, lexing.forbidden, pairs, avoided,
            newline, lexing.columns, lexing.early, lexing.placed, tuple(after), tuple(map(tuple, beside)), tuple(opens), tuple(begins),
        )  # fmt: skip
        handle = self.engine.get_automaton(key)
        if handle is None:
            width = (len(lexing.terminals) + 7) // 8
            # What can be avoided is asked of the one that was made before.
            if self.lexed is None or self.lexed[0] != pairs:
                self.lexed = pairs, lexer_automaton(lexing, follow, self.limits)
            nfa, starts, guards = self.lexed[1]
            # Those in which a line can begin: blocks need one further in.
            columns = 1 + max(0, *(tag - len(starts) for _, tag in nfa.accepts))
            content = (
                nfa.n_states,
                starts,
                nfa.sets,
                nfa.edges.tobytes(),
                nfa.epsilons,
                nfa.loops,
                nfa.accepts,
                list(lexing.ignored),
                None if follow is None else b"".join([some.to_bytes(width, "little") for some in follow]),
                avoided,
                lexing.names,
                newline,
                -1 if lexing.line_break is None else lexing.line_break,
                columns,
                -1 if lexing.quote is None else lexing.quote,
                list(lexing.early),
                lexing.placed,
                list(after),
                list(beside),
                guards,
                list(opens),
                list(begins),
            )
            handle = add_lexer(self.engine, key, content, self.limits)
        return handle

    def adjacency(self, rules: list[tuple[int, int, bool]]) -> Adjacency | None:
        """None for a grammar of which it is not worked out."""
        places = Places()
        lexing = self.grammar.lexing
        placed = lexing.ignored if lexing is not None and lexing.placed else ()
        boundaries = {number for each, number in self.automaton_index.items() if isinstance(each, Boundary)}
        for state in self.plain:
            place = places.add(state.final)
            # Of other lexemes, each has a number of its own, from -2 on.
            terms = [
                (-1 - term if term < 0 else BOUNDARY - term if term in boundaries else -2 - term, behind)
                for term, behind, _ in state.terms
            ]
            # One that is ignored leads nowhere.
            places.terms[place] = [term for term in terms if term[0] not in placed]
            places.ignored[place] = [terminal for terminal, _ in terms if terminal in placed]
            places.calls[place] = state.calls
        for kind, index, _ in rules:
            start: int | None = index
            if kind == REPEATED:
                first, rest, low, _ = self.repeated[index]
                start = places.add_repeated(first, rest, low)
            elif kind == INDENTED:
                # It is in no text, and no terminal.
                start = places.add()
                places.calls[start] = [(self.indented[index], places.add(final=True))]
            elif kind == RECORD:
                start = places.add()
                places.terms[start] = [(-1, places.add(final=True))]
            if start is None:
                return None
            places.starts.append(start)
        for key in self.imports:
            start = places.add(self.tables[key].nullable)
            places.terms[start] = [(-1, places.add(final=True))]
            places.starts.append(start)
        return Adjacency(places, self.grammar.start)

    @cython.cfunc
    def automaton(self, lexeme: AnyLexeme) -> int:
        key = lexeme if isinstance(lexeme, (Keyset, Tokens, Boundary)) else lexeme.key
        found = self.automaton_index.get(key)
        if found is None:
            if isinstance(lexeme, Lexeme):
                handle = lexeme_automaton(self.engine, lexeme, self.limits)
            elif isinstance(lexeme, Words):
                handle = words_automaton(self.engine, lexeme)
            elif isinstance(lexeme, Tokens):
                handle = self.engine.add_tokens(token_ids(lexeme, self.engine))
            elif isinstance(lexeme, Boundary):
                handle = self.engine.add_boundary(lexeme.opens_line)
            else:
                names = [canonical_spelling(name) for name in in_time(lexeme.names)]
                others = () if lexeme.other is None else (lexeme.other,)
                handle = self.keyset(names, list(range(len(names))), len(names), others, lexeme.spelling)
            found = self.automaton_index[key] = self.add_automaton(handle)
        return found

    @cython.cfunc
    def add_automaton(self, handle: AutomatonHandle) -> int:
        self.automata.append(handle)
        return len(self.automata) - 1

    @cython.cfunc
    def keyset(
        self,
        names: list[bytes],
        tags: list[int],
        other_tag: int,
        others: tuple[Lexeme | None, ...],
        spelling: Spelling,
    ) -> AutomatonHandle:
        base = tagged_automaton(self.engine, others, self.limits) if others else None
        return self.engine.add_keyset(names, tags, other_tag, base, max(len(others), 1), spelling)

    @cython.cfunc
    def record(self, body: Record) -> tuple[object, ...]:
        obligations = (1 << body.obligations) - 1
        names: list[bytes] = []
        tags: list[int] = []
        ways: list[Values] = []
        absent: list[int] = []
        lengths: list[int] = []
        required: list[bool] = []
        for i, m in enumerate(body.members):
            if i & 127 == 127:
                check_time()
            member: Member = m
            name = canonical_spelling(member.name)
            names.append(name)
            if not member.values:
                tags.append(NO_TAG)
                obligations &= ~member.absent
                continue
            tags.append(len(ways))
            ways.append(member.values)
            absent.append(member.absent)
            lengths.append(len(name) + 2)
            required.append(member.required)
        allowed = len(ways)
        for o in body.others:
            ways.append(o.values)
        # Whether a kind of other members may come depends on the obligations that it may reach, and on nothing else.
        by_goals: dict[frozenset[int], int] = {}
        sorts: list[int] = []
        for o in body.others:
            other: OtherMembers = o
            reached = frozenset([way[1] & obligations for way in other.values])
            sorts.append(by_goals.setdefault(reached, len(by_goals)))
        # By set of sorts; the empty set needs none of its own, and not all can occur.
        together = [1] if len(by_goals) == 1 else allowed_together(list(by_goals), self.limits)
        keys = [-1] * (1 << len(by_goals))
        if body.keyless:
            keys, together = [], []
        if not body.others:
            keys[0] = self.add_automaton(self.keyset(names, tags, allowed, (), body.spelling))
        for chosen in together:
            check_time()
            others = [
                each.keys if chosen >> sort & 1 else None
                for each, sort in zip(body.others, sorts, strict=True)
            ]
            keys[chosen] = self.add_automaton(self.keyset(names, tags, allowed, tuple(others), body.spelling))
        return (
            keys,
            sorts,
            ways,
            absent,
            lengths,
            required,
            body.min,
            _most(body.max),
            obligations,
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
    """A pruned grammar without imports on an engine; see ``lower_to_tables``."""
    return link(lower_to_tables(grammar, engine, limits, {}), limits)


def link(tables: Tables, limits: Limits) -> CompiledCore:
    """Tables, together with those that they import, as one grammar.

    Raises ``UnsatisfiableError``, and ``GrammarError`` for parts that cannot be together."""
    if tables.lexer is not None and any(part.has_guards for part in tables.all_tables()):
        raise GrammarError(
            "arrays whose items must be different (uniqueItems) cannot be part of a grammar with a lexer: "
            "use lexer='dynamic'"
        )
    counts = limits.max_parser_states, limits.max_lexer_states, limits.max_bytes, limits.max_search
    check_time()
    try:
        core = CompiledCore(tables, *counts, limits.max_set_bytes, limits.max_seconds)
    except UnsatisfiableError:
        if tables.lexer is None or not tables.lexer.clashes:
            raise
        raise UnsatisfiableError(_clash_message(tables.lexer)) from None
    core.limits = limits
    return core


def lower_to_tables(
    grammar: Grammar,
    engine: Engine,
    limits: Limits,
    imports: dict[Hashable, Tables],
) -> Tables:
    """Hand a pruned grammar to the engine; ``imports`` has the tables of each ``Import``, by key.

    Raises ``LimitError`` when the grammar or one of its lexemes is too large.
    """
    if len(grammar.rules) > limits.max_rules:
        raise LimitError("max_rules", len(grammar.rules), limits.max_rules)
    lowering = _Lowering(grammar, engine, limits, imports)
    try:
        return _lowered(lowering, grammar, engine, limits, imports)
    finally:
        let_go(lowering.plain, lowering.records, lowering.shared, lowering.tails, lowering.automaton_index)


@cython.cfunc
def _lowered(
    lowering: _Lowering,
    grammar: Grammar,
    engine: Engine,
    limits: Limits,
    imports: dict[Hashable, Tables],
) -> Tables:
    rules = []
    for i, body in enumerate(grammar.rules):
        if body is not None:
            try:
                rules.append(lowering.rule(i, body))
            except LimitError as error:
                name = grammar.names[i]
                raise (error.at(name) if name.startswith(("#", "/")) else error) from None
    if grammar.lexing is not None:
        starts = {i: index for i, (kind, index, _) in enumerate(rules) if kind == PLAIN}
        written = lowering.plain
        lowering.plain, starts = factor(written, starts, grammar.helpers)
        if lowering.plain is not written:
            let_go(written)
        rules = [(kind, starts.get(i, index), nullable) for i, (kind, index, nullable) in enumerate(rules)]
    for tables in imports.values():
        if tables.lexer is not None:
            raise GrammarError("a grammar with a lexer cannot be part of another one: use lexer='dynamic'")
    lexer = lowering.lexer(rules)
    terms: list[list[tuple[int, int, int]]] = []
    calls: list[list[tuple[int, int]]] = []
    final: list[bool] = []
    guard: list[int] = []
    for i, each in enumerate(lowering.plain):
        if i & 1023 == 1023:
            check_time()
        state: PlainState = each
        terms.append(state.terms)
        calls.append(state.calls)
        final.append(state.final)
        guard.append(state.guard)
    tables = Tables(
        engine,
        lowering.automata,
        lexer,
        terms,
        calls,
        bytes(final),
        guard,
        lowering.guards,
        rules,
        lowering.repeated,
        lowering.records,
        lowering.indented,
        grammar.start,
        [imports[key] for key in lowering.imports],
        grammar.names,
    )
    tables.tokens = {
        number: lexeme for lexeme, number in lowering.automaton_index.items() if isinstance(lexeme, Tokens)
    }
    let_go(terms, calls, rules)
    return tables


def capture_reader(
    grammar: Grammar, engine: Engine, limits: Limits, imports: dict[Hashable, Tables]
) -> CaptureReader:
    """What reads the captures of a pruned grammar; ``imports`` as for ``lower_to_tables``."""
    return CaptureReader(
        grammar,
        lambda lexeme: lexeme_automaton(engine, lexeme, limits),
        lambda part: link(imports[part.key], limits),
        lambda tokens: token_ids(tokens, engine),
        limits.max_seconds,
        imports,
    )


def _clash_message(lexer: AutomatonHandle) -> str:
    before, behind = lexer.clashes[0]
    names = dict(enumerate(lexer.names))
    first, second = names.get(before, str(before)), names.get(behind, "a lexeme that is no terminal")
    if behind < 0:
        return f"no text is left: wherever terminal {first} matches, another one comes first"
    return (
        f"no text is left: {first} directly before {second} is read as something else, because the longest "
        "match counts; ignore some white space, or separate them"
    )


@cython.cfunc
def _most(bound: int | None) -> int:
    """A bound as the engine has it; what it cannot count to is none."""
    return -1 if bound is None or bound > MAX_COUNT else bound
