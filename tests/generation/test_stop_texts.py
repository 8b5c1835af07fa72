"""Stop texts beside special tokens, which are no text."""

from __future__ import annotations

import random
from typing import Any

import pytest

transformers = pytest.importorskip("transformers", reason="the generator needs the extra hf")

from tiny_model import TINY  # noqa: E402

import maskwright as mw  # noqa: E402
from maskwright.generation.row import Stop  # noqa: E402

MARKS = ["<mark>", "</mark>"]


@pytest.fixture(scope="module")
def marked() -> mw.Generator:
    """The tiny model with two special tokens more."""
    generator = mw.Generator.from_pretrained(str(TINY))
    tokenizer, model = generator.tokenizer, generator.model
    tokenizer.add_tokens(MARKS, special_tokens=True)
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    return mw.Generator(model, tokenizer)


def sequence(*elements: Any) -> mw.StructuralTag:
    return mw.StructuralTag(
        {"type": "structural_tag", "format": {"type": "sequence", "elements": list(elements)}}
    )


def mark(name: str) -> dict[str, str]:
    return {"type": "token", "token": name}


def regex(pattern: str) -> dict[str, str]:
    return {"type": "regex", "pattern": pattern}


def test_a_stop_text_behind_a_special_token(marked: mw.Generator) -> None:
    source = sequence(mark("<mark>"), regex("[a-c]+(;[a-c]+)*"))
    for seed in range(6):
        options: dict[str, Any] = {"stop": ";", "temperature": 1.0, "seed": seed, "max_new_tokens": 30}
        result = marked.generate(["x"], source, **options)[0]
        assert result.text and ";" not in result.text
        assert list(marked.stream("x", source, **options))[-1] == result.text


def test_no_stop_text_reaches_over_a_special_token(marked: mw.Generator) -> None:
    source = sequence(regex("a"), mark("<mark>"), regex("b;c"))
    assert marked("x", source, stop="ab") == "ab;c"
    with pytest.raises(mw.MaskwrightError, match="not complete, behind 'a'"):
        marked("x", source, stop="b")


def test_names_of_special_tokens_are_no_text(marked: mw.Generator) -> None:
    assert marked("x", sequence(regex("a"), mark("<mark>"), regex("b")), stop="mark") == "ab"


def test_a_stop_text_within_a_token_of_a_choice_of_tokens(marked: mw.Generator) -> None:
    """A sequence of tokens is complete at its end only."""
    ids = marked.tokenizer.encode(" the;", add_special_tokens=False)
    with pytest.raises(mw.MaskwrightError, match="where it is not complete"):
        marked("x", mw.Choice([ids]), stop="he")


def test_where_stop_texts_are_found() -> None:
    """Texts between empty pieces, one after the other, are searched as a whole."""
    rng = random.Random(0)
    found = 0
    for _ in range(5_000):
        texts = ["".join(rng.choices("ab", k=rng.randint(1, 4))) for _ in range(rng.randint(1, 2))]
        pieces = ["".join(rng.choices("ab", k=rng.randint(0, 3))).encode() for _ in range(rng.randint(0, 8))]
        stop = Stop(texts)
        runs: list[list[int]] = [[]]
        for at, piece in enumerate(pieces):
            if piece:
                runs[-1].append(at)
            else:
                runs.append([])
        expected = None
        for run in runs:
            # Every byte by its piece and its place in it.
            places = [(at, i) for at in run for i in range(len(pieces[at]))]
            text = b"".join(pieces[at] for at in run).decode()
            begins = [text.find(each) for each in texts if each in text]
            if begins:
                expected = places[min(begins)]
                break
        assert stop.found(pieces) == expected
        found += expected is not None
        tail = b"".join(pieces[at] for at in runs[-1]).decode()
        held = [n for n in range(1, 4) for each in texts if n < len(each) and tail.endswith(each[:n])]
        assert stop.begun(pieces) == max(held, default=0)
    assert 1_000 < found < 4_500


def test_what_is_spelled_once_is_not_spelled_again(
    marked: mw.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often somebody looks at an output, and with a stop text."""
    asked: list[int] = []
    pieces = mw.Vocabulary.pieces

    def counted(vocabulary: mw.Vocabulary, ids: Any, **start: bool) -> list[bytes]:
        asked.append(len(ids))
        return pieces(vocabulary, ids, **start)

    monkeypatch.setattr(mw.Vocabulary, "pieces", counted)
    options: dict[str, Any] = {"stop": ";;", "temperature": 1.0, "seed": 1, "max_new_tokens": 60}
    shown = list(marked.stream("x", mw.Regex("[a-z]{50}[a-z;]*"), **options))
    assert len(shown) > 10
    # Twice: what is forced may spell the last token anew.
    assert sum(asked) <= 2 * 60
