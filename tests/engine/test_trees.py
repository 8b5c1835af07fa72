"""Draft trees against the obvious way: for each node, a fork that accepts the tokens down to it."""

from __future__ import annotations

import contextlib
import itertools
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import schema_strategies
import schema_walks
import test_generations
import test_opening
import test_tokens
import toys
from hypothesis import given, settings
from hypothesis import strategies as st
from test_lexing import grammars as lexed_grammars
from test_threads import at_once

import maskwright as mw
from maskwright._core import Matcher
from maskwright.errors import BitmaskError, LimitError, MaskwrightError, UnsatisfiableError, VocabularyError
from maskwright.masks.trie import TokenTrie, TrieMatcher

STALE = 0x5A5A5A5A
SEEDS = st.integers(0, 2**32)
PIECES = toys.piece_vocabulary(3)


class Naive:
    """A tree that grows below a matcher, and what forks say of its nodes."""

    def __init__(self, matcher: Any, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self.nodes: list[Any] = [matcher.fork()]  # the root comes first; None: illegal
        self.tokens: list[int] = []
        self.parents: list[int] = []

    def add(self, parent: int, token: int) -> None:
        above = self.nodes[parent + 1]
        node = None if above is None else above.fork()
        self.nodes.append(node if node is not None and node.accept_token(token) else None)
        self.parents.append(parent)
        self.tokens.append(token)

    def mask(self, parent: int) -> np.ndarray:
        row = np.zeros((1, (self.vocab_size + 31) // 32), dtype=np.int32)
        if self.nodes[parent + 1] is not None:
            self.nodes[parent + 1].fill_next_token_bitmask(row)
        return row[0]

    def grow(self, rng: random.Random, size: int, eos_ids: tuple[int, ...]) -> None:
        """Mostly what may come, often the same twice, now and then an end or anything."""
        for i in range(size):
            parent = rng.choice((i - 1, rng.randrange(-1, i), max(-1, i - 1 - rng.randrange(4))))
            allowed = schema_walks.ids(self.mask(parent))
            kind = rng.random()
            if kind < 0.1 or not allowed:
                token = rng.randrange(self.vocab_size)
            elif kind < 0.2:
                token = rng.choice(eos_ids)
            elif kind < 0.3 and parent in self.parents:
                token = self.tokens[self.parents.index(parent)]
            else:
                token = rng.choice(allowed)
            self.add(parent, token)

    def check(self, matcher: Any, rng: random.Random) -> None:
        """What the matcher says of the tree, in either order and twice: what is new, and what is known."""
        size, words = len(self.tokens), (self.vocab_size + 31) // 32
        legal = np.array([node is not None for node in self.nodes[1:]], dtype=bool)
        expected = np.array([self.mask(i) for i in range(size)], dtype=np.int32).reshape(size, words)
        before = place(matcher)
        validated = rng.random() < 0.5
        for again in range(2):
            if validated or again:
                found = matcher.validate_tree(self.tokens, self.parents)
                assert found.dtype == np.bool_ and np.array_equal(found, legal)
            bitmask = np.full((size + 2, words), STALE, dtype=np.int32)
            assert matcher.fill_tree_bitmasks(self.tokens, self.parents, bitmask) == legal.sum()
            assert np.array_equal(bitmask[:size], expected)
            assert (bitmask[size:] == STALE).all()
            assert place(matcher) == before


def place(matcher: Any) -> tuple[Any, ...]:
    return matcher.accepted_tokens, matcher.is_accepting, matcher.is_terminated


def check(
    make: Callable[[], Any], vocabulary: mw.Vocabulary, seed: int, size: int = 24, steps: int = 6
) -> None:
    """Trees along a random walk; ``make`` gives a matcher of a grammar that nothing is known of yet."""
    rng = random.Random(seed)
    fast, slow = make(), make()
    for _ in range(rng.randrange(steps)):
        naive = Naive(slow, vocabulary.vocab_size)
        naive.grow(rng, rng.choice((0, 1, 5, size)), vocabulary.eos_ids)
        naive.check(fast, rng)
        allowed = schema_walks.ids(naive.mask(-1))
        token = schema_walks.choose(rng, allowed, vocabulary) if allowed else None
        if token is None or slow.is_terminated:
            return
        assert fast.accept_token(token) and slow.accept_token(token)


# --- every form of a grammar


@pytest.mark.slow
@given(toys.grammars(), SEEDS)
@settings(max_examples=40)
def test_random_grammars(grammar: Any, seed: int) -> None:
    try:
        toys.compile_ir(grammar, PIECES)
    except UnsatisfiableError:
        return
    # Rules that begin with themselves and each other in many ways, any of them empty, can have too large stacks: limits have
    # tests of their own.
    limits = mw.Limits(max_seconds=5)
    with contextlib.suppress(mw.LimitError):
        check(lambda: Matcher(toys.compile_ir(grammar, PIECES, limits)), PIECES, seed)


@pytest.mark.slow
@pytest.mark.sanitized
@given(lexed_grammars(), SEEDS)
@settings(max_examples=60)
def test_random_lexers(grammar: Any, seed: int) -> None:
    # Whether a thread can be completed takes a search where terminals clash: it may find no end, and a limit ends it.
    limits = mw.Limits(max_seconds=5)
    try:
        toys.compile_ir(grammar, PIECES, limits)
    except (UnsatisfiableError, mw.LimitError):
        return
    with contextlib.suppress(mw.LimitError):
        check(lambda: Matcher(toys.compile_ir(grammar, PIECES, limits)), PIECES, seed)


@pytest.mark.slow
@pytest.mark.sanitized
@given(test_tokens.grammars(toys.grammars()), SEEDS)
@settings(max_examples=60)
def test_tokens_that_stand_for_themselves(grammar: Any, seed: int) -> None:
    try:
        test_tokens.compiled(grammar)
    except UnsatisfiableError:
        return
    check(lambda: test_tokens.compiled(grammar), test_tokens.VOCABULARY, seed)


@given(schema_strategies.documents(), SEEDS)
@settings(max_examples=60)
def test_random_schemas(schema: Any, seed: int) -> None:
    try:
        compiled = mw.compile_json_schema(schema, PIECES)
    except MaskwrightError:
        return
    check(lambda: Matcher(compiled._core.apart()), PIECES, seed)


@pytest.mark.parametrize("name", test_generations.SOURCES)
@pytest.mark.parametrize("budgets", [(1 << 26, 1 << 26), (0, 0)], ids=["ample", "none"])
def test_sources_of_all_kinds(name: str, budgets: tuple[int, int]) -> None:
    """Without room, every operation begins another generation, and no mask is kept."""
    plain = schema_walks.vocabulary(seed=5)
    fast, slow = (mw.Vocabulary(plain.tokens, eos_ids=plain.eos_ids) for _ in range(2))
    fast.state_budget, fast.mask_budget = budgets
    grammars = [mw.compile(test_generations.SOURCES[name], each) for each in (fast, slow)]
    for seed in range(3):
        makers = itertools.cycle(grammar.matcher for grammar in grammars)
        check(lambda makers=makers: next(makers)(), plain, seed, size=12)


@pytest.mark.slow
@pytest.mark.sanitized
@given(toys.grammars(), SEEDS)
@settings(max_examples=60)
def test_the_very_start_of_a_text(grammar: Any, seed: int) -> None:
    rng = random.Random(seed)
    texts = [b"a", b"ab", b"(a)", b'{"a":1}', b" a", b"12"]
    vocabulary = test_opening.random_vocabulary(texts, rng)
    try:
        toys.compile_ir(grammar, vocabulary)
    except UnsatisfiableError:
        return
    check(lambda: Matcher(toys.compile_ir(grammar, vocabulary)), vocabulary, seed)


@pytest.mark.parametrize(
    "vocabulary", [test_opening.VOCABULARY, test_opening.STAYS], ids=["drops one", "all"]
)
def test_the_first_blank(vocabulary: mw.Vocabulary) -> None:
    blank, yes, no = test_opening.BLANK, test_opening.BLANK_YES, test_opening.NO
    grammar = mw.compile_regex(" ?(yes|no)+", vocabulary)
    naive = Naive(grammar.matcher(), vocabulary.vocab_size)
    for parent, token in [
        (-1, blank),
        (0, blank),
        (0, yes),
        (-1, yes),
        (3, yes),
        (1, no),
        (-1, no),
        (6, test_opening.EOS),
    ]:
        naive.add(parent, token)
    naive.check(mw.compile_regex(" ?(yes|no)+", vocabulary).matcher(), random.Random(0))


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=1, max_size=12), SEEDS)
def test_sets_of_sequences(sequences: list[list[int]], seed: int) -> None:
    trie = TokenTrie(sequences, 40, [38, 39])
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(38)), None, None], eos_ids=[38, 39])
    check(lambda: TrieMatcher(trie), vocabulary, seed)


