"""Small vocabularies, lexemes and grammars for the tests of the engine."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from reference import Oracle

from maskwright._core import CompiledCore, Engine, Matcher, Tables
from maskwright.compiling.lowering import link, lower_to_tables
from maskwright.ir.grammar import (
    EMPTY,
    Body,
    Choice,
    Expr,
    Grammar,
    Import,
    Keyset,
    Lexeme,
    Member,
    OtherMembers,
    Record,
    Ref,
    Repeated,
    Seq,
    Spelling,
    Switch,
    Term,
    Words,
)
from maskwright.ir.prune import prune
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regular.expressions import ANY_CHAR, EPSILON, Lit, Regular, alt, cat, chars, one_of, repeat
from maskwright.vocabulary.vocabulary import Vocabulary

_engines: dict[str, Engine] = {}


def forget_engines() -> None:
    _engines.clear()


def compile_ir(grammar: Grammar, vocabulary: Vocabulary, limits: Limits = DEFAULT_LIMITS) -> CompiledCore:
    """Compile without front-ends and without a disk cache; one engine a vocabulary, as in use.

    Slices are used wherever they are sound, though these vocabularies are too small to need them.
    """
    if vocabulary.digest not in _engines:
        _engines[vocabulary.digest] = Engine(
            list(vocabulary.tokens),
            vocabulary.eos_ids,
            self_loop_least=0,
            start_tokens=vocabulary.start_tokens,
            start_stays=vocabulary.start_stays,
        )
    return link(tables(grammar, _engines[vocabulary.digest], limits), limits)


def tables(grammar: Grammar, engine: Engine, limits: Limits = DEFAULT_LIMITS) -> Tables:
    """A grammar and its parts, lowered."""
    pruned = prune(grammar)
    imports = {part.key: tables(part.make(), engine, limits) for part in pruned.imports()}
    return lower_to_tables(pruned, engine, limits, imports)


def flatten(grammar: Grammar) -> Grammar:
    """The same language without imports: their rules are copied."""
    flat = Grammar()
    started: dict[Hashable, int] = {}

    def copy(source: Grammar) -> int:
        first = len(flat.rules)
        for name in source.names:
            flat.reserve(name)

        def rule(index: int) -> int:
            return first + index

        def expr(node: Expr) -> Expr:
            if isinstance(node, Ref):
                return Ref(rule(node.rule))
            if isinstance(node, (Seq, Choice)):
                return type(node)(tuple(map(expr, node.items)))
            if isinstance(node, Switch):
                return Switch(node.lexemes, tuple(map(expr, node.cases)))
            if isinstance(node, Import):
                if node.key not in started:
                    started[node.key] = copy(node.make())
                return Ref(started[node.key])
            return node

        def values(ways: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
            return tuple((rule(index), obligations) for index, obligations in ways)

        for index, body in enumerate(source.rules):
            if isinstance(body, Repeated):
                body = replace(body, first=rule(body.first), rest=rule(body.rest))
            elif isinstance(body, Record):
                members = tuple(replace(m, values=values(m.values)) for m in body.members)
                others = tuple(replace(o, values=values(o.values)) for o in body.others)
                body = replace(body, members=members, others=others)
            elif body is not None:
                body = expr(body)
            flat.rules[rule(index)] = body
        return rule(source.start)

    flat.start = copy(grammar)
    return flat


def matcher(grammar: Grammar, vocabulary: Vocabulary) -> Matcher:
    return Matcher(compile_ir(grammar, vocabulary))


def allowed(matcher: Matcher) -> set[int]:
    """The ids in the matcher's mask."""
    words = (matcher.compiled.engine.vocab_size + 31) // 32
    bitmask = np.full((1, words), 0x5A5A5A5A, dtype=np.int32)  # stale bits must not survive
    matcher.fill_next_token_bitmask(bitmask)
    bits = np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


