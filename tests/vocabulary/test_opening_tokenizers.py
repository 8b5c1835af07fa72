"""The very start of a text with real tokenizers: their own ``decode`` of the output alone judges."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
import toys
from test_vocabulary import PIECE_MODELS, trained_pieces

from maskwright.compiling.compiler import compile
from maskwright.sources import Choice, JsonSchema, Lark, Regex
from maskwright.vocabulary.vocabulary import Vocabulary

mistral_common = pytest.importorskip("mistral_common")
sentencepiece = pytest.importorskip("sentencepiece")

DATA = Path(mistral_common.__file__).parent / "data"
MODELS = sorted(path.name for path in DATA.glob("*.model*"))
STARTS = {
    **PIECE_MODELS,
    "char": {"model_type": "char"},
    "suffix": {"treat_whitespace_as_suffix": True},
    "double": {"user_defined_symbols": ["\u2581\u2581"]},
}
PATTERNS = [
    "yes|no",
    " (yes|no)",
    "  x",
    " ?[a-z]{0,4}",
    r"\{[a-z ]{0,6}\}",
    "( yes)*",
    "[ -~]{1,8}",
    "é+ ?",
    "",
]
SCHEMA = {"type": "object", "properties": {"a b": {"enum": [" ", 1, "yes"]}}, "required": ["a b"]}


@pytest.fixture(scope="module", params=MODELS)
def tokenizer(request):
    from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer

    return SentencePieceTokenizer(DATA / request.param)


@pytest.fixture(scope="module")
def vocabulary(tokenizer):
    return Vocabulary.from_mistral_common(tokenizer)


def outputs(compiled, count):
    """Token ids of finished texts: random tokens of the masks, then the shortest completion."""
    rng = random.Random(0)
    ends = set(compiled.vocabulary.eos_ids)
    for _ in range(count):
        matcher = compiled.matcher()
        for _ in range(rng.randrange(7)):
            ids = sorted(toys.allowed(matcher) - ends)
            if not ids:
                break
            # Few of the tokens are blanks, or begin with one.
            blanks = [i for i in ids if compiled.vocabulary.tokens[i].startswith(b" ")]
            assert matcher.accept_token(rng.choice(blanks if blanks and rng.random() < 0.5 else ids))
        completion = matcher.shortest_completion()
        assert matcher.accept_tokens(completion) == len(completion)
        assert matcher.is_accepting
        yield matcher.accepted_tokens


@pytest.mark.parametrize("pattern", PATTERNS)
def test_outputs_decode_to_the_language(pattern, tokenizer, vocabulary):
    for ids in outputs(compile(Regex(pattern), vocabulary), 20):
        text = tokenizer._model.decode(ids)
        assert re.fullmatch(pattern, text), (ids, text)
        assert vocabulary.decode(ids).decode() == text


def test_outputs_of_schemas_and_lexers_decode_to_the_language(tokenizer, vocabulary):
    for ids in outputs(compile(JsonSchema(SCHEMA), vocabulary), 30):
        assert json.loads(tokenizer._model.decode(ids))["a b"] in SCHEMA["properties"]["a b"]["enum"]
    for ids in outputs(compile(Lark('start: "let" NAME\nNAME: /[a-z]+/\n%ignore " "'), vocabulary), 30):
        assert re.fullmatch(" *let *[a-z]+ *", tokenizer._model.decode(ids))


def test_the_natural_tokens_are_accepted(tokenizer, vocabulary):
    cases = [
        (Regex("yes|no|( yes)"), ["yes", "no", " yes"]),
        (
            Choice(["yes", "Maybe so", " blank", "  blanks", "é", "{"]),
            ["yes", "Maybe so", " blank", "  blanks", "é", "{"],
        ),
        (JsonSchema(SCHEMA), ['{"a b": "yes"}', '{"a b":1}', '{\n  "a b": " "\n}']),
        (JsonSchema(True), ["[]", "12", '"x y"', "null", "-1.5", '{"a": [1, 2]}']),
        (Lark('start: "select" NAME\nNAME: /[a-z]+/\n%ignore " "'), ["select x", " select  yes"]),
    ]
    for source, texts in cases:
        compiled = compile(source, vocabulary)
        for text in texts:
            ids = tokenizer.encode(text, bos=False, eos=True)
            matcher = compiled.matcher()
            for token in ids:
                assert token in toys.allowed(matcher), (text, ids)
                assert matcher.accept_token(token)
            assert matcher.is_terminated


def test_the_old_reading_is_an_option(tokenizer):
    vocabulary = Vocabulary.from_mistral_common(tokenizer, word_start_mark="keep")
    assert not vocabulary.start_tokens
    ids = tokenizer.encode("yes", bos=False, eos=False)
    assert compile(Regex("yes"), vocabulary).matcher().validate_tokens(ids) == 0
    assert compile(Regex(" yes"), vocabulary).matcher().validate_tokens(ids) == len(ids)
    with pytest.raises(ValueError, match="word_start_mark"):
        Vocabulary.from_mistral_common(tokenizer, word_start_mark="Drop")


@pytest.mark.parametrize("options", STARTS.values(), ids=STARTS)
@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize("prefix", [False, True])
def test_trained_models(options, extra, prefix):
    processor = trained_pieces(**{**options, "remove_extra_whitespaces": extra, "add_dummy_prefix": prefix})
    vocabulary = Vocabulary.from_sentencepiece(processor)
    assert bool(vocabulary.start_tokens) == (extra or prefix)
    assert vocabulary.start_stays == extra
    for pattern in ("[a-z]{1,4}", " ?[a-z]{1,3}", "( x)*"):
        compiled = compile(Regex(pattern), vocabulary)
        if not vocabulary.missing_bytes:
            for ids in outputs(compiled, 30):
                assert re.fullmatch(pattern, processor.decode(ids)), ids
    rng = random.Random(0)
    ordinary = [i for i, token in enumerate(vocabulary.tokens) if token and not processor.IsByte(i)]
    marked = [i for i in ordinary if vocabulary.tokens[i].startswith(b" ")]
    for _ in range(300):
        ids = [*rng.choices(marked, k=rng.randrange(3)), *rng.choices(ordinary, k=3)]
        assert processor.decode(ids) == vocabulary.decode(ids).decode()