def test_a_compiled_choice_of_sequences() -> None:
    vocabulary = toys.byte_vocabulary()
    matcher = mw.compile_choice([[1, 2], [1, 3, 4]], vocabulary).matcher()
    assert matcher.validate_tree([1, 2, 3, 4, 5], [-1, 0, 0, 2, 2]).tolist() == [True] * 4 + [False]


# --- by hand


def example() -> tuple[Matcher, list[int], list[int]]:
    """``[`` was read; a tree over ``[1, 2]`` with wrong and equal branches, and ends."""
    vocabulary = toys.byte_vocabulary()
    matcher = mw.compile_json_schema({"type": "array", "items": {"enum": [1, 2]}}, vocabulary).matcher()
    assert matcher.accept_token(ord("["))
    eos = vocabulary.eos_ids[0]
    tokens = [*b"1],2x11", eos, eos, *b"1]", eos, eos]
    return matcher, tokens, [-1, 0, 0, 2, 2, 4, 2, 1, 7, 8, 3, 10, 3]


def test_a_tree_by_hand() -> None:
    matcher, tokens, parents = example()
    #        1     ]     ,     2     x      1x     1     EOS   EOS    EOS1   2]    ]EOS  2EOS
    legal = [True, True, True, True, False, False, True, True, False, False, True, True, False]
    assert matcher.validate_tree(tokens, parents).tolist() == legal
    bitmask = mw.allocate_token_bitmask(len(tokens), matcher.compiled.engine.vocab_size)
    assert matcher.fill_tree_bitmasks(tokens, parents, bitmask) == sum(legal)
    rows = [set(schema_walks.ids(row)) for row in bitmask]
    eos_ids = set(matcher.compiled.engine.eos_ids)
    assert rows[1] == rows[7] == rows[10] == rows[11] == eos_ids
    assert rows[4] == rows[5] == rows[8] == rows[9] == rows[12] == set()
    assert rows[3] == rows[6] and {ord(","), ord("]")} <= rows[3]


