"""The very start of a text, where tokens of some vocabularies stand for something else: every way to ask agrees."""

from __future__ import annotations

import contextlib
import pickle
import random
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import toys
from diffusion_oracle import checked, fillings, random_canvas, sentences
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import Oracle
from test_against_reference import check_forced
from toys import grammars

from maskwright._core import Matcher
from maskwright.compiling.compiler import compile, compile_grammar
from maskwright.diffusion.canvas import Canvas
from maskwright.diffusion.slots import OPEN, Slots
from maskwright.errors import LimitError, UnsatisfiableError, VocabularyError
from maskwright.ir.grammar import Grammar
from maskwright.limits import Limits
from maskwright.masks.bitmask import allocate_token_bitmask, fill_next_token_bitmasks
from maskwright.sampling import CallableModel, GrammarConstraint, SymbolEnds, awrs, smc
from maskwright.sampling.monitors.monitor import Monitor
from maskwright.search import Session
from maskwright.sources import Choice, JsonSchema, Lark, Regex
from maskwright.vocabulary.vocabulary import Vocabulary

WORDS = [
    *(bytes([byte]) for byte in range(256)),
    *(b" ", b" yes", b"yes", b" no", b"no", b"  ", b'{"', b' {"', b' "', b'"a', b" {", b"</s>"),
]
EOS = len(WORDS) - 1
START = {i: word[1:] for i, word in enumerate(WORDS) if i > 255 and word.startswith(b" ")}
VOCABULARY = Vocabulary.from_bytes(WORDS, EOS, start_tokens=START)
STAYS = Vocabulary.from_bytes(
    WORDS,
    EOS,
    start_tokens={i: word.lstrip(b" ") for i, word in enumerate(WORDS) if i in START},
    start_stays=True,
)
BLANK, BLANK_YES, YES = WORDS.index(b" ", 256), WORDS.index(b" yes"), WORDS.index(b"yes")
BLANK_NO, NO = WORDS.index(b" no"), WORDS.index(b"no")


def random_vocabulary(texts: list[bytes], rng: random.Random) -> Vocabulary:
    """Tokens cut from sentences; at the very start, some of them stand for other such pieces, or for nothing."""

    def piece() -> bytes:
        text = rng.choice(texts or toys.PIECES)
        first = rng.randrange(len(text))
        return text[first : first + rng.choice((1, 1, 2, 3, 8))]

    tokens = [piece() for _ in range(9)]
    start = {i: rng.choice((b"", piece(), tokens[i][1:])) for i in range(len(tokens)) if rng.random() < 0.6}
    eos = [len(tokens) + 1, len(tokens) + 2]
    stays = rng.random() < 0.5
    return Vocabulary.from_bytes(
        [*tokens, None, b"</s>", b"<end>"], eos, start_tokens=start, start_stays=stays
    )


def accepted(matcher: Matcher, ids: Sequence[int]) -> bool:
    return matcher.accept_tokens(ids) == len(ids)


# --- against the reference


@pytest.mark.slow
@pytest.mark.sanitized
@given(grammars(), st.integers(0, 2**32))
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
def test_walks_against_the_reference(made: Grammar, seed: int) -> None:
    rng = random.Random(seed)
    oracle = Oracle(made)
    vocabulary = random_vocabulary(sentences(oracle, rng, 8), rng)
    try:
        compiled = toys.compile_ir(made, vocabulary)
    except UnsatisfiableError:
        return
    for _ in range(3):
        matcher = Matcher(compiled)
        ids: list[int] = []
        for _ in range(5):
            text, start = vocabulary.decode(ids), vocabulary.at_start(ids)
            column = oracle.read(text)
            assert column is not None
            mask = toys.allowed(matcher)
            assert mask == toys.oracle_allowed(oracle, text, vocabulary, start), (ids, text)
            assert {i for i in range(vocabulary.vocab_size) if matcher.fork().accept_token(i)} == mask
            assert matcher.is_accepting == column.complete
            check_forced(oracle, column, matcher.forced_bytes())
            with contextlib.suppress(VocabularyError):  # Few bytes are tokens here.
                completion = matcher.shortest_completion()
                assert vocabulary.decode([*ids, *completion]) == text + matcher.shortest_completion_bytes()
                assert matcher.validate_tokens(completion) == len(completion)
            ordinary = sorted(mask - set(vocabulary.eos_ids))
            if not ordinary:
                break
            ids.append(rng.choice(ordinary))
            assert matcher.accept_token(ids[-1])
        # A history is what was read, and nothing else.
        other = Matcher(compiled)
        assert accepted(other, ids) and other.state_id == matcher.state_id
        matcher.reset()
        assert matcher.state_id == Matcher(compiled).state_id