def oracle_allowed(oracle: Oracle, text: bytes, vocabulary: Vocabulary, start: bool = False) -> set[int]:
    """The ids that may follow ``text``, every token tried byte by byte; ``start``: at the very start of a text."""
    column = oracle.read(text)
    assert column is not None
    other = vocabulary.start_tokens if start else {}
    ids = {
        i
        for i, token in enumerate(vocabulary.tokens)
        if token and oracle.read(other.get(i, token), column) is not None
    }
    return ids | set(vocabulary.eos_ids) if column.complete else ids


# --- vocabularies

PIECES = (
    b'a b c ab ba aa bc abc 1 2 12 0 [ ] { } , : " \\ {" ": "," "} }} :"a {} [] a" b" ab" "a "ab "b'
    b' ","b "a": {"a":1 ,"b": \\u \\u0 u00 0061 \\u0061 \\" \\\\ \\n \xc3\xa9 \xc3 \xa9" \xf0\x9f\x98\x80'
    b' \xf0\x9f \x98\x80 \xe6\xbc \xa2 d83d \\ude00 \\ud83d c":a 1} 1, a, ,a aaaa aaaaaaaa bbbb abab )( ( ) +a'
).split(b" ")


def byte_vocabulary() -> Vocabulary:
    """Every byte, and one EOS."""
    return Vocabulary.from_bytes([*(bytes([b]) for b in range(256)), b"</s>"], eos_ids=256)


def piece_vocabulary(seed: int, sentences: Iterable[bytes] = (), size: int = 300) -> Vocabulary:
    """All bytes and random tokens: pieces joined at random, cut from sentences, some of them twice.

    Two EOS ids, a special id and padding; ids are in random order.
    """
    rng = random.Random(seed)
    tokens: list[bytes | None] = [bytes([b]) for b in range(256)]
    texts = [text for text in sentences if len(text) > 1]
    while len(tokens) < 256 + size:
        if texts and rng.random() < 0.5:
            text = rng.choice(texts)
            first = rng.randrange(len(text) - 1)
            tokens.append(text[first : first + rng.randint(2, 8)])
        else:
            tokens.append(b"".join(rng.choices(PIECES, k=rng.randint(1, 4))))
    tokens += rng.choices(tokens, k=20)
    rng.shuffle(tokens)
    n = len(tokens)
    return Vocabulary.from_bytes(
        [*tokens, b"<special>", b"</s>", None, b"<end>", None], eos_ids=[n + 1, n + 3], special_ids=[n]
    )


# --- lexemes and grammars


def term(content: str | Regular, name: str = "") -> Term:
    """A lexeme; the name must tell contents apart."""
    if isinstance(content, str):
        return Term(Lexeme(content, Lit(content)))
    return Term(Lexeme(name or repr(content), content))


ANY_STRING = Lexeme("string", repeat(ANY_CHAR, 0, None), "quoted")
SHORT_STRING = Lexeme("string{,2}", repeat(ANY_CHAR, 0, 2), "quoted")
FEW_CHARS = chars((10, 10), (34, 34), (97, 98), (0x1F600, 0x1F600))
NOT_A = chars((0, 0x60), (0x62, 0xD7FF), (0xE000, 0x10FFFF))
TWO_KINDS = (
    Lexeme("a...", cat(Lit("a"), repeat(ANY_CHAR, 0, None)), "quoted"),
    Lexeme("no a...", alt(EPSILON, cat(NOT_A, repeat(ANY_CHAR, 0, None))), "quoted"),
)
FEW_CHARS_STRING = Lexeme("few characters", repeat(FEW_CHARS, 0, None), "quoted")


def printed(lexeme: Lexeme) -> Lexeme:
    """The same strings as JSON printers write them."""
    return Lexeme(("printed", lexeme.key), lexeme.regular, "printed")


PRINTED_STRING, PRINTED_FEW_CHARS = printed(ANY_STRING), printed(FEW_CHARS_STRING)
PRINTED_KINDS = tuple(map(printed, TWO_KINDS))

