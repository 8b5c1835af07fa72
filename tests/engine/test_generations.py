"""What a grammar keeps of texts is bounded, and nobody notices: masks, forks and ways back are those of a grammar without bound."""

from __future__ import annotations

import contextlib
import json
import random
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import lark_grammars
import numpy as np
import pytest
import schema_walks
import test_unique
import toys
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright._core import Matcher
from maskwright.errors import MaskwrightError, UnsatisfiableError, VocabularyError
from maskwright.frontends.lark import Indentation

UNBOUNDED = 2**62 - 1
OPEN: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "number"}}
TREE: dict[str, Any] = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "below": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["name"],
        }
    },
}
MEMBERS: dict[str, Any] = {
    "type": "object",
    "properties": {name: {"type": ["integer", "string"]} for name in ("a", "ab", "b", 'q"', "é")},
    "additionalProperties": {"type": "boolean"},
    "minProperties": 2,
    "maxProperties": 6,
}
LEFT = "root ::= sum\nsum ::= sum [+] item | item\nitem ::= [0-9]+ | [(] sum [)] | list\nlist ::= list [a-c] | [a-c]\n"
BLOCKS = """
start: line+
line: NAME (":" _NEWLINE _INDENT line+ _DEDENT | _NEWLINE)
NAME: /[a-z]+/
_NEWLINE: /\\n[ ]*/
%declare _INDENT _DEDENT
"""


def _sources() -> Iterator[tuple[str, Any]]:
    for name, schema in schema_walks.SCHEMAS.items():
        yield f"schema {name}", mw.JsonSchema(schema)
    for name, schema in (("open", OPEN), ("tree", TREE), ("members", MEMBERS), ("any", True)):
        yield name, mw.JsonSchema(schema)
        yield (
            f"{name} wide",
            mw.JsonSchema(schema, escapes="any", whitespace="flexible", property_order="any"),
        )
    for number, (schema, options) in enumerate(test_unique.SCHEMAS):
        yield f"unique {number}", mw.JsonSchema(schema, **options)  # type: ignore[arg-type]
    for name in ("CALC", "JSON", "SQL", "LINES"):
        for lexer in ("contextual",) if name == "LINES" else ("contextual", "dynamic"):
            yield f"{name} {lexer}", mw.Lark(getattr(lark_grammars, name), lexer=lexer)  # type: ignore[arg-type]
    yield "blocks", mw.Lark(BLOCKS, indentation=Indentation(newline="_NEWLINE", columns=6))
    yield "left recursion", mw.GBNF(LEFT)
    yield "counted", mw.Regex("(ab|c){3,40}[0-9]{2,9}")


SOURCES = dict(_sources())


def _vocabulary(budget: int, start_tokens: dict[int, bytes] | None = None) -> mw.Vocabulary:
    plain = schema_walks.vocabulary(seed=5)
    made = mw.Vocabulary(plain.tokens, eos_ids=plain.eos_ids, start_tokens=start_tokens)
    made.state_budget = budget
    return made


def _slow(steps: int) -> mw.Vocabulary:
    made = _vocabulary(0)
    mw.compile(mw.Regex("a"), made)._core.engine.move_steps = steps
    return made


BOUNDED, FREE = _vocabulary(0), _vocabulary(UNBOUNDED)
SLOW = {steps: _slow(steps) for steps in (1, 7)}
"""So few steps at each operation that matchers stay behind in old generations."""


def _mask(matcher: Matcher) -> np.ndarray:
    bitmask = mw.allocate_token_bitmask(1, BOUNDED.vocab_size)
    matcher.fill_next_token_bitmask(bitmask)
    return bitmask


def _ids(mask: np.ndarray) -> list[int]:
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()


