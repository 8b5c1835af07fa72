"""The engines that write the answers: free text, maskwright in several settings, and its peers.

Peers, free text and "maskwright, plain masks" share one loop: one forward pass a token with a cache of keys and values, the
mask applied to the logits, the likeliest token taken.  The other rows of maskwright are its ``Generator``.  What a peer needs
is imported when it is made, so a run without a peer does not need that peer.
"""

from __future__ import annotations

import importlib.metadata
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from quality_tasks import Language, Task

import maskwright as mw
from maskwright.generation.model_cache import cache_of, cache_parameter


class EngineError(Exception):
    """This engine cannot run here; the message says why."""


class RefusedError(Exception):
    """An engine does not take this language; the message is its own."""


@dataclass
class Answer:
    """One output and what it took.

    ``tokens``: of the output, without EOS; ``paid_tokens``: of all candidates.  ``model_calls``: forward passes, the prompt's
    included.  ``removed``: mean over the steps of the probability that the mask took away; None without steps.
    ``seconds``: all of it; ``compile_seconds``: of these, until the first mask could be asked for.  ``refused``: why the
    engine did not take the language, or failed on the way.
    """

    text: str = ""
    finished: bool = False
    tokens: int = 0
    paid_tokens: int = 0
    model_calls: int = 0
    forced_tokens: int = 0
    removed: float | None = None
    seconds: float = 0.0
    compile_seconds: float = 0.0
    refused: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Setup:
    """What all engines share: the model, its tokenizer, and the vocabulary with the ends of text."""

    model: Any
    tokenizer: Any
    max_tokens: int
    vocabulary: mw.Vocabulary = field(init=False)

    def __post_init__(self) -> None:
        self.vocabulary = mw.Vocabulary.from_huggingface(
            self.tokenizer,
            vocab_size=self.model.config.vocab_size,
            eos_ids=self.model.generation_config.eos_token_id,
        )

    @property
    def width(self) -> int:
        """How many logits there are."""
        return self.vocabulary.vocab_size

    def prompt_ids(self, messages: list[dict[str, str]]) -> list[int]:
        text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))


class Engine(Protocol):
    def answer(self, task: Task, messages: list[dict[str, str]]) -> Answer: ...


class Constraint(Protocol):
    """One output of a mask engine."""

    def allowed(self) -> Any:
        """Whether each token is allowed, bool [V]."""
        ...

    def accept(self, token: int) -> bool: ...

    def is_over(self) -> bool:
        """Whether the engine says that the output has ended, EOS or not."""
        ...


class MaskLoop:
    """Greedy decoding with masks, one pass a token.  ``make``: a constraint for a language; None: free text."""

    def __init__(self, setup: Setup, make: Callable[[Language], Constraint] | None) -> None:
        self.setup, self.make = setup, make

    def answer(self, task: Task, messages: list[dict[str, str]]) -> Answer:
        started = time.perf_counter()
        constraint = None
        if self.make is not None:
            try:
                constraint = self.make(task.language)
            except Exception as error:  # peers raise what they like
                return Answer(refused=f"{type(error).__name__}: {error}"[:300])
        answer = Answer(compile_seconds=time.perf_counter() - started)
        try:
            self._decode(answer, constraint, self.setup.prompt_ids(messages))
        except Exception as error:
            if constraint is None:
                raise
            answer.refused = f"{type(error).__name__}: {error}"[:300]
        answer.seconds = time.perf_counter() - started
        return answer

    @torch.inference_mode()
    def _decode(self, answer: Answer, constraint: Constraint | None, prompt: list[int]) -> None:
        setup = self.setup
        ids: list[int] = []
        removed: list[float] = []
        cache, given = None, prompt
        while len(ids) < setup.max_tokens and not answer.finished:
            out = setup.model(
                torch.tensor([given]),
                use_cache=True,
                logits_to_keep=1,
                **{cache_parameter(setup.model): cache},
            )
            cache, logits = cache_of(out), out.logits[0, -1]
            answer.model_calls += 1
            if constraint is not None:
                allowed = constraint.allowed()
                if not allowed.any():
                    raise RefusedError(f"no token is allowed behind {setup.decode(ids)[-60:]!r}")
                removed.append(float(1 - torch.softmax(logits.double(), -1)[allowed].sum()))
                logits = logits.masked_fill(~allowed, -torch.inf)
            token = int(logits.argmax())
            if constraint is not None and not constraint.accept(token):
                raise RefusedError(f"token {token} is in the mask and is not accepted")
            if token in setup.vocabulary.eos_ids:
                answer.finished = True
                break
            ids.append(token)
            given = [token]
            answer.finished = constraint is not None and constraint.is_over()
        answer.text, answer.tokens, answer.paid_tokens = setup.decode(ids), len(ids), len(ids)
        answer.removed = float(np.mean(removed)) if removed else None


