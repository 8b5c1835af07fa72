"""A way to think that a small model without marks for it keeps to: up to the word was (see ``vllm_engine.py``).

vLLM reads this file in each of its processes (``reasoning_parser_plugin``).
"""

from __future__ import annotations

from vllm.reasoning import ReasoningParserManager
from vllm.reasoning.basic_parsers import BaseThinkingReasoningParser

NAME = "until_was"


@ReasoningParserManager.register_module(NAME)
class UntilWas(BaseThinkingReasoningParser):
    """From a token that nobody writes to the word."""

    @property
    def start_token(self) -> str:
        return "<issue_start>"

    @property
    def end_token(self) -> str:
        return "Ġwas"
