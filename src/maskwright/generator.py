"""From a prompt and a type to an object: a decoding loop that always ends in complete output.

The loop keeps one promise at every step: what remains of the token budget suffices for the
shortest completion and EOS.  A sampled token that would break it is not taken; the completion
is written instead.
"""

from __future__ import annotations

import inspect
import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from maskwright._core import Matcher
from maskwright.arguments import real, whole
from maskwright.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace
from maskwright.compiler import CompiledGrammar
from maskwright.compiler import compile as compile_source
from maskwright.errors import LimitError, MaskwrightError, VocabularyError
from maskwright.frontends.python_types import PYTHON_OPTIONS, is_schema, parse_output, python_type_to_schema
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.partial import NOTHING as _NOTHING
from maskwright.partial import partial_value
from maskwright.sources import JsonSchema
from maskwright.vocabulary import Vocabulary

_COMPILED_LIMIT = 64
"""Compiled grammars that a generator remembers, by schema."""


@dataclass
class Generation:
    """One finished output.

    ``finish_reason`` is ``"stop"`` when the model ended the text itself, ``"budget"`` when the shortest
    completion was written because the token budget ran short.  Times are in seconds.
    """

    value: Any
    text: str
    token_ids: list[int]
    finish_reason: Literal["stop", "budget"]
    seconds: float
    mask_seconds: float


@dataclass(frozen=True)
class Step:
    """An output while it is written: its text and tokens so far, and the seconds spent on masks."""

    text: str
    tokens: int
    mask_seconds: float


@dataclass
class _Row:
    matcher: Matcher
    remaining: int
    ids: list[int] = field(default_factory=list)
    done: bool = False
    reason: Literal["stop", "budget"] = "stop"