class Pair:
    """The same text over a bounded grammar and over one without bound."""

    def __init__(self, bounded: Matcher, free: Matcher) -> None:
        self.bounded, self.free = bounded, free

    def check(self, rng: random.Random) -> list[int]:
        mask = _mask(self.bounded)
        assert (mask == _mask(self.free)).all(), self.text()
        assert self.bounded.is_accepting == self.free.is_accepting
        assert self.bounded.is_terminated == self.free.is_terminated
        assert self.bounded.accepted_tokens == self.free.accepted_tokens
        kind = rng.random()
        if kind < 0.1:
            assert self.bounded.forced_bytes() == self.free.forced_bytes(), self.text()
        elif kind < 0.2:
            ends = [each.shortest_completion_bytes() for each in (self.bounded, self.free)]
            assert len(ends[0]) == len(ends[1]), (self.text(), ends)
            assert self.free.longest_prefix(ends[0]) == len(ends[0])
        elif kind < 0.3:
            some = [rng.randrange(BOUNDED.vocab_size) for _ in range(3)]
            assert self.bounded.validate_tokens(some) == self.free.validate_tokens(some)
        return _ids(mask)

    def text(self) -> bytes:
        return b"".join(BOUNDED.tokens[token] for token in self.free.accepted_tokens if token >= 0)

    def accept(self, token: int) -> bool:
        taken = self.bounded.accept_token(token)
        assert taken == self.free.accept_token(token)
        return taken

    def accept_bytes(self, data: bytes) -> bool:
        taken = self.bounded.accept_bytes(data)
        assert taken == self.free.accept_bytes(data), (self.text(), data)
        return taken

    def rollback(self, count: int) -> None:
        self.bounded.rollback(count)
        self.free.rollback(count)

    def fork(self) -> Pair:
        return Pair(self.bounded.fork(), self.free.fork())


def _walk(pairs: list[Pair], rng: random.Random, steps: int) -> None:
    for _ in range(steps):
        at = rng.randrange(len(pairs))
        pair = pairs[at]
        allowed = pair.check(rng)
        kind = rng.random()
        count = len(pair.free.accepted_tokens)
        if kind < 0.08:
            pair.rollback(rng.randrange(count + 1))
        elif kind < 0.12:
            pair.rollback(min(count, rng.randrange(3)))
        elif kind < 0.18:
            pairs[rng.randrange(len(pairs))] = pair.fork()
        elif kind < 0.22:
            end = pair.free.shortest_completion_bytes()
            pair.accept_bytes(end[: rng.randrange(len(end) + 1)])
        elif kind < 0.24:
            pair.accept(rng.randrange(BOUNDED.vocab_size))
        elif not allowed or pair.free.is_terminated:
            pair.rollback(count)
        else:
            pair.accept(schema_walks.choose(rng, allowed, BOUNDED) or rng.choice(allowed))


@pytest.mark.parametrize("name", SOURCES)
def test_masks_forks_and_ways_back_are_those_of_a_grammar_without_bound(name: str) -> None:
    bounded, free = mw.compile(SOURCES[name], BOUNDED), mw.compile(SOURCES[name], FREE)
    rng = random.Random(name)
    pairs = [Pair(bounded.matcher(), free.matcher()) for _ in range(3)]
    _walk(pairs, rng, 250)
    assert free.statistics["generation"] == 1


@pytest.mark.parametrize("steps", SLOW)
@pytest.mark.parametrize("name", SOURCES)
def test_matchers_that_move_in_small_steps_say_the_same(name: str, steps: int) -> None:
    bounded, free = mw.compile(SOURCES[name], SLOW[steps]), mw.compile(SOURCES[name], FREE)
    rng = random.Random(f"{name} {steps}")
    pairs = [Pair(bounded.matcher(), free.matcher()) for _ in range(3)]
    _walk(pairs, rng, 250)


def test_grammars_begin_anew_when_they_are_full() -> None:
    bounded = mw.compile(SOURCES["open"], BOUNDED)
    before = bounded.statistics["generation"]
    rng = random.Random(1)
    for _ in range(20):
        text = b"{" + b",".join(b'"%x":1' % rng.getrandbits(40) for _ in range(20))
        assert bounded.matcher().accept_bytes(text)
    assert bounded.statistics["generation"] > before + 10


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(toys.grammars(), st.randoms(use_true_random=False))
def test_grammars_of_every_form(grammar: Any, rng: random.Random) -> None:
    limits = mw.Limits(max_parser_states=3_000, max_search=3_000)
    try:
        bounded, free = (mw.compile_grammar(grammar, each, limits) for each in (BOUNDED, FREE))
    except UnsatisfiableError:
        return
    with contextlib.suppress(mw.LimitError):
        _walk([Pair(bounded.matcher(), free.matcher()) for _ in range(2)], rng, 40)


