"""Grammars with a lexer: the engine against the definition of maximal munch, on random grammars."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import toys
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference_lexing import LexingOracle
from toys import term

import maskwright as mw
from maskwright._core import Engine, Matcher
from maskwright.compiling import lexer_automaton, lowering
from maskwright.compiling.lowering import lower
from maskwright.errors import LimitError, UnsatisfiableError
from maskwright.ir import adjacency
from maskwright.ir.grammar import EMPTY, Choice, Expr, Grammar, Lexeme, Lexing, Ref, Repeated, Seq, Term
from maskwright.ir.prune import prune
from maskwright.limits import Limits
from maskwright.regular.expressions import Lit, Regular, alt, cat, one_of, repeat
from maskwright.vocabulary.vocabulary import Vocabulary

ALPHABET = b"ab "
LONGEST = 5
LIMITS = Limits(max_search=3000)

A, B, AB, SPACE = Lit("a"), Lit("b"), one_of("ab"), Lit(" ")
ANY = repeat(one_of("ab "), 0, None)
CLEAR = tuple(map(term, ("a", "b", " ")))
"""Terminals that cannot swallow each other."""
TERMINALS: tuple[Term, ...] = (
    *CLEAR,
    *map(term, ("ab", "ba", "aa", "aba", "abb", "b a")),
    term(repeat(A, 1, None), "a+"),
    term(repeat(AB, 1, None), "[ab]+"),
    term(cat(A, repeat(B, 0, None)), "ab*"),
    term(cat(A, repeat(AB, 0, None), B), "a[ab]*b"),
    term(alt(A, Lit("aab")), "a|aab"),
    term(alt(B, Lit("bab")), "b|bab"),
    term(repeat(AB, 2, 3), "[ab]{2,3}"),
    term(repeat(A, 2, 40), "a{2,40}"),
    term(repeat(SPACE, 1, None), " +"),
    term(cat(B, ANY, B), "b.*b"),
    term(alt(A, repeat(Lit("ab"), 1, None)), "a|(ab)+"),
    term(cat(repeat(A, 0, None), B), "a*b"),
    term(cat(repeat(AB, 0, None), SPACE), "[ab]* "),
)
SPACED: tuple[Term, ...] = (
    *map(term, ("a", "b", "ab")),
    term(repeat(AB, 1, None), "[ab]+"),
    term(repeat(A, 1, None), "a+"),
    term(repeat(SPACE, 1, None), " +"),
    term(cat(repeat(SPACE, 1, None), A), " +a"),
    term(cat(repeat(SPACE, 0, None), Lit("ba")), " *ba"),
)
"""Where the last ones are among them, ignored blanks may stand before some terminals only."""
PREFIX_FREE = {"a", "b", " ", "ab", "ba", "aa", "aba", "abb", "b a", "a*b", "[ab]* "}
"""Names of terminals of which no text begins another one."""


def combinations(most: int) -> list[bytes]:
    found, last = [], [b""]
    for _ in range(most):
        last = [text + bytes([byte]) for text in last for byte in ALPHABET]
        found += last
    return found


VOCABULARY = Vocabulary.from_bytes([*combinations(3), b"aaaa", b"abab", b" a b", b"</s>"], eos_ids=42)


def lexed(
    bodies: list,
    terminals: list[Term],
    ignored: list[Term] = (),
    refused: tuple[tuple[int, Regular], ...] = (),
    early: tuple[int, ...] = (),
    placed: bool = False,
) -> Grammar:  # type: ignore[assignment]
    ranked = [t.lexeme for t in [*terminals, *ignored]]
    assert all(isinstance(lexeme, Lexeme) for lexeme in ranked)
    positions = tuple(range(len(terminals), len(ranked)))
    return Grammar(
        bodies,
        [f"rule {i}" for i in range(len(bodies))],
        0,
        Lexing(tuple(ranked), positions, refused, early=early, placed=placed),
    )


def _expression(
    draw: Any, rules: int, terminals: list[Term], depth: int, placed: tuple[Term, ...] = ()
) -> Expr:
    kind = draw(st.integers(0, 9))
    if depth == 0 or kind < 4:
        if draw(st.integers(0, 2)) == 0:
            return Ref(draw(st.integers(0, rules - 1)))
        terminal = draw(st.sampled_from(terminals))
        marks = draw(st.lists(st.sampled_from(placed), unique=True)) if placed else []
        return Choice((terminal, Seq((Choice(tuple(marks)), terminal)))) if marks else terminal
    items = tuple(
        _expression(draw, rules, terminals, depth - 1, placed) for _ in range(draw(st.integers(2, 3)))
    )
    if kind == 4:
        return Choice((*items, EMPTY))
    return Seq(items) if kind < 8 else Choice(items)


@st.composite
def grammars(draw: Any, pool: tuple[Term, ...] = TERMINALS, placed: bool = False) -> Grammar:
    """With ``placed``, ignored terminals come where a rule says so."""
    terminals = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=4, unique=True))
    free = [t for t in pool if t not in terminals]
    most = 2 if placed else 1
    ignored = draw(st.lists(st.sampled_from(free), max_size=most, unique=True)) if free else []
    rules = draw(st.integers(1, 3))
    bodies: list = []
    for _ in range(rules):
        if draw(st.integers(0, 5)) == 0:
            low = draw(st.integers(0, 2))
            high = draw(st.none() | st.integers(max(low, 1), low + 2))
            bodies.append(
                Repeated(draw(st.integers(0, rules - 1)), draw(st.integers(0, rules - 1)), low, high)
            )
        else:
            bodies.append(_expression(draw, rules, terminals, 2, tuple(ignored) if placed else ()))
    refused = []
    if draw(st.integers(0, 4)) == 0:
        at = draw(st.integers(0, len(terminals) - 1))
        assert isinstance(terminals[at].lexeme, Lexeme)
        refused.append((at, cat(terminals[at].lexeme.regular, draw(st.sampled_from((A, AB, Lit("b ")))))))
    early = [
        i for i, t in enumerate(terminals) if t.lexeme.key in PREFIX_FREE and draw(st.integers(0, 4)) == 0
    ]
    return lexed(bodies, terminals, ignored, tuple(refused), tuple(early), placed)


def check(grammar: Grammar, depth: int = 3) -> None:
    """Masks, acceptance and completions after every text up to a length."""
    try:
        oracle = LexingOracle(grammar)
    except UnsatisfiableError:
        return
    texts = oracle.texts(ALPHABET, LONGEST)
    try:
        core = toys.compile_ir(grammar, VOCABULARY, LIMITS)
    except UnsatisfiableError:
        assert not texts, f"not empty: {texts[:3]}"
        return
    prefixes: dict[bytes, int] = {}
    for text in texts:
        for end in range(len(text) + 1):
            prefixes[text[:end]] = min(prefixes.get(text[:end], LONGEST), len(text))
    work = [b""]
    while work:
        text = work.pop()
        matcher = Matcher(core)
        assert matcher.accept_bytes(text)
        if len(text) < depth:
            work += [
                text + bytes([byte])
                for byte in ALPHABET
                if check_state(matcher, text, oracle, prefixes, byte)
            ]
        else:
            check_state(matcher, text, oracle, prefixes, 0)


def check_state(
    matcher: Matcher, text: bytes, oracle: LexingOracle, prefixes: dict[bytes, int], byte: int
) -> bool:
    """Whether ``byte`` is allowed."""
    complete = oracle.accepts(text)
    assert matcher.is_accepting == complete, text
    mask = toys.allowed(matcher)
    assert (42 in mask) == complete, text
    for token, data in enumerate(VOCABULARY.tokens):
        if token == 42:
            continue
        after = matcher.fork()
        allowed = after.accept_token(token)
        assert allowed == (token in mask), (
            f"{data!r} after {text!r}: mask {token in mask}, accepted {allowed}"
        )
        if text + data in prefixes:
            assert allowed, f"{data!r} must be allowed after {text!r}"
        elif allowed:
            rest = after.shortest_completion_bytes()
            assert oracle.accepts(text + data + rest), f"{text + data!r} cannot be completed by {rest!r}"
    rest = matcher.shortest_completion_bytes()
    assert oracle.accepts(text + rest), (text, rest)
    if text in prefixes:
        assert len(text + rest) == prefixes[text], f"{rest!r} is not the shortest completion of {text!r}"
    forced = matcher.forced_bytes()
    assert (text + rest).startswith(text + forced)
    return bytes([byte]) in [VOCABULARY.tokens[t] for t in mask]


def check_within_limits(grammar: Grammar) -> None:
    try:
        check(grammar)
    except LimitError as error:
        # Which of the two comes first depends on the machine.
        assert error.limit in ("max_search", "max_seconds")
        assume(False)


@pytest.mark.slow
@pytest.mark.sanitized
@settings(max_examples=150, deadline=None)
@given(grammars())
def test_random_grammars(grammar: Grammar) -> None:
    check_within_limits(grammar)


@pytest.mark.slow
@pytest.mark.sanitized
@settings(max_examples=150, deadline=None)
@given(grammars(placed=True))
def test_random_grammars_that_say_where_text_is_ignored(grammar: Grammar) -> None:
    check_within_limits(grammar)


@pytest.mark.slow
@pytest.mark.sanitized
@settings(max_examples=60, deadline=None)
@given(grammars(CLEAR))
def test_random_grammars_of_terminals_that_do_not_touch(grammar: Grammar) -> None:
    check_within_limits(grammar)


@pytest.mark.slow
@pytest.mark.sanitized
@settings(max_examples=150, deadline=None)
@given(grammars(SPACED))
def test_random_grammars_of_terminals_that_begin_like_ignored_text(grammar: Grammar) -> None:
    check_within_limits(grammar)


@settings(max_examples=40, deadline=None)
@given(grammars())
def test_masks_survive_eviction(grammar: Grammar) -> None:
    engine = Engine(list(VOCABULARY.tokens), VOCABULARY.eos_ids, self_loop_least=0)
    try:
        kept = Matcher(toys.compile_ir(grammar, VOCABULARY, LIMITS))
        evicted = Matcher(lower(prune(grammar), engine, LIMITS))
        engine.mask_budget = 2000
        for _ in range(6):
            mask = toys.allowed(kept)
            assert toys.allowed(evicted) == mask
            texts = sorted(mask - {42})
            if not texts:
                return
            assert kept.accept_token(texts[-1]) and evicted.accept_token(texts[-1])
    except (UnsatisfiableError, LimitError):
        assume(False)


# --- what grammars mean


def read(grammar: Grammar, text: bytes) -> bool:
    matcher = toys.matcher(grammar, VOCABULARY)
    return matcher.accept_bytes(text) and matcher.is_accepting


def test_longest_match_without_a_limit_of_look_ahead() -> None:
    first, longer, ed = term("a"), term("abb"), term("ba")
    grammar = lexed([Seq((Choice((first, longer)), ed))], [first, longer, ed])
    assert read(grammar, b"aba") and read(grammar, b"abbba")
    assert not read(grammar, b"ab")


def test_rank_decides_between_equal_matches() -> None:
    keyword, name = term("ab"), term(repeat(AB, 1, None), "[ab]+")
    body = [Choice((Seq((keyword, term("b"))), Seq((name, term(" ")))))]
    ranked = lexed(body, [keyword, name, term("b"), term(" ")])
    assert not read(ranked, b"ab ") and read(ranked, b"aa ") and not read(ranked, b"abb")
    other = lexed(body, [name, keyword, term("b"), term(" ")])
    assert read(other, b"ab ")


def test_only_what_the_grammar_accepts_is_looked_for() -> None:
    # Behind "a" only "b" can come: that "ba" would be longer is nobody's concern.
    a, b, ba = term("a"), term("b"), term("ba")
    grammar = lexed([Choice((Seq((a, b, a)), Seq((b, ba))))], [a, b, ba])
    assert read(grammar, b"aba") and read(grammar, b"bba")


def test_rows_that_clash_but_can_be_avoided() -> None:
    # A line end swallows the next one, but lines may stand between.
    line, end = term("a"), term(repeat(B, 1, None), "b+")
    grammar = lexed([Repeated(1, 1, 0, None), Choice((end, Seq((line, end))))], [line, end])
    check(grammar, depth=4)


def is_safe(grammar: Grammar, patch: pytest.MonkeyPatch) -> bool:
    """Whether rows of terminals that clash can be avoided, or none does."""
    made = []

    def add(*given: Any) -> Any:
        made.append(lexer_automaton.add_lexer(*given))
        return made[-1]

    with patch.context() as context:
        context.setattr(lowering, "add_lexer", add)
        toys.compile_ir(grammar, VOCABULARY)
    return not made[-1].clashes


def test_what_clashes_where_a_rule_begins_can_be_avoided_by_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Behind a line end no "b" can come.  A rule that begins with one does not have to.
    end, b, a = term(repeat(B, 1, None), "b+"), term("b"), term("a")
    rules = [Seq((end, Ref(1))), Choice((Ref(2), Ref(3))), Seq((b, a)), Seq((a, Choice((EMPTY, Ref(0)))))]
    grammar = lexed(rules, [end, b, a])
    assert is_safe(grammar, monkeypatch)
    check(grammar, depth=4)


def test_a_terminal_that_another_one_always_precedes_can_be_avoided(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, b = term("a"), term(repeat(A, 1, 1), "a again"), term("b")
    grammar = lexed(
        [Seq((Choice((Seq((second, b)), Seq((first, b, b)))), Choice((EMPTY, Ref(0)))))], [first, second, b]
    )
    assert is_safe(grammar, monkeypatch)
    check(grammar, depth=4)


def test_what_cannot_be_avoided_is_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    # Behind "a" comes a line end, and behind it no "b" can come.
    end, b, a, space = term(repeat(B, 1, None), "b+"), term("b"), term("a"), term(" ")
    grammar = lexed([Choice((Seq((a, end, b)), Seq((space, Choice((EMPTY, Ref(0)))))))], [end, b, a, space])
    assert not is_safe(grammar, monkeypatch)
    check(grammar, depth=4)
    monkeypatch.setattr(adjacency.Adjacency, "avoidable", lambda self, clashes, terminals: True)
    wrong = lexed([Choice((Seq((space, Choice((EMPTY, Ref(0))))), Seq((a, end, b))))], [end, space, b, a])
    assert is_safe(wrong, monkeypatch)
    with pytest.raises((AssertionError, mw.MaskwrightError)):
        check(wrong, depth=4)


def test_what_a_lookahead_cannot_become_is_no_clash(monkeypatch: pytest.MonkeyPatch) -> None:
    # A line end, blanks of the next line, a word; blanks before another line end would make it an empty line.
    end, empty, blank = term("b"), term(cat(B, repeat(Lit("ab"), 1, None)), "b(ab)+"), term("a")
    word = term(" ")
    rest = Choice((EMPTY, Seq((end, blank, word, Ref(1))), Seq((empty, word, Ref(1)))))
    grammar = lexed([Seq((word, Ref(1))), rest], [end, empty, blank, word])
    assert is_safe(grammar, monkeypatch)
    check(grammar, depth=4)
    # Where nothing but a line end may come behind blanks, it does make it one.
    dead = Choice((Seq((end, blank, end)), Seq((empty, word, Ref(1))), Seq((word, Choice((EMPTY, Ref(1)))))))
    grammar = lexed([Seq((word, Ref(1))), dead], [end, empty, blank, word])
    assert not is_safe(grammar, monkeypatch)
    check(grammar, depth=4)


def test_nothing_is_left() -> None:
    some, one = term(repeat(A, 1, None), "a+"), term("a")
    with pytest.raises(UnsatisfiableError, match="no text is left"):
        toys.compile_ir(lexed([Seq((some, one))], [some, one]), VOCABULARY)


def test_dead_ends_are_not_entered() -> None:
    # Behind a+ only "b " can come, not what begins with another a.
    some, one, b = term(repeat(A, 1, None), "a+"), term("ab"), term("b ")
    grammar = lexed([Seq((some, Choice((one, b))))], [some, one, b])
    check(grammar)
    assert toys.matcher(grammar, VOCABULARY).forced_bytes() == b"a"


CROSSING = {
    "an inline schema": lambda: mw.Lark('start: %json {"const": 1} ("d" | A B)\nA.1: /ab*/\nB: /b+/'),
    "an operand": lambda: mw.Regex("1") + mw.Lark('start: "d" | A B\nA.1: /ab*/\nB: /b+/'),
    "a look-ahead": lambda: mw.Regex("1") + mw.Lark('start: "d" | A "b"\nA: /a(?!b)/'),
    "one of several": lambda: (
        mw.Regex("1") + (mw.Regex("c") | mw.Lark('start: "d" | A B\nA.1: /ab*/\nB: /b+/'))
    ),
    "a terminal": lambda: mw.Lark('start: "1" ("d" | A B)\nA.1: /ab*/\nB: /b+/'),
    "strings": lambda: mw.Lark(
        'start: %json {"enum": ["", "a"]} ("." | WORD KEY)\nKEY: "ab"\nWORD: /[a-d]+/'
    ),
}


@pytest.mark.parametrize("name", CROSSING)
def test_tokens_from_a_lexeme_of_its_own_into_terminals(name: str) -> None:
    """Masks say of each token what accepting it says, also where a terminal that begins in it swallows what must follow."""
    pieces = [bytes(each) for n in (1, 2, 3) for each in itertools.product(b'1abd".', repeat=n)]
    shared = Vocabulary.from_bytes([*pieces, b""], eos_ids=len(pieces))
    matchers = [mw.compile(CROSSING[name](), shared).matcher()]
    for matcher in matchers:  # It grows.
        row = np.asarray(matcher.next_token_bitmask())
        allowed = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(pieces) + 1]
        for token, bit in enumerate(allowed.tolist()):
            after = matcher.fork()
            assert after.accept_token(token) == bool(bit), (matcher.accepted_tokens, token)
            if bit and len(matchers) < 40 and not after.is_terminated:
                matchers.append(after)
    assert any(matcher.is_accepting for matcher in matchers)
