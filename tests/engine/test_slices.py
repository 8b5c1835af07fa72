"""Masks from slices of the vocabulary equal those of a walk of the whole trie, and the oracle's."""

from __future__ import annotations

import random

import pytest
import toys
from byte_walks import check_equal
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_lexemes import LexemeLanguage
from spelling import spelled

from maskwright._core import Engine, Matcher
from maskwright.compiling.lowering import lower
from maskwright.ir.grammar import EMPTY, Choice, Lexeme, Ref, Seq, Spelling, Switch, Term
from maskwright.ir.prune import prune
from maskwright.limits import DEFAULT_LIMITS
from maskwright.regex import search_language
from maskwright.regular.dfa import complement, is_empty, with_length, without_empty
from maskwright.regular.expressions import (
    EPSILON,
    Chars,
    Lit,
    Regular,
    alt,
    cat,
    complement_ranges,
    normalize_ranges,
    one_of,
    repeat,
)

# Characters of one to four bytes, some of which share their first bytes.
LETTERS = 'ab1 "\\\néë\u0141\u2028\u2030\u3042\U0001f600\U0001f601\U00020000'
SETS = [one_of(s) for s in ("a", "ab", 'a"', "é", "aé\u3042", "\U0001f600a", LETTERS)]
SETS += [one_of("b"), one_of("\u2028\u2030b")]
GAPS = ("a", "\u2028", "é\n", "\U0001f601", '"\\', "\u3042b")


def without(characters: str) -> Regular:
    """Every character but these."""
    return Chars(complement_ranges(normalize_ranges([(ord(c), ord(c)) for c in characters])))


SETS += [without(gap) for gap in GAPS]


@st.composite
def languages(draw: st.DrawFn) -> Regular:
    """Loops, bounded or not, with things before, between and behind them."""
    parts: list[Regular] = []
    for _ in range(draw(st.integers(1, 3))):
        body = draw(st.sampled_from(SETS))
        low = draw(st.integers(0, 3))
        high = draw(st.sampled_from((None, None, low + 1, low + 4, low + 40)))
        parts.append(repeat(body, low, high))
        parts.append(draw(st.sampled_from((EPSILON, Lit("a"), Lit("é1"), one_of('b"')))))
    return cat(*parts) if draw(st.booleans()) else alt(*parts)


def tokens(seed: int) -> list[bytes]:
    """All bytes, and pieces of texts and of quoted texts, cut anywhere."""
    rng = random.Random(seed)
    found = [bytes([b]) for b in range(256)]
    while len(found) < 750:
        # The last ones are long.
        text = "".join(rng.choices(LETTERS, k=rng.randint(1, 6 if len(found) < 700 else 40))).encode()
        if rng.random() < 0.4:
            text = text.replace(b"\\", b"\\\\").replace(b"\n", rng.choice((b"\\n", b"\\u000a")))
            text = text.replace("é".encode(), rng.choice((b"\\u00e9", b"\\u00E", b"\\ud83d\\ude0")))
        first = rng.randint(0, min(3, len(text) - 1))
        found.append(text[first : len(text) - rng.choice((0, 0, 0, 1, 2))] or text)
    return found


def engines() -> tuple[Engine, Engine]:
    content = [*tokens(1), b""]
    eos = (len(content) - 1,)
    return Engine(content, eos, self_loop_least=0), Engine(content, eos, self_loop_least=2**30)


SLICED, WALKED = engines()
CONTENT = [*tokens(1), b""]
# Where homes must pay.
PAID = Engine(CONTENT, (len(CONTENT) - 1,), self_loop_least=100)


def check(regular: Regular, spelling: Spelling, seed: int, steps: int = 12, behind: str = "b]") -> None:
    if is_empty(regular):
        return
    lexeme = Lexeme((regular, spelling), regular, spelling)
    # Something behind it, so that tokens cross the end.
    closing = Term(Lexeme(behind, Lit(behind))) if behind else EMPTY
    source = toys.grammar(Seq((Term(Lexeme("[", Lit("["))), Term(lexeme), closing)))
    sliced, walked = (Matcher(lower(prune(source), e, DEFAULT_LIMITS)) for e in (SLICED, WALKED))
    oracle = LexemeLanguage(spelled(lexeme))
    rng = random.Random(seed)
    assert sliced.accept_bytes(b"[") and walked.accept_bytes(b"[")
    state = oracle.start
    for _ in range(steps):
        mask = toys.allowed(sliced)
        assert mask == toys.allowed(walked)
        if state is not None:
            inside = {i for i, t in enumerate(CONTENT) if t and read(oracle, state, t) is not None}
            assert inside <= mask
            if spelling != "utf8" and behind and not oracle.accepts(state):
                # Open spellings may have ended before this state: other threads live on.
                assert all(crosses(oracle, state, CONTENT[i]) for i in mask - inside)
        usual = [i for i in sorted(mask) if i < len(CONTENT) - 1 and b"]" not in CONTENT[i]]
        if not usual:
            break
        token = rng.choice(usual)
        assert sliced.accept_token(token) and walked.accept_token(token)
        state = read(oracle, state, CONTENT[token]) if state is not None else None


def read(oracle: LexemeLanguage, state: object, data: bytes) -> object:
    for byte in data:
        if state is None:
            break
        state = oracle.step(state, byte)
    return state


def crosses(oracle: LexemeLanguage, state: object, token: bytes) -> bool:
    """Whether the lexeme ends inside the token and ``b]`` begins."""
    for byte in range(1, len(token)):
        behind = read(oracle, state, token[:byte])
        if behind is not None and oracle.accepts(behind) and b"b]".startswith(token[byte:]):
            return True
    return False


