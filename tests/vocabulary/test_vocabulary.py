"""Vocabulary: validation, digest, decode; tiktoken and small SentencePiece models."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.errors import MaskwrightError, VocabularyError
from maskwright.vocabulary.vocabulary import Vocabulary

TEXT = "The quick brown fox: naïve café 漢字 😀, {} [1, 2.5] \n\t'x'."


def test_attributes():
    vocabulary = Vocabulary.from_bytes(
        [b"a", b"<call>", b"bc", None, b"a", b"</s>", b"\xe6", b""], eos_ids=[5, 3, 5], special_ids=(1, 5)
    )
    assert vocabulary.vocab_size == len(vocabulary) == 8
    assert vocabulary.tokens == (b"a", b"", b"bc", b"", b"a", b"", b"\xe6", b"")
    assert vocabulary.eos_ids == (3, 5)
    assert vocabulary.special_ids == (1, 5)
    assert vocabulary.special_tokens == {"<call>": 1, "</s>": 5}
    assert "vocab_size=8" in repr(vocabulary) and "text_tokens=4" in repr(vocabulary)
    for name in ("vocab_size", "tokens", "eos_ids", "special_ids", "special_tokens", "digest"):
        with pytest.raises(AttributeError):
            setattr(vocabulary, name, None)
    with pytest.raises(TypeError):
        vocabulary.special_tokens["<call>"] = 2


def test_decode():
    vocabulary = Vocabulary.from_bytes([b"a", b"bc", b"\xe6\xbc", b"\xa2", b"</s>"], eos_ids=4)
    assert vocabulary.decode([]) == b""
    assert vocabulary.decode([1, 0, 2, 3, 4]) == "bca漢".encode()
    assert vocabulary.decode(np.array([0, 1], dtype=np.int32)) == b"abc"
    assert vocabulary.decode(iter((np.int64(0), 0))) == b"aa"
    for wrong in ([5], [0, -1], [0, 1.0], ["a"], [True], 3, None, "01", b"01"):
        with pytest.raises(VocabularyError, match="ids"):
            vocabulary.decode(wrong)


@pytest.mark.parametrize(
    ("tokens", "eos_ids", "special_ids", "message"),
    [
        ([], [0], (), "tokens: the list is empty"),
        (b"abc", [0], (), "expected a list of bytes"),
        ("abc", [0], (), "expected a list of bytes"),
        ({0: b"a"}, [0], (), "expected a list of bytes"),
        (None, [0], (), "expected a list of bytes"),
        ([b"a", "b"], [0], (), r"tokens\[1\]: expected bytes or None, got str"),
        ([b"a", 98], [0], (), r"tokens\[1\]"),
        ([b"a", b"b" * 65_536], [0], (), r"tokens\[1\]: 65536 bytes, more than MAX_TOKEN_BYTES \(65535\)"),
        ([b"a"], [], (), "eos_ids"),
        ([b"a"], [1], (), r"eos_ids: id 1 is outside the vocabulary of 1 ids \(0 to 0\)"),
        ([b"a"], -1, (), "eos_ids: id -1 is outside"),
        ([b"a"], None, (), "eos_ids: expected an integer"),
        ([b"a"], ["0"], (), "eos_ids: expected an integer, got str"),
        ([b"a"], "0", (), "eos_ids"),
        ([b"a"], [0.0], (), "eos_ids: expected an integer, got float"),
        ([b"a"], True, (), "eos_ids: expected an integer, got bool"),
        ([b"a"], 0, (7,), "special_ids: id 7"),
        ([b"a"], 0, None, "special_ids"),
        ([b"a"], 0, ("x",), "special_ids"),
    ],
)
def test_bad_arguments_are_named(tokens, eos_ids, special_ids, message):
    with pytest.raises(VocabularyError, match=message) as caught:
        Vocabulary.from_bytes(tokens, eos_ids, special_ids)
    assert isinstance(caught.value, MaskwrightError)


@pytest.mark.filterwarnings("ignore:only EOS or special ids have the bytes")
def test_eos_ids_may_be_one_id_or_an_array():
    tokens = [b"a", b"b", b"c"]
    assert Vocabulary.from_bytes(tokens, eos_ids=np.int64(1)).eos_ids == (1,)
    assert Vocabulary.from_bytes(tokens, eos_ids=np.array(1)).eos_ids == (1,)
    assert Vocabulary.from_bytes(tokens, eos_ids=np.array([2, 1])).eos_ids == (1, 2)
    assert Vocabulary.from_bytes(tokens, eos_ids={2, 0}).tokens == (b"", b"b", b"")


def test_digest_tells_vocabularies_apart():
    variants = [
        Vocabulary.from_bytes([b"ab", b"c", b"", b""], eos_ids=3),
        Vocabulary.from_bytes([b"a", b"bc", b"", b""], eos_ids=3),
        Vocabulary.from_bytes([b"ab", b"c", b"", b""], eos_ids=2),
        Vocabulary.from_bytes([b"ab", b"c", b"", b""], eos_ids=[2, 3]),
        Vocabulary.from_bytes([b"ab", b"c", b"", b""], eos_ids=3, special_ids=[2]),
        Vocabulary.from_bytes([b"ab", b"c", b"", b""], eos_ids=3, special_ids=[2, 3]),
        Vocabulary.from_bytes([b"ab", b"c", b"", b"", b""], eos_ids=3),
        Vocabulary.from_bytes([b"ab", b"", b"c", b""], eos_ids=3),
    ]
    assert len({vocabulary.digest for vocabulary in variants}) == len(variants)
    again = Vocabulary.from_bytes((b"ab", b"c", None, b"</s>"), [3])
    assert again.digest == variants[0].digest
    assert len(again.digest) == 64 and int(again.digest, 16) > 0


def test_copies_are_equal():
    vocabulary = Vocabulary.from_bytes([b"a", b"b", b"</s>"], eos_ids=2, special_ids=[2])
    for other in (copy.deepcopy(vocabulary), pickle.loads(pickle.dumps(vocabulary))):
        assert (other.tokens, other.digest) == (vocabulary.tokens, vocabulary.digest)
        assert other.special_tokens == {"</s>": 2}


def test_import_needs_no_tokenizer_library():
    code = (
        f"import sys; sys.path[:0] = {[path for path in sys.path if path]!r}; import maskwright.vocabulary.vocabulary\n"
        "names = 'torch transformers tokenizers tiktoken sentencepiece mistral_common'.split()\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("method", "module", "package"),
    [
        ("from_huggingface", "tokenizers", r"maskwright\[hf\]"),
        ("from_tiktoken", "tiktoken", "tiktoken"),
        ("from_sentencepiece", "sentencepiece", "sentencepiece"),
        ("from_mistral_common", "mistral_common.tokens.tokenizers.tekken", "mistral-common"),
    ],
)
def test_missing_library_names_what_to_install(monkeypatch, method, module, package):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(VocabularyError, match=f'pip install "{package}"'):
        getattr(Vocabulary, method)(object())


@pytest.mark.parametrize("method", ["from_tiktoken", "from_sentencepiece", "from_mistral_common"])
def test_wrong_kind_of_object(method):
    pytest.importorskip({"from_mistral_common": "mistral_common"}.get(method, method[5:]))
    for other in ("name", None, object()):
        with pytest.raises(VocabularyError, match=f"{method}: expected .* got {type(other).__name__}"):
            getattr(Vocabulary, method)(other)


def encoding(special_tokens):
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks.update({b"th": 256, b"the": 257, " é".encode(): 258, b"\xe6\xbc": 259, b"  ": 262})
    return tiktoken.Encoding(
        "small", pat_str=r"\w+|\s+|[^\w\s]+", mergeable_ranks=ranks, special_tokens=special_tokens
    )


SMALL_SPECIALS = {"<|endoftext|>": 264, "<|fim|>": 265, "<|return|>": 270}


def test_tiktoken():
    small = encoding(SMALL_SPECIALS)
    vocabulary = Vocabulary.from_tiktoken(small)
    assert vocabulary.vocab_size == small.n_vocab == 271
    assert vocabulary.tokens[:256] == tuple(bytes([byte]) for byte in range(256))
    assert vocabulary.tokens[256:264] == (b"th", b"the", " é".encode(), b"\xe6\xbc", b"", b"", b"  ", b"")
    assert set(vocabulary.tokens[264:]) == {b""}
    assert vocabulary.special_tokens == SMALL_SPECIALS
    assert vocabulary.special_ids == (264, 265, 270)
    assert vocabulary.eos_ids == (264,)
    assert vocabulary.decode(small.encode_ordinary(TEXT)).decode() == TEXT
    wide = Vocabulary.from_tiktoken(small, vocab_size=300, eos_ids=[270, 264])
    assert (wide.vocab_size, wide.eos_ids, wide.tokens[271:]) == (300, (264, 270), (b"",) * 29)
    narrow = Vocabulary.from_tiktoken(small, vocab_size=265)
    assert (narrow.special_ids, narrow.special_tokens) == ((264,), {"<|endoftext|>": 264})
    with pytest.raises(VocabularyError, match="eos_ids: id 264"):
        Vocabulary.from_tiktoken(small, vocab_size=264)
    for wrong in (0, -3, 2.5, "300", True):
        with pytest.raises(VocabularyError, match="vocab_size"):
            Vocabulary.from_tiktoken(small, vocab_size=wrong)


def test_tiktoken_without_end_of_text():
    small = encoding({"<|return|>": 270})
    with pytest.raises(VocabularyError, match="names no EOS"):
        Vocabulary.from_tiktoken(small)
    assert Vocabulary.from_tiktoken(small, eos_ids=270).eos_ids == (270,)


@settings(max_examples=100, deadline=None)
@given(ids=st.lists(st.integers(0, 259), max_size=20))
def test_random_tiktoken_sequences(ids):
    small = encoding(SMALL_SPECIALS)
    assert Vocabulary.from_tiktoken(small).decode(ids) == small.decode_bytes(ids)


def trained_pieces(**options):
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([TEXT.strip()] * 20 + ["the quick red fox jumps over the lazy dogs"] * 20),
        model_writer=model,
        minloglevel=3,
        hard_vocab_limit=False,
        **{"vocab_size": 90, "user_defined_symbols": ["<tool>", "x\u2581y"], **options},
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


PIECE_MODELS = {
    "unigram": {"pad_id": 3},
    "bpe": {"model_type": "bpe"},
    "byte fallback": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 360},
    "no prefix": {"add_dummy_prefix": False, "remove_extra_whitespaces": False},
    "control": {"control_symbols": ["<call>"]},
}


@pytest.mark.parametrize("options", PIECE_MODELS.values(), ids=PIECE_MODELS)
def test_sentencepiece_models(options):
    processor = trained_pieces(**options)
    vocabulary = Vocabulary.from_sentencepiece(processor)
    assert vocabulary.vocab_size == processor.GetPieceSize()
    assert vocabulary.eos_ids == (processor.eos_id(),)
    assert vocabulary.tokens[processor.PieceToId("<tool>")] == b"<tool>"
    assert vocabulary.tokens[processor.PieceToId("x\u2581y")] == b"x y"
    names = {"<unk>", "<s>", "</s>"} | {"pad_id": {"<pad>"}, "control_symbols": {"<call>"}}.get(
        next(iter(options)), set()
    )
    assert set(vocabulary.special_tokens) == names
    anchor = processor.PieceToId("x\u2581y")
    for i in range(vocabulary.vocab_size):
        if i not in vocabulary.special_ids:
            expected = "x y" + vocabulary.decode([i, anchor], start=False).decode("utf-8", "replace")
            assert processor.decode([anchor, i, anchor]) == expected


def test_sentencepiece_without_eos_or_model():
    sentencepiece = pytest.importorskip("sentencepiece")
    with pytest.raises(VocabularyError, match="no model is loaded"):
        Vocabulary.from_sentencepiece(sentencepiece.SentencePieceProcessor())
    processor = trained_pieces(eos_id=-1)
    with pytest.raises(VocabularyError, match="names no EOS"):
        Vocabulary.from_sentencepiece(processor)
    assert Vocabulary.from_sentencepiece(processor, eos_ids=1).eos_ids == (1,)


def test_bytes_that_no_token_stands_for() -> None:
    whole = Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    assert whole.missing_bytes == b""
    few = Vocabulary.from_bytes([b"a", b"bb", b"c", None], eos_ids=[3])
    assert few.missing_bytes == bytes(sorted(set(range(256)) - {97, 99}))


def test_a_vocabulary_that_lacks_bytes_needs_a_language_of_those_it_has() -> None:
    few = Vocabulary.from_bytes([b"a", b"b", b'"', None], eos_ids=[3])
    source = mw.JsonSchema({"enum": ["ab", "aac"]})
    assert mw.compile(source, few).matcher().accept_tokens([2, 0, 0]) == 3, "a dead end"
    restricted = mw.compile(source & mw.Regex('[ab"]*'), few)
    assert restricted.matcher().accept_tokens([2, 0, 0]) == 2
    assert restricted.matcher().accept_tokens([2, 0, 1, 2]) == 4


@pytest.mark.parametrize(
    "size", [0, -1, 1 << 25, 1 << 70, 10**5000], ids=["0", "-1", "25 bits", "70 bits", "not written"]
)
def test_a_width_that_no_model_has(size: int) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    encoding = tiktoken.Encoding(
        name="bytes",
        pat_str=".",
        mergeable_ranks={bytes([i]): i for i in range(256)},
        special_tokens={"<end>": 256},
    )
    with pytest.raises(VocabularyError, match="vocab_size: expected the width of the model's logits"):
        Vocabulary.from_tiktoken(encoding, vocab_size=size)
