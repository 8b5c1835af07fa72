"""The back-end that vLLM's engine talks to, and the check of its front-end; imported when a request first needs it.

Both processes compile: the front-end to refuse what cannot be enforced before it reaches the engine, the engine to use it.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any

import torch
from vllm.exceptions import VLLMValidationError
from vllm.logger import init_logger
from vllm.utils.mistral import is_mistral_tokenizer
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)
from vllm.v1.structured_output.request import get_structured_output_key
from vllm.v1.structured_output.utils import grammar_is_likely_lark

import maskwright as mw
from maskwright.integrations.requests import allow, compile_grammar_text, deny, limits_of_environment

logger = init_logger("vllm.maskwright")

_VOCABULARIES_KEPT = 4
_IGNORED = ("whitespace_pattern", "disable_any_whitespace", "disable_additional_properties")
"""Options of a request that no back-end of vLLM is told about."""


GRAMMAR_BYTES = 2**28
"""What compiled grammars that may be asked for again take, in each of vLLM's processes (bytes)."""


class RequestCompiler:
    """From what vLLM sends to compiled grammars, for one tokenizer and one set of options."""

    def __init__(self, tokenizer: Any, model_config: Any, vocab_size: int, options: dict[str, Any]) -> None:
        self._tokenizer = tokenizer
        self._model_config = model_config
        self._vocab_size = vocab_size
        self._options = options
        self._limits = limits_of_environment("MASKWRIGHT_VLLM_LIMITS")
        self._vocabulary: mw.Vocabulary | mw.VocabularyError | None = None
        self._reading = Lock()

    @property
    def vocabulary(self) -> mw.Vocabulary:
        """Read on first use, which takes a second: in the engine, that is a thread that compiles.

        Raises ``VocabularyError``, each time, when the tokenizer has no exact bytes.
        """
        with self._reading:
            if self._vocabulary is None:
                try:
                    self._vocabulary = self._read()
                    # Servers meet many schemas again.  The bound is the vocabulary's, whoever compiles.
                    mw.Compiler(self._vocabulary, cache_bytes=GRAMMAR_BYTES)
                except mw.VocabularyError as error:
                    self._vocabulary = error
        if isinstance(self._vocabulary, mw.VocabularyError):
            raise self._vocabulary.with_traceback(None)
        return self._vocabulary

    def _read(self) -> mw.Vocabulary:
        tokenizer, size = self._tokenizer, self._vocab_size
        ends = [token for token in self._end_ids() if 0 <= token < size] or None
        # vLLM decodes the output behind its prompt, where a word keeps the blank that it starts with.
        if is_mistral_tokenizer(tokenizer):
            return mw.Vocabulary.from_mistral_common(
                tokenizer.mistral, vocab_size=size, eos_ids=ends, word_start_mark="keep"
            )
        return mw.Vocabulary.from_huggingface(
            tokenizer, vocab_size=size, eos_ids=ends, word_start_mark="keep"
        )

    def _end_ids(self) -> list[int]:
        """Of the tokenizer and the generation config, as vLLM takes them for requests that say nothing."""
        found = [getattr(self._tokenizer, "eos_token_id", None)]
        read = getattr(self._model_config, "try_get_generation_config", None)
        given = read().get("eos_token_id") if read is not None else None
        found += given if isinstance(given, (list, tuple)) else [given]
        return list(dict.fromkeys(token for token in found if token is not None))

    def compile(self, kind: StructuredOutputOptions, spec: str) -> Any:
        """The compiled grammar of one request; equal ones share it.  Raises the errors of ``mw.compile``."""
        vocabulary = self.vocabulary
        if kind != StructuredOutputOptions.GRAMMAR:
            return mw.compile(self._source(kind, spec), vocabulary, limits=self._limits)
        return compile_grammar_text(spec, grammar_is_likely_lark(spec), vocabulary, self._limits)

    def _source(self, kind: StructuredOutputOptions, spec: str) -> Any:
        if kind == StructuredOutputOptions.JSON:
            return mw.JsonSchema(spec, **self._options)
        if kind == StructuredOutputOptions.JSON_OBJECT:
            return mw.JsonSchema({"type": "object"}, **self._options)
        if kind == StructuredOutputOptions.REGEX:
            return mw.Regex(spec)
        if kind == StructuredOutputOptions.CHOICE:
            return mw.Choice(json.loads(spec))
        if kind == StructuredOutputOptions.STRUCTURAL_TAG:
            return mw.StructuralTag(spec, mw.SchemaOptions(**self._options))
        raise mw.GrammarError(f"structured outputs of the kind {kind.name} are not supported")


_compilers: OrderedDict[tuple[Any, ...], RequestCompiler] = OrderedDict()
_compilers_lock = Lock()


def compiler_for(tokenizer: Any, model_config: Any, vocab_size: int, config: Any) -> RequestCompiler:
    """One a tokenizer: front-end and engine share it where they live in one process."""
    options: dict[str, Any] = {}
    if config.disable_any_whitespace:
        options["whitespace"] = "compact"
    if config.disable_additional_properties:
        options["additional_properties"] = False
    key = (id(tokenizer), id(model_config), vocab_size, *options.items())
    with _compilers_lock:
        found = _compilers.pop(key, None)
        if found is None:
            # It holds both, so that nothing else gets their ids.
            found = RequestCompiler(tokenizer, model_config, vocab_size, options)
        _compilers[key] = found
        while len(_compilers) > _VOCABULARIES_KEPT:
            _compilers.popitem(last=False)
    return found


