"""The tiny model's tokenizer: byte-level BPE that can spell every byte."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from maskwright.demo.prompts import ANSWER_TOKEN

BOS, EOS, PAD = "<|bos|>", "<|eos|>", "<|pad|>"

# Spaces go with punctuation, not with the word after them: a word then has the same tokens in the
# prompt (after a space) and in the JSON (after a quote), which makes copying easy for a small
# model, and marks such as `": {"` become single tokens.  Digits stand alone for the same reason.
_PIECES = r"\p{L}+|\p{N}|[^\p{L}\p{N}]+"


def train_tokenizer(texts: Iterable[str], vocab_size: int, max_length: int) -> PreTrainedTokenizerFast:
    """A tokenizer of ``vocab_size`` tokens; it puts ``<|bos|>`` in front of every text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[PAD, BOS, EOS, ANSWER_TOKEN],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A",
        pair=f"{BOS} $A $B",
        special_tokens=[(BOS, tokenizer.token_to_id(BOS))],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        additional_special_tokens=[ANSWER_TOKEN],
        padding_side="left",
        model_max_length=max_length,
        clean_up_tokenization_spaces=False,
    )