def test_a_text_that_fills_a_generation_stops_no_other_one() -> None:
    nested = mw.compile(
        mw.GBNF('root ::= "(" root ")" | "a"\n'),
        _vocabulary(UNBOUNDED),
        limits=mw.Limits(max_parser_states=200),
    )
    other = nested.matcher()
    assert other.accept_bytes(b"((")
    with pytest.raises(mw.LimitError, match="max_parser_states"):
        nested.matcher().accept_bytes(b"(" * 400)
    for matcher, text in ((other, b"(a)))"), (nested.matcher(), b"((a))")):
        assert matcher.accept_bytes(text)
        assert matcher.is_accepting


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.parametrize(
    ("form", "pattern", "limit"),
    [
        ("plain", "[ab]*a[ab]{14}", 2_000),
        ("plain", "([ab]{0,9}a){1,40}b[ab]{7}é?", 2_000),
        ("string", "[ab]*a[ab]{14}", 2_000),
        ("string", "([ab]{0,9}a){1,40}b[ab]{7}é?", 2_000),
        ("name", "[ab]*a[ab]{14}", 4_000),
        ("terminal", "[ab]*a[ab]{14}é?", 10_000),
    ],
)
def test_a_lexeme_is_used_for_ever(form: str, pattern: str, limit: int) -> None:
    """Texts reach every set of states in time; what one of them needs is little."""
    named = {"patternProperties": {f"^{pattern}$": {"type": "boolean"}}, "additionalProperties": False}
    source = {
        "plain": mw.Regex(pattern),
        "string": mw.JsonSchema({"type": "array", "items": {"pattern": f"^{pattern}$"}}),
        "name": mw.JsonSchema({"type": "object", "minProperties": 3, **named}),
        # A text of the first may go on as one of the second: it is looked ahead.
        "terminal": mw.Lark(f"start: (A B)+\nA: /{pattern}/\nB: /[ab]?c/\n"),
    }[form]
    few = mw.compile(source, _vocabulary(UNBOUNDED), limits=mw.Limits(max_lexer_states=limit))
    free = mw.compile(source, _vocabulary(UNBOUNDED))
    rng = random.Random(7)
    for _ in range(12):
        pairs = [Pair(few.matcher(), free.matcher()) for _ in range(3)]
        _walk(pairs, rng, 120)
    assert few.statistics["generation"] > 3
    assert free.statistics["generation"] == 1


IDS = [f"{random.Random(i).getrandbits(60):x}" for i in range(1_000)]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (mw.JsonSchema({"type": "array", "items": {"enum": IDS}}), '["{}", "{}"]'),
        (mw.JsonSchema({"properties": dict.fromkeys(IDS, True)}), '{{"{}": 1}}'),
        (
            mw.JsonSchema({"properties": dict.fromkeys(IDS, True), "additionalProperties": False}),
            '{{"{}": 1}}',
        ),
        (mw.Choice(IDS), "{}"),
        (mw.Lark("start: %json " + json.dumps({"enum": IDS}) + ' ";"'), '"{}";'),
    ],
    ids=["values", "keys", "declared keys", "choice", "beside a lexer"],
)
def test_many_names_are_used_for_ever(source: Any, text: str) -> None:
    limit = 4_000
    few = mw.compile(source, _vocabulary(UNBOUNDED), limits=mw.Limits(max_lexer_states=limit))
    free = mw.compile(source, _vocabulary(UNBOUNDED))
    rng = random.Random(7)
    for _ in range(900):
        data = text.format(rng.choice(IDS), rng.choice(IDS)).encode()
        pair = few.matcher(), free.matcher()
        at = rng.randrange(len(data))
        for matcher in pair:
            assert matcher.accept_bytes(data[:at])
        if rng.random() < 0.1:
            assert np.array_equal(*map(_mask, pair))
        pair = pair[0].fork(), pair[1]
        for matcher in pair:
            assert matcher.accept_bytes(data[at:]) and matcher.is_accepting
    assert few.statistics["generation"] > 2
    assert free.statistics["generation"] == 1


