"""Vocabulary on Hugging Face tokenizers built here, one per decoder family."""

from __future__ import annotations

import contextlib

import pytest
import toys
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright import compile_regex
from maskwright.errors import VocabularyError
from maskwright.vocabulary.vocabulary import Vocabulary

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

decoders, models = tokenizers.decoders, tokenizers.models
pre_tokenizers, trainers = tokenizers.pre_tokenizers, tokenizers.trainers

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and again: the quick brown fox.",
    '{"naïve": [1, 2.5, true], "größe": "café", "数": "漢字かな", "emoji": "😀👍"}',
    "def f(x):\n    return x + 1\n\n\tprint(f(2))  # tabs\r\n",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
] * 5
SPECIALS = ["<unk>", "<s>", "</s>", "<pad>"]
BYTE_PIECES = [f"<0x{byte:02X}>" for byte in range(256)]


def byte_level(decoder=None):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoder or decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=SPECIALS,
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    # Added tokens go through the decoder like any other; "漢▁" and "a b" are outside the byte alphabet.
    tokenizer.add_tokens(["<tool>", "Ġx", "漢▁", "ÿ", "a b"])
    tokenizer.add_special_tokens(["<|call|>"])
    return tokenizer


def byte_level_in_sequence():
    return byte_level(decoders.Sequence([decoders.Sequence([decoders.ByteLevel()]), decoders.Fuse()]))


def byte_fallback(decoder):
    pieces = [*SPECIALS, *BYTE_PIECES, *"▁abcdeé漢", "▁a", "ab", "▁▁", "a▁b", "<0x0G>", "<0x1234>", "cd"]
    merges = [("▁", "a"), ("a", "b"), ("▁", "▁"), ("c", "d")]
    vocab = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True))
    tokenizer.decoder = decoder
    tokenizer.add_special_tokens(SPECIALS)
    tokenizer.add_tokens(["<think>", "▁added"])
    return tokenizer


def byte_fallback_llama():
    replace, strip = decoders.Replace("▁", " "), decoders.Strip(" ", 1, 0)
    return byte_fallback(decoders.Sequence([replace, decoders.ByteFallback(), decoders.Fuse(), strip]))


def byte_fallback_metaspace():
    return byte_fallback(decoders.Sequence([decoders.Metaspace(), decoders.ByteFallback(), decoders.Fuse()]))


def strip_and_regex_replace():
    replace = decoders.Replace(tokenizers.Regex("▁+"), " ")
    return byte_fallback(decoders.Sequence([replace, decoders.Strip("c", 1, 0), decoders.Fuse()]))


def unigram():
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=SPECIALS, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def unigram_byte_fallback():
    scored = [(piece, -float(i)) for i, piece in enumerate([*SPECIALS, *BYTE_PIECES, "▁", "a", "▁ab", "é"])]
    tokenizer = tokenizers.Tokenizer(models.Unigram(scored, unk_id=0, byte_fallback=True))
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens(SPECIALS[1:])
    return tokenizer


