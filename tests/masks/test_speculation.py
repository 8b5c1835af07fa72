"""Jump-forward, drafts between vocabularies, and paths of trees."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.errors import MaskwrightError, VocabularyError
from maskwright.masks.speculation import JumpForward, deepest_path, translate_draft

ALPHABET = [bytes([byte]) for byte in range(256)]
WORDS = ["name", '"', '"name', '": ', '":', "age", " is", "é", "né", "ab", "abc", "bc", "日", "本日"]


def vocabulary(
    words: list[str], ends: tuple[str, ...] = ("</s>",), special: tuple[str, ...] = ()
) -> mw.Vocabulary:
    tokens = [*ALPHABET, *(word.encode() for word in words), *(name.encode() for name in (*ends, *special))]
    first = 256 + len(words)
    ids = range(first, len(tokens))
    return mw.Vocabulary.from_bytes(tokens, eos_ids=ids[: len(ends)], special_ids=ids[len(ends) :])


def longest(vocabulary: mw.Vocabulary) -> Any:
    """A tokenizer of its own: the longest token each time."""

    def encode(text: str) -> list[int]:
        data, ids = text.encode(), []
        while data:
            token = max((t for t in vocabulary.tokens if t and data.startswith(t)), key=len)
            ids.append(vocabulary.tokens.index(token))
            data = data[len(token) :]
        return ids

    return encode


# --- forced text


SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def test_forced_text_is_in_the_tokenizers_tokens() -> None:
    vocab = vocabulary(WORDS)
    jump = JumpForward(longest(vocab), vocab)
    matcher = mw.compile_json_schema(SCHEMA, vocab, whitespace="compact").matcher()
    assert matcher.accept_token(ord("{"))
    replaces, tokens = jump(matcher)
    assert not replaces and vocab.tokens[tokens[0]] == b'"name'
    assert matcher.accepted_tokens == [ord("{")]
    assert matcher.accept_tokens(tokens) == len(tokens)
    # The quote was chosen alone and the model has not read it: it is spelled anew with what is forced.
    matcher.rollback(len(tokens))
    assert matcher.accept_token(ord('"'))
    replaces, tokens = jump(matcher, may_replace=True)
    assert replaces and vocab.tokens[tokens[0]] == b'"name'
    assert jump(matcher, [ord("{"), ord('"')], may_replace=True) == (replaces, tokens)
    matcher.rollback(1)
    assert matcher.accept_tokens(tokens) == len(tokens)


def test_nothing_is_forced() -> None:
    vocab = vocabulary(WORDS)
    jump = JumpForward(longest(vocab), vocab)
    assert jump(mw.compile_regex("[a-z]+", vocab).matcher()) == (False, [])
    assert jump(mw.compile_choice([[1, 2]], vocab).matcher()) == (False, [])
    behind = mw.compile_regex("abc", vocab).matcher()
    assert behind.accept_bytes(b"a")
    assert jump(behind) == (False, [])


def test_what_was_chosen_is_not_taken_back() -> None:
    """The tokenizer splits at another place, and what follows its first token may still go on otherwise."""
    vocab = mw.Vocabulary.from_bytes([*ALPHABET, b"ab", b"bcd", b"bcde", None], eos_ids=259)
    jump = JumpForward(lambda text: [97, 257] if text == "abcd" else list(text.encode()), vocab)
    matcher = mw.compile_regex("ab(cd|cde)|ax", vocab).matcher()
    assert matcher.accept_token(256) and matcher.forced_bytes() == b"cd"
    assert jump(matcher, may_replace=True) == (False, [])


MARKED = ["a", "b", "▁", "▁ab", "▁a", "ab"]


@pytest.mark.parametrize("stays", [False, True])
def test_what_is_forced_is_added_to_what_is_written(stays: bool) -> None:
    """Random grammars, texts and tokenizers, with marks in front of words that are no blank at the start."""
    rng = random.Random(5)
    tokens = [*ALPHABET, *(word.replace("▁", " ").encode() for word in MARKED), None]
    at_start = {256 + i: word[1:].encode() for i, word in enumerate(MARKED) if word[0] == "▁"}
    vocab = mw.Vocabulary.from_bytes(tokens, eos_ids=262, start_tokens=at_start, start_stays=stays)
    grown = 0
    for _ in range(600):
        words = {"".join(rng.choices(" ab", k=rng.randint(1, 6))) for _ in range(rng.randint(1, 3))}

        def encode(text: str, salt: int = rng.randrange(99)) -> list[int]:
            """A tokenizer that splits by the text itself, and puts a mark in front."""
            draw, ids, rest = random.Random(f"{salt}{text}"), [], "▁" + text.replace(" ", "▁")
            while rest:
                fitting = [256 + i for i, word in enumerate(MARKED) if rest.startswith(word)]
                ids.append(draw.choice(fitting))
                rest = rest[len(MARKED[ids[-1] - 256]) :]
            return ids

        jump = JumpForward(encode, vocab)
        matcher = mw.compile_choice(sorted(words), vocab).matcher()
        for _ in range(4):
            written = vocab.decode(matcher.accepted_tokens)
            forced = matcher.forced_bytes()
            for may_replace in (False, bool(matcher.accepted_tokens)):
                replaces, added = jump(matcher, may_replace=may_replace)
                fork = matcher.fork()
                fork.rollback(int(replaces))
                assert fork.accept_tokens(added) == len(added)
                now = vocab.decode(fork.accepted_tokens)
                assert (written + forced).startswith(now)
                assert len(now) > len(written) if added else not replaces
                grown += bool(added)
            allowed = [i for i in range(262) if matcher.fork().accept_token(i)]
            if not allowed:
                break
            matcher.accept_token(rng.choice(allowed))
    assert grown > 300


@pytest.mark.parametrize("wrong", [None, "encode", 3])
def test_encode_is_a_function(wrong: Any) -> None:
    with pytest.raises(MaskwrightError, match="encode"):
        JumpForward(wrong, vocabulary(WORDS))
    with pytest.raises(VocabularyError, match="vocabulary"):
        JumpForward(str.encode, wrong)


# --- drafts of another vocabulary


@cache
def beginnings() -> set[bytes]:
    """Of characters, without their last byte."""
    codes = (code for code in range(0x80, 0x110000) if not 0xD800 <= code < 0xE000)
    texts = (chr(code).encode() for code in codes)
    return {text[:length] for text in texts for length in range(1, len(text))}


def whole(data: bytes) -> bytes:
    """Without an unfinished character at the end."""
    cuts = (cut for cut in (3, 2, 1) if data[-cut:] in beginnings() and cut <= len(data))
    return data[: len(data) - next(cuts, 0)]


@pytest.mark.slow
@pytest.mark.sanitized
@given(
    st.lists(st.integers(0, 255 + len(WORDS)), max_size=12), st.sets(st.sampled_from(WORDS)), st.booleans()
)
@settings(max_examples=150)
def test_bytes_stay_what_they_are(ids: list[int], words: set[str], own: bool) -> None:
    draft, target = vocabulary(WORDS), vocabulary(sorted(words))
    found = translate_draft(ids, draft, target, longest(target) if own else None)
    assert target.decode(found) == whole(draft.decode(ids))
    assert translate_draft(ids, draft, draft) == translate_draft(np.array(ids, dtype=np.int32), draft, draft)


@pytest.mark.slow
@given(st.lists(st.integers(0, 9), max_size=9), st.integers(0, 99))
def test_a_target_that_lacks_bytes(ids: list[int], seed: int) -> None:
    draft = mw.Vocabulary.from_bytes(
        [b"a", b"b", b"c", b"ab", b"bc", b"ca", b"x", b"xa", b"abc", b"\xc3", None], eos_ids=10
    )
    some = random.Random(seed).sample([b"a", b"b", b"c", b"ab", b"bc", b"abc", b"xa", b"ca"], 5)
    target = mw.Vocabulary.from_bytes([*some, None], eos_ids=5)
    data = draft.decode(ids)
    found = target.decode(translate_draft(ids, draft, target))
    assert data.startswith(found)
    if not any(byte in data for byte in target.missing_bytes):
        assert found == whole(data)


def test_ends_and_special_tokens() -> None:
    draft = vocabulary(["ab"], ("</s>", "<end>"), ("<tool>", "<mine>"))
    target = vocabulary(["a b"], ("<stop>", "<end>"), ("<tool>",))
    names, other = draft.special_tokens, target.special_tokens
    assert translate_draft([97, names["</s>"], 98], draft, target) == [97, other["<stop>"]]
    assert translate_draft([97, names["<end>"]], draft, target) == [97, other["<end>"]]
    assert translate_draft([256, names["<tool>"], 98], draft, target) == [97, 98, other["<tool>"], 98]
    assert translate_draft([97, names["<mine>"], 98], draft, target) == [97]
    # In front of an end, an unfinished character is left out and so is the end.
    assert translate_draft([97, 0xC3, names["</s>"]], draft, target) == [97]
    assert translate_draft([], draft, target) == []


def test_the_start_of_an_output() -> None:
    tokens = [*ALPHABET, b" yes", b" no", None]
    marks = mw.Vocabulary.from_bytes(tokens, eos_ids=258, start_tokens={256: b"yes", 257: b"no"})
    plain = vocabulary(["yes"])
    assert translate_draft([256, 257], marks, plain, start=True) == [256, *b" no"]
    assert translate_draft([256], marks, plain) == [32, 256]
    assert translate_draft([256], plain, marks, start=True) == [256]
    assert translate_draft([32, 256], plain, marks) == [256]


def test_a_tokenizer_that_does_not_spell_the_text() -> None:
    draft = vocabulary(WORDS)
    ids = [draft.tokens.index(b"age"), ord(" ")]
    for encode in (lambda text: [], lambda text: [97], lambda text: [*text.encode(), 32]):
        assert translate_draft(ids, draft, draft, encode) == ids
    # Of a draft that begins inside a character, the tokenizer gets the rest.
    asked: list[str] = []

    def encode(text: str) -> list[int]:
        asked.append(text)
        return list(text.encode())

    assert translate_draft([0xA9, *b"ab"], draft, draft, encode) == [0xA9, *b"ab"] and asked == ["ab"]


@pytest.mark.parametrize("ids", [[999], [-1], ["a"], "ab", [1.5]])
def test_wrong_drafts(ids: Any) -> None:
    vocab = vocabulary(WORDS)
    with pytest.raises(VocabularyError):
        translate_draft(ids, vocab, vocab)
    with pytest.raises(VocabularyError, match="target_vocabulary"):
        translate_draft([1], vocab, None)  # type: ignore[arg-type]


# --- paths


@given(st.integers(0, 2**32), st.integers(0, 12))
def test_deepest_path(seed: int, size: int) -> None:
    rng = random.Random(seed)
    parents = [rng.randrange(-1, i) for i in range(size)]
    legal = [rng.random() < 0.7 for _ in range(size)]

    def path(i: int) -> list[int]:
        return [] if i < 0 else [*path(parents[i]), i]

    paths = [path(i) for i in range(size) if all(legal[j] for j in path(i))]
    found = deepest_path(np.array(parents, dtype=np.int64), np.array(legal, dtype=bool))
    assert found == max(paths, key=len, default=[])


def test_wrong_paths() -> None:
    for parents in ([0], [], [-1, 0]):
        with pytest.raises(MaskwrightError):
            deepest_path(parents, [True])