def test_what_others_have_filled_is_made_anew() -> None:
    """Grammars of one vocabulary share lexemes: one that is new, and one that was asked nothing so far, meet them full."""
    vocabulary = _vocabulary(UNBOUNDED)
    few = mw.Limits(max_lexer_states=2_000)
    before = mw.compile(mw.Choice(IDS), vocabulary, limits=few)
    other = mw.compile(mw.Choice(IDS), vocabulary).matcher
    for text in IDS:
        assert other().accept_bytes(text.encode())
    for grammar in (before, mw.compile(mw.Choice(IDS) | mw.Choice(["-"]), vocabulary, limits=few)):
        for text in IDS[:40]:
            matcher = grammar.matcher()
            assert matcher.accept_bytes(text.encode()) and matcher.is_accepting


def test_starts_of_texts_move_too() -> None:
    starts = {
        token: BOUNDED.tokens[token][1:] for token in range(256, 300) if BOUNDED.tokens[token][:1] == b" "
    }
    assert starts
    bounded, free = (mw.compile(SOURCES["any"], _vocabulary(budget, starts)) for budget in (0, UNBOUNDED))
    _walk([Pair(bounded.matcher(), free.matcher()) for _ in range(3)], random.Random(3), 300)


# --- windows


def test_a_window_takes_back_what_it_says() -> None:
    grammar = mw.compile(SOURCES["left recursion"], BOUNDED)
    windowed, whole = grammar.matcher(max_rollback=5), grammar.matcher()
    rng = random.Random(2)
    tokens = most = 0
    for _ in range(600):
        token = rng.choice([token for token in _ids(_mask(whole)) if token not in BOUNDED.eos_ids])
        for matcher in (windowed, whole):
            assert matcher.accept_token(token)
        tokens += 1
        most = max(most, tokens)
        known = len(whole.accepted_tokens) - max(most - 5, 0)
        assert windowed.accepted_tokens == whole.accepted_tokens[len(whole.accepted_tokens) - known :]
        back = rng.randrange(known + 1) if rng.random() < 0.3 else 0
        windowed.rollback(back)
        whole.rollback(back)
        tokens -= back
        assert (_mask(windowed) == _mask(whole)).all()
    assert most > 200
    with pytest.raises(MaskwrightError, match="max_rollback is 5"):
        windowed.rollback(6)
    assert (_mask(windowed) == _mask(whole)).all()
    windowed.reset()
    assert (_mask(windowed) == _mask(grammar.matcher())).all()


@pytest.mark.parametrize("window", [-1, 1.5, "3", True])
def test_a_window_is_a_number_of_tokens(window: Any) -> None:
    with pytest.raises(MaskwrightError, match="max_rollback"):
        mw.compile(SOURCES["open"], BOUNDED).matcher(max_rollback=window)


@pytest.mark.parametrize("budget", [-1, 2**62])
def test_a_budget_is_a_number_of_bytes(budget: int) -> None:
    with pytest.raises(VocabularyError, match="state_budget"):
        _vocabulary(0).state_budget = budget


# --- what is let go of


def test_matchers_that_nobody_asks_do_not_keep_old_states() -> None:
    vocabulary = _vocabulary(0)
    grammar = mw.compile(SOURCES["open"], vocabulary)
    rng = random.Random(4)
    idle = [grammar.matcher() for _ in range(20)]
    for number, matcher in enumerate(idle):
        assert matcher.accept_bytes(b'{"key %d":1' % number)
    for _ in range(200):
        assert grammar.matcher().accept_bytes(b'{"%x":1,"%x":1' % (rng.getrandbits(40), rng.getrandbits(40)))
    generation = grammar.statistics["generation"]
    assert generation > 20
    # Each of them moved along with others, at most a few generations ago.
    assert all(generation - (matcher.state_id >> 32) < 20 for matcher in idle)
    for number, matcher in enumerate(idle):
        assert not matcher.accept_bytes(b',"key %d"' % number) and matcher.accept_bytes(b',"key":2}')


