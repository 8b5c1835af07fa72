"""Vocabulary on the real tokenizers that mistral-common ships: Tekken and SentencePiece."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.vocabulary.tokenizers import mistral
from maskwright.vocabulary.vocabulary import Vocabulary

mistral_common = pytest.importorskip("mistral_common")
sentencepiece = pytest.importorskip("sentencepiece")
tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

DATA = Path(mistral_common.__file__).parent / "data"
TEKKEN_FILES = ["tekken_240718.json", "tekken_240911.json"]
SENTENCEPIECE_FILES = sorted(path.name for path in DATA.glob("*.model*"))
TEXTS = [
    '{"naïve": [1, 2.5, true], "größe": "café", "数": "漢字かな", "emoji": "😀👍"}',
    "def f(x):\n    return x + 1\n\n\tprint(f(2))  # tabs\r\n",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
]


def text_ids(vocabulary):
    return [i for i, token in enumerate(vocabulary.tokens) if token]


def assert_agrees(vocabulary, decode, ids):
    """``decode`` of the ids in the middle of a text equals their bytes, when those are valid UTF-8."""
    anchor = vocabulary.tokens.index(b"a")
    try:
        expected = vocabulary.decode([*ids, anchor], start=False).decode("utf-8")
    except UnicodeDecodeError:
        return
    assert decode([anchor, *ids, anchor]) == "a" + expected


@pytest.fixture(scope="module", params=TEKKEN_FILES)
def tekken_file(request):
    return DATA / request.param


@pytest.fixture(scope="module")
def tekken(tekken_file):
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    return Tekkenizer.from_file(tekken_file)


@pytest.fixture(scope="module")
def tekken_vocabulary(tekken):
    return Vocabulary.from_mistral_common(tekken)


@pytest.fixture(scope="module")
def tekken_fast(tekken_file):
    """The Hugging Face conversion of the same file."""
    mistral = pytest.importorskip("transformers.integrations.mistral")
    return mistral.convert_tekken_tokenizer(str(tekken_file))


@pytest.fixture(scope="module", params=SENTENCEPIECE_FILES)
def pieces(request):
    from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer

    return SentencePieceTokenizer(DATA / request.param)


@pytest.fixture(scope="module")
def pieces_vocabulary(pieces):
    return Vocabulary.from_mistral_common(pieces)


@pytest.mark.slow
def test_tekken_is_the_bytes_of_its_file(tekken_file, tekken, tekken_vocabulary):
    entries = json.loads(tekken_file.read_text(encoding="utf-8"))["vocab"]
    specials = tekken.num_special_tokens
    expected = [base64.b64decode(entry["token_bytes"]) for entry in entries[: tekken.n_words - specials]]
    assert tekken_vocabulary.vocab_size == tekken.n_words == 131_072
    assert list(tekken_vocabulary.tokens[specials:]) == expected
    assert set(tekken_vocabulary.tokens[:specials]) == {b""}
    assert tekken_vocabulary.special_ids == tuple(range(specials))
    assert tekken_vocabulary.special_tokens["[INST]"] == tekken.get_special_token("[INST]")
    assert tekken_vocabulary.eos_ids == (tekken.eos_id,)


@pytest.mark.slow
def test_tekken_read_piece_by_piece_is_the_same(tekken, tekken_vocabulary, monkeypatch):
    assert mistral._tekken_pieces(tekken, len(tekken_vocabulary.special_ids)) is not None
    monkeypatch.setattr(mistral, "_tekken_pieces", lambda *args: None)
    vocabulary = Vocabulary.from_mistral_common(tekken)
    assert vocabulary.tokens == tekken_vocabulary.tokens
    assert vocabulary.special_tokens == tekken_vocabulary.special_tokens
    assert vocabulary.digest == tekken_vocabulary.digest


def test_tekken_encodes_back_to_text(tekken, tekken_vocabulary):
    for text in TEXTS:
        assert tekken_vocabulary.decode(tekken.encode(text, bos=True, eos=True)).decode() == text


@pytest.mark.slow
def test_tekken_through_huggingface_is_the_same(tekken_fast, tekken_vocabulary):
    vocabulary = Vocabulary.from_huggingface(tekken_fast)
    assert vocabulary.tokens == tekken_vocabulary.tokens
    assert vocabulary.special_tokens == tekken_vocabulary.special_tokens
    assert vocabulary.digest == tekken_vocabulary.digest
    backend = tekken_fast.backend_tokenizer
    anchor = backend.token_to_id("a")
    ids = text_ids(vocabulary)
    assert len(ids) == 130_072
    decoded = backend.decode_batch([[anchor, i, anchor] for i in ids])
    assert decoded == [f"a{vocabulary.tokens[i].decode('utf-8', 'replace')}a" for i in ids]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_random_tekken_sequences(data, tekken_fast, tekken_vocabulary):
    ids = data.draw(st.lists(st.integers(1000, tekken_vocabulary.vocab_size - 1), max_size=20))
    assert_agrees(tekken_vocabulary, tekken_fast.decode, ids)


def test_every_wrapper_holds_the_same_vocabulary():
    backend = transformers.MistralCommonBackend(tokenizer_path=DATA / TEKKEN_FILES[0])
    instruct = backend.tokenizer.instruct_tokenizer
    expected = Vocabulary.from_mistral_common(instruct.tokenizer).digest
    assert Vocabulary.from_mistral_common(instruct).digest == expected
    assert Vocabulary.from_mistral_common(backend.tokenizer).digest == expected
    assert Vocabulary.from_mistral_common(backend).digest == expected
    assert Vocabulary.from_huggingface(backend).digest == expected
    wider = Vocabulary.from_huggingface(backend, vocab_size=131_200, eos_ids=[2, 4])
    assert (wider.vocab_size, wider.eos_ids, wider.tokens[131_072:]) == (131_200, (2, 4), (b"",) * 128)


def test_sentencepiece_agrees_with_its_decoder(pieces, pieces_vocabulary):
    processor = pieces._model
    assert pieces_vocabulary.digest == Vocabulary.from_sentencepiece(processor).digest
    assert pieces_vocabulary.vocab_size == pieces.n_words
    assert pieces_vocabulary.eos_ids == (pieces.eos_id,)
    assert set(pieces_vocabulary.special_ids) == pieces.special_ids | {pieces.unk_id}
    ids = text_ids(pieces_vocabulary)
    assert len(ids) == pieces.n_words - len(pieces_vocabulary.special_ids)
    anchor = processor.PieceToId("a")
    decoded = processor.decode([[anchor, i, anchor] for i in ids])
    assert decoded == [f"a{pieces_vocabulary.tokens[i].decode('utf-8', 'replace')}a" for i in ids]
    byte_tokens = [pieces_vocabulary.tokens[i] for i in ids if processor.IsByte(i)]
    assert byte_tokens == [bytes([byte]) for byte in range(256)]


def test_sentencepiece_encodes_back_to_text(pieces, pieces_vocabulary):
    for text in TEXTS:
        ids = pieces.encode(text, bos=True, eos=True)
        # SentencePiece puts a space before every text it encodes, and drops it again.
        assert pieces_vocabulary.decode(ids[1:]).decode() == text
        assert pieces_vocabulary.decode(ids, start=False).decode() == " " + text


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_random_sentencepiece_sequences(data, pieces, pieces_vocabulary):
    ids = data.draw(st.lists(st.integers(0, pieces_vocabulary.vocab_size - 1), max_size=20))
    ids = [i for i in ids if i not in pieces_vocabulary.special_ids]
    assert_agrees(pieces_vocabulary, pieces._model.decode, ids)


def test_sentencepiece_as_huggingface_is_the_same():
    processor = sentencepiece.SentencePieceProcessor(model_file=str(DATA / "tokenizer.model.v1"))
    vocab = {processor.IdToPiece(i): i for i in range(processor.GetPieceSize())}
    decoders = tokenizers.decoders
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, [], unk_token="<unk>", byte_fallback=True))
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    vocabulary = Vocabulary.from_huggingface(fast)
    same = Vocabulary.from_sentencepiece(processor)
    assert vocabulary.tokens == same.tokens
    # At the very start, the stripping decoder drops a blank that is a byte as well.
    byte = processor.PieceToId("<0x20>")
    assert vocabulary.start_tokens == {**same.start_tokens, byte: b""}
    kept = Vocabulary.from_huggingface(fast, word_start_mark="keep")
    assert not kept.start_tokens
    assert kept.digest == Vocabulary.from_sentencepiece(processor, word_start_mark="keep").digest
    assert vocabulary.special_tokens == {"<unk>": 0, "<s>": 1, "</s>": 2}
