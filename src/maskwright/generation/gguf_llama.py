"""A Llama in a file of llama.cpp (GGUF), with its tokenizer, written as transformers saves models.

transformers reads such files, too, in most of a minute, and its versions differ in the tokenizers that they make of them.  The package gguf
knows the format, how weights are quantised, and what they are called.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maskwright.errors import ModelNotFoundError

_CONTROL = 3
"""Tokens of this type are no text (``gguf.TokenType.CONTROL``)."""


def convert(source: Path, folder: Path) -> None:
    """Write model and tokenizer into ``folder`` as ``save_pretrained`` does, in float32.

    For the architecture "llama" with byte-level tokens, digits one by one (``tokenizer.ggml.pre`` is "smollm").  Raises
    ``ModelNotFoundError`` for others.
    """
    import torch
    from gguf import GGUFReader
    from transformers import LlamaForCausalLM

    reader = GGUFReader(source)
    kinds = _field(reader, "general.architecture"), _field(reader, "tokenizer.ggml.pre")
    if kinds != ("llama", "smollm"):
        raise ModelNotFoundError(
            f"{source} is of the kind {kinds}, and what is read here is ('llama', 'smollm')"
        )
    with torch.device("meta"):
        model = LlamaForCausalLM(_config(reader))
    model.load_state_dict(_weights(reader, model), assign=True)
    model.tie_weights()
    model.save_pretrained(folder)
    _tokenizer(reader).save_pretrained(folder)


def _field(reader: Any, name: str) -> Any:
    return reader.fields[name].contents() if name in reader.fields else None


def _config(reader: Any) -> Any:
    import torch
    from transformers import LlamaConfig

    def number(name: str) -> Any:
        return _field(reader, f"llama.{name}")

    def token(name: str) -> Any:
        return _field(reader, f"tokenizer.ggml.{name}_token_id")

    return LlamaConfig(
        vocab_size=number("vocab_size"),
        hidden_size=number("embedding_length"),
        intermediate_size=number("feed_forward_length"),
        num_hidden_layers=number("block_count"),
        num_attention_heads=number("attention.head_count"),
        num_key_value_heads=number("attention.head_count_kv"),
        max_position_embeddings=number("context_length"),
        rms_norm_eps=number("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": number("rope.freq_base")},
        tie_word_embeddings=all(tensor.name != "output.weight" for tensor in reader.tensors),
        bos_token_id=token("bos"),
        eos_token_id=token("eos"),
        pad_token_id=token("padding"),
        dtype=torch.float32,
    )


def _weights(reader: Any, model: Any) -> dict[str, Any]:
    """By the names of transformers.

    llama.cpp has other rows of queries and keys in other places: those that a position turns together are neighbours.
    """
    import torch
    from gguf import MODEL_ARCH, dequantize, get_tensor_name_map

    config = model.config
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    there = {tensor.name: tensor for tensor in reader.tensors}
    names = get_tensor_name_map(MODEL_ARCH.LLAMA, config.num_hidden_layers)
    found = {}
    for name in model.state_dict():
        tensor = there.get(names.get_name(name, try_suffixes=(".weight",)))
        if tensor is None:
            continue
        values = dequantize(tensor.data, tensor.tensor_type)
        count = heads.get(name.split(".")[-2])
        if count is not None:
            values = values.reshape(count, -1, 2, values.shape[1]).swapaxes(1, 2).reshape(values.shape)
        found[name] = torch.from_numpy(values.astype("float32"))
    if config.tie_word_embeddings:
        found["lm_head.weight"] = found["model.embed_tokens.weight"]
    return found


def _tokenizer(reader: Any) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokens, kinds, merges = (
        _field(reader, f"tokenizer.ggml.{name}") for name in ("tokens", "token_type", "merges")
    )
    ids = {token: i for i, token in enumerate(tokens)}
    made = Tokenizer(models.BPE(ids, [tuple(merge.split(" ")) for merge in merges]))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(
        [
            AddedToken(token, normalized=False, special=True)
            for token, kind in zip(tokens, kinds, strict=True)
            if kind == _CONTROL
        ]
    )
    marks = {"bos": "bos", "eos": "eos", "padding": "pad", "unknown": "unk"}
    named = {
        f"{ours}_token": tokens[_field(reader, f"tokenizer.ggml.{theirs}_token_id")]
        for theirs, ours in marks.items()
    }
    return PreTrainedTokenizerFast(
        tokenizer_object=made, chat_template=_field(reader, "tokenizer.chat_template"), **named
    )
