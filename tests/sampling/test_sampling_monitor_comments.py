"""Monitors: comments between a trigger and the name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from test_sampling_monitors import VOCABULARY, ids

import maskwright as mw
from maskwright.sampling import Monitor


def after_comments(text: str) -> list[str] | None:
    return ["ab"] if text.endswith(".") else None


def test_a_name_behind_comments() -> None:
    """A comment stands before the name, and does not take its place."""
    comments = {b"/*": b"*/", b"--": b"\n", b"--[": b"]"}
    monitor = Monitor(VOCABULARY, after_comments, triggers=b".", between=b" \n", comments=comments)
    for text in (
        "x. /* . no */ab",
        "x./*/ no */ -- . no\r ab",
        "x./**/--\n--[no\n]ab",
        "x. --x-[\nab",
        "x.ab/ab",
        "x.ab--no",
    ):
        assert all(monitor.prefix(ids(text[:end])) for end in range(len(text) + 1)), text
        assert monitor.complete(ids(text)), text
    for text in (
        "x. /* ab */no",
        "x./*/no",
        "x. -- ab\nno",
        "x. --[\n]no",
        "x. /ab",
        "x. /-",
        "x. - ab",
        "x.a--\nb",
        "x./* ab */1",
    ):
        finished = text if text[-1] != "o" else text + " "
        assert not monitor.complete(ids(finished)), text
        if text != "x./*/no":
            assert not monitor.prefix(ids(text)), text
    for text in ("x. /", "x. /* ab", "x. --", "x./* ab */"):
        assert monitor.prefix(ids(text)) and not monitor.complete(ids(text)), text


@given(st.lists(st.sampled_from(["x.", "ab", "no", "#", "a", ". ", "\n", "#\n", " 1"]), max_size=6))
def test_masks_allow_what_comments_do(pieces: list[str]) -> None:
    """Cut into tokens in one way or another, a text is good or it is not; and no mask forbids what is good."""
    vocabulary = mw.Vocabulary.from_bytes(
        [*(bytes([b]) for b in range(256)), b"x.", b"ab", b"no", b"#\n", b". ", b"#a", b"\nab", b""],
        eos_ids=263,
    )
    monitor = Monitor(vocabulary, after_comments, triggers=b".", between=b" \n", comments={b"#": b"\n"})
    text = "".join(pieces).encode()
    states, at = [monitor.start()], 0
    for piece in pieces:
        token = vocabulary.tokens.index(piece.encode()) if piece.encode() in vocabulary.tokens else None
        for each in [token] if token is not None else list(piece.encode()):
            mask = monitor.masks(states)
            if not monitor.check(states, [each])[0]:
                assert not monitor.prefix(list(text))
                return
            assert mask is None or mask[0, each // 32] >> (each % 32) & 1
            states = [monitor.advance(states[0], each)]
            at += len(vocabulary.tokens[each])
    assert at == len(text) and monitor.prefix(list(text))