def test_a_draft_without_branches() -> None:
    matcher, _, _ = example()
    draft = list(b"1, 2], 1")
    bitmask = mw.allocate_token_bitmask(len(draft), matcher.compiled.engine.vocab_size)
    assert matcher.fill_tree_bitmasks(draft, range(-1, len(draft) - 1), bitmask) == 5
    assert matcher.validate_tokens(draft) == 5
    legal = matcher.validate_tree(iter(draft), iter(range(-1, len(draft) - 1)))
    assert legal.tolist() == [True] * 5 + [False] * 3


def test_no_nodes() -> None:
    matcher, _, _ = example()
    legal = matcher.validate_tree([], [])
    assert legal.shape == (0,) and legal.dtype == np.bool_
    words = (matcher.compiled.engine.vocab_size + 31) // 32
    for rows in (0, 2):
        bitmask = np.full((rows, words), STALE, dtype=np.int32)
        assert matcher.fill_tree_bitmasks([], [], bitmask) == 0
        assert (bitmask == STALE).all()


def test_a_terminated_matcher() -> None:
    matcher, _, _ = example()
    eos = matcher.compiled.engine.eos_ids[0]
    assert matcher.accept_tokens([ord("1"), ord("]"), eos]) == 3
    assert matcher.validate_tree([eos, 49], [-1, -1]).tolist() == [False, False]


def test_a_window_is_left_as_it_is() -> None:
    matcher, tokens, parents = example()
    window = Matcher(matcher.compiled, max_rollback=2)
    for token in b"[1,2,1,2":
        assert window.accept_token(token)
    window.rollback(1)
    before = window.accepted_tokens
    assert window.validate_tree(tokens, parents).any()
    assert window.accepted_tokens == before
    window.rollback(1)
    with pytest.raises(MaskwrightError, match="max_rollback"):
        window.rollback(1)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.int64])