def check(params: Any, model_config: Any, config: Any, tokenizer: Any) -> None:
    """Whether a request can be served; in the front-end process.  Raises ``VLLMValidationError``, which is a 400."""
    for option in _IGNORED:
        if getattr(params, option, None):
            raise VLLMValidationError(
                "this option cannot be set by a request: --structured-outputs-config has disable_any_whitespace and "
                "disable_additional_properties for all",
                parameter=f"structured_outputs.{option}",
            )
    name = next((name for name in _FIELDS if getattr(params, name, None) is not None), None)
    parameter = f"structured_outputs.{name}"
    if params.json_object is False:
        raise VLLMValidationError("json_object must be true, or left out", parameter=parameter)
    try:
        kind, spec = get_structured_output_key(params)
        compiler_for(tokenizer, model_config, model_config.get_vocab_size(), config).compile(kind, spec)
    except (mw.MaskwrightError, TypeError, ValueError, RecursionError) as error:
        raise VLLMValidationError(str(error), parameter=parameter) from error


_FIELDS = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")


@dataclass
class MaskwrightBackend(StructuredOutputBackend):  # type: ignore[misc, unused-ignore]
    """One in each engine; its threads compile, and its scheduler fills the masks of all requests."""

    def __post_init__(self) -> None:
        config = self.vllm_config
        self._compiler = compiler_for(
            self.tokenizer, config.model_config, self.vocab_size, config.structured_outputs_config
        )
        # A step accepts what was drafted and one token more; no more is ever taken back.
        self._window = 1 + (getattr(config, "num_speculative_tokens", 0) or 0)

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> MaskwrightGrammar:
        """A matcher of its own for each sequence.  What it raises is the end of this request alone."""
        compiled = self._compiler.compile(request_type, grammar_spec)
        return MaskwrightGrammar(compiled, stop_token_ids or (), self._window)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """All tokens allowed, as vLLM expects it of rows without a grammar."""
        return torch.from_numpy(mw.allocate_token_bitmask(max_num_seqs, self.vocab_size))

    def destroy(self) -> None:
        """Nothing: grammars and vocabularies go with the last one who has them."""


class MaskwrightGrammar(StructuredOutputGrammar):  # type: ignore[misc, unused-ignore]
    """The state of one sequence.

    ``ends``: the ids that end the text for this request (EOS, and the stop tokens of the user).  The vocabulary's own are
    others where a request has its own; the matcher knows of its own only, so ids are exchanged on the way in and out.

    No method raises: the scheduler calls them for all sequences in one go, and vLLM ends when one of them raises.  Where a mask cannot be
    computed (a limit), only the ends are allowed; unless the text happens to be complete, the end is then rejected, and
    vLLM finishes this request with an error.
    """

    def __init__(self, compiled: Any, ends: Any, window: int) -> None:
        vocabulary = compiled.vocabulary
        own = vocabulary.eos_ids
        size = self._vocab_size = len(vocabulary)
        self._words = (size + 31) // 32
        self._ends = frozenset(token for token in ends if 0 <= token < size) or frozenset(own)
        self._end = own[0]
        self._others = frozenset(own) - self._ends
        self._exchanged = self._ends != frozenset(own)
        self._matcher = compiled.matcher(max_rollback=window)

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Advance by all of them; or by none, and False.  What follows the end is accepted and ignored (``ignore_eos``)."""
        matcher = self._matcher
        if matcher.is_terminated:
            return True
        try:
            count = matcher.accept_tokens(self._known(tokens))
            if count == len(tokens) or matcher.is_terminated:
                return True
            matcher.rollback(count)
        except Exception as error:
            logger.error("Request %s: %s", request_id, error)
        return False

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The longest prefix that could be accepted; nothing changes."""
        try:
            return tokens[: self._matcher.validate_tokens(self._known(tokens))]
        except Exception as error:
            logger.error("Drafted tokens are not checked: %s", error)
            return []

    def rollback(self, num_tokens: int) -> None:
        """Take back the last accepted tokens."""
        try:
            self._matcher.rollback(num_tokens)
        except Exception as error:
            # It is where it was, and rejects what does not fit there.
            logger.error("Cannot go back: %s", error)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write which tokens may come next.  Threads may do this for several sequences at once."""
        rows = bitmask.numpy()
        if rows.shape[1] != self._words:
            rows[batch_index, self._words :] = 0
            rows = rows[:, : self._words]
        try:
            self._matcher.fill_next_token_bitmask(rows, batch_index)
            ending = self._matcher.is_accepting if self._exchanged else False
        except Exception as error:
            logger.error("No mask can be computed, and the request has to end: %s", error)
            rows[batch_index] = 0
            allow(rows[batch_index], self._ends)
            return
        if self._exchanged:
            row = rows[batch_index]
            deny(row, self._others if ending else self._ends)
            if ending:
                allow(row, self._ends)

    def is_terminated(self) -> bool:
        """Whether an end was accepted."""
        return bool(self._matcher.is_terminated)

    def reset(self) -> None:
        """Back to the start of the text."""
        self._matcher.reset()

    def _known(self, tokens: list[int]) -> list[int]:
        """The tokens by the ids of the matcher, up to the first that it does not know: drafts come from other vocabularies,
        and are filled up with -1."""
        known = []
        for token in tokens:
            if token in self._ends:
                token = self._end
            elif token in self._others or not 0 <= token < self._vocab_size:
                break
            known.append(token)
        return known
