"""Tokens that stand for themselves, against oracles that spell them in bytes of their own."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
import toys
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference import Column, Oracle
from reference_lexing import LexingOracle
from test_lexing import grammars as lexed_grammars
from test_lexing import lexed
from toys import grammar, term

from maskwright._core import Engine, Matcher, StateSets
from maskwright.compiling.lowering import link
from maskwright.errors import GrammarError, LimitError, UnsatisfiableError
from maskwright.ir.grammar import Choice, Grammar, Ref, Seq, Switch, Term, Tokens, Words
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regular.expressions import repeat
from maskwright.vocabulary.vocabulary import Vocabulary

TEXTS = [b"a", b"b", b"c", b"1", b"2", b"(", b")", b'"', b" ", b"{", b"}", b":", b",", b"ab", b"ba", b"aa", b"abc",
         b"12", b"a(", b'"a"', b"\xc3", b"\xa9", b'":', b"a{", b"ab"]  # fmt: skip
FEW = len(TEXTS)
TEXTS += [bytes([b]) for b in range(256) if b != 0xFE and bytes([b]) not in TEXTS]
N = len(TEXTS)
VOCABULARY = Vocabulary.from_bytes(
    [*TEXTS, b"<x>", b"<y>", b"</s>", b"<end>", None], eos_ids=[N + 2, N + 3], special_ids=[N, N + 1]
)
IDS = [*range(N + 4)]


def engine(vocabulary: Vocabulary) -> Engine:
    made = Engine(list(vocabulary.tokens), vocabulary.eos_ids, self_loop_least=0)
    made.special_tokens = dict(vocabulary.special_tokens)
    made.special_ids = frozenset(vocabulary.special_ids)
    return made


ENGINE = engine(VOCABULARY)


def compiled(source: Grammar, limits: Limits = DEFAULT_LIMITS) -> Matcher:
    return Matcher(link(toys.tables(source, ENGINE, limits), limits))


def replaced(node: Any, change: Any) -> Any:
    """A body with its terms changed."""
    if isinstance(node, Term):
        return change(node)
    if isinstance(node, (Seq, Choice)):
        return type(node)(tuple(replaced(item, change) for item in node.items))
    if isinstance(node, Switch):
        return Switch(node.lexemes, tuple(replaced(case, change) for case in node.cases))
    return node


def marked(tokens: Tokens) -> list[bytes]:
    """How the oracle spells tokens: the byte 0xFE is in no text."""
    ids = {i for low, high in tokens.ids for i in range(low, high + 1)}
    if tokens.excluded:
        ids = {*range(N + 2)} - ids
    return [mark(i) for i in sorted(ids) if i < N + 4]


def mark(token: int) -> bytes:
    return bytes([0xFE, token >> 8, token & 0xFF])


def for_oracle(source: Grammar) -> Grammar:
    def change(leaf: Term) -> Any:
        return Term(Words(marked(leaf.lexeme))) if isinstance(leaf.lexeme, Tokens) else leaf

    rules = [replaced(body, change) for body in source.rules]
    return Grammar(rules, source.names, source.start)


class Readings:
    """All readings of some tokens: each by its bytes or as itself."""

    def __init__(self, oracle: Oracle, columns: list[Column]) -> None:
        self.oracle, self.columns = oracle, columns

    def behind(self, token: int) -> Readings:
        texts = [mark(token)]
        if VOCABULARY.tokens[token]:
            texts.append(VOCABULARY.tokens[token])
        found = [self.oracle.read(text, column) for text in texts for column in self.columns]
        return Readings(self.oracle, [column for column in found if column is not None])

    def allowed(self) -> set[int]:
        ids = {i for i in IDS if self.behind(i).columns}
        return ids | (set(VOCABULARY.eos_ids) if self.is_complete else set())

    @property
    def is_complete(self) -> bool:
        return any(column.complete for column in self.columns)


def check_walk(source: Grammar, rng: random.Random, steps: int = 6) -> None:
    try:
        at = compiled(source)
    except UnsatisfiableError:
        return
    oracle = Oracle(for_oracle(source))
    readings = Readings(oracle, [oracle.empty])
    for _ in range(steps):
        mask = toys.allowed(at)
        assert mask == readings.allowed(), at.accepted_tokens
        assert at.is_accepting == readings.is_complete
        refused = [i for i in range(len(VOCABULARY)) if i not in mask]
        if refused:
            before = at.state_id
            assert not at.accept_token(rng.choice(refused)) and at.state_id == before
        end = readings
        for token in at.shortest_completion():
            end = end.behind(token)
            if len(end.columns) > 64:
                # They may double with each token.
                break
        else:
            assert end.is_complete
        check_forced(at, readings)
        going_on = [i for i in mask if i not in VOCABULARY.eos_ids or readings.behind(i).columns]
        if not going_on or len(readings.columns) > 8 or at.compiled.statistics["matcher_states"] > 400:
            return
        token = rng.choice(sorted(going_on))
        assert at.accept_token(token)
        assert not at.is_terminated
        readings = readings.behind(token)


def check_forced(at: Matcher, readings: Readings) -> None:
    forced = at.forced_bytes()
    if forced:
        assert not readings.is_complete
        firsts = {bytes([b]) for c in readings.columns for b in readings.oracle.viable_bytes(c)}
        assert firsts <= {forced[:1], b"\\"}


@st.composite
def token_sets(draw: Any) -> Tokens:
    low = draw(st.sampled_from([*range(FEW), *range(N, N + 4)]))
    high = min(low + draw(st.sampled_from((0, 0, 0, 3))), N + 4)
    return Tokens(ids=((low, high),), excluded=draw(st.integers(0, 5)) == 0)


@st.composite
def grammars(draw: Any, pool: Any) -> Grammar:
    """A random grammar, some of whose terms are tokens."""
    source = draw(pool)

    def change(leaf: Term) -> Term:
        return Term(draw(token_sets())) if draw(st.integers(0, 2)) == 0 else leaf

    return Grammar(
        [replaced(body, change) for body in source.rules], source.names, source.start, source.lexing
    )


@pytest.mark.slow
@pytest.mark.sanitized
@given(grammars(toys.grammars()), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_masks_of_random_grammars(source: Grammar, seed: int) -> None:
    check_walk(source, random.Random(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_any_token_in_a_loop(seed: int) -> None:
    # Free text of tokens: a quote as itself ends it, one in text does not.
    loop = Choice((Seq((Term(Tokens(ids=((7, 7),), excluded=True)), Ref(0))), Term(Tokens(ids=((7, 7),)))))
    check_walk(grammar(loop), random.Random(seed), steps=12)


def test_a_token_is_not_its_text() -> None:
    at = compiled(grammar(Seq((Term(Tokens(names=("ab", "<x>"))), term("c")))))
    assert toys.allowed(at) == {
        13,
        24,
        N,
    }  # two ids have the bytes ab; a and b one after the other will not do
    assert not at.accept_token(0)
    assert at.accept_token(N) and toys.allowed(at) == {2}
    at.rollback(1)
    assert at.accept_token(24) and at.accept_token(2) and at.is_accepting


def test_a_token_is_read_in_both_ways() -> None:
    # `ab` as text goes on with c, as itself with 1.
    text, itself = Seq((term("ab"), term("c"))), Seq((Term(Tokens(ids=((13, 13),))), term("1")))
    at = compiled(grammar(Choice((text, itself))))
    assert toys.allowed(at) == {0, 13, 16, 24}
    assert at.accept_token(13) and toys.allowed(at) == {2, 3}
    at.rollback(1)
    assert at.accept_token(24) and toys.allowed(at) == {2}


def test_an_end_token_within_the_text() -> None:
    at = compiled(grammar(Seq((term("a"), Term(Tokens(names=("</s>",)))))))
    assert at.accept_token(0) and toys.allowed(at) == {N + 2} and not at.is_accepting
    assert at.accept_token(N + 2)
    assert at.is_accepting and not at.is_terminated and toys.allowed(at) == {N + 2, N + 3}
    assert at.accept_token(N + 3) and at.is_terminated


def test_completions_have_tokens() -> None:
    at = compiled(grammar(Seq((term("a"), Term(Tokens(names=("<y>",))), Term(Tokens(ids=((13, 13),)))))))
    assert at.shortest_completion() == [0, N + 1, 13]
    assert at.shortest_completion_bytes() == b"aab"
    assert at.forced_bytes() == b"a"


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (Tokens(names=("<z>",)), "the vocabulary has no token '<z>'; did you mean <"),
        (Tokens(ids=((500, 501),)), "<[500-501]>: token ids are 0 to"),
        (Tokens(ids=((N + 4, N + 4),)), "the vocabulary has no such token"),
        (Tokens(ids=((0, N + 1),), excluded=True), "the vocabulary has no such token"),
    ],
)
def test_unknown_tokens(tokens: Tokens, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        compiled(grammar(Term(tokens)))
    assert message in str(caught.value)


def test_what_cannot_be_combined() -> None:
    with pytest.raises(GrammarError, match="0xFF"):
        compiled(grammar(Choice((Term(Words([b"\xff"])), Term(Tokens(ids=((0, 0),)))))))
    with pytest.raises(GrammarError, match="many texts"):
        StateSets(compiled(grammar(Term(Tokens(ids=((0, 0),))))).compiled)


# --- with a lexer


class TokenLexingOracle(LexingOracle):
    """The same over sequences of bytes and tokens; no terminal spans a token."""

    def expression(self, expr: Any) -> object:
        if isinstance(expr, Term) and isinstance(expr.lexeme, Tokens):
            left = ("expression", len(self.productions))
            self.productions[left] = []
            for spelled in marked(expr.lexeme):
                self.add(left, ("token", spelled[1] << 8 | spelled[2]))
            return left
        return super().expression(expr)

    def reads(self, pieces: list[bytes | int]) -> bool:
        path = [self.close([], {(self.start, right, 0, 0) for right in self.productions[self.start]})]
        for piece in pieces:
            if isinstance(piece, int):
                kernel = {
                    (left, right, dot + 1, origin)
                    for left, right, dot, origin in path[-1]
                    if dot < len(right) and right[dot] == ("token", piece)
                }
                if not kernel:
                    return False
                path = [*path, self.close(path, kernel)]
                continue
            at = 0
            while at < len(piece):
                allowed = self.accepted(path) | self.ignored
                count = len(self.terminals)
                allowed |= {count + i for i, owner in enumerate(self.owners) if owner in allowed}
                ends = {t: end for t, end in self.longest(piece, at).items() if t in allowed}
                if not ends:
                    return False
                firsts = {t: end for t, end in self.firsts(piece, at).items() if t in allowed}
                at = min(firsts.values()) if firsts else max(ends.values())
                terminal = min(t for t, end in (firsts or ends).items() if end == at)
                if terminal >= count:
                    return False
                if terminal not in self.ignored:
                    path = self.step(path, terminal)
        return self.is_complete(path)

    def accepts_tokens(self, ids: tuple[int, ...]) -> bool:
        """Whether any reading of some tokens is in the language."""
        for itself in product((False, True), repeat=len(ids)):
            pieces: list[bytes | int] = []
            for i, own in zip(ids, itself, strict=True):
                text = VOCABULARY.tokens[i]
                if own:
                    pieces.append(i)
                elif not text:
                    break
                elif pieces and isinstance(pieces[-1], bytes):
                    pieces[-1] += text
                else:
                    pieces.append(text)
            else:
                if self.reads(pieces):
                    return True
        return False


USED = (0, 1, 8, 13, N)
"""a, b, a blank, ab, and a special token."""


def check_lexed(source: Grammar, most: int = 3, largest: int | None = None) -> None:
    try:
        oracle = TokenLexingOracle(source)
    except UnsatisfiableError:
        return
    if largest is not None:
        assume(sum(map(len, oracle.productions.values())) <= largest)
    sequences = [ids for n in range(most + 1) for ids in product(USED, repeat=n)]
    good = {ids for ids in sequences if oracle.accepts_tokens(ids)}
    limits = Limits(max_search=3000)
    try:
        start = compiled(source, limits)
    except UnsatisfiableError:
        assert not good
        return
    except LimitError:
        assume(False)
    begun = {ids[:n] for ids in good for n in range(len(ids) + 1)}
    try:
        for ids in (ids for ids in sequences if len(ids) < 3):
            at = start.fork()
            read = at.accept_tokens(ids) == len(ids)
            assert read or ids not in begun
            if not read:
                continue
            assert at.is_accepting == (ids in good), ids
            mask = toys.allowed(at)
            missing = {i for i in USED if (*ids, i) in begun} - mask
            assert not missing, (ids, missing)
            assert mask - set(VOCABULARY.eos_ids) == {i for i in IDS[: N + 2] if at.validate_tokens([i])}
            whole = (*ids, *at.shortest_completion())
            # The oracle tries every way to read them.
            assert len(whole) > 10 or oracle.accepts_tokens(whole), whole
    except LimitError:
        assume(False)


@pytest.mark.slow
@pytest.mark.sanitized
@given(grammars(lexed_grammars()))
@settings(max_examples=60, deadline=None)
def test_random_grammars_with_a_lexer(source: Grammar) -> None:
    # The oracle closes its sets item by item: large grammars take minutes.
    check_lexed(source, largest=32)


def test_a_token_ends_a_terminal() -> None:
    # Directly before another a, the longest match takes all; a token between makes two terminals.
    from toys import A

    many, special = term(repeat(A, 1, None), "a+"), Term(Tokens(ids=((N, N),)))
    with pytest.raises(UnsatisfiableError):
        compiled(lexed([Seq((many, many))], [many]))
    check_lexed(lexed([Seq((many, special, many))], [many]))
    at = compiled(lexed([Seq((many, special, many))], [many]))
    assert at.accept_tokens([0, 0, N, 0]) == 4 and at.is_accepting


@pytest.mark.parametrize("others", [(), (N,), (2, 7, N)])
def test_a_token_before_a_dead_end_of_the_lexer(others: tuple[int, ...]) -> None:
    # Two terminals that are always read as one: there is no text behind <c>, nor behind what leads there as well.
    from toys import A

    many = term(repeat(A, 1, None), "a+")
    dead, free = Term(Tokens(ids=((2, 2), (5, 5)))), [Term(Tokens(ids=((i, i),))) for i in others]
    source = lexed([Choice((Seq((dead, many, many)), Seq((Choice((dead, *free)), many)), many))], [many])
    assert toys.allowed(compiled(source)) == {0, 2, 5, 15, *others}
    source = lexed([Choice((Seq((dead, many, many)), *(Seq((each, many)) for each in free), many))], [many])
    check_lexed(source)
    assert toys.allowed(compiled(source)) == {0, 15, *others}