def unpacked(bitmask: Any, width: int) -> Any:
    """Packed words (int32, least significant bit first) as bool [V]."""
    words = np.ascontiguousarray(np.asarray(bitmask).reshape(-1))
    return torch.from_numpy(np.unpackbits(words.view(np.uint8), bitorder="little")[:width].astype(bool))


# --- maskwright


def our_type(language: Language, options: dict[str, Any]) -> Any:
    """A task's language as an output type of ``Generator``: a schema as it is, or with ``options``."""
    if language.schema is not None:
        return mw.JsonSchema(language.schema, **options) if options else language.schema
    return mw.Regex(language.regex) if language.grammar is None else mw.GBNF(language.grammar)


class PlainMasks:
    """The masks of what ``Generator`` makes of a language."""

    def __init__(self, setup: Setup) -> None:
        self.generator, self.width = mw.Generator(setup.model, setup.tokenizer), setup.width

    def __call__(self, language: Language) -> Constraint:
        return OurMasks(self.generator.compile(our_type(language, {})).matcher(), self.width)


class OurMasks:
    def __init__(self, matcher: mw.Matcher, width: int) -> None:
        self.matcher, self.width = matcher, width
        self.bitmask = mw.allocate_token_bitmask(1, self.width)

    def allowed(self) -> Any:
        self.matcher.fill_next_token_bitmask(self.bitmask, 0)
        return unpacked(self.bitmask, self.width)

    def accept(self, token: int) -> bool:
        return bool(self.matcher.accept_token(token))

    def is_over(self) -> bool:
        return bool(self.matcher.is_terminated)


class Generate:
    """maskwright's ``Generator``.

    ``schema_options`` go to ``JsonSchema``, ``options`` to ``generate``.  With ``best_of``, so many outputs are sampled and the one
    with the highest mean log-probability a token is the answer.
    """

    def __init__(
        self, setup: Setup, schema_options: dict[str, Any], options: dict[str, Any], best_of: int = 0
    ) -> None:
        self.setup, self.schema_options, self.options, self.best_of = setup, schema_options, options, best_of
        self.generator = mw.Generator(setup.model, setup.tokenizer)
        probe = {"schema": {"type": "boolean"}}
        try:
            self.generator.generate(
                ["Yes?"], mw.JsonSchema(**probe, **schema_options), max_new_tokens=4, **options
            )
        except (TypeError, mw.MaskwrightError) as error:
            raise EngineError(str(error)) from error

    def answer(self, task: Task, messages: list[dict[str, str]]) -> Answer:
        started = time.perf_counter()
        output_type = our_type(task.language, self.schema_options)
        self.generator.compile(output_type)
        compiled = time.perf_counter() - started
        options = dict(self.options)
        if self.best_of:
            options |= {"n": self.best_of, "logprobs": True}
        found = self.generator.generate(
            [messages], output_type, max_new_tokens=self.setup.max_tokens, **options
        )
        best = max(found, key=lambda each: float(np.mean(each.logprobs or [0.0])))
        return Answer(
            text=best.text,
            finished=best.finish_reason == "stop",
            tokens=best.usage.generated_tokens,
            paid_tokens=sum(each.usage.generated_tokens for each in found),
            model_calls=max(each.usage.model_calls for each in found),
            forced_tokens=best.usage.forced_tokens,
            removed=float(np.mean(best.removed_mass.steps)) if best.removed_mass.steps else None,
            seconds=time.perf_counter() - started,
            compile_seconds=compiled,
        )


# --- peers, each in the way that its documentation shows


