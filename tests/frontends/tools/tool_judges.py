"""The parsers of vLLM and SGLang, as judges of what masks let a model write: text -> calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Calls = list[tuple[str, dict[str, Any]]]

VLLM = {
    "hermes": "hermes",
    "qwen3": "hermes",
    "exaone4": "hermes",
    "qwen3_coder": "qwen3_coder",
    "qwen3_5": "qwen3_coder",
    "seed_oss": "seed_oss",
    "llama3_json": "llama3_json",
    "llama_pythonic": "llama4_pythonic",
    "gemma3": "pythonic",
    "mistral_v3": "mistral",
    "mistral_v11": "mistral",
    "mistral_v13": "mistral",
    "deepseek_v3": "deepseek_v3",
    "deepseek_r1": "deepseek_v3",
    "deepseek_v3_1": "deepseek_v31",
    "deepseek_v3_2": "deepseek_v32",
    "glm4_5": "glm45",
    "glm4_7": "glm47",
    "kimi_k2": "kimi_k2",
    "phi4_mini": "phi4_mini_json",
    "granite3": "granite",
    "internlm2": "internlm",
    "jamba": "jamba",
    "longcat": "longcat",
    "minimax_m2": "minimax_m2",
}
"""By template, the name of the parser."""

SGLANG = {
    "hermes": "hermes",
    "qwen3": "qwen",
    "qwen3_coder": "qwen3_coder",
    "qwen3_5": "qwen3_coder",
    "llama3_json": "llama3",
    "llama_pythonic": "pythonic",
    "gemma3": "pythonic",
    "mistral_v3": "mistral",
    "mistral_v11": "mistral",
    "mistral_v13": "mistral",
    "deepseek_v3": "deepseekv3",
    "deepseek_r1": "deepseekv3",
    "deepseek_v3_1": "deepseekv31",
    "deepseek_v3_2": "deepseekv32",
    "glm4_5": "glm45",
    "glm4_7": "glm47",
    "kimi_k2": "kimi_k2",
    "command_a": "cohere_command4",
    "harmony": "gpt-oss",
    "minimax_m2": "minimax-m2",
}


def vllm_reader(template: str, marks: tuple[str, ...], tools: list[dict[str, Any]]) -> Callable[[str], Calls]:
    """vLLM's parser of a template's family, with a tokenizer that has its marks as special tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    from vllm.entrypoints.openai.chat_completion.protocol import (
        ChatCompletionRequest,
        ChatCompletionToolsParam,
    )
    from vllm.tool_parsers import ToolParserManager

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    # Some parsers ask for marks of thinking, or of older models, whatever the output has.
    more = ("<think>", "</think>", "<|python_tag|>")
    tokenizer.add_special_tokens(
        [AddedToken(t, special=True) for t in dict.fromkeys((*marks, *more, "<eos>"))]
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>")
    request = ChatCompletionRequest(messages=[], model="m", tools=tools)
    params = [ChatCompletionToolsParam(**tool) for tool in tools]
    parser = ToolParserManager.get_tool_parser(VLLM[template])

    def read(text: str) -> Calls:
        found = parser(fast, params).extract_tool_calls(text, request)
        return [(c.function.name, json.loads(c.function.arguments)) for c in found.tool_calls]

    return read


def sglang_reader(template: str, tools: list[dict[str, Any]]) -> Callable[[str], Calls]:
    """SGLang's parser of a template's family."""
    from sglang.srt.entrypoints.openai.protocol import Tool
    from sglang.srt.function_call.function_call_parser import FunctionCallParser

    params = [Tool(**tool) for tool in tools]

    def read(text: str) -> Calls:
        parser = FunctionCallParser(params, SGLANG[template])
        # Without a call, it has nothing to say.
        _, calls = parser.parse_non_stream(text) if parser.has_tool_call(text) else ("", [])
        return [(call.name, json.loads(call.parameters)) for call in calls]

    return read
