"""The tokenizers that MaskBench runs with: token ids of a text, and what each engine builds from.

``tekken``: the 131 072 tokens that ship with mistral-common.  ``sentencepiece``: the 32 000 pieces with
byte fallback that ship with it too.  ``demo``: the byte-level BPE of the demo diffusion model.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import maskwright as mw


@dataclass(frozen=True)
class Tokenizer:
    """One tokenizer; the parts are made when asked for, because a run may need only some."""

    name: str
    encode: Callable[[str], list[int]]
    """Token ids of a text in the middle of an output: no BOS, no space in front."""
    vocabulary: Callable[[], mw.Vocabulary]
    """A new vocabulary at every call, so that set-up can be timed."""
    huggingface: Callable[[], Any]
    """The same tokenizer as transformers has it; peers read this."""

    def spell(self, vocabulary: mw.Vocabulary, value: Any) -> list[int] | None:
        """Token ids of ``value`` as JSON; None where they do not spell it (lone surrogates)."""
        text = json.dumps(value, ensure_ascii=False)
        try:
            data = text.encode()
        except UnicodeEncodeError:
            return None
        ids = self.encode(text)
        return ids if vocabulary.decode(ids) == data else None


def tekken() -> Tokenizer:
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    path = _shipped("tekken_240911.json")
    tokenizer = Tekkenizer.from_file(path)

    @functools.cache
    def converted() -> Any:
        from transformers import PreTrainedTokenizerFast
        from transformers.integrations.mistral import convert_tekken_tokenizer  # type: ignore[attr-defined]

        found = convert_tekken_tokenizer(str(path))
        if isinstance(found, PreTrainedTokenizerFast):
            return found
        return PreTrainedTokenizerFast(tokenizer_object=found)

    return Tokenizer(
        "tekken",
        lambda text: tokenizer.encode(text, bos=False, eos=False),
        lambda: mw.Vocabulary.from_mistral_common(tokenizer),
        converted,
    )


def sentencepiece() -> Tokenizer:
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_file=str(_shipped("tokenizer.model.v1")))
    mark = processor.encode("\n")  # the space that is put in front of every text, and the line feed

    def encode(text: str) -> list[int]:
        ids: list[int] = processor.encode("\n" + text)
        return ids[len(mark) :] if ids[: len(mark)] == mark else ids

    return Tokenizer(
        "sentencepiece",
        encode,
        lambda: mw.Vocabulary.from_sentencepiece(processor),
        functools.cache(lambda: _convert_sentencepiece(processor)),
    )


def demo() -> Tokenizer:
    from transformers import PreTrainedTokenizerFast

    from maskwright.demo import demo_diffusion_path

    tokenizer = PreTrainedTokenizerFast.from_pretrained(demo_diffusion_path())
    return Tokenizer(
        "demo",
        lambda text: list(tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids),
        lambda: mw.Vocabulary.from_huggingface(tokenizer),
        lambda: tokenizer,
    )


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "tekken": tekken,
    "sentencepiece": sentencepiece,
    "demo": demo,
}


def _shipped(name: str) -> Path:
    import mistral_common

    return Path(mistral_common.__file__).parent / "data" / name


def _convert_sentencepiece(processor: Any) -> Any:
    """A SentencePiece BPE model as a ``tokenizers`` BPE with byte fallback, in a transformers wrapper.

    Pieces carry scores, ``tokenizers`` wants merges: every split of a piece into two pieces is one, and
    earlier pieces are merged first.
    """
    from tokenizers import AddedToken, decoders, models, normalizers
    from tokenizers import Tokenizer as FastTokenizer
    from transformers import PreTrainedTokenizerFast

    size = processor.GetPieceSize()
    pieces = [processor.IdToPiece(i) for i in range(size)]
    ids = {piece: i for i, piece in enumerate(pieces)}
    merges = [
        (piece[:at], piece[at:])
        for i, piece in sorted(enumerate(pieces), key=lambda item: -processor.GetScore(item[0]))
        if not (processor.IsControl(i) or processor.IsUnknown(i) or processor.IsByte(i))
        for at in range(1, len(piece))
        if piece[:at] in ids and piece[at:] in ids
    ]
    unknown = pieces[processor.unk_id()]
    fast = FastTokenizer(
        models.BPE(vocab=ids, merges=merges, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    )
    fast.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    fast.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = [i for i in range(size) if processor.IsControl(i) or processor.IsUnknown(i)]
    fast.add_special_tokens([AddedToken(pieces[i], special=True, normalized=False) for i in special])
    return PreTrainedTokenizerFast(
        tokenizer_object=fast,
        unk_token=unknown,
        bos_token=pieces[processor.bos_id()],
        eos_token=pieces[processor.eos_id()],
        clean_up_tokenization_spaces=False,
    )