class Llguidance:
    def __init__(self, setup: Setup) -> None:
        import llguidance.hf

        self.width = setup.width
        self.tokenizer = llguidance.hf.from_tokenizer(
            setup.tokenizer, n_vocab=setup.width, eos_token=list(setup.vocabulary.eos_ids)
        )

    def __call__(self, language: Language) -> Constraint:
        from llguidance import LLMatcher
        from llguidance.gbnf_to_lark import any_to_lark

        if language.schema is not None:
            grammar = LLMatcher.grammar_from_json_schema(language.schema)
        elif language.grammar is not None:
            grammar = LLMatcher.grammar_from_lark(any_to_lark(language.grammar))
        else:
            grammar = LLMatcher.grammar_from_regex(language.regex)
        return LlguidanceMasks(self.tokenizer, grammar, self.width)


class LlguidanceMasks:
    def __init__(self, tokenizer: Any, grammar: str, width: int) -> None:
        from llguidance import LLMatcher
        from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

        self.matcher, self.width = LLMatcher(tokenizer, grammar, log_level=0), width
        if self.matcher.is_error():
            raise RefusedError(self.matcher.get_error())
        self.bitmask, self.fill = allocate_token_bitmask(1, width), fill_next_token_bitmask

    def allowed(self) -> Any:
        self.fill(self.matcher, self.bitmask, 0)
        return unpacked(self.bitmask, self.width)

    def accept(self, token: int) -> bool:
        return bool(self.matcher.consume_token(token))

    def is_over(self) -> bool:
        return bool(self.matcher.is_stopped())


class Xgrammar:
    def __init__(self, setup: Setup) -> None:
        import xgrammar

        info = xgrammar.TokenizerInfo.from_huggingface(
            setup.tokenizer, vocab_size=setup.width, stop_token_ids=list(setup.vocabulary.eos_ids)
        )
        self.compiler, self.width = xgrammar.GrammarCompiler(info, max_threads=1), setup.width

    def __call__(self, language: Language) -> Constraint:
        if language.schema is not None:
            compiled = self.compiler.compile_json_schema(json.dumps(language.schema))
        elif language.grammar is not None:
            compiled = self.compiler.compile_grammar(language.grammar)
        else:
            compiled = self.compiler.compile_regex(language.regex)
        return XgrammarMasks(compiled, self.width)


class XgrammarMasks:
    def __init__(self, compiled: Any, width: int) -> None:
        import xgrammar

        self.matcher, self.width = xgrammar.GrammarMatcher(compiled), width
        self.bitmask = xgrammar.allocate_token_bitmask(1, width)

    def allowed(self) -> Any:
        self.matcher.fill_next_token_bitmask(self.bitmask, 0)
        return unpacked(self.bitmask, self.width)

    def accept(self, token: int) -> bool:
        return bool(self.matcher.accept_token(token))

    def is_over(self) -> bool:
        return bool(self.matcher.is_terminated())


class Outlines:
    """outlines-core: a regular expression from the schema, and an index of all its states and tokens."""

    def __init__(self, setup: Setup) -> None:
        from outlines_core import Guide, Index, Vocabulary
        from outlines_core.json_schema import build_regex_from_schema

        by_bytes: dict[bytes, list[int]] = {}
        for i, data in enumerate(setup.vocabulary.tokens):
            if data:
                by_bytes.setdefault(data, []).append(i)
        self.vocabulary, self.width = Vocabulary(setup.vocabulary.eos_ids[0], by_bytes), setup.width
        self.regex, self.index, self.guide = build_regex_from_schema, Index, Guide

    def __call__(self, language: Language) -> Constraint:
        regex = language.regex if language.schema is None else self.regex(json.dumps(language.schema))
        guide = self.guide(self.index(regex, self.vocabulary))
        return OutlinesMasks(guide, self.width, self.vocabulary.get_eos_token_id())