A, AB, DIGIT = Lit("a"), one_of("ab"), one_of("0123456789")
TERMS = (
    *map(term, ("a", "b", "c", "ab", "aa", "abc", "1", "12", "(", ")")),
    term(repeat(A, 1, None), "a+"),
    term(repeat(AB, 1, None), "[ab]+"),
    term(cat(repeat(Lit("ab"), 0, None), Lit("c")), "(ab)*c"),
    term(repeat(A, 2, 30), "a{2,30}"),
    term(repeat(AB, 2, 5), "[ab]{2,5}"),
    term(repeat(Lit("ab"), 3, 20), "(ab){3,20}"),
    term(repeat(alt(A, Lit("ba")), 9, 12), "(a|ba){9,12}"),
    term(cat(repeat(A, 0, 25), repeat(AB, 1, 14)), "a{,25}[ab]{1,14}"),
    term(repeat(DIGIT, 1, None), "[0-9]+"),
    term(alt(Lit("b"), Lit("bc")), "b|bc"),
    term(cat(alt(Lit("-"), EPSILON), repeat(DIGIT, 1, 12)), "-?[0-9]{1,12}"),
    term(repeat(ANY_CHAR, 1, None), "any text"),
    Term(ANY_STRING),
    Term(SHORT_STRING),
    Term(PRINTED_STRING),
)
NAMES = (
    "", "a", "ab", "abc", "b", "ba", '"', "\\", "\\u00", "a\"b", "\n", "\x00", "\x01", "\x1f", "\x7f", "/",
    "\u00e9", "e\u0301", "\u20ac", "\U0001f600", "\U0001f601", "a\U0001f600", "\ufffd", "0061", "\u2028",
    "<", "a&",
)  # fmt: skip


def grammar(*bodies: Body) -> Grammar:
    """Rules 0, 1, ...; the text is a rule 0."""
    return Grammar(list(bodies), [f"rule {i}" for i in range(len(bodies))], 0)


def member(name: str, rule: int | None, required: bool = False) -> Member:
    """A member that is written in one way, or may not occur."""
    return Member(name, () if rule is None else ((rule, 0),), required)


def record(
    members: Iterable[Member], other_key: Lexeme | None = None, other_value: int | None = None, **counted: Any
) -> Record:
    others = (
        () if other_key is None or other_value is None else (OtherMembers(other_key, ((other_value, 0),)),)
    )
    marks = {
        "open": term("{"),
        "close_empty": term("}"),
        "colon": term(":"),
        "comma": term(","),
        "close": term(cat(repeat(Lit(" "), 0, 1), Lit("}")), " ?}"),
    }
    return replace(Record(tuple(members), others, **marks), **counted)


# --- random grammars


def _expression(draw: Any, rules: int, depth: int) -> Expr:
    kind = draw(st.integers(0, 11))
    if depth == 0 or kind < 4:
        which = draw(st.integers(0, 11))
        if which == 0:
            return Term(draw(keysets()))
        if which > 9:
            return _switch(draw, rules, max(depth - 1, 0))
        return draw(st.sampled_from(TERMS)) if which < 5 else Ref(draw(st.integers(0, rules - 1)))
    items = tuple(_expression(draw, rules, depth - 1) for _ in range(draw(st.integers(2, 3))))
    if kind == 4:
        return Choice((*items, EMPTY))
    return Seq(items) if kind < 9 else Choice(items)


WORDS = (
    b"a",
    b"ab",
    b"abc",
    b"b",
    b"ba",
    b"12",
    b"1",
    b"\xc3\xa9",
    b"\xc3",
    b"\xe2\x82\xac",
    b"aaaaaaaaaa",
    b"()",
)
KINDS = (
    term("a"),
    term("ba"),
    term(cat(Lit("b"), repeat(Lit("b"), 1, None)), "bb+"),
    term(cat(Lit("ab"), repeat(AB, 2, 30)), "ab[ab]{2,30}"),
    term(repeat(DIGIT, 1, None), "[0-9]+"),
)
"""Lexemes with disjoint languages."""


