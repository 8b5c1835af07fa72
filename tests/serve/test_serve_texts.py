"""``maskwright serve``: texts of outputs with tokens that are no text, or another one at the very start."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from serving import TEMPLATE, openai, serving, tool
from tiny_model import TINY

import maskwright as mw
from maskwright.generation.generator import Generator
from maskwright.serve.logprobs import TokenList


def test_stop_texts_beside_marks_of_calls() -> None:
    """Marks that are special tokens are no text, whatever their names are."""
    generator = Generator.from_pretrained(str(TINY))
    tokenizer = generator.tokenizer
    tokenizer.chat_template = TEMPLATE
    tokenizer.add_tokens(["<tool_call>", "</tool_call>"], special_tokens=True)
    generator.model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    number = {
        "type": "object",
        "properties": {"x": {"enum": [1]}},
        "required": ["x"],
        "additionalProperties": False,
    }
    options: dict[str, Any] = {"tools": [tool("f", number)], "temperature": 0, "max_tokens": 60}
    with serving(Generator(generator.model, tokenizer)) as served:
        choice = served.chat(
            stop="call", tool_choice="required", parallel_tool_calls=False, **options
        ).choices[0]
        assert choice.finish_reason == "tool_calls"
        assert all(json.loads(call.function.arguments) == {"x": 1} for call in choice.message.tool_calls)
        with pytest.raises(openai.BadRequestError, match="stop text would cut"):
            served.chat(stop="}", tool_choice="required", **options)
        for stream in (False, True):
            form = {"type": "structural_tag", "format": {"type": "sequence", "elements": [
                {"type": "token", "token": "<tool_call>"}, {"type": "regex", "pattern": "a*"}]}}  # fmt: skip
            bias = {str(tokenizer.convert_tokens_to_ids("a")): 100}
            answer = served.chat(stop="aa", stream=stream, temperature=0, max_tokens=5, logit_bias=bias,
                                 extra_body={"response_format": form})  # fmt: skip
            parts = list(answer) if stream else [answer]
            assert parts[-1].choices[0].finish_reason == "stop"
            assert (
                "".join(
                    (part.choices[0].delta if stream else part.choices[0].message).content or ""
                    for part in parts
                )
                == ""
            )


def test_the_first_token_is_listed_as_it_is_spelled() -> None:
    """Of tokenizers that drop a blank at the very start."""
    words = [b"", b" Hello", b" world", b"!"]
    vocabulary = mw.Vocabulary.from_bytes(words, eos_ids=[0], start_tokens={1: b"Hello", 2: b"world"})
    row: Any = SimpleNamespace(ids=[1, 2, 3], logprobs=[-1.0] * 3, top=2, top_logprobs=[{1: -1.0, 2: -2.0}] * 3, vocabulary=vocabulary)  # fmt: skip
    tokens = TokenList(row, vocabulary)
    places = tokens.more(100, 3)
    assert b"".join(bytes(each["bytes"]) for each in tokens.chat(places)) == vocabulary.decode(row.ids)
    shown = tokens.completion(places)
    assert shown["tokens"] == ["Hello", " world", "!"] and shown["text_offset"] == [0, 5, 11]
    assert [list(each) for each in shown["top_logprobs"]] == [["Hello", "world"], *[[" Hello", " world"]] * 2]


def test_tokens_are_listed_as_far_as_their_text_is_shown() -> None:
    """Marks are shown by name where calls are read."""
    vocabulary = mw.Vocabulary.from_bytes([b"ab", b";", b"c", b"", b"<mark>"], eos_ids=[3], special_ids=[4])
    row: Any = SimpleNamespace(
        ids=[4, 0, 1, 2], logprobs=[-1.0] * 4, top=0, top_logprobs=[], vocabulary=vocabulary
    )
    for named, shown in ((True, len("<mark>ab")), (False, len("ab"))):
        tokens = TokenList(row, vocabulary, named)
        assert [each["token"] for each in tokens.chat(tokens.more(shown, 4))] == ["<mark>", "ab"]