def word_piece(cleanup=False):
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=cleanup)
    trainer = trainers.WordPieceTrainer(
        vocab_size=200, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def no_decoder(words=("<unk>", "hello", "world", "a", "</s>")):
    vocab = {word: i for i, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    tokenizer.add_special_tokens(["</s>"])
    return tokenizer


FAMILIES = {
    build.__name__: build
    for build in (
        byte_level,
        byte_level_in_sequence,
        byte_fallback_llama,
        byte_fallback_metaspace,
        strip_and_regex_replace,
        unigram,
        unigram_byte_fallback,
        word_piece,
        no_decoder,
    )
}


def read(tokenizer, **options):
    """A raw tokenizer names no EOS, so take its last special token."""
    specials = [i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special]
    return Vocabulary.from_huggingface(tokenizer, **{"eos_ids": max(specials), **options})


def wrap(backend, **options):
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **options)


def bytes_of(vocabulary, tokenizer, *strings):
    return [vocabulary.tokens[tokenizer.token_to_id(string)] for string in strings]


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    tokenizer = FAMILIES[request.param]()
    return tokenizer, read(tokenizer)


def anchor_of(vocabulary):
    return next(i for i, token in enumerate(vocabulary.tokens) if token.strip() == b"a")


def assert_agrees(vocabulary, tokenizer, ids):
    """``decode`` of the ids in the middle of a text equals their bytes, when those are valid UTF-8."""
    anchor = anchor_of(vocabulary)
    try:
        expected = vocabulary.decode([*ids, anchor], start=False).decode("utf-8")
    except UnicodeDecodeError:
        return
    assert tokenizer.decode([anchor, *ids, anchor]) == tokenizer.decode([anchor]) + expected


def test_every_token_agrees_with_decode(family):
    tokenizer, vocabulary = family
    specials = {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    unknown = {i for i in (tokenizer.token_to_id("<unk>"), tokenizer.token_to_id("[UNK]")) if i is not None}
    assert set(vocabulary.special_ids) == specials | unknown
    assert vocabulary.vocab_size == tokenizer.get_vocab_size()
    for i in range(vocabulary.vocab_size):
        if i in vocabulary.special_ids:
            assert vocabulary.tokens[i] == b""
        else:
            assert_agrees(vocabulary, tokenizer, [i])


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_random_sequences_agree_with_decode(data, family):
    tokenizer, vocabulary = family
    ordinary = [i for i in range(vocabulary.vocab_size) if i not in vocabulary.special_ids]
    assert_agrees(vocabulary, tokenizer, data.draw(st.lists(st.sampled_from(ordinary), max_size=16)))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_random_sequences_at_the_start_of_a_text(data, family):
    tokenizer, vocabulary = family
    ordinary = [i for i in range(vocabulary.vocab_size) if i not in vocabulary.special_ids]
    ids = data.draw(st.lists(st.sampled_from(ordinary), max_size=6))
    with contextlib.suppress(UnicodeDecodeError):
        assert tokenizer.decode(ids) == vocabulary.decode(ids).decode("utf-8")


@pytest.mark.parametrize("build", [byte_level, byte_level_in_sequence])
def test_byte_level_round_trip(build):
    tokenizer = build()
    vocabulary = read(tokenizer)
    for text in CORPUS[:4]:
        assert vocabulary.decode(tokenizer.encode(text).ids).decode() == text
    single = {token for token in vocabulary.tokens if len(token) == 1}
    assert single == {bytes([byte]) for byte in range(256)}


def test_added_tokens_follow_decode():
    tokenizer = byte_level()
    vocabulary = read(tokenizer)
    assert bytes_of(vocabulary, tokenizer, "<tool>", "Ġx", "漢▁", "ÿ", "a b", "<|call|>") == [
        b"<tool>",
        b" x",
        "漢▁".encode(),
        b"\xff",
        b"a b",
        b"",
    ]
    assert vocabulary.special_tokens["<|call|>"] == tokenizer.token_to_id("<|call|>")
    assert "<tool>" not in vocabulary.special_tokens


@pytest.mark.parametrize("build", [byte_fallback_llama, byte_fallback_metaspace])
def test_byte_fallback_bytes(build):
    tokenizer = build()
    vocabulary = read(tokenizer)
    assert bytes_of(vocabulary, tokenizer, *BYTE_PIECES) == [bytes([byte]) for byte in range(256)]
    assert bytes_of(vocabulary, tokenizer, "▁a", "a▁b", "é", "<0x0G>", "<0x1234>", "<think>", "▁added") == [
        b" a",
        b"a b",
        "é".encode(),
        b"<0x0G>",
        b"<0x1234>",
        b"<think>",
        b" added",
    ]
    # Tokens with equal bytes are all kept.
    assert vocabulary.tokens.count(b"a") == vocabulary.tokens.count(b" ") == 2


def test_byte_pieces_are_text_without_byte_fallback():
    tokenizer = byte_fallback(decoders.Metaspace())
    vocabulary = read(tokenizer)
    assert bytes_of(vocabulary, tokenizer, "<0x0A>", "▁▁") == [b"<0x0A>", b"  "]
    assert_agrees(vocabulary, tokenizer, [tokenizer.token_to_id("<0x0A>")])


def test_per_token_steps():
    tokenizer = strip_and_regex_replace()
    vocabulary = read(tokenizer)
    assert bytes_of(vocabulary, tokenizer, "▁▁", "c", "cd", "d") == [b" ", b"", b"d", b"d"]


def test_word_piece_and_joined_words():
    tokenizer = word_piece()
    vocabulary = read(tokenizer)
    assert bytes_of(vocabulary, tokenizer, "the", "##u", "[SEP]") == [b" the", b"u", b""]
    tokenizer = no_decoder()
    assert read(tokenizer).tokens == (b"", b" hello", b" world", b" a", b"")


def test_unknown_token_of_the_model_is_special():
    vocabulary = read(unigram_byte_fallback())
    assert vocabulary.special_tokens == {"<unk>": 0, "<s>": 1, "</s>": 2, "<pad>": 3}


@pytest.mark.parametrize(
    ("decoder", "named"),
    [
        (decoders.WordPiece(cleanup=True), "cleanup=True"),
        (decoders.BPEDecoder(), "BPEDecoder"),
        (decoders.CTC(), "CTC"),
        (decoders.Strip(" ", 0, 1), "Strip"),
        (decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 0, 1)]), "Strip"),
        (decoders.Sequence([decoders.Fuse(), decoders.Replace("ab", "x")]), "Replace"),
        (decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]), "Metaspace"),
        (decoders.Sequence([decoders.ByteLevel(), decoders.ByteFallback()]), "ByteFallback"),
    ],
)
def test_inexact_decoders_are_refused_by_name(decoder, named):
    with pytest.raises(VocabularyError, match=f"decoder {named}|decoder .*{named}"):
        read(byte_fallback(decoder))