def _switch(draw: Any, rules: int, depth: int) -> Expr:
    kind = draw(st.integers(0, 2))
    if kind == 0:
        words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
        return Term(Words(words))
    cases = tuple(_expression(draw, rules, depth) for _ in range(draw(st.integers(1, 3))))
    if kind == 1:
        chosen = draw(st.lists(st.sampled_from(KINDS), min_size=len(cases), max_size=len(cases), unique=True))
        return Switch(tuple(one.lexeme for one in chosen), cases)
    tags = draw(
        st.dictionaries(st.sampled_from(WORDS), st.integers(0, len(cases) - 1), min_size=1, max_size=6)
    )
    return Switch(Words.tagged(tags), cases)


def _names_and_other(draw: Any) -> tuple[list[str], Lexeme | None]:
    other = draw(st.sampled_from((None, ANY_STRING, FEW_CHARS_STRING, PRINTED_STRING, PRINTED_FEW_CHARS)))
    few = other in (FEW_CHARS_STRING, PRINTED_FEW_CHARS)
    names = [name for name in NAMES if not few or set(name) <= set('ab\n"\U0001f600')]
    return draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True)), other


@st.composite
def keysets(draw: Any) -> Keyset:
    names, other = _names_and_other(draw)
    return Keyset(tuple(names), other, _spelling(draw, other))


def _spelling(draw: Any, other: Lexeme | None) -> Spelling:
    """Of names, where others are spelled like ``other``."""
    return draw(st.sampled_from(("quoted", "printed"))) if other is None else other.spelling


@st.composite
def records(draw: Any, rules: int) -> Record:
    """Members, others of one or two kinds, or values alone, and now and then counts and obligations."""
    names, other = _names_and_other(draw)
    obligations = draw(st.sampled_from((0, 0, 0, 1, 2)))
    counted = obligations or draw(st.integers(0, 3)) == 0
    bits = st.integers(0, (1 << obligations) - 1) if obligations else st.just(0)
    values = st.lists(st.tuples(st.integers(0, rules - 1), bits), max_size=2 if obligations else 1).map(tuple)
    members = [Member(name, draw(values), draw(st.integers(0, 3)) == 0, draw(bits)) for name in names]
    if draw(st.integers(0, 9)) == 0:
        members = []
    made = replace(record(members), obligations=obligations, spelling=_spelling(draw, other))
    some = st.lists(
        st.tuples(st.integers(0, rules - 1), bits), min_size=1, max_size=2 if obligations else 1
    ).map(tuple)
    if other is not None:
        made = replace(made, others=(OtherMembers(other, draw(some)),))
        if other in (ANY_STRING, PRINTED_STRING) and draw(st.booleans()):
            kinds = TWO_KINDS if other is ANY_STRING else PRINTED_KINDS
            made = replace(made, others=tuple(OtherMembers(keys, draw(some)) for keys in kinds))
    if draw(st.integers(0, 3)) == 0:
        made = replace(made, members=(), others=(OtherMembers(None, draw(some)),))
    if counted:
        low = draw(st.integers(0, 3))
        made = replace(made, min=low, max=draw(st.none() | st.integers(low, low + 3)))
    return made


@st.composite
def grammars(draw: Any) -> Grammar:
    """A few rules of all kinds; many of these grammars are ambiguous, nullable or recursive."""
    rules = draw(st.integers(2, 5))
    return grammar(*(draw(_bodies(rules)) for _ in range(rules)))


@st.composite
def _bodies(draw: Any, rules: int) -> Body:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        low = draw(st.integers(0, 3))
        high = draw(st.none() | st.integers(max(low, 1), low + 4))
        return Repeated(draw(st.integers(0, rules - 1)), draw(st.integers(0, rules - 1)), low, high)
    if kind < 3:
        return draw(records(rules))
    items = [_expression(draw, rules, 2) for _ in range(draw(st.integers(1, 3)))]
    if kind < 6:
        return Seq(tuple(items))
    return Choice((*items, draw(st.sampled_from((EMPTY, *TERMS)))))