@pytest.mark.parametrize("characters", ["ab", 'ab"', "abé"])
@pytest.mark.parametrize("most", [None, 40])
def test_long_tokens(characters: str, most: int | None) -> None:
    content = [bytes([b]) for b in range(256)]
    for length in range(25, 45):
        for end in ("", '"', '"]', "\\", "\\u00e9b", "éa", "c"):
            content.append((("ab" * length)[:length] + end).encode())
    content += [b"a" * 65_535, b'ab"' * 20_000, b""]
    loop = repeat(one_of(characters), 0, most)
    lexeme = Lexeme((loop, "quoted"), loop, "quoted")
    source = toys.grammar(Seq((Term(lexeme), Term(Lexeme("]", Lit("]"))))))
    at = [
        Matcher(
            lower(prune(source), Engine(content, (len(content) - 1,), self_loop_least=least), DEFAULT_LIMITS)
        )
        for least in (0, 2**30)
    ]
    largest = 0
    for token in (b'"', b"a", b"ab" * 13):
        assert all(matcher.accept_token(content.index(token)) for matcher in at)
        masks = [toys.allowed(matcher) for matcher in at]
        assert masks[0] == masks[1]
        largest = max(largest, len(masks[0]))
    assert largest > 60


@pytest.mark.slow
@pytest.mark.sanitized
@settings(max_examples=60, deadline=None)
@given(languages(), st.sampled_from(("utf8", "quoted", "printed")), st.integers(0, 1000))
def test_random_loops(regular: Regular, spelling: Spelling, seed: int) -> None:
    check(regular, spelling, seed)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SETS), st.sampled_from(SETS), st.sampled_from(SETS), st.integers(0, 1000))
def test_words(word: Regular, between: Regular, other: Regular, seed: int) -> None:
    """What leads out of a loop leads into one again, perhaps of other characters."""
    words = cat(
        repeat(word, 1, None),
        repeat(cat(between, alt(repeat(word, 1, None), repeat(other, 1, None))), 0, None),
    )
    check(words, "quoted", seed)
    check(words, "printed", seed)
    check(cat(words, Lit("é1")), "quoted", seed)


@pytest.mark.slow
@pytest.mark.sanitized
@settings(max_examples=60, deadline=None)
@given(languages(), st.sampled_from(("", "a", "\n", "\u3042")), st.integers(0, 1000))
def test_loops_that_may_end_anywhere(regular: Regular, behind: str, seed: int) -> None:
    check(without_empty(regular), "utf8", seed, behind=behind)


@pytest.mark.slow
@pytest.mark.sanitized
def test_what_follows_depends_on_how_a_loop_ends() -> None:
    """Text up to a mark, or text without one, as cases of one lexer: it may end anywhere in one of two ways."""
    plain = without("<").ranges
    free = repeat(Chars(plain), 1, None)
    marked = cat(repeat(Chars(plain), 0, None), Lit("<"))
    lexemes = (Lexeme("free", free), Lexeme("marked", marked))
    behind = Term(Lexeme("ab>", Lit("ab>")))
    sentences = [b"ab<ab>\xc3\xa9a<ab>", b"a a<ab>ba<a", b"<ab>", b"1<ab>1", b"<a", b"aab"]
    pieces = toys.piece_vocabulary(5, sentences)
    # A cycle of "<ab>" and free text; then also something behind free text.
    for rest in (EMPTY, Term(Lexeme("!", Lit("!"))), Term(Lexeme("ab", Lit("ab")))):
        source = toys.grammar(Choice((EMPTY, Switch(lexemes, (rest, Seq((behind, Ref(0))))))))
        for seed in range(8):
            check_equal(source, source, seed, pieces)


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    ["ab", "^[^a]*$", "^[a-z]+1[a-z]*$", ".", "^.+$", r"^\S+ \S+$", "a.*b.*é", "^(?!ab)", "^[^\u2028]{2,5}$",
     "^a{3}", "(a|é)+$", "^\\s*\\S", "^[\u3042-\u3050a]*$", "a{20}", "^(.{3})*$", "^[^\"]*$", "[^\\x00-\\x7f]"],
)  # fmt: skip
@pytest.mark.parametrize("bounds", [(0, None), (0, 6), (4, 30)])
def test_patterns(pattern: str, bounds: tuple[int, int | None]) -> None:
    language = with_length(search_language(pattern), *bounds)
    for seed in range(3):
        check(language, "quoted", seed)
        check(language, "printed", seed)
        check(language, "utf8", seed)


@pytest.mark.parametrize(
    "pattern", ["^[^é]{1,40}$", "^[ab1]{1,50}$", "^[^ab]{2,35}$", "^(a|[^a]{1,33}b)$", '^[^"]{1,60}a$']
)
def test_keys_of_which_some_match(pattern: str) -> None:
    """All texts go on, but through many states."""
    some = search_language(pattern)
    others = complement(some)
    keys = (Lexeme(("some", pattern), some, "quoted"), Lexeme(("others", pattern), others, "quoted"))
    behind = Switch(keys, (Term(Lexeme("b]", Lit("b]"))), Term(Lexeme("]", Lit("]")))))
    source = toys.grammar(Seq((Term(Lexeme("[", Lit("["))), behind)))
    for seed in range(6):
        rng = random.Random(seed)
        matchers = [Matcher(lower(prune(source), e, DEFAULT_LIMITS)) for e in (WALKED, SLICED, PAID)]
        token = CONTENT.index(b"[")
        for _ in range(16):
            assert all(matcher.accept_token(token) for matcher in matchers)
            mask, *others_masks = (toys.allowed(matcher) for matcher in matchers)
            assert all(other == mask for other in others_masks)
            usual = [i for i in sorted(mask) if b"]" not in CONTENT[i]]
            if not usual:
                break
            token = rng.choice(usual)