def test_decoder_written_in_python_is_refused():
    class Shout:
        def decode_chain(self, tokens):
            return [token.upper() for token in tokens]

    with pytest.raises(VocabularyError, match="cannot be read"):
        read(byte_fallback(decoders.Decoder.custom(Shout())))


def test_wrapper_that_rewrites_text_is_refused():
    class Lowering(transformers.PreTrainedTokenizerFast):
        def decode(self, token_ids, **kwargs):
            return super().decode(token_ids, **kwargs).replace("漢", "han")

    tokenizer = Lowering(tokenizer_object=byte_level(), eos_token="</s>")
    with pytest.raises(VocabularyError, match=r"Lowering: decode\(\) disagrees .* decode to 'Ahan"):
        Vocabulary.from_huggingface(tokenizer)


@pytest.mark.parametrize(("method", "where"), [("rstrip", "at the end"), ("lstrip", "at the start")])
def test_wrapper_that_strips_an_end_is_refused(method, where):
    class Stripping(transformers.PreTrainedTokenizerFast):
        def decode(self, token_ids, **kwargs):
            return getattr(super().decode(token_ids, **kwargs), method)()

    with pytest.raises(VocabularyError, match=rf"Stripping, {where} of a text: decode\(\) disagrees"):
        Vocabulary.from_huggingface(Stripping(tokenizer_object=byte_level(), eos_token="</s>"))


def test_wrapper_that_joins_tokens_is_refused():
    class Collapsing(transformers.PreTrainedTokenizerFast):
        def decode(self, token_ids, **kwargs):
            return super().decode(token_ids, **kwargs).replace("  ", " ")

    with pytest.raises(VocabularyError, match="disagrees"):
        Vocabulary.from_huggingface(Collapsing(tokenizer_object=unigram(), eos_token="</s>"))


def test_cleanup_in_the_wrapper():
    bpe = wrap(byte_level(), eos_token="</s>", clean_up_tokenization_spaces=True)
    assert bpe.decode(bpe.encode("a . b")) == "a . b"
    assert Vocabulary.from_huggingface(bpe).eos_ids == (2,)
    backend = unigram()
    cleaning = wrap(backend, eos_token="</s>", clean_up_tokenization_spaces=True)
    with pytest.raises(VocabularyError, match="clean_up_tokenization_spaces = False"):
        Vocabulary.from_huggingface(cleaning)
    cleaning.clean_up_tokenization_spaces = False
    assert Vocabulary.from_huggingface(cleaning).digest == read(backend, eos_ids=2).digest