class Generator:
    """Structured output from a Hugging Face causal language model.

    ``format_prompt(prompt, schema)`` makes the text that the model continues.  By default that is the
    tokenizer's chat template with the prompt as the user's message, or the prompt itself without one.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        format_prompt: Callable[[str, Any], str] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Raises ``VocabularyError`` when the tokenizer has no exact bytes or exceeds the model's vocabulary."""
        self.model = model
        self.tokenizer = tokenizer
        self.limits = limits
        self._format_prompt = format_prompt
        width = model.config.get_text_config().vocab_size
        highest = max(tokenizer.get_vocab().values(), default=-1)
        if highest >= width:
            raise VocabularyError(
                f"the tokenizer has ids up to {highest}, the model {width} logits: they do not belong together"
            )
        positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._context = positions if isinstance(positions, int) and positions > 0 else None
        self._forward_parameters = inspect.signature(model.forward).parameters
        eos_ids = model.generation_config.eos_token_id
        self.vocabulary = Vocabulary.from_huggingface(
            tokenizer, vocab_size=width, eos_ids=tokenizer.eos_token_id if eos_ids is None else eos_ids
        )
        self._compiled: OrderedDict[str, CompiledGrammar] = OrderedDict()

    @classmethod
    def from_pretrained(cls, name: str | None = None, **model_options: Any) -> Generator:
        """The model and tokenizer of a name or path; without one, the demo model of this package.

        ``model_options`` go to ``AutoModelForCausalLM.from_pretrained``.
        """
        from transformers import AutoModelForCausalLM, AutoTokenizer

        if name is None:
            from maskwright.demo import demo_model_path
            from maskwright.demo.prompts import format_prompt

            path = demo_model_path()
            model = AutoModelForCausalLM.from_pretrained(path, **model_options)
            return cls(model.eval(), AutoTokenizer.from_pretrained(path), format_prompt=format_prompt)
        model = AutoModelForCausalLM.from_pretrained(name, **model_options)
        return cls(model.eval(), AutoTokenizer.from_pretrained(name))

    def __call__(self, prompt: str, output_type: Any, **options: Any) -> Any:
        """The value for one prompt: data for a JSON Schema, an instance for a Python type.

        ``options``: see ``generate``.
        """
        return self.generate([prompt], output_type, **options)[0].value

    def batch(self, prompts: Sequence[str], output_type: Any, **options: Any) -> list[Any]:
        """The values for several prompts, decoded together."""
        return [generation.value for generation in self.generate(prompts, output_type, **options)]

    def stream(self, prompt: str, output_type: Any, **options: Any) -> Iterator[Any]:
        """One output while it grows: plain JSON data whenever it changed, at last the value of the type.

        Members, items and strings appear as far as they are written; numbers and literals once they are
        complete.  ``options``: see ``generate``.
        """
        shown: Any = _NOTHING
        text = ""
        for step in self.steps(prompt, output_type, **options):
            text = step.text
            partial = partial_value(text)
            if partial is not _NOTHING and partial != shown:
                shown = partial
                yield partial
        yield parse_output(_data_type(output_type), text)

    def steps(self, prompt: str, output_type: Any, **options: Any) -> Iterator[Step]:
        """One output, seen after every token.  ``options``: see ``generate``."""
        (row,), steps = self._start([prompt], output_type, **options)
        for mask_seconds in steps:
            # The end may be part of a character.
            text = self.vocabulary.decode(row.ids).decode("utf-8", "ignore")
            yield Step(text, len(row.ids), mask_seconds)

    def generate(
        self,
        prompts: Sequence[str],
        output_type: Any,
        *,
        max_new_tokens: int = 512,
        temperature: float | None = None,
        seed: int | None = None,
    ) -> list[Generation]:
        """Complete outputs for several prompts.

        ``output_type``: a JSON Schema (dict, bool, JSON text, ``JsonSchema``) or a Python type.
        ``max_new_tokens`` counts EOS; less is used when the model's context is shorter.  ``temperature``: None
        or 0 takes the likeliest token, else tokens are sampled, reproducibly with ``seed``.

        Raises ``LimitError`` when even the shortest output exceeds ``max_new_tokens`` or the context, the
        compiler's errors for the type, ``MaskwrightError`` for other bad arguments and for a model whose
        scores are no numbers, and ``OutputError`` for constraints of a type that a schema cannot say.
        """
        started = time.perf_counter()
        rows, steps = self._start(
            prompts, output_type, max_new_tokens=max_new_tokens, temperature=temperature, seed=seed
        )
        mask_seconds = list(steps)[-1]
        seconds = time.perf_counter() - started
        texts = [self.vocabulary.decode(row.ids).decode() for row in rows]
        return [
            Generation(
                parse_output(_data_type(output_type), text), text, row.ids, row.reason, seconds, mask_seconds
            )
            for row, text in zip(rows, texts, strict=True)
        ]

    def compile(self, output_type: Any) -> CompiledGrammar:
        """The compiled grammar of an output type, remembered by its schema."""
        if isinstance(output_type, JsonSchema):
            source = output_type
        elif is_schema(output_type):
            source = JsonSchema(output_type)
        else:
            source = JsonSchema(python_type_to_schema(output_type), **asdict(PYTHON_OPTIONS))
        key = repr(source)
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = compile_source(source, self.vocabulary, limits=self.limits)
            if len(self._compiled) > _COMPILED_LIMIT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(key)
        return compiled

    # --- the loop

    def _start(
        self,
        prompts: Sequence[str],
        output_type: Any,
        *,
        max_new_tokens: int = 512,
        temperature: float | None = None,
        seed: int | None = None,
    ) -> tuple[list[_Row], Iterator[float]]:
        if isinstance(prompts, str) or not prompts or not all(isinstance(prompt, str) for prompt in prompts):
            raise MaskwrightError("prompts is a non-empty list of strings")
        if temperature is not None and not math.isfinite(real(temperature, "temperature")):
            raise MaskwrightError(f"temperature is {temperature}; it must be finite and not negative")
        if seed is not None:
            seed = whole(seed, "seed")
        if not isinstance(max_new_tokens, int):
            raise MaskwrightError(f"max_new_tokens is a number of tokens, not {max_new_tokens!r}")
        compiled = self.compile(output_type)
        least = len(compiled.matcher().shortest_completion()) + 1
        if least > max_new_tokens:
            raise _too_short("max_new_tokens", least, max_new_tokens)
        encoded = self._encode([self._prompt_text(prompt, output_type) for prompt in prompts])
        rows = []
        for ids in encoded:
            room = max_new_tokens if self._context is None else self._context - len(ids)
            if least > room:
                raise _too_short(f"the model's context less a prompt of {len(ids)} tokens", least, room)
            rows.append(_Row(compiled.matcher(), min(max_new_tokens, room)))
        return rows, self._decode(rows, encoded, temperature, seed)

    def _prompt_text(self, prompt: str, output_type: Any) -> str:
        if self._format_prompt is not None:
            data_type = _data_type(output_type)
            schema = data_type if is_schema(data_type) else python_type_to_schema(data_type, narrowed=False)
            return self._format_prompt(
                prompt, json.loads(schema) if isinstance(schema, (str, bytes)) else schema
            )
        if getattr(self.tokenizer, "chat_template", None):
            message = [{"role": "user", "content": prompt}]
            text: str = self.tokenizer.apply_chat_template(
                message, tokenize=False, add_generation_prompt=True
            )
            return text
        return prompt

    def _decode(
        self, rows: list[_Row], encoded: list[list[int]], temperature: float | None, seed: int | None
    ) -> Iterator[float]:
        # Yields the seconds spent on masks so far, after each token.
        import torch

        device = self.model.device
        random = torch.Generator().manual_seed(seed) if seed is not None else None
        bitmask = allocate_token_bitmask(len(rows), self.vocabulary.vocab_size)
        width = max(map(len, encoded))
        padding = self.vocabulary.eos_ids[0]
        ids = torch.tensor([[padding] * (width - len(row)) + row for row in encoded])
        attention = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in encoded])
        past: Any = None
        mask_seconds = 0.0
        while True:
            options: dict[str, Any] = {}
            if "position_ids" in self._forward_parameters:
                positions = (attention.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
                options["position_ids"] = positions.to(device)
            if "logits_to_keep" in self._forward_parameters:
                options["logits_to_keep"] = 1
            with torch.no_grad():
                output = self.model(
                    input_ids=ids.to(device),
                    attention_mask=attention.to(device),
                    past_key_values=past,
                    use_cache=True,
                    **options,
                )
            past = output.past_key_values
            logits = output.logits[:, -1].float().cpu()
            before = time.perf_counter()
            for index, row in enumerate(rows):
                row.matcher.fill_next_token_bitmask(bitmask, index)
            apply_token_bitmask_inplace(logits, bitmask)
            mask_seconds += time.perf_counter() - before
            chosen = _choose(torch, logits, temperature, random)
            before = time.perf_counter()
            for row, token in zip(rows, chosen, strict=True):
                if not row.done:
                    _take(row, token)
            mask_seconds += time.perf_counter() - before
            yield mask_seconds
            if all(row.done for row in rows):
                return
            ids = torch.tensor([[token] for token in chosen])
            alive = torch.tensor([[0 if row.done else 1] for row in rows])
            attention = torch.cat([attention, alive], dim=1)

    def _encode(self, texts: list[str]) -> list[list[int]]:
        special = not getattr(self.tokenizer, "chat_template", None)
        encoded = [list(self.tokenizer(text, add_special_tokens=special)["input_ids"]) for text in texts]
        if not all(encoded):
            raise MaskwrightError("a prompt has no tokens; the model needs at least one to start from")
        return encoded


def _data_type(output_type: Any) -> Any:
    """The schema of a ``JsonSchema``, other types as they are."""
    return output_type.schema if isinstance(output_type, JsonSchema) else output_type


def _too_short(what: str, needed: int, allowed: int) -> LimitError:
    message = f"{what} is {allowed}, but the shortest output takes {needed} tokens, EOS included"
    return LimitError("max_new_tokens", needed, allowed, message=message)


def _choose(torch: Any, logits: Any, temperature: float | None, random: Any) -> list[int]:
    best = logits.amax(dim=-1, keepdim=True)
    if not bool(best.isfinite().all()):
        raise MaskwrightError("the model gives no finite score to any token that the grammar allows")
    if not temperature:
        chosen: list[int] = logits.argmax(dim=-1).tolist()
        return chosen
    # In double precision, relative to the best: no temperature overflows.
    probabilities = torch.softmax((logits - best).double() / temperature, dim=-1)
    sampled: list[int] = torch.multinomial(probabilities, 1, generator=random).squeeze(-1).tolist()
    return sampled


def _take(row: _Row, token: int) -> None:
    # Accept the token if the budget still suffices behind it; otherwise finish.
    matcher = row.matcher
    matcher.accept_token(token)
    row.remaining -= 1
    if matcher.is_terminated:
        row.done = True
        return
    # A token spells at least one byte, unless it stands for itself, so that few bytes need no look at the tokens.
    few = not matcher.compiled.has_tokens and len(matcher.shortest_completion_bytes()) < row.remaining
    if few or len(matcher.shortest_completion()) < row.remaining:
        row.ids.append(token)
        return
    matcher.rollback(1)
    completion = matcher.shortest_completion()
    matcher.accept_tokens(completion)
    row.ids.extend(completion)
    row.done = True
    row.reason = "budget"
