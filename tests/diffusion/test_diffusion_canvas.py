"""A canvas against brute force: whether it can be filled, what each slot may hold, and its operations."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import pytest
from diffusion_oracle import SLOTS, allowed_by_slot, checked, fillings, random_canvas, sentences
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import Oracle
from toys import PIECES, byte_vocabulary, compile_ir, grammar, grammars, term

from maskwright.compiling.compiler import CompiledGrammar, compile_lark, compile_regex
from maskwright.diffusion import Gap
from maskwright.diffusion.canvas import Canvas
from maskwright.diffusion.slots import EMPTY, OPEN, Slots
from maskwright.errors import CanvasError, LimitError, UnsatisfiableError, VocabularyError
from maskwright.ir.grammar import Choice, Grammar, Ref, Seq
from maskwright.limits import Limits
from maskwright.regular.expressions import Lit, cat, one_of, repeat
from maskwright.vocabulary.vocabulary import Vocabulary


def small_vocabulary(texts: list[bytes], rng: random.Random, size: int) -> Vocabulary:
    """A few tokens cut from sentences (and from nowhere), two of them alike; one or two ends, a special id."""
    tokens = []
    for _ in range(size):
        if texts and rng.random() < 0.85:
            text = rng.choice(texts)
            first = rng.randrange(len(text))
            tokens.append(text[first : first + rng.choice((1, 1, 2, 3, 8))])
        else:
            tokens.append(rng.choice(PIECES))
    tokens.append(rng.choice(tokens))
    rng.shuffle(tokens)
    return Vocabulary.from_bytes([*tokens, None, b"</s>", b"<end>"], eos_ids=[size + 2, size + 3])


@pytest.mark.slow
@given(grammars(), st.integers(0, 2**32))
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_random_grammars_against_brute_force(made: Grammar, seed: int) -> None:
    # Some of these grammars are ambiguous in every way at once: what takes too long is a limit, and no answer.
    with contextlib.suppress(LimitError):
        compare_with_brute_force(made, seed)


def compare_with_brute_force(made: Grammar, seed: int) -> None:
    rng = random.Random(seed)
    oracle = Oracle(made)
    texts = sentences(oracle, rng, 8)
    vocabulary = small_vocabulary(texts, rng, 6)
    try:
        compiled = CompiledGrammar(compile_ir(made, vocabulary, Limits(max_seconds=5)), vocabulary)
    except UnsatisfiableError:
        return
    ends = vocabulary.eos_ids if rng.random() < 0.8 else ()
    everything = list(fillings(oracle, vocabulary, [OPEN] * SLOTS, [False] * SLOTS, ends))
    slots = random_canvas(rng, vocabulary, everything)
    forbidden = tuple(rng.sample(range(6), rng.choice((0, 0, 1, 3))))
    found = list(fillings(oracle, vocabulary, slots.tokens, slots.optional, ends, forbidden))
    try:
        canvas = Canvas(compiled, slots, eos_ids=ends, forbidden_ids=forbidden)
    except UnsatisfiableError:
        assert not found
        return
    assert found
    checked(canvas, oracle, ends, forbidden)
    while canvas.open:
        # Propose anything; what is refused has no filling.
        position = rng.choice(canvas.open)
        proposals = [
            (
                position,
                rng.choice([i for i in range(vocabulary.vocab_size) if vocabulary.tokens[i] or i in ends]),
            )
            for position in rng.sample(canvas.open, min(len(canvas.open), rng.choice((1, 1, 2, 3))))
        ]
        before = canvas.tokens
        taken = canvas.commit_many(proposals)
        kept = list(before)
        for position, token in proposals:
            trial = list(kept)
            if trial[position] == OPEN and token not in forbidden:
                trial[position] = token
                if any(True for _ in fillings(oracle, vocabulary, trial, slots.optional, ends, forbidden)):
                    kept = trial
                    for i in range(position, SLOTS) if token in ends else ():
                        if kept[i] == OPEN:
                            kept[i] = EMPTY if slots.optional[i] else token
            assert (position in taken) == (kept[position] == token)
        assert kept == canvas.tokens
        found = checked(canvas, oracle, ends, forbidden)
        if not taken:
            position = rng.choice(canvas.open)
            assert canvas.try_commit(position, canvas.witness()[position])
    assert found


# --- operations

LETTERS = Vocabulary.from_bytes([b"a", b"b", b"ab", b"(", b")", b"()", b")(", b"a", None, b"</s>"], eos_ids=9)
WORDS = {
    "a{2,5}b": term(cat(repeat(Lit("a"), 2, 5), Lit("b")), "a{2,5}b"),
    "[ab]{3}": term(repeat(one_of("ab"), 3, 3), "[ab]{3}"),
}
NESTED = grammar(Choice((Seq((term("("), Ref(0), term(")"), Ref(0))), Seq((term("a"), Ref(0))), Seq(()))))


def compiled_by_name(name: str) -> tuple[CompiledGrammar, Oracle]:
    made = NESTED if name == "nested" else grammar(WORDS[name])
    return CompiledGrammar(compile_ir(made, LETTERS), LETTERS), Oracle(made)


NAMES = ["nested", "a{2,5}b", "[ab]{3}"]


def everything_about(canvas: Canvas) -> list[Any]:
    return [canvas.tokens, [canvas.allowed(i).tolist() for i in range(len(canvas))]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(6))
def test_operations_equal_a_canvas_made_anew(name: str, seed: int) -> None:
    """Incremental = rebuilt, for any mix of operations; refused ones change nothing."""
    compiled, oracle = compiled_by_name(name)
    rng = random.Random(seed)
    canvas = Canvas(compiled, [None] * 5)
    for _ in range(25):
        before = everything_about(canvas)
        position, token = rng.randrange(len(canvas)), rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 9))
        operation = rng.choice(("commit", "commit", "uncommit", "replace", "insert", "delete"))
        if operation == "commit":
            done = canvas.try_commit(position, token)
        elif operation == "uncommit":
            canvas.uncommit([position])
            done = True
        elif operation == "replace":
            done = canvas.replace(position, token)
        elif operation == "insert":
            done = len(canvas) < 6 and canvas.insert(position, rng.choice((1, 2)))
        else:
            done = len(canvas) > 2 and canvas.delete(position)
        if not done:
            assert everything_about(canvas) == before, operation
        slots = Slots(canvas.tokens, [False] * len(canvas))
        assert everything_about(Canvas(compiled, slots)) == everything_about(canvas), operation
        if len(canvas) < 6:
            checked(canvas, oracle, LETTERS.eos_ids)


@pytest.mark.parametrize(("name", "slots"), [("nested", 6), ("a{2,5}b", 5), ("[ab]{3}", 3)])
def test_taking_back_restores(name: str, slots: int) -> None:
    compiled, _ = compiled_by_name(name)
    canvas = Canvas(compiled, [None] * slots, eos_ids=())
    before = everything_about(canvas)
    witness = canvas.witness()
    for position in (slots - 1, 0, 1):
        assert canvas.try_commit(position, witness[position])
        assert canvas.tokens != before[0]
    canvas.uncommit([0, 1, slots - 1])
    assert everything_about(canvas) == before


def test_the_order_of_commits_does_not_matter() -> None:
    compiled, _ = compiled_by_name("nested")
    first, second = (Canvas(compiled, [None] * 6, eos_ids=()) for _ in range(2))
    assert [first.try_commit(i, t) for i, t in ((0, 3), (3, 0), (5, 4))] == [True] * 3
    assert [second.try_commit(i, t) for i, t in ((5, 4), (0, 3), (3, 0))] == [True] * 3
    assert everything_about(first) == everything_about(second)


def test_a_slot_with_a_token_is_taken_as_open() -> None:
    compiled, _ = compiled_by_name("a{2,5}b")
    canvas = Canvas(compiled, [None] * 4, eos_ids=())
    free = canvas.allowed(1)
    assert canvas.try_commit(1, 0)
    assert (canvas.allowed(1) == free).all()
    assert canvas.tokens == [OPEN, 0, OPEN, OPEN]


@pytest.mark.parametrize("position", [-1, 4, 99])
def test_positions_outside_the_canvas_are_refused(position: int) -> None:
    compiled, _ = compiled_by_name("[ab]{3}")
    canvas = Canvas(compiled, [None] * 4)
    for call in (
        lambda: canvas.allowed(position),
        lambda: canvas.try_commit(position, 0),
        lambda: canvas.uncommit([0, position]),
        lambda: canvas.replace(position, 0),
        lambda: canvas.delete(position),
    ):
        with pytest.raises(CanvasError, match="outside the canvas"):
            call()
    assert canvas.tokens == [OPEN] * 4
    with pytest.raises(VocabularyError):
        canvas.try_commit(0, 10)
    with pytest.raises(CanvasError, match="must hold a token"):
        canvas.try_commit(0, EMPTY)


def test_joint_commits_cost_one_search() -> None:
    """Two tokens that fit one by one, but not together."""
    compiled, _ = compiled_by_name("nested")
    canvas = Canvas(compiled, [None] * 2, eos_ids=())
    assert canvas.allowed(0)[3] and canvas.allowed(1)[0]
    assert canvas.commit_many([(0, 3), (1, 0)]) == [0]
    assert canvas.refused == 1 and canvas.undecided == 0


def test_a_search_without_budget_refuses_and_stays_valid() -> None:
    compiled, _ = compiled_by_name("nested")
    canvas = Canvas(compiled, [None] * 6, search_budget=0)
    witness = canvas.witness()
    other = next(i for i in np.flatnonzero(canvas.allowed(0)) if i != witness[0])
    assert not canvas.try_commit(0, int(other))
    assert (canvas.refused, canvas.undecided) == (0, 1)
    assert canvas.try_commit(0, witness[0])


def test_long_nested_canvases_stay_polynomial() -> None:
    """Fixed brackets at both ends of a long gap: all depths are possible in between."""
    compiled, _ = compiled_by_name("nested")
    canvas = Canvas(compiled, [3] * 10 + [None] * 80 + [4] * 10, eos_ids=())
    assert canvas.try_commit(50, 6) and canvas.try_commit(20, 3)
    text = LETTERS.decode(canvas.witness())
    assert len(canvas.witness()) == 100 and Canvas(compiled, canvas.witness(), eos_ids=())
    assert text.startswith(b"(" * 10)
    with pytest.raises(UnsatisfiableError):
        Canvas(compiled, [3] * 10 + [None] * 4 + [4] * 20, eos_ids=())


# --- grammars with a lexer: maximal munch, keywords, ignored text

LARK = {
    "keywords": 'start: "if" NAME | NAME "=" NAME\nNAME: /[a-z]+/\n%ignore " "',
    "lists": 'start: item ("," item)*\nitem: "list" | "listen" | "(" start ")"\n%ignore /[ ]+/',
    "numbers": 'start: NUM (OP NUM)*\nNUM: /[0-9]+/\nOP: "+" | "++"',
}
PARTS = [
    b"if",
    b"i",
    b"f",
    b" ",
    b"=",
    b"list",
    b"en",
    b",",
    b"(",
    b")",
    b"1",
    b"+",
    b"++",
    b"if ",
    None,
    b"</s>",
]
PART_VOCABULARY = Vocabulary.from_bytes(PARTS, eos_ids=15)


@pytest.mark.parametrize("name", LARK)
@pytest.mark.parametrize(
    "slots", [[None] * 4, [None, 3, None, None], [None, None, 11, None], [0, None, None, 2]]
)
def test_grammars_with_a_lexer(name: str, slots: list[int | None]) -> None:
    compiled = compile_lark(LARK[name], PART_VOCABULARY)
    texts = range(14)

    def fill(i: int, matcher: Any, ended: bool) -> Any:
        if i == len(slots):
            if ended or matcher.is_accepting:
                yield ()
            return
        for token in [*texts, 15] if slots[i] is None else [slots[i]]:
            after = matcher.fork()
            if token == 15:
                if ended or matcher.is_accepting:
                    yield from ((15, *rest) for rest in fill(i + 1, matcher, True))
            elif not ended and after.accept_token(token):
                yield from ((token, *rest) for rest in fill(i + 1, after, False))

    found = list(fill(0, compiled.matcher(), False))
    if not found:
        with pytest.raises(UnsatisfiableError):
            Canvas(compiled, slots)
        return
    canvas = Canvas(compiled, slots)
    assert tuple(canvas.witness()) in found
    expected = allowed_by_slot(found, len(slots))
    for i in canvas.open:
        assert set(np.flatnonzero(canvas.allowed(i)).tolist()) == expected[i]


AB = Vocabulary.from_bytes([b"a", b"b", b"", b""], eos_ids=[2])


def test_a_suggestion_leaves_no_slot_out_that_must_hold_a_token() -> None:
    canvas = Canvas(compile_regex("[ab]{2,}", AB), [None] * 3)
    for nothing in (EMPTY, OPEN):
        canvas.suggest([nothing, 0, 0])
        assert canvas.witness()[0] in (0, 1)
    canvas.fill(0)
    canvas.uncommit([0])
    # What is open in it is completed, where nothing fixed is behind.
    assert canvas.suggest([1, OPEN, 0])
    assert canvas.witness()[0] == 1
    assert canvas.try_commit(2, 0)
    assert not canvas.suggest([1, OPEN, 0])


def test_a_witness_has_the_end_that_was_put_down() -> None:
    vocabulary = Vocabulary.from_bytes([b"a", b"b", b"", b""], eos_ids=[2, 3])
    canvas = Canvas(compile_regex("a*", vocabulary), [None, None, 3])
    canvas.uncommit([2])
    fork = canvas.fork()
    assert canvas.try_commit(1, 2)
    assert canvas.tokens == [OPEN, 2, 2]
    assert canvas.witness()[1:] == [2, 2]
    assert fork.witness()[2] == 3


@pytest.mark.parametrize("rest", range(5))
def test_forbidden_ids_are_as_if_the_vocabulary_had_them_not(rest: int) -> None:
    made = grammar(Choice((Seq((term("("), Ref(0), term(")"))), Seq((Ref(0), term("a"))), term("ab"))))
    forbidden = [i for i, data in enumerate(LETTERS.tokens) if data and i % 5 == rest]
    fewer = Vocabulary.from_bytes(
        [None if i in forbidden else data for i, data in enumerate(LETTERS.tokens)], eos_ids=9
    )
    canvas = Canvas(CompiledGrammar(compile_ir(made, LETTERS), LETTERS), [None] * 6, forbidden_ids=forbidden)
    expected = Canvas(CompiledGrammar(compile_ir(made, fewer), fewer), [None] * 6)
    for _ in range(6):
        assert everything_about(canvas) == everything_about(expected)
        position = canvas.open[len(canvas.open) // 2]
        token = int(np.flatnonzero(canvas.allowed(position))[0])
        assert not any(canvas.try_commit(position, each) for each in forbidden)
        assert canvas.try_commit(position, token) and expected.try_commit(position, token)
        if not canvas.open:
            break


def test_a_slot_that_was_given_with_a_forbidden_id() -> None:
    canvas = Canvas(compile_regex("[ab]{2}", AB), [0, None], forbidden_ids=[0])
    assert canvas.witness() == [0, 1]
    with pytest.raises(CanvasError, match="never get"):
        canvas.uncommit([0])
    assert not canvas.replace(0, 0) and canvas.tokens == [0, OPEN]
    assert canvas.replace(0, 1)
    with pytest.raises(VocabularyError, match="forbidden_ids"):
        Canvas(compile_regex("a", AB), [None], forbidden_ids=[9])


def test_copies_go_their_own_way() -> None:
    import copy

    compiled = compile_regex("a{2}|a{4}", byte_vocabulary())
    for make in (copy.copy, copy.deepcopy):
        canvas = Canvas(compiled, [None] * 4)
        other = make(canvas)
        assert canvas.try_commit(3, 97)
        other.fill(2)
        for each in (canvas, other):
            for slot in list(each.open):
                each.fill(slot)
            text = bytes(token for token in each.tokens if 0 <= token < 256)
            assert text in (b"aa", b"aaaa")


@pytest.mark.parametrize("source", ['start: A B*\nA: "a"+\nB: "b"', 'start: "a"+ "b"*'])
def test_a_slot_behind_a_gap_that_is_left_out(source: str) -> None:
    """The text before it ended in the slot in front of the gap, until the slot behind it was chosen."""
    vocabulary = Vocabulary.from_bytes([b"a", b"b", b"", b""], eos_ids=[2], special_ids=[3])
    canvas = Canvas(compile_lark(source, vocabulary), [b"a", None, Gap(0, 1), None])
    assert canvas.try_commit(2, EMPTY) and canvas.try_commit(3, 1)
    assert canvas.witness()[1] in (0, 1) and canvas.witness()[-1] == 1


def test_a_nested_text_behind_a_gap_that_is_left_out() -> None:
    """With a lexer, a slot far behind where the text ended is filled from where it did."""
    vocabulary = Vocabulary.from_bytes([b"(", b")", b"a", b"", b""], eos_ids=[3])
    grammar = compile_lark('start: "(" start ")" start | "a" |', vocabulary)
    canvas = Canvas(grammar, [Gap(0, 3), None])
    assert canvas.try_commit(1, EMPTY) and canvas.try_commit(0, 0) and canvas.try_commit(2, EMPTY)
    assert len(canvas.witness()) == 4 and not canvas.try_commit(3, 2)
    assert canvas.try_commit(3, 1) and canvas.tokens == [0, EMPTY, EMPTY, 1]


@pytest.mark.parametrize(
    "source", ['start: "(" start ")" start | "a" |', "start: A B*\nA: /a+/\nB: /b/", 'start: "a"+ "b"*']
)
def test_canvases_with_gaps_hold_a_text_of_the_language(source: str) -> None:
    """Whatever is tried in whatever order: the witness agrees with what is put down, and is a text."""
    rng = random.Random(0)
    vocabulary = Vocabulary.from_bytes([b"(", b")", b"a", b"b", b"", b""], eos_ids=[4])
    grammar = compile_lark(source, vocabulary)
    put = 0
    for _ in range(150):
        slots = [rng.choice([None, Gap(0, rng.randint(1, 3))]) for _ in range(rng.randint(1, 3))]
        try:
            canvas = Canvas(grammar, slots)
        except UnsatisfiableError:
            continue
        for _ in range(6):
            if not canvas.open:
                break
            position, token = rng.choice(canvas.open), rng.choice([0, 1, 2, 3, 4, EMPTY])
            if token != EMPTY or canvas.reading.optional[position]:
                put += canvas.try_commit(position, token)
            witness = canvas.witness()
            assert len(witness) == len(canvas.tokens)
            assert all(token in (OPEN, text) for token, text in zip(canvas.tokens, witness, strict=True))
            matcher = grammar.matcher()
            assert (
                matcher.accept_bytes(vocabulary.decode([t for t in witness if t >= 0]))
                and matcher.is_accepting
            )
    assert put > 200