def test_arrays_of_integers(dtype: Any) -> None:
    torch = pytest.importorskip("torch")
    matcher, tokens, parents = example()
    small = [0 if token > 127 else token for token in tokens]
    expected = matcher.validate_tree(small, parents)
    signed = np.dtype(dtype) if np.dtype(dtype).kind == "i" else np.int64
    assert np.array_equal(matcher.validate_tree(np.array(small, dtype), np.array(parents, signed)), expected)
    assert np.array_equal(matcher.validate_tree(np.array(small, dtype)[::1], tuple(parents)), expected)
    tensors = torch.tensor(small), torch.tensor(parents, dtype=torch.int32)
    assert np.array_equal(matcher.validate_tree(*tensors), expected)
    numbers = [np.int64(i) for i in small], [torch.tensor(i) for i in parents]
    assert np.array_equal(matcher.validate_tree(*numbers), expected)


def test_rows_of_many_layouts() -> None:
    torch = pytest.importorskip("torch")
    matcher, tokens, parents = example()
    n, words = len(tokens), (matcher.compiled.engine.vocab_size + 31) // 32
    expected = np.zeros((n, words), dtype=np.int32)
    matcher.fill_tree_bitmasks(tokens, parents, expected)
    tensor = torch.full((n + 1, words), STALE, dtype=torch.int32)
    matcher.fill_tree_bitmasks(tokens, parents, tensor)
    assert np.array_equal(tensor[:n].numpy(), expected) and (tensor[n] == STALE).all()
    whole = np.full((2 * n, words + 3), STALE, dtype=np.int32)
    for view in (whole[::2, 1:-2], whole[::-2, 1:-2]):
        whole[:] = STALE
        matcher.fill_tree_bitmasks(tokens, parents, view)
        assert np.array_equal(view, expected)
        view[:] = STALE
        assert (whole == STALE).all()
    row = np.zeros(words, dtype=np.int32)
    assert matcher.fill_tree_bitmasks(tokens[:1], [-1], row) == 1
    assert np.array_equal(row, expected[0])


# --- what is refused


WRONG_TREES: list[tuple[Any, Any, type[Exception], str]] = [
    ([49], [0], MaskwrightError, r"parents\[0\]"),
    ([49, 44], [-1, 1], MaskwrightError, r"parents\[1\]: expected an earlier node \(0 to 0\)"),
    ([49, 44, 49], [-1, 2, 1], MaskwrightError, r"parents\[1\]"),
    ([49, 44], [-1, -2], MaskwrightError, "got -2"),
    ([49, 44], [-1, 2**70], MaskwrightError, r"parents\[1\]"),
    ([49, 44], [-1, -(2**70)], MaskwrightError, r"parents\[1\]"),
    ([49, 44], [-1], MaskwrightError, r"2 token\(s\), but 1 parent"),
    ([49], [-1, 0], MaskwrightError, r"1 token\(s\), and more parents"),
    ([49], [], MaskwrightError, "parent"),
    ([], itertools.count(-1), MaskwrightError, "parents"),
    ([49], itertools.repeat(-1), MaskwrightError, "more parents"),
    ([49], [None], MaskwrightError, "NoneType"),
    ([49], [-1.0], MaskwrightError, "float"),
    ([49], [True], MaskwrightError, "bool"),
    ([49], np.array([-1.0]), MaskwrightError, "float"),
    ([49], np.array([[-1]]), MaskwrightError, "list"),
    ([49], np.array(-1), MaskwrightError, "ndarray"),
    ([49], -1, MaskwrightError, "int"),
    ([49], "a", MaskwrightError, "str"),
    ([49], np.array([2**63], dtype=np.uint64), MaskwrightError, r"parents\[0\]"),
    ([258], [-1], VocabularyError, "outside the vocabulary"),
    ([-1], [-1], VocabularyError, "outside the vocabulary"),
    ([49, 2**31], [-1, 0], VocabularyError, "outside the vocabulary"),
    ([2**200], [-1], VocabularyError, "outside the vocabulary"),
    ([1.0], [-1], VocabularyError, "float"),
    ([True], [-1], VocabularyError, "bool"),
    (["1"], [-1], VocabularyError, "str"),
    ("1", [-1], VocabularyError, "str"),
    (None, [-1], VocabularyError, "NoneType"),
    (49, [-1], VocabularyError, "int"),
    (np.array([49.0]), [-1], VocabularyError, "float"),
    (np.array([[49]]), [-1], VocabularyError, "list"),
    (itertools.repeat(49), itertools.repeat(-1), LimitError, "nodes"),
]  # fmt: skip