class OutlinesMasks:
    def __init__(self, guide: Any, width: int, eos: int) -> None:
        self.guide, self.width, self.eos = guide, width, eos
        self.bitmask = np.zeros((width + 31) // 32, dtype=np.int32)

    def allowed(self) -> Any:
        self.guide.write_mask_into(self.bitmask.ctypes.data, self.bitmask.size, self.bitmask.itemsize)
        return unpacked(self.bitmask, self.width)

    def accept(self, token: int) -> bool:
        if token == self.eos:  # it is in masks, but no transition
            return bool(self.guide.is_finished())
        try:
            self.guide.advance(token, return_tokens=False)
        except ValueError:  # no such transition
            return False
        return True

    def is_over(self) -> bool:
        return False


class FormatEnforcer:
    """lm-format-enforcer, with the tokens as its integration for transformers lists them (which needs transformers 4)."""

    def __init__(self, setup: Setup) -> None:
        from lmformatenforcer import TokenEnforcerTokenizerData

        tokenizer = setup.tokenizer
        zero = tokenizer.encode("0")[-1]
        regular = []
        for i in range(setup.width):
            if i not in tokenizer.all_special_ids:
                behind, alone = tokenizer.decode([zero, i])[1:], tokenizer.decode([i])
                regular.append((i, behind, len(behind) > len(alone)))
        self.width = setup.width
        self.data = TokenEnforcerTokenizerData(
            regular, self._decode(tokenizer), list(setup.vocabulary.eos_ids), False, setup.width
        )

    @staticmethod
    def _decode(tokenizer: Any) -> Callable[[list[int]], str]:
        # A character whose last bytes are missing is no part of the text yet.
        return lambda ids: str(tokenizer.decode(ids)).rstrip("\ufffd")

    def __call__(self, language: Language) -> Constraint:
        from lmformatenforcer import JsonSchemaParser, RegexParser, TokenEnforcer

        if language.schema is not None:
            parser = JsonSchemaParser(language.schema)
        else:
            parser = RegexParser(language.regex)
        return FormatEnforcerMasks(TokenEnforcer(self.data, parser), self.width)


class FormatEnforcerMasks:
    def __init__(self, enforcer: Any, width: int) -> None:
        self.enforcer, self.width = enforcer, width
        self.ids: list[int] = []
        self.mask = self._next()

    def _next(self) -> Any:
        mask = torch.zeros(self.width, dtype=torch.bool)
        mask[self.enforcer.get_allowed_tokens(self.ids).allowed_tokens] = True
        return mask

    def allowed(self) -> Any:
        return self.mask

    def accept(self, token: int) -> bool:
        known = bool(self.mask[token])
        self.ids.append(token)
        self.mask = self._next()
        return known

    def is_over(self) -> bool:
        return False


# --- by name

PACKAGES = {
    "llguidance": "llguidance",
    "xgrammar": "xgrammar",
    "outlines-core": "outlines-core",
    "lm-format-enforcer": "lm-format-enforcer",
}
PEERS: dict[str, Callable[[Setup], Callable[[Language], Constraint]]] = {
    "llguidance": Llguidance,
    "xgrammar": Xgrammar,
    "outlines-core": Outlines,
    "lm-format-enforcer": FormatEnforcer,
}
CLOSED = {"additional_properties": False}
"""What ``Generator`` makes of a schema that is given as it is."""
SAMPLED = {"temperature": 1.0, "seed": 0}
OURS: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "maskwright": ({}, {}, 0),
    "maskwright open": ({"additional_properties": True}, {}, 0),
    "maskwright wide": ({"whitespace": "flexible", "escapes": "any", **CLOSED}, {}, 0),
    "maskwright compact": ({"whitespace": "compact", **CLOSED}, {}, 0),
    "maskwright indent 2": ({"whitespace": 2, **CLOSED}, {}, 0),
    "maskwright beams 4": ({}, {"num_beams": 4}, 0),
    "maskwright best of 8": ({}, SAMPLED, 8),
    **{f"maskwright particles {n}": ({}, {"particles": n, "seed": 0}, 0) for n in (1, 4, 8, 16)},
}
"""Name -> (options of ``JsonSchema``, options of ``generate``, how many are sampled to choose from)."""
PLAIN = "maskwright plain masks"
NAMES = ("free", PLAIN, *OURS, *PEERS)


def make(name: str, setup: Setup) -> Engine:
    """Set up one engine; raises ``EngineError`` when it is unknown, not installed, or lacks what the row needs."""
    if name not in NAMES:
        raise EngineError(f"no engine {name!r}; there are {', '.join(NAMES)}")
    if name == "free":
        return MaskLoop(setup, None)
    if name == PLAIN:
        return MaskLoop(setup, PlainMasks(setup))
    if name in OURS:
        return Generate(setup, *OURS[name])
    try:
        importlib.metadata.version(PACKAGES[name])
        return MaskLoop(setup, PEERS[name](setup))
    except importlib.metadata.PackageNotFoundError as error:
        raise EngineError(f"{name} is not installed: pip install {PACKAGES[name]}") from error
