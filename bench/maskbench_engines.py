"""The engines that MaskBench compares: each compiles a schema, and then masks and accepts.

An engine is made from a tokenizer, which is its set-up; what it needs is imported there, so that a run
without a peer does not need that peer.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from typing import Any, Protocol

from maskbench_tokenizers import Tokenizer

import maskwright as mw


class EngineError(Exception):
    """This engine cannot run here; the message says why."""


class Sequence(Protocol):
    """One sequence of one engine."""

    def mask(self) -> None: ...
    def accept(self, token: int) -> bool: ...
    def complete(self) -> bool: ...


class Engine(Protocol):
    repeat_limit: float
    """Longest first mask (seconds) after which the same request is made a second time."""

    def compile(self, schema: Any) -> Callable[[], Sequence]:
        """A factory of sequences; raises for what the engine refuses."""
        ...


class Ours:
    repeat_limit = float("inf")

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.vocabulary = tokenizer.vocabulary()
        self.bitmask = mw.allocate_token_bitmask(1, self.vocabulary.vocab_size)
        mw.compile_json_schema(True, self.vocabulary)  # builds or loads what all schemas share

    def compile(self, schema: Any) -> Callable[[], Sequence]:
        compiled = mw.compile_json_schema(schema, self.vocabulary)
        return lambda: OurSequence(compiled.matcher(), self.bitmask)


class OurSequence:
    def __init__(self, matcher: mw.Matcher, bitmask: Any) -> None:
        self.matcher, self.bitmask = matcher, bitmask
        self.accept = matcher.accept_token

    def mask(self) -> None:
        self.matcher.fill_next_token_bitmask(self.bitmask, 0)

    def complete(self) -> bool:
        return self.matcher.is_accepting


class Llguidance:
    """llguidance compiles a schema when its first matcher is made; it keeps nothing for a second one."""

    repeat_limit = float("inf")

    def __init__(self, tokenizer: Tokenizer) -> None:
        import llguidance.hf
        from llguidance.numpy import allocate_token_bitmask

        huggingface = tokenizer.huggingface()
        self.tokenizer = llguidance.hf.from_tokenizer(huggingface, n_vocab=len(huggingface))
        self.bitmask = allocate_token_bitmask(1, len(huggingface))

    def compile(self, schema: Any) -> Callable[[], Sequence]:
        from llguidance import LLMatcher

        grammar = LLMatcher.grammar_from_json_schema(schema)
        waiting = [LlguidanceSequence(self.tokenizer, grammar, self.bitmask)]
        return lambda: waiting.pop() if waiting else LlguidanceSequence(self.tokenizer, grammar, self.bitmask)


class LlguidanceSequence:
    def __init__(self, tokenizer: Any, grammar: str, bitmask: Any) -> None:
        from llguidance import LLMatcher
        from llguidance.numpy import fill_next_token_bitmask

        self.matcher, self.bitmask = LLMatcher(tokenizer, grammar, log_level=0), bitmask
        if self.matcher.is_error():
            raise ValueError(self.matcher.get_error())
        self.accept = self.matcher.consume_token
        self.fill = fill_next_token_bitmask

    def mask(self) -> None:
        self.fill(self.matcher, self.bitmask, 0)

    def complete(self) -> bool:
        return bool(self.matcher.is_accepting())


class Xgrammar:
    """xgrammar on one thread, with its cache of compiled grammars, which answers the second request."""

    repeat_limit = float("inf")

    def __init__(self, tokenizer: Tokenizer) -> None:
        import torch
        import xgrammar

        torch.set_num_threads(1)
        huggingface = tokenizer.huggingface()
        info = xgrammar.TokenizerInfo.from_huggingface(huggingface, vocab_size=len(huggingface))
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        self.bitmask = xgrammar.allocate_token_bitmask(1, len(huggingface))
        self.matcher = xgrammar.GrammarMatcher

    def compile(self, schema: Any) -> Callable[[], Sequence]:
        text = json.dumps(schema)
        compiled = self.compiler.compile_json_schema(text, any_whitespace=True, strict_mode=False)
        return lambda: XgrammarSequence(self.matcher(compiled), self.bitmask)


class XgrammarSequence:
    def __init__(self, matcher: Any, bitmask: Any) -> None:
        self.matcher, self.bitmask = matcher, bitmask
        self.accept = matcher.accept_token

    def mask(self) -> None:
        self.matcher.fill_next_token_bitmask(self.bitmask, 0)

    def complete(self) -> bool:
        return bool(self.matcher.is_completed())


class Outlines:
    """outlines-core: a regular expression from the schema, and an index of all its states and tokens.

    The index is built in full before the first mask: with 131 072 tokens that takes from 0.2 s for a few
    strings to minutes and gigabytes for counted strings and lists, and nothing can interrupt it, so the
    harness runs this engine in a process of its own and ends that at ``--time-limit``.  Schemas without
    a regular expression (recursion, several keywords) are refused.
    """

    repeat_limit = 1.0
    """Nothing is kept between requests: the second costs as much as the first, and is not always worth it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        import numpy as np
        from outlines_core import Guide, Index, Vocabulary
        from outlines_core.json_schema import build_regex_from_schema

        vocabulary = tokenizer.vocabulary()
        by_bytes: dict[bytes, list[int]] = {}
        for i, data in enumerate(vocabulary.tokens):
            if data:
                by_bytes.setdefault(data, []).append(i)
        # Any vocabulary has one EOS here.
        self.vocabulary = Vocabulary(vocabulary.eos_ids[0], by_bytes)
        self.bitmask = np.zeros((1, (vocabulary.vocab_size + 31) // 32), dtype=np.int32)
        self.regex, self.index, self.guide = build_regex_from_schema, Index, Guide

    def compile(self, schema: Any) -> Callable[[], Sequence]:
        index = self.index(self.regex(json.dumps(schema)), self.vocabulary)
        return lambda: OutlinesSequence(self.guide(index), self.bitmask)


class OutlinesSequence:
    def __init__(self, guide: Any, bitmask: Any) -> None:
        self.guide = guide
        self.write = guide.write_mask_into
        self.target = (bitmask.ctypes.data, bitmask.size, bitmask.itemsize)

    def mask(self) -> None:
        self.write(*self.target)

    def accept(self, token: int) -> bool:
        try:
            self.guide.advance(token, return_tokens=False)
        except ValueError:  # no such transition
            return False
        return True

    def complete(self) -> bool:
        return bool(self.guide.is_finished())


ENGINES: dict[str, Callable[[Tokenizer], Engine]] = {
    "ours": Ours,
    "llguidance": Llguidance,
    "xgrammar": Xgrammar,
    "outlines": Outlines,
}
ISOLATED = {"outlines"}
"""Engines whose compile cannot be interrupted: they run in a process of their own with a time limit."""

PACKAGES = {
    "ours": "maskwright",
    "llguidance": "llguidance",
    "xgrammar": "xgrammar",
    "outlines": "outlines-core",
}


def check_installed(name: str) -> None:
    """Raise ``EngineError`` for an unknown engine, or one whose package is not installed."""
    if name not in ENGINES:
        raise EngineError(f"no engine {name!r}; there are {', '.join(ENGINES)}")
    package = PACKAGES[name]
    if importlib.util.find_spec(package.replace("-", "_")) is None:
        raise EngineError(f"the engine {name} needs the package {package}: pip install {package}")


def make(name: str, tokenizer: Tokenizer) -> Engine:
    """Set up one engine; raises ``EngineError`` when it is not installed or cannot take the tokenizer."""
    check_installed(name)
    try:
        return ENGINES[name](tokenizer)
    except Exception as error:  # peers raise what they like
        raise EngineError(f"{name} cannot be set up with the {tokenizer.name} tokenizer: {error}") from error