@pytest.mark.parametrize(("tokens", "parents", "error", "message"), WRONG_TREES)
def test_trees_that_are_none(tokens: Any, parents: Any, error: type[Exception], message: str) -> None:
    # An iterator is read to its end or its error: each call gets one that was not begun.
    if isinstance(tokens, itertools.repeat):
        tokens, parents = list(itertools.repeat(49, (1 << 20) + 1)), []
    matcher, _, _ = example()
    vocab_size = matcher.compiled.engine.vocab_size
    trie = TrieMatcher(TokenTrie([[49, 44]], vocab_size, [256]))
    for each in (matcher, trie):
        before = place(each)
        bitmask = np.full((3, (vocab_size + 31) // 32), STALE, dtype=np.int32)
        with pytest.raises(error, match=message):
            each.validate_tree(tokens, parents)
        with pytest.raises(error, match=message):
            each.fill_tree_bitmasks(tokens, parents, bitmask)
        assert (bitmask == STALE).all() and place(each) == before


def read_only(words: int) -> np.ndarray:
    table = np.zeros((3, words), dtype=np.int32)
    table.setflags(write=False)
    return table


@pytest.mark.parametrize(
    "make",
    [
        lambda words: np.zeros((1, words), dtype=np.int32),
        lambda words: np.zeros((0, words), dtype=np.int32),
        lambda words: np.zeros(words, dtype=np.int32),
        lambda words: np.zeros((2, words), dtype=np.int64),
        lambda words: np.zeros((2, words), dtype=np.uint32),
        lambda words: np.zeros((2, words), dtype=np.float32),
        lambda words: np.zeros((2, words + 1), dtype=np.int32),
        lambda words: np.zeros((2, words - 1), dtype=np.int32),
        lambda words: np.zeros((2, 1, words), dtype=np.int32),
        lambda words: np.zeros((2, words), dtype=np.int32, order="F"),
        read_only,
        lambda words: [[0] * words] * 2,
        lambda words: None,
    ],
)
def test_unfit_bitmasks(make: Callable[[int], Any]) -> None:
    matcher, _, _ = example()
    bitmask = make((matcher.compiled.engine.vocab_size + 31) // 32)
    before = place(matcher)
    with pytest.raises(BitmaskError):
        matcher.fill_tree_bitmasks([49, 44], [-1, 0], bitmask)
    assert not np.asarray(0 if bitmask is None else bitmask).any() and place(matcher) == before


def test_what_an_iterator_raises_is_handed_on() -> None:
    matcher, _, _ = example()

    def broken(first: int) -> Iterator[int]:
        yield first
        raise KeyError("mine")

    bitmask = np.full((2, (matcher.compiled.engine.vocab_size + 31) // 32), STALE, dtype=np.int32)
    with pytest.raises(KeyError, match="mine"):
        matcher.fill_tree_bitmasks(broken(49), [-1], bitmask)
    with pytest.raises(KeyError, match="mine"):
        matcher.fill_tree_bitmasks([49, 44], broken(-1), bitmask)
    assert (bitmask == STALE).all()


def test_an_iterator_that_moves_the_matcher() -> None:
    """Its tree hangs below where the matcher stands when all of it has been read."""
    matcher, _, _ = example()

    def moving() -> Iterator[int]:
        assert matcher.accept_token(49)
        yield 44

    assert matcher.validate_tree(moving(), [-1]).tolist() == [True]


def test_a_late_tree_changes_nothing() -> None:
    shared = schema_walks.vocabulary(size=8000, self_loop_least=2**30)
    late = schema_walks.compiled("strings", shared, limits=mw.Limits(max_seconds=1e-9)).matcher()
    text = [shared.tokens.index(bytes([byte])) for byte in b'{"a":"']
    assert late.accept_tokens(text) == len(text)
    tokens = [shared.tokens.index(bytes([byte])) for byte in b'aab"']
    parents = [-1, 0, 0, -1]
    bitmask = np.full((4, (shared.vocab_size + 31) // 32), STALE, dtype=np.int32)
    before, used = place(late), shared.mask_bytes
    for _ in range(2):
        with pytest.raises(LimitError, match="max_seconds"):
            late.fill_tree_bitmasks(tokens, parents, bitmask)
        assert (bitmask == STALE).all() and place(late) == before
        assert used <= shared.mask_bytes <= used + 4096, "edges are kept, masks that took too long are not"
    ample = schema_walks.compiled("strings", shared).matcher()
    assert ample.accept_tokens(text) == len(text)
    naive = Naive(ample, shared.vocab_size)
    for parent, token in zip(parents, tokens, strict=True):
        naive.add(parent, token)
    naive.check(ample, random.Random(0))


def test_a_tree_of_too_many_states_writes_nothing() -> None:
    limits = mw.Limits(max_parser_states=20)
    tokens = [bytes([b]) for b in range(256)]
    vocabulary = mw.Vocabulary.from_bytes([*tokens, b"(" * 200, None], eos_ids=257)
    nested = mw.compile_gbnf('root ::= "(" root ")" | "a"', vocabulary, limits=limits).matcher()
    bitmask = np.full((3, (vocabulary.vocab_size + 31) // 32), STALE, dtype=np.int32)
    with pytest.raises(LimitError, match="max_parser_states"):
        nested.fill_tree_bitmasks([40, 97, 256], [-1, 0, 0], bitmask)
    assert (bitmask == STALE).all() and nested.accepted_tokens == []


# --- threads


@pytest.fixture
def often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)
    mw.set_threads()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_large_trees_are_written_by_several_threads(count: int, often: None) -> None:
    mw.set_threads(count)
    compiled = mw.compile_json_schema(schema_walks.SCHEMAS["recursive"], schema_walks.vocabulary())
    for size in (15, 16, 17, 33, 300):
        naive = Naive(compiled.matcher(), compiled.vocabulary.vocab_size)
        naive.grow(random.Random(size), size, compiled.vocabulary.eos_ids)
        naive.check(compiled.matcher(), random.Random(size))


@pytest.mark.parametrize("budget", [None, 0, 20_000])
def test_threads_share_a_grammar(budget: int | None, often: None) -> None:
    """Trees, and batches that want the pool as well."""
    mw.set_threads(4)
    shared = schema_walks.vocabulary()
    if budget is not None:
        shared.mask_budget = budget
    compiled = mw.compile_json_schema(schema_walks.SCHEMAS["other keys"], shared)
    alone = mw.compile_json_schema(schema_walks.SCHEMAS["other keys"], schema_walks.vocabulary())
    trees = []
    for seed in range(4):
        trees.append(Naive(alone.matcher(), shared.vocab_size))
        trees[-1].grow(random.Random(seed), 60, shared.eos_ids)
    row = mw.allocate_token_bitmask(1, shared.vocab_size)
    alone.matcher().fill_next_token_bitmask(row)

    def tree(naive: Naive) -> Callable[[], None]:
        def job() -> None:
            matcher = compiled.matcher()
            for seed in range(10):
                naive.check(matcher, random.Random(seed))

        return job

    def batch() -> None:
        matchers = [compiled.matcher() for _ in range(40)]
        bitmask = mw.allocate_token_bitmask(40, shared.vocab_size)
        for _ in range(40):
            bitmask[:] = STALE
            mw.fill_next_token_bitmasks(matchers, bitmask)
            assert (bitmask == row).all()

    at_once([*map(tree, trees), batch, batch])


def test_a_tree_lets_other_threads_have_the_interpreter(often: None) -> None:
    """A matcher is in use meanwhile: whoever moves it is told so, or comes before or after."""
    compiled = mw.compile_json_schema(schema_walks.SCHEMAS["recursive"], schema_walks.vocabulary(size=2000))
    compiled.vocabulary.mask_budget = 0
    naive = Naive(compiled.matcher(), compiled.vocabulary.vocab_size)
    naive.grow(random.Random(1), 200, compiled.vocabulary.eos_ids)
    matcher = compiled.matcher()
    bitmask = mw.allocate_token_bitmask(200, compiled.vocabulary.vocab_size)
    seen: list[str] = []
    done = []

    def fill() -> None:
        # On a busy machine the other one may not get a turn for a while.
        for each in range(3000):
            matcher.fill_tree_bitmasks(naive.tokens, naive.parents, bitmask)
            if each >= 30 and seen:
                break
        done.append(True)

    def move() -> None:
        while not done:
            with contextlib.suppress(MaskwrightError):
                matcher.reset()
                continue
            seen.append("in use")

    at_once([fill, move])
    assert "in use" in seen
    naive.check(matcher, random.Random(2))
