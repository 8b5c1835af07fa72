"""Adapters: each engine as the kit wants it, with options as wide as the engine has them.

A package is imported where its engine is set up, so that running one needs no other.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

import numpy as np

from maskwright.conformance.protocol import ConformanceError, Factory, Language, Tokens


def _set_bits(row: Any, width: int) -> list[int]:
    """The ids of a row of 32-bit words, least significant bit first; what is behind its width has no logit."""
    bits = np.unpackbits(np.asarray(row).reshape(-1).view(np.uint8), bitorder="little", count=width)
    found: list[int] = np.flatnonzero(bits).tolist()
    return found


def _words(width: int) -> Any:
    return np.zeros((1, (width + 31) // 32), dtype=np.int32)


class Maskwright:
    """maskwright, with members in any order, and all white space and escapes that JSON has."""

    def __init__(self, tokens: Tokens) -> None:
        from maskwright import Vocabulary, compile_json_schema, compile_regex

        texts = [*(text or None for text in tokens.texts), *[None] * (tokens.width - len(tokens.texts))]
        self.vocabulary = Vocabulary.from_bytes(texts, eos_ids=list(tokens.ends))
        self.width = tokens.width
        self.schema, self.regex = compile_json_schema, compile_regex

    def compile(self, language: Language, source: str) -> Callable[[], MaskwrightMatcher]:
        if language == "regex":
            compiled = self.regex(source, self.vocabulary)
        else:
            compiled = self.schema(
                source, self.vocabulary, property_order="any", whitespace="flexible", escapes="any"
            )
        return lambda: MaskwrightMatcher(compiled.matcher(), self.width)


class MaskwrightMatcher:
    def __init__(self, matcher: Any, width: int) -> None:
        self.matcher, self.width = matcher, width
        self.row = _words(width)
        self.accept = matcher.accept_token
        self.rollback = matcher.rollback

    def allowed(self) -> Collection[int]:
        self.matcher.fill_next_token_bitmask(self.row)
        return _set_bits(self.row, self.width)


class Llguidance:
    """llguidance, with its own options: any white space, members in the order of the schema."""

    def __init__(self, tokens: Tokens) -> None:
        import llguidance

        texts = [text or tokens.ends.get(i, "").encode() for i, text in enumerate(tokens.texts)]

        class Tokenizer(SimpleNamespace):
            def __call__(self, text: bytes) -> list[int]:
                return tokens.encode(text)

        # It has no width of its own: as in its adapters of tokenizers, padding is tokens without text.
        given = Tokenizer(
            tokens=texts + [b""] * (tokens.width - len(texts)),
            eos_token_id=min(tokens.ends),
            bos_token_id=None,
            special_token_ids=list(tokens.ends),
        )
        # Releases until 1.5 know one end only.
        ends = list(tokens.ends)
        self.tokenizer = llguidance.LLTokenizer(
            llguidance.TokenizerWrapper(given), eos_token=ends if len(ends) > 1 else ends[0]
        )
        self.matcher = llguidance.LLMatcher
        self.width = tokens.width

    def compile(self, language: Language, source: str) -> Callable[[], LlguidanceMatcher]:
        if language == "regex":
            grammar = self.matcher.grammar_from_regex(source)
        else:
            grammar = self.matcher.grammar_from_json_schema(source)

        def start() -> LlguidanceMatcher:
            matcher = self.matcher(self.tokenizer, grammar, log_level=0)
            if matcher.is_error():
                raise ValueError(matcher.get_error())
            return LlguidanceMatcher(matcher, self.width)

        return start


class LlguidanceMatcher:
    def __init__(self, matcher: Any, width: int) -> None:
        from llguidance.numpy import fill_next_token_bitmask

        self.matcher, self.width = matcher, width
        self.fill, self.row = fill_next_token_bitmask, _words(width)
        self.accept = matcher.consume_token

    def allowed(self) -> Collection[int]:
        self.fill(self.matcher, self.row, 0)
        if self.matcher.is_error():
            raise RuntimeError(self.matcher.get_error())
        return _set_bits(self.row, self.width)

    def rollback(self, count: int) -> None:
        if not self.matcher.rollback(count):
            raise RuntimeError(self.matcher.get_error())


class Xgrammar:
    """XGrammar, with any white space, and objects that are open unless the schema closes them.

    Its option for members in any order is off: with it, required members may be left out, and fewer cases pass.
    """

    def __init__(self, tokens: Tokens) -> None:
        import xgrammar

        info = xgrammar.TokenizerInfo(
            list(tokens.texts),
            xgrammar.VocabType.RAW,
            vocab_size=tokens.width,
            stop_token_ids=list(tokens.ends),
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        self.matcher, self.row = xgrammar.GrammarMatcher, xgrammar.allocate_token_bitmask
        self.width = tokens.width

    def compile(self, language: Language, source: str) -> Callable[[], XgrammarMatcher]:
        if language == "regex":
            compiled = self.compiler.compile_regex(source)
        else:
            compiled = self.compiler.compile_json_schema(source, any_whitespace=True, strict_mode=False)
        return lambda: XgrammarMatcher(self.matcher(compiled), self.row(1, self.width), self.width)


class XgrammarMatcher:
    def __init__(self, matcher: Any, row: Any, width: int) -> None:
        self.matcher, self.row, self.width = matcher, row, width
        self.accept = matcher.accept_token
        self.rollback = matcher.rollback

    def allowed(self) -> Collection[int]:
        self.matcher.fill_next_token_bitmask(self.row)
        return _set_bits(self.row.numpy(), self.width)


class OutlinesCore:
    """outlines-core: a regular expression from the schema, and an index of all its states and tokens."""

    def __init__(self, tokens: Tokens) -> None:
        from outlines_core import Guide, Index, Vocabulary
        from outlines_core.json_schema import build_regex_from_schema

        if len(tokens.ends) > 1:
            raise ValueError("a vocabulary of outlines-core has one end id")
        by_text: dict[bytes, list[int]] = {}
        for token, text in enumerate(tokens.texts):
            if text:
                by_text.setdefault(text, []).append(token)
        self.vocabulary = Vocabulary(min(tokens.ends), by_text)
        self.regex, self.index, self.guide = build_regex_from_schema, Index, Guide

    def compile(self, language: Language, source: str) -> Callable[[], OutlinesMatcher]:
        index = self.index(source if language == "regex" else self.regex(source), self.vocabulary)
        return lambda: OutlinesMatcher(self.guide(index), self.vocabulary.get_eos_token_id())


class OutlinesMatcher:
    """A guide does not read the end id; whether it may come is ``is_finished``."""

    def __init__(self, guide: Any, end: int) -> None:
        self.guide, self.end, self.ended = guide, end, False

    def allowed(self) -> Collection[int]:
        found: Collection[int] = self.guide.get_tokens()
        return found

    def accept(self, token: int) -> bool:
        if token == self.end:
            self.ended = bool(self.guide.is_finished())
            return self.ended
        try:
            self.guide.advance(token, return_tokens=False)
        except ValueError:  # no such transition
            return False
        return True

    def rollback(self, count: int) -> None:
        self.guide.rollback_state(count - self.ended)
        self.ended = False


ENGINES: dict[str, Factory] = {
    "maskwright": Maskwright,
    "llguidance": Llguidance,
    "xgrammar": Xgrammar,
    "outlines-core": OutlinesCore,
}
"""Engines by the names that ``maskwright conformance --engine`` knows; each is made with ``Tokens``."""


def factory_of(name: str) -> Factory:
    """One of ``ENGINES``, or what ``module:factory`` names, once its package is seen to be there.

    Raises ``ConformanceError`` for another name, or a package that is not there; what importing a module raises otherwise.
    """
    if name in ENGINES:
        try:
            importlib.import_module(name.replace("-", "_"))
        except ImportError as error:
            raise ConformanceError(f"{error}; pip install {name}") from None
        return ENGINES[name]
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ConformanceError(f"no engine {name!r}; there are {', '.join(ENGINES)}, and module:factory")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    factory: Factory = found
    return factory
