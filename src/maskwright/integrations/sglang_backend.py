"""The grammar back-end that SGLang's scheduler talks to; imported when SGLang makes it.

A request that cannot be served gets an ``InvalidGrammarObject`` with our message, which SGLang answers with a 400.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    GrammarStats,
    InvalidGrammarObject,
)
from sglang.srt.constrained.torch_ops.token_filter_torch_ops import set_token_filter_torch
from sglang.srt.runtime_context import get_serving, get_spec

import maskwright as mw
from maskwright.integrations.requests import allow, compile_grammar_text, limits_of_environment

logger = logging.getLogger(__name__)

_WINDOW = 200
"""Tokens that can be taken back: a path of a draft tree, and what a re-tokenised jump replaces."""
_GRAMMARS_KEPT = 1024
_ROWS_ALONE = 128
"""Fewer rows are filled one by one: to wait for threads on busy cores takes longer than they do."""
_ANY_JSON = "$$ANY$$"


def make_backend(tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> BaseGrammarBackend:
    """The back-end for the options of this server, behind SGLang's own reasoning gate where it has a reasoning parser.

    Raises ``MaskwrightError`` for options that cannot be honoured.
    """
    serving = get_serving()
    for option in ("constrained_json_whitespace_pattern", "constrained_json_max_whitespace_cnt"):
        if getattr(serving, option, None) is not None:
            raise mw.MaskwrightError(
                f"--{option.replace('_', '-')} is not supported by --grammar-backend maskwright, which writes JSON as printers do: "
                "leave it out, or use --constrained-json-disable-any-whitespace for none at all"
            )
    ends = {*(eos_token_ids or ()), tokenizer.eos_token_id}
    ends.update(getattr(tokenizer, "additional_stop_token_ids", None) or ())
    backend = MaskwrightGrammarBackend(
        tokenizer,
        vocab_size,
        [token for token in ends if token is not None and 0 <= token < vocab_size],
        compact=bool(serving.constrained_json_disable_any_whitespace),
        speculative=get_spec().speculative_algorithm is not None,
    )
    return _behind_reasoning(backend, tokenizer)


def _behind_reasoning(backend: BaseGrammarBackend, tokenizer: Any) -> BaseGrammarBackend:
    serving = get_serving()
    if not serving.reasoning_parser:
        return backend
    # SGLang wraps its own back-ends only.
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.get_think_end_token_ids(tokenizer):
        return backend
    gate = ReasonerGrammarBackend(
        backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking
    )
    gate.cache = _Kept()
    return gate


class _Kept(dict[tuple[str, str], Any]):
    """Grammars by request; those used longest ago go when there are too many."""

    def get(self, key: tuple[str, str], default: Any = None) -> Any:
        if key not in self:
            return default
        value = self[key] = self.pop(key)
        return value

    def __setitem__(self, key: tuple[str, str], value: Any) -> None:
        super().__setitem__(key, value)
        while len(self) > _GRAMMARS_KEPT:
            del self[next(iter(self))]


class MaskwrightGrammarBackend(BaseGrammarBackend):  # type: ignore[misc, unused-ignore]
    """One in each scheduler; its threads compile.

    ``eos_token_ids``: what ends a request.  ``compact``: JSON without white space.  ``speculative``: masks are also computed along
    drafts, where SGLang expects no exception.  A tokenizer without exact bytes is an error of each request, not of the server.
    """

    def __init__(
        self,
        tokenizer: Any,
        vocab_size: int,
        eos_token_ids: Sequence[int] | None = None,
        *,
        compact: bool = False,
        speculative: bool = False,
    ) -> None:
        super().__init__()
        self.cache = _Kept()
        self._limits = limits_of_environment("MASKWRIGHT_SGLANG_LIMITS")
        self._options: dict[str, Any] = {"whitespace": "compact"} if compact else {}
        self._speculative = speculative
        self._vocabulary: mw.Vocabulary | mw.VocabularyError
        try:
            # SGLang decodes the output behind its prompt, where a word keeps the blank that it starts with.
            self._vocabulary = mw.Vocabulary.from_huggingface(
                tokenizer, vocab_size=vocab_size, eos_ids=eos_token_ids or None, word_start_mark="keep"
            )
            # What all grammars share is made while the server starts.
            mw.compile(mw.JsonSchema({"type": "object"}), self._vocabulary)
        except mw.VocabularyError as error:
            logger.warning("No request with a grammar can be served: %s", error)
            self._vocabulary = error

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """A JSON Schema as text; ``$$ANY$$`` is any JSON."""
        is_any = key_string == _ANY_JSON
        schema: str | bool = is_any or key_string
        source = mw.JsonSchema(schema, **self._options)
        return self._compiled(
            "json",
            lambda vocabulary: mw.compile(source, vocabulary, limits=self._limits),
            lambda: {"type": "json_schema", "json_schema": is_any or json.loads(key_string)},
        )

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """A Python regular expression that the whole output matches."""
        return self._compiled(
            "regex",
            lambda vocabulary: mw.compile(mw.Regex(key_string), vocabulary, limits=self._limits),
            lambda: {"type": "regex", "pattern": key_string},
        )

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """GBNF, which XGrammar's EBNF is, when there is a ``::=``; else Lark."""
        return self._compiled(
            "ebnf",
            lambda vocabulary: compile_grammar_text(
                key_string, "::=" not in key_string, vocabulary, self._limits
            ),
            lambda: {"type": "grammar", "grammar": key_string},
        )

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """XGrammar's formats, and the older ``structures`` with ``triggers``."""
        return self._compiled(
            "structural_tag",
            lambda vocabulary: mw.compile(
                mw.StructuralTag(key_string, mw.SchemaOptions(**self._options)),
                vocabulary,
                limits=self._limits,
            ),
            None,
        )

    def dispatch_fallback(self, key_type: str, key_string: str) -> BaseGrammarObject:
        """A kind of request that there was none of in the releases that we know."""
        return InvalidGrammarObject(f"grammars of the kind {key_type!r} are not supported")

    def compile_framed_grammar(
        self, grammar: BaseGrammarObject, frame: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> BaseGrammarObject | None:
        """The grammar within the messages of a reasoning format; None where a structural tag cannot say it."""
        content = grammar.content if isinstance(grammar, MaskwrightGrammar) else None
        if content is None:
            return None
        return self.dispatch_structural_tag(json.dumps(frame(content())))

    def _compiled(
        self,
        kind: str,
        compiling: Callable[[mw.Vocabulary], Any],
        content: Callable[[], dict[str, Any]] | None,
    ) -> BaseGrammarObject:
        try:
            if isinstance(self._vocabulary, mw.VocabularyError):
                return InvalidGrammarObject(str(self._vocabulary))
            compiled = compiling(self._vocabulary)
        except (mw.MaskwrightError, TypeError, ValueError, RecursionError) as error:
            logger.info("A %s grammar is refused: %s", kind, error)
            return InvalidGrammarObject(str(error))
        matcher = compiled.matcher(max_rollback=_WINDOW)
        return MaskwrightGrammar(
            matcher,
            compiled.vocabulary,
            content,
            GrammarStats(dispatch_type=kind),
            speculative=self._speculative,
        )

    @property
    def is_support_token_filter(self) -> bool:
        """Whether ``--enable-strict-thinking`` can be used."""
        return True

    set_token_filter = staticmethod(set_token_filter_torch)

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """As ``MaskwrightGrammar.allocate_vocab_mask``."""
        return _allocate(vocab_size, batch_size)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """As ``MaskwrightGrammar.move_vocab_mask``."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """As ``MaskwrightGrammar.apply_vocab_mask``."""
        mw.apply_token_bitmask_inplace(logits, vocab_mask)


class MaskwrightGrammar(BaseGrammarObject):  # type: ignore[misc, unused-ignore]
    """The state of one request.

    ``content``: makes the format that a structural tag would hold; None where there is none.

    SGLang ends with what is raised while masks are computed.  So a mask that fails (a limit) allows the ends only.  Unless the text
    is complete, the end is then rejected by a ``ValueError``, with which SGLang ends this request alone.  While it walks drafts,
    SGLang expects no ``ValueError`` either: with ``speculative``, the end of such a request is accepted, and the log says why.
    """

    def __init__(
        self,
        matcher: mw.Matcher,
        vocabulary: mw.Vocabulary,
        content: Callable[[], dict[str, Any]] | None,
        stats: GrammarStats | None,
        *,
        speculative: bool = False,
    ) -> None:
        super().__init__()
        self.content = content
        self.grammar_stats = stats
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._words = (len(vocabulary) + 31) // 32
        self._speculative = speculative
        self._failures: dict[int, str] = {}
        self._beyond: list[int] = []  # tokens behind the state that cannot be left

    def accept_token(self, token: int) -> None:
        """Advance; what follows the end is ignored.  Raises ``ValueError`` for a token that is not allowed; nothing changes then."""
        if self.is_terminated():
            return
        problem = "the grammar does not allow it here"
        if not self._beyond:
            state = self._matcher.state_id
            try:
                if self._matcher.accept_token(token):
                    self.current_token = token
                    return
            except mw.MaskwrightError as error:
                self._fail(state, error)
            problem = self._failures.get(state, problem)
        if not (self._beyond or (self._speculative and self._matcher.state_id in self._failures)):
            raise ValueError(f"token {token}: {problem}")
        self.current_token = token
        self._beyond.append(token)

    def rollback(self, k: int) -> None:
        """Take back the last ``k`` tokens."""
        behind = min(k, len(self._beyond))
        if behind:
            del self._beyond[-behind:]
        if k > behind:
            self._matcher.rollback(k - behind)

    def is_terminated(self) -> bool:
        """Whether an end was accepted."""
        if self._beyond:
            return self._beyond[-1] in self._vocabulary.eos_ids
        return bool(self._matcher.is_terminated)

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """int32 ``[batch_size, ceil(vocab_size / 32)]`` on the CPU, all tokens allowed, pinned where there is a GPU."""
        return _allocate(vocab_size, batch_size)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write which tokens may come next into row ``idx``."""
        rows = _rows(vocab_mask, self._words)
        if not self._beyond:
            try:
                self._matcher.fill_next_token_bitmask(rows, idx)
                return
            except mw.MaskwrightError as error:
                self._fail(self._matcher.state_id, error)
        rows[idx] = 0
        allow(rows[idx], self._vocabulary.eos_ids)

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """The rows of all entries, many of them in one call on several threads; other rows stay as they are."""
        if len(entries) >= _ROWS_ALONE and all(
            type(entry.grammar) is MaskwrightGrammar and not entry.grammar._beyond for entry in entries
        ):
            words = {entry.grammar._words for entry in entries}
            if len(words) == 1:
                rows = _rows(vocab_mask, words.pop())
                filled = mw.allocate_token_bitmask(len(entries), 32 * rows.shape[1])
                try:
                    mw.fill_next_token_bitmasks([entry.grammar._matcher for entry in entries], filled)
                    rows[[entry.row for entry in entries]] = filled
                    return
                except mw.MaskwrightError:
                    pass  # Each alone: then only the one that fails has to end.
        BaseGrammarObject.fill_vocab_mask_batched(entries, vocab_mask)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """All tokens allowed."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """The mask on the device, without waiting for it."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Set the logits of disallowed tokens to minus infinity; ``mw.apply_token_bitmask_inplace``."""
        mw.apply_token_bitmask_inplace(logits, vocab_mask)

    def copy(self) -> MaskwrightGrammar:
        """Another one in the same state; both share all that is computed."""
        stats = self.grammar_stats
        if stats is not None:
            stats = dataclasses.replace(stats, is_cache_hit=True, tree_traversal_time=[])
        other = MaskwrightGrammar(
            self._matcher.fork(), self._vocabulary, self.content, stats, speculative=self._speculative
        )
        other._failures = dict(self._failures)
        other._beyond = list(self._beyond)
        return other

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The text that is forced from here, in whole characters, as the helper of the next two; None when there is none."""
        if self._beyond:
            return None
        text = self._matcher.forced_bytes()
        for cut in range(min(3, len(text)) + 1):
            try:
                found = text[: len(text) - cut].decode()
            except UnicodeDecodeError:
                continue
            return ([], found) if found else None
        return None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """The forced text; there is no state to remember."""
        return helper[1], -1

    def jump_and_retokenize(
        self, old_output_ids: list[int], new_output_ids: list[int], next_state: int
    ) -> None:
        """Follow an output that was tokenised anew.  Raises ``ValueError`` when it is not allowed; nothing changes then."""
        same = 0
        while same < min(len(old_output_ids), len(new_output_ids)):
            if old_output_ids[same] != new_output_ids[same]:
                break
            same += 1
        before = self._matcher.fork()
        self._matcher.rollback(len(old_output_ids) - same)
        wanted = new_output_ids[same:]
        count = self._matcher.accept_tokens(wanted)
        if count < len(wanted):
            self._matcher = before
            raise ValueError(f"token {wanted[count]}: the grammar does not allow it behind the tokens before")

    def _fail(self, state: int, error: mw.MaskwrightError) -> None:
        if state not in self._failures:
            logger.error("A request has to end: %s", error)
        self._failures[state] = str(error)


def _allocate(vocab_size: int, batch_size: int) -> torch.Tensor:
    shape = (batch_size, (vocab_size + 31) // 32)
    return torch.full(shape, -1, dtype=torch.int32, pin_memory=torch.cuda.is_available())


def _rows(vocab_mask: torch.Tensor, words: int) -> Any:
    """The rows of a mask on the CPU, as wide as the vocabulary."""
    rows = vocab_mask.numpy()
    return rows[:, :words] if rows.shape[1] > words else rows