def test_one_text_of_many_keys_keeps_what_it_needs() -> None:
    vocabulary = _vocabulary(1 << 20)
    grammar = mw.compile(SOURCES["open"], vocabulary)
    matcher = grammar.matcher(max_rollback=8)
    most = 0
    for number in range(6_000):
        assert matcher.accept_bytes(b'%s"key %d":1' % (b"," if number else b"{", number))
        most = max(most, grammar.statistics["state_bytes"])
    assert grammar.statistics["generation"] > 5
    assert most < 4 << 20
    assert len(matcher.accepted_tokens) == 8
    assert not matcher.accept_bytes(b',"key 77"') and matcher.accept_bytes(b',"key x"')


LISTS: dict[str, tuple[Any, bytes, bytes]] = {
    "strings": ({"type": "array", "uniqueItems": True}, b"[", b'"item %d"'),
    "arrays": ({"type": "array", "uniqueItems": True}, b"[", b'[%d,"x"]'),
    "alike": ({"type": "array", "uniqueItems": True}, b"[", b'{"kind":"point","at":[1,%d]}'),
    "keys": (OPEN, b"{", b'"key %d":1'),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_long_text_moves_in_small_steps(name: str) -> None:
    schema, opening, piece = LISTS[name]
    grammar = mw.compile(mw.JsonSchema(schema), _vocabulary(1 << 20))
    grammar._core.engine.move_steps = 20
    matcher = grammar.matcher(max_rollback=8)
    generation, size, behind, most, largest = 1, 0, 0, 0, 0
    for number in range(4_000):
        assert matcher.accept_bytes((b"," if number else opening) + piece % number)
        known = grammar.statistics
        if known["generation"] == generation:
            most = max(most, known["state_bytes"] - size)
        generation, size = known["generation"], known["state_bytes"]
        behind += matcher.state_id >> 32 < generation
        largest = max(largest, size)
    assert generation > 3
    # It stayed where it was for some operations, and no single one moved much of what it needs.
    assert behind > 15
    assert most < largest // 8
    other = matcher.fork()
    assert not other.accept_bytes(b"," + piece % 1234 + b",")
    assert matcher.accept_bytes(b"," + piece % 4321 + b",")


def test_matchers_on_their_way_can_die_fork_and_go_back() -> None:
    schema, opening, piece = LISTS["alike"]
    grammar = mw.compile(mw.JsonSchema(schema), _vocabulary(1 << 19))
    grammar._core.engine.move_steps = 3
    rng = random.Random(6)
    matchers = [grammar.matcher() for _ in range(3)]
    came: list[list[int]] = [[] for _ in matchers]
    for _ in range(2_500):
        at = rng.randrange(3)
        number = rng.choice(came[at]) if came[at] and rng.random() < 0.1 else rng.getrandbits(20)
        good = number not in came[at]
        assert matchers[at].accept_bytes((b"," if came[at] else opening) + piece % number) == good
        came[at] += [number] if good else []
        kind = rng.random()
        if kind < 0.02:
            taken = rng.randrange(min(len(came[at]), 30) + 1)
            matchers[at].rollback(taken)
            came[at] = came[at][: len(came[at]) - taken]
        elif kind < 0.04:
            other = rng.randrange(3)
            matchers[at], came[at] = matchers[other].fork(), list(came[other])
        elif kind < 0.045:
            matchers[at], came[at] = grammar.matcher(), []
    assert grammar.statistics["generation"] > 2


@pytest.mark.parametrize("item", [b'"item %d"', b"%d", b"%d.5e3"])
def test_an_array_of_many_items_knows_them_all(item: bytes) -> None:
    vocabulary = _vocabulary(1 << 20)
    matcher = mw.compile(mw.JsonSchema({"type": "array", "uniqueItems": True}), vocabulary).matcher(
        max_rollback=8
    )
    for number in range(2_000):
        assert matcher.accept_bytes((b"," if number else b"[") + item % number)
    assert not matcher.accept_bytes(b"," + item % 1234 + b",")
    assert matcher.accept_bytes(b"," + item % 2345 + b"]") and matcher.is_accepting


def test_many_threads_share_a_grammar_that_begins_anew_all_the_time() -> None:
    bounded, free = (mw.compile(SOURCES["members wide"], _vocabulary(budget)) for budget in (0, UNBOUNDED))
    walks = []
    for seed in range(6):
        rng, matcher, steps = random.Random(seed), free.matcher(), []
        for _ in range(60):
            mask = _mask(matcher)
            token = schema_walks.choose(rng, _ids(mask), BOUNDED)
            if token is None or matcher.is_terminated or not matcher.accept_token(token):
                break
            steps.append((mask, token))
        walks.append(steps)
    wrong: list[object] = []

    def follow(number: int) -> None:
        rng = random.Random(number)
        idle = bounded.matcher()
        try:
            for _ in range(12):
                matcher = idle.fork() if rng.random() < 0.5 else bounded.matcher(max_rollback=3)
                for mask, token in rng.choice(walks):
                    if rng.random() < 0.1 and matcher.accepted_tokens:
                        again = matcher.accepted_tokens[-1]
                        matcher.rollback(1)
                        matcher.accept_token(again)
                    if not (_mask(matcher) == mask).all() or not matcher.fork().accept_token(token):
                        wrong.append((number, matcher.accepted_tokens, token))
                    matcher.accept_token(token)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=follow, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert bounded.statistics["generation"] > 20


@pytest.mark.parametrize("schema", [OPEN, {"type": "array", "uniqueItems": True}])
@pytest.mark.parametrize("piece", [b'"key %d"', b'"%d is a key"'])
def test_a_key_or_an_item_costs_the_same_however_many_came(schema: Any, piece: bytes) -> None:
    grammar = mw.compile(mw.JsonSchema(schema), _vocabulary(UNBOUNDED))
    matcher = grammar.matcher()
    taken = {}
    opening, behind = (b"{", b":1") if schema is OPEN else (b"[", b"")
    for number in range(4_001):
        assert matcher.accept_bytes((b"," if number else opening) + piece % number + behind)
        if number in (0, 1_000, 2_000, 4_000):
            taken[number] = grammar.statistics["state_bytes"]
    # Twice as many cost twice as much; memory grows by doubling, so this is not exact.
    assert taken[4_000] - taken[2_000] < 3 * (taken[2_000] - taken[0]) / 2
    assert taken[2_000] - taken[1_000] < 3 * (taken[1_000] - taken[0])


def test_a_matcher_of_a_subclass_may_be_freed_while_others_are_fetched() -> None:
    """What its subclass has goes before it leaves its generation, and may run anything."""

    class Kept(Matcher):
        left: Any

    class Busy:
        def __del__(self) -> None:
            for _ in range(20):
                assert grammar.matcher().accept_bytes(b'{"k%d":"' % random.randrange(10**7))

    shared = schema_walks.vocabulary(size=400)
    shared.state_budget = 0
    grammar = mw.compile_json_schema({"type": "object", "additionalProperties": {"type": "string"}}, shared)
    for _ in range(50):
        matcher = Kept(grammar._core)
        assert matcher.accept_bytes(b'{"a":"x')
        matcher.left = Busy()
        del matcher
    assert grammar._core.generation > 50


@pytest.mark.slow
def test_one_matcher_may_be_asked_by_several_threads() -> None:
    """Its masks stay what they are, while it is moved to other generations by whoever asks."""
    shared = schema_walks.vocabulary(size=400)
    shared.state_budget = 0
    grammar = mw.compile_json_schema({"type": "object", "additionalProperties": {"type": "string"}}, shared)
    matcher = grammar.matcher()
    for i in range(20):
        assert matcher.accept_bytes(b'%s"k%d":"x"' % (b"," if i else b"{", i))
    expected = np.asarray(matcher.next_token_bitmask()).copy()
    ends = time.monotonic() + 8
    errors: list[BaseException] = []

    def run(job: Any) -> None:
        try:
            while time.monotonic() < ends:
                job()
        except BaseException as error:
            errors.append(error)

    def ask() -> None:
        row = np.zeros((1, len(expected)), dtype=np.int32)
        matcher.fill_next_token_bitmask(row)
        assert np.array_equal(row[0], expected)

    def others() -> None:
        assert grammar.matcher().accept_bytes(b'{"k%d":"' % random.randrange(10**7))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=run, args=(job,)) for job in (ask, ask, ask, others, others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert not errors and grammar._core.generation > 100