def test_wrapper_names_eos_and_specials():
    tokenizer = wrap(byte_level(), bos_token="<s>", eos_token="</s>", pad_token="<tool>")
    vocabulary = Vocabulary.from_huggingface(tokenizer)
    tool = tokenizer.convert_tokens_to_ids("<tool>")
    assert vocabulary.eos_ids == (2,)
    assert tool in vocabulary.special_ids and vocabulary.tokens[tool] == b""
    several = Vocabulary.from_huggingface(tokenizer, eos_ids=[tokenizer.convert_tokens_to_ids("<|call|>"), 2])
    assert several.eos_ids == (2, tokenizer.convert_tokens_to_ids("<|call|>"))
    # An ordinary token that ends the text is no text.
    newline = tokenizer.encode("\n")[0]
    assert Vocabulary.from_huggingface(tokenizer, eos_ids=newline).tokens[newline] == b""


def test_missing_eos_is_an_error():
    with pytest.raises(VocabularyError, match="eos_ids"):
        Vocabulary.from_huggingface(byte_level())
    with pytest.raises(VocabularyError, match="eos_ids"):
        Vocabulary.from_huggingface(wrap(byte_level()))


def test_holes_in_ids():
    tokenizer = tokenizers.Tokenizer(models.BPE({"a": 0, "b": 5, "</s>": 9}, []))
    tokenizer.decoder = decoders.ByteLevel()
    vocabulary = Vocabulary.from_huggingface(tokenizer, eos_ids=9)
    assert vocabulary.tokens == (b"a", b"", b"", b"", b"", b"b", b"", b"", b"", b"")
    assert vocabulary.special_ids == ()


def test_width_of_the_model():
    tokenizer = byte_level()
    own = read(tokenizer, eos_ids=2)
    wide = read(tokenizer, eos_ids=2, vocab_size=own.vocab_size + 40)
    assert wide.vocab_size == own.vocab_size + 40 and wide.tokens == own.tokens + (b"",) * 40
    narrow = read(tokenizer, eos_ids=2, vocab_size=own.vocab_size - 1)
    assert narrow.tokens == own.tokens[:-1]
    assert "<|call|>" in own.special_tokens and "<|call|>" not in narrow.special_tokens
    assert max(narrow.special_ids) < narrow.vocab_size
    assert len({own.digest, wide.digest, narrow.digest}) == 3
    with pytest.raises(VocabularyError, match=rf"id {own.vocab_size - 1} is outside"):
        read(tokenizer, vocab_size=own.vocab_size - 1)


def test_nothing_to_read():
    with pytest.raises(VocabularyError, match="no tokens"):
        Vocabulary.from_huggingface(tokenizers.Tokenizer(models.BPE()), eos_ids=0)
    only_special = no_decoder(words=("<unk>", "</s>"))
    with pytest.raises(VocabularyError, match="no ordinary token"):
        read(only_special)


def test_other_objects_are_refused():
    for other in ("gpt2", None, 3, object()):
        with pytest.raises(VocabularyError, match="expected a fast tokenizer"):
            Vocabulary.from_huggingface(other)

    class Processor:
        tokenizer = wrap(byte_level())

    with pytest.raises(VocabularyError, match=r"\.tokenizer"):
        Vocabulary.from_huggingface(Processor())


def test_a_piece_that_is_a_prefix_alone_is_no_text():
    pieces = ["[UNK]", "a", "b", "##a", "##", "[SEP]"]
    model = models.WordPiece(vocab={piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    vocabulary = Vocabulary.from_huggingface(tokenizer, eos_ids=5)
    assert vocabulary.tokens[4] == b"" and vocabulary.decode([1, 4, 3]) == b"aa"
    assert toys.allowed(compile_regex("(#|a)+", vocabulary).matcher()) == {1, 3}