@pytest.mark.slow
@given(grammars(), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_canvases_against_brute_force(made: Grammar, seed: int) -> None:
    rng = random.Random(seed)
    oracle = Oracle(made)
    vocabulary = random_vocabulary(sentences(oracle, rng, 8), rng)
    try:
        compiled = compile_grammar(made, vocabulary, Limits(max_seconds=5))
    except UnsatisfiableError:
        return
    for _ in range(4):
        slots = random_canvas(rng, vocabulary, [])
        with contextlib.suppress(LimitError):
            try:
                canvas = Canvas(compiled, slots)
            except UnsatisfiableError:
                assert not any(fillings(oracle, vocabulary, slots.tokens, slots.optional, vocabulary.eos_ids))
            else:
                assert checked(canvas, oracle, vocabulary.eos_ids)


def test_a_first_slot_that_may_be_left_out() -> None:
    canvas = Canvas(compile(Regex(" ?yes"), VOCABULARY), Slots([OPEN, BLANK_YES], [True, False]))
    # Left out, the second slot is at the very start; else the first one must hold what stands for nothing.
    assert canvas.allowed(0).nonzero()[0].tolist() == [BLANK]


# --- one by one


def test_the_first_blank_counts_for_nothing() -> None:
    compiled = compile(Regex("yes|no"), VOCABULARY)
    matcher = compiled.matcher()
    assert toys.allowed(matcher) == {BLANK, BLANK_YES, YES, BLANK_NO, NO, ord("y"), ord("n")}
    assert accepted(matcher, [BLANK_YES]) and matcher.is_accepting
    matcher.rollback(1)
    assert accepted(matcher, [BLANK]) and not matcher.is_accepting
    assert toys.allowed(matcher) == {YES, NO, ord("y"), ord("n")}
    assert matcher.validate_tokens([BLANK_YES]) == 0
    assert matcher.validate_tokens([YES, EOS]) == 2
    matcher.reset()
    assert not matcher.accept_bytes(b" yes") and matcher.accept_bytes(b"") and accepted(matcher, [BLANK_YES])


def test_a_text_that_begins_with_a_blank() -> None:
    compiled = compile(Regex(" yes"), VOCABULARY)
    matcher = compiled.matcher()
    assert toys.allowed(matcher) == {BLANK, WORDS.index(b"  "), ord(" ")}
    assert matcher.validate_tokens([BLANK_YES]) == 0
    for ids in ([BLANK, BLANK_YES], [WORDS.index(b"  "), YES], [ord(" "), YES], [BLANK, BLANK, YES]):
        assert compiled.matcher().validate_tokens([*ids, EOS]) == len(ids) + 1
    assert VOCABULARY.decode(matcher.shortest_completion()) == b" yes"
    assert len(matcher.shortest_completion()) == 2


def test_all_blanks_in_front_count_for_nothing() -> None:
    compiled = compile(Regex("yes"), STAYS)
    start = compiled.matcher().state_id
    for ids in ([BLANK] * 3, [WORDS.index(b"  ")], [BLANK, WORDS.index(b"  ")]):
        matcher = compiled.matcher()
        assert accepted(matcher, ids) and matcher.state_id == start
        assert matcher.validate_tokens([BLANK_YES, EOS]) == 2
    assert compile(Regex(" yes"), STAYS).matcher().validate_tokens([ord(" "), YES]) == 2
    assert compile(Regex(" yes"), STAYS).matcher().validate_tokens([BLANK, BLANK_YES]) == 1
    canvas = Canvas(compile(Regex("yes"), STAYS), Slots([OPEN, OPEN, BLANK_YES], [False] * 3))
    assert {BLANK, WORDS.index(b"  ")} == set(canvas.allowed(0).nonzero()[0].tolist())


def test_an_empty_text_can_end_behind_a_silent_token() -> None:
    matcher = compile(Regex("(yes)?"), VOCABULARY).matcher()
    assert matcher.is_accepting and EOS in toys.allowed(matcher)
    assert accepted(matcher, [BLANK]) and matcher.is_accepting and EOS in toys.allowed(matcher)
    assert accepted(matcher, [EOS]) and matcher.is_terminated


@pytest.mark.parametrize("budget", [0, 1 << 20])
def test_masks_of_schemas_and_lexers(budget: int) -> None:
    vocabulary = Vocabulary.from_bytes(WORDS, EOS, start_tokens=START)
    vocabulary.mask_budget = budget
    brace, quote = WORDS.index(b' {"'), WORDS.index(b" {")
    for source in (
        JsonSchema({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
        Lark('start: "{" PAIR "}"\nPAIR: /"a":[0-9]+/\n%ignore " "'),
    ):
        compiled = compile(source, vocabulary)
        for _ in range(2):
            matcher = compiled.matcher()
            mask = toys.allowed(matcher)
            assert {brace, quote, BLANK, ord("{")} <= mask and BLANK_YES not in mask
            assert accepted(matcher, [brace, *b'a":1}', EOS])
            assert accepted(compiled.matcher(), [BLANK, ord("{"), *b'"a":1}', EOS])


def test_batches_choices_and_sequences_of_ids() -> None:
    compiled = compile(Choice(["yes", "no"]), VOCABULARY)
    matchers = [compiled.matcher(), compiled.matcher()]
    assert matchers[1].accept_token(BLANK)
    rows = allocate_token_bitmask(2, VOCABULARY.vocab_size)
    fill_next_token_bitmasks(matchers, rows)
    for matcher, row in zip(matchers, rows, strict=True):
        alone = allocate_token_bitmask(1, VOCABULARY.vocab_size)
        matcher.fill_next_token_bitmask(alone)
        assert (row == alone[0]).all()
    # Sequences of ids are what they are.
    trie = compile(Choice([[BLANK_YES], [YES]]), VOCABULARY).matcher()
    assert [trie.fork().accept_token(i) for i in (BLANK_YES, YES, BLANK)] == [True, True, False]


def test_captures_have_the_text_that_was_read() -> None:
    compiled = compile(Lark("start: word\nword[capture]: /[ a-z]+/"), VOCABULARY)
    for ids, text in (([BLANK_YES], b"yes"), ([BLANK, BLANK_YES], b" yes"), ([YES, BLANK_NO], b"yes no")):
        matcher = compiled.matcher()
        assert accepted(matcher, [*ids, EOS])
        assert matcher.captures() == {"word": text}


def test_monitors_read_the_first_token_alike() -> None:
    monitor = Monitor(VOCABULARY, lambda text: ["yes", "no"], triggers=b"")
    state = monitor.start()
    assert monitor.check([state] * 3, [BLANK_YES, YES, BLANK]).tolist() == [True, True, True]
    behind = monitor.advance(state, BLANK)
    assert monitor.check([behind] * 2, [BLANK_YES, YES]).tolist() == [False, True]
    assert monitor.advance(state, BLANK_YES).written == b"yes"


def test_tokens_that_stand_for_themselves() -> None:
    vocabulary = Vocabulary.from_bytes([*WORDS, b"<tool>"], EOS, [EOS + 1], start_tokens=START)
    compiled = compile(Lark(f'start: <tool> " "? "yes" | "no" | <[{BLANK_YES}]> "!"'), vocabulary)
    first = {EOS + 1, BLANK, BLANK_NO, NO, ord("n"), BLANK_YES}
    assert toys.allowed(compiled.matcher()) == first
    for ids in (
        [EOS + 1, BLANK_YES],
        [BLANK_NO],
        [BLANK, NO],
        [BLANK_YES, ord("!")],
        [BLANK, BLANK_YES, ord("!")],
    ):
        assert compiled.matcher().validate_tokens([*ids, EOS]) == len(ids) + 1
    assert compiled.matcher().validate_tokens([BLANK, BLANK_NO]) == 1


def test_samplers_and_sessions() -> None:
    weights = np.full(len(WORDS), 0.02)
    weights[[BLANK, BLANK_YES, BLANK_NO, YES, EOS]] = 10
    logprobs = np.log(weights / weights.sum())
    model = CallableModel(lambda prefixes: np.tile(logprobs, (len(prefixes), 1)), len(WORDS), EOS)
    grammar = compile(Lark("start: (word | blank)+\nword: /[a-z]+/\nblank: / +/"), VOCABULARY)
    ends = SymbolEnds(grammar, "blank")
    posterior = smc(model, GrammarConstraint(grammar), 16, max_tokens=6, seed=1, block=ends)
    texts = [VOCABULARY.decode(ids).decode() for ids in posterior.sequences]
    assert texts and all(re.fullmatch("[a-z ]+", text) for text in texts)
    for token in (BLANK_YES, BLANK, BLANK_NO):
        sure = np.where(np.arange(len(WORDS)) == token, 0.0, -np.inf)
        assert awrs(sure, lambda each: grammar.matcher().accept_token(each), 1).token == token
    assert ends([BLANK, BLANK_YES]) and not ends([BLANK_YES])
    for seed in range(8):
        session = Session(model, grammar, max_tokens=8, seed=seed)
        session.forward()
        text = session.text
        assert text == VOCABULARY.decode(session.ids).decode() and re.fullmatch("[a-z ]*", text)
        assert "".join(session.view("token")) == text
        assert session.view("word") == re.findall("[a-z]+(?= )" if not session.finished else "[a-z]+", text)


# --- vocabularies


def test_decode_and_digest() -> None:
    plain = Vocabulary.from_bytes(WORDS, EOS)
    assert dict(VOCABULARY.start_tokens) == START and not plain.start_tokens
    assert len({each.digest for each in (plain, VOCABULARY, STAYS)}) == 3
    assert Vocabulary.from_bytes(WORDS, EOS, start_tokens={BLANK: b" "}).digest == plain.digest
    assert VOCABULARY.decode([BLANK_YES, BLANK_NO]) == b"yes no"
    assert VOCABULARY.decode([BLANK_YES, BLANK_NO], start=False) == b" yes no"
    assert VOCABULARY.decode([BLANK, BLANK_YES]) == b" yes"
    assert STAYS.decode([BLANK, BLANK, BLANK_YES]) == b"yes"
    copy = pickle.loads(pickle.dumps(STAYS))
    assert copy.start_tokens == STAYS.start_tokens and copy.start_stays
    assert compile(Regex("yes"), copy).matcher().validate_tokens([BLANK, BLANK_YES, EOS]) == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([b"a"], "mapping"),
        ({0: "a"}, "expected bytes"),
        ({EOS: b"a"}, "is no text"),
        ({1000: b"a"}, "outside the vocabulary"),
        ({"a": b"a"}, "expected an integer"),
        ({0: b"a" * 2**16}, "MAX_TOKEN_BYTES"),
    ],
)
def test_wrong_start_tokens(wrong: Any, message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_bytes(WORDS, EOS, start_tokens=wrong)
