"""From a prompt and an output type to a value: structured output from a Hugging Face model.

One loop (``maskwright.generation``) serves single prompts, batches, streams and asynchronous callers.  It keeps one
promise at every step: what remains of the token budget suffices for the shortest completion and EOS.  A token that would
break it is not taken; the completion is written instead.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from maskwright.base.arguments import whole
from maskwright.base.typed import Value
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.compiling.compiler import compile as compile_source
from maskwright.errors import LimitError, MaskwrightError, VocabularyError
from maskwright.generation.background import Background
from maskwright.generation.batch import Batch
from maskwright.generation.beams import beam_search
from maskwright.generation.candidates import plans, posterior, whole_logprob
from maskwright.generation.chooser import Chooser, seed_at
from maskwright.generation.drafts import Drafter, Habits
from maskwright.generation.encoder_decoder import EncoderDecoderRows
from maskwright.generation.guidance import GuidedRows
from maskwright.generation.jobs import Job, Started, chooser_of, parts_of, result_of, step_of
from maskwright.generation.key_values import KeyValueRows, Prefixes
from maskwright.generation.metrics import Metrics
from maskwright.generation.model_cache import cache_parameter
from maskwright.generation.options import GenerationOptions, options_of
from maskwright.generation.outputs import Changes, Output
from maskwright.generation.prompts import Prompt, Prompter, is_messages
from maskwright.generation.results import Generation, Step
from maskwright.generation.row import Row, Stop, too_short
from maskwright.generation.searched import searched, strategy_of, value_of
from maskwright.generation.stops import check_stops
from maskwright.generation.trace import Trace, trace
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.masks.forced import ForcedText
from maskwright.sources import Source
from maskwright.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from maskwright.sampling.constraints import Constraint
    from maskwright.search.configurable import Configurable
    from maskwright.search.strategy import Strategy

Returned = TypeVar("Returned")
Asked: TypeAlias = type[Value] | Source[Value]
"""Output types of which a type checker knows the value: classes, and sources.  Of a function it is a ready call, and of others (unions, schemas) any value."""


class Generator:
    """Structured output from a Hugging Face causal or encoder-decoder language model.

    A prompt is a text or a list of messages.  Messages, and a text as the user's message, go through the tokenizer's chat
    template where it has one; ``format_prompt(prompt, schema)``, if given, makes the text that the model continues from a
    prompt that is a text.  ``batch_size``: how many outputs run together at most; others join as they finish.

    An output type is a JSON Schema (dict, bool, JSON text), a Python type (pydantic model, dataclass, TypedDict, Literal, Enum,
    ``list[int]``), a function, whose value is a ready call, or any source: ``JsonSchema``, ``Regex``, ``Choice``, ``Lark``,
    ``GBNF``, ``StructuralTag``.

    ``metrics`` counts each output as it ends: whether it is valid, its tokens and seconds.

    Safe for several threads; forward passes take turns.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        format_prompt: Callable[[str, Any], str] | None = None,
        batch_size: int = 8,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Raises ``VocabularyError`` when the tokenizer has no exact bytes or exceeds the model's vocabulary."""
        self.model = model
        self.tokenizer = tokenizer
        self.limits = limits
        self.batch_size = whole(batch_size, "batch_size", low=1)
        if not hasattr(model, "config") or not hasattr(tokenizer, "get_vocab"):
            raise MaskwrightError(
                "a generator needs a model and a tokenizer of transformers, "
                f"not {type(model).__name__} and {type(tokenizer).__name__}"
            )
        config = model.config.get_text_config(decoder=True)
        width = config.vocab_size
        highest = max(tokenizer.get_vocab().values(), default=-1)
        if highest >= width:
            raise VocabularyError(
                f"the tokenizer has ids up to {highest}, the model {width} logits: they do not belong together"
            )
        if cache_parameter(model) is None:
            raise MaskwrightError(
                f"{type(model).__name__} keeps no past_key_values, without which every token would read the whole text anew"
            )
        self._encodes = bool(getattr(model.config, "is_encoder_decoder", False))
        positions = getattr(config, "max_position_embeddings", None)
        self._context = positions if isinstance(positions, int) and positions > 0 else None
        eos_ids = model.generation_config.eos_token_id
        self.vocabulary = Vocabulary.from_huggingface(
            tokenizer, vocab_size=width, eos_ids=tokenizer.eos_token_id if eos_ids is None else eos_ids
        )
        self.metrics = Metrics()
        self._prompter = Prompter(tokenizer, format_prompt)
        self._forced = ForcedText(tokenizer, self.vocabulary)
        self._habits: weakref.WeakKeyDictionary[Any, Habits] = weakref.WeakKeyDictionary()
        self._prefixes = Prefixes()
        # Held as long as the model runs.
        self._lock = threading.RLock()
        self._habits_lock = threading.Lock()
        self._background = Background(self._batch, self._lock)

    @classmethod
    def from_pretrained(cls, name: str | None = None, **model_options: Any) -> Generator:
        """The model and tokenizer of a name or path; without one, SmolLM2-135M-Instruct (``default_model``).

        ``model_options`` go to ``from_pretrained`` of the model's class in transformers.
        """
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

        if name is None:
            from maskwright.generation.default_model import default_model

            name = default_model()
        encodes = AutoConfig.from_pretrained(name).is_encoder_decoder
        kind = AutoModelForSeq2SeqLM if encodes else AutoModelForCausalLM
        return cls(kind.from_pretrained(name, **model_options).eval(), AutoTokenizer.from_pretrained(name))

    # --- outputs

    @overload
    def __call__(
        self, prompt: Prompt, output_type: Asked[Value], *, n: Literal[1] = 1, **options: Any
    ) -> Value: ...
    @overload
    def __call__(
        self, prompt: Prompt, output_type: Asked[Value], *, n: int, **options: Any
    ) -> list[Value]: ...
    @overload
    def __call__(
        self, prompt: Prompt, output_type: Callable[..., Returned], *, n: Literal[1] = 1, **options: Any
    ) -> partial[Returned]: ...
    @overload
    def __call__(self, prompt: Prompt, output_type: Any, **options: Any) -> Any: ...
    def __call__(self, prompt: Prompt, output_type: Any, **options: Any) -> Any:
        """The value for one prompt, or with ``n`` a list of values.  ``options``: see ``generate``."""
        values = [generation.value for generation in self.generate([prompt], [output_type], **options)]
        return values if options.get("n", 1) != 1 else values[0]

    @overload
    def batch(self, prompts: Sequence[Prompt], output_type: Asked[Value], **options: Any) -> list[Value]: ...
    @overload
    def batch(
        self, prompts: Sequence[Prompt], output_type: Callable[..., Returned], **options: Any
    ) -> list[partial[Returned]]: ...
    @overload
    def batch(self, prompts: Sequence[Prompt], output_type: Any, **options: Any) -> list[Any]: ...
    def batch(self, prompts: Sequence[Prompt], output_type: Any, **options: Any) -> list[Any]:
        """The values for several prompts, decoded together.  ``output_type``: one for all, or a list with one a prompt."""
        return [generation.value for generation in self.generate(prompts, output_type, **options)]

    @overload
    def generate(
        self, prompts: Sequence[Prompt], output_type: Asked[Value], **options: Any
    ) -> list[Generation[Value]]: ...
    @overload
    def generate(
        self, prompts: Sequence[Prompt], output_type: Callable[..., Returned], **options: Any
    ) -> list[Generation[partial[Returned]]]: ...
    @overload
    def generate(
        self, prompts: Sequence[Prompt], output_type: Any, **options: Any
    ) -> list[Generation[Any]]: ...
    def generate(self, prompts: Sequence[Prompt], output_type: Any, **options: Any) -> list[Generation]:
        """Complete outputs for several prompts, in their order; with ``n``, so many in a row for each.

        ``output_type``: one for all, or a list with one a prompt.  ``options``: the fields of
        ``maskwright.generation.options.GenerationOptions``: ``max_new_tokens``, ``temperature``, ``top_p``, ``top_k``, ``min_p``,
        ``repetition_penalty``, ``stop``, ``seed``, ``n``, ``logprobs``, ``particles``, ``num_beams``, ``schema_in_prompt``.

        Raises ``LimitError`` when even the shortest output exceeds ``max_new_tokens`` or the context, the compiler's errors
        for the type, ``MaskwrightError`` for other bad arguments, ``ModelError`` for a model whose scores are no
        numbers, and ``OutputError`` for constraints of a type that a schema cannot say.
        """
        asked = options_of(options)
        jobs = self._jobs(prompts, output_type, asked)
        rows = [row for job in jobs for row in self._rows(job, asked)]
        for _ in self._run(rows):
            pass
        outputs = [job.output for job in jobs for _ in range(asked.n)]
        return [result_of(row, output, asked) for row, output in zip(rows, outputs, strict=True)]

    @overload
    def search(
        self,
        prompt: Prompt,
        output_type: Asked[Value],
        strategy: Strategy | str | Path,
        reward: Callable[[Value], float],
        *,
        constraints: Mapping[str, Constraint | Configurable] | None = ...,
        budget: int = ...,
        seed: int | None = ...,
        schema_in_prompt: bool = ...,
    ) -> Value | None: ...
    @overload
    def search(
        self,
        prompt: Prompt,
        output_type: Any,
        strategy: Strategy | str | Path,
        reward: Callable[[Any], float],
        *,
        constraints: Mapping[str, Constraint | Configurable] | None = ...,
        budget: int = ...,
        seed: int | None = ...,
        schema_in_prompt: bool = ...,
    ) -> Any: ...
    def search(
        self,
        prompt: Prompt,
        output_type: Any,
        strategy: Strategy | str | Path,
        reward: Callable[[Any], float],
        *,
        constraints: Mapping[str, Constraint | Configurable] | None = None,
        budget: int = 1000,
        seed: int | None = None,
        schema_in_prompt: bool = False,
    ) -> Any:
        """The value of highest ``reward(value)`` (0 to 1) that a ``maskwright.search.Strategy`` finds within ``budget`` model calls.

        ``strategy``: itself or its file, such as one that was tuned.  ``constraints``: those that it names beside ``"grammar"``, which is that of the type.
        A value that the type refuses is worth 0.  None when no text was complete in time.  ``metrics`` counts one output, with a token for each model call; none where a
        reward raises, or the strategy means nothing here.
        """
        chosen = strategy_of(strategy)
        asked = options_of({"max_new_tokens": chosen.max_tokens, "schema_in_prompt": schema_in_prompt})
        began = time.perf_counter()
        (job,) = self._jobs([prompt], [output_type], asked)
        best = searched(
            chosen, self.model, self.tokenizer, job.prompt, job.grammar, job.output, reward,
            room=job.room, constraints=constraints, budget=budget, seed=seed,
        )  # fmt: skip
        found = False
        try:
            value = None if best.ids is None else value_of(best.ids, job.grammar, job.output)
            found = best.ids is not None
            return value
        finally:
            seconds = time.perf_counter() - began if found else None
            self.metrics.add(valid=found, tokens=best.calls, seconds=seconds)

    def as_completed(
        self, requests: Iterable[tuple[Prompt, Any, Mapping[str, Any]]]
    ) -> Iterator[tuple[int, list[Generation] | Exception]]:
        """Outputs of any number of requests, as they are finished: the place of a request, and its outputs or its error.

        A request is a prompt, its output type and its options (see ``generate``).  The next one is taken when there is room
        (``batch_size``), so all of them need not fit into memory, and ``requests`` may compute them.  An error concerns its
        request alone; what the model's own code raises in a pass of several rows ends all.  Each request is the first of its own
        batch: those with equal seeds draw alike.
        """
        batch = self._batch()
        coming = enumerate(requests)
        started: dict[int, Started] = {}  # by the identity of their rows, which they hold
        is_over = False
        while not is_over or batch.is_busy:
            while not is_over and len(batch.running) + len(batch.waiting) < batch.width:
                taken = next(coming, None)
                is_over = taken is None
                if taken is None:
                    break
                place, request = taken
                try:
                    prompt, output_type, asked = parts_of(request)
                    (job,) = self._jobs([prompt], [output_type], asked)
                    new = Started(place, job.output, asked, self._rows(job, asked))
                except Exception as error:
                    yield place, error
                    continue
                started.update((id(row), new) for row in new.rows)
                batch.submit(new.rows)
            with self._lock:
                changed = batch.step()
            for row in changed:
                known = started.get(id(row))
                if known is not None and known.is_over:
                    for each in known.rows:
                        each.cancelled = not each.done
                        del started[id(each)]
                    yield known.place, known.results()

    def stream(self, prompt: Prompt, output_type: Any, **options: Any) -> Iterator[Any]:
        """One output while it grows: plain data whenever it changed, at last the value of the type.

        Members, items and strings appear as far as they are written; numbers and literals once they are complete.
        ``options``: see ``generate``.
        """
        output = Output(output_type)
        changes = Changes(output)
        text = ""
        for step in self.steps(prompt, output_type, **options):
            text = step.text
            yield from changes.of(text)
        yield output.value(text)

    def steps(self, prompt: Prompt, output_type: Any, **options: Any) -> Iterator[Step]:
        """One output, seen after every forward pass.  ``options``: see ``generate``."""
        (row,) = self._single(prompt, output_type, options)
        for _ in self._run([row]):
            yield step_of(row)

    @overload
    async def acall(
        self, prompt: Prompt, output_type: Asked[Value], *, n: Literal[1] = 1, **options: Any
    ) -> Value: ...
    @overload
    async def acall(
        self, prompt: Prompt, output_type: Asked[Value], *, n: int, **options: Any
    ) -> list[Value]: ...
    @overload
    async def acall(
        self, prompt: Prompt, output_type: Callable[..., Returned], *, n: Literal[1] = 1, **options: Any
    ) -> partial[Returned]: ...
    @overload
    async def acall(self, prompt: Prompt, output_type: Any, **options: Any) -> Any: ...
    async def acall(self, prompt: Prompt, output_type: Any, **options: Any) -> Any:
        """As calling the generator, without blocking the event loop; calls that wait at the same time run together.

        A call that is cancelled leaves the others and the generator as they are.
        """
        asked = options_of(options)
        (job,) = await asyncio.to_thread(self._jobs, [prompt], [output_type], asked)
        running: list[asyncio.Task[None]] = []
        try:
            rows = await asyncio.to_thread(self._rows, job, asked)
            running += (asyncio.create_task(self._background.run(row)) for row in rows)
            await asyncio.gather(*running)
        finally:
            job.left.set()
            await _end(running)
        values = [result_of(row, job.output, asked).value for row in rows]
        return values if asked.n != 1 else values[0]

    async def astream(self, prompt: Prompt, output_type: Any, **options: Any) -> AsyncIterator[Any]:
        """As ``stream``, asynchronously: ``async for part in gen.astream(prompt, Person)``."""
        output = Output(output_type)
        (row,) = await asyncio.to_thread(self._single, prompt, output_type, options)
        changes = Changes(output)
        queue: asyncio.Queue[str] = asyncio.Queue()
        running = asyncio.ensure_future(self._background.run(row, lambda step: queue.put_nowait(step.text)))
        waiting: asyncio.Future[str] | None = None
        try:
            while not (running.done() and queue.empty()):
                waiting = asyncio.ensure_future(queue.get())
                await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
                if not waiting.done():
                    waiting.cancel()
                    continue
                for part in changes.of(waiting.result()):
                    yield part
            await running
            yield result_of(row, output, GenerationOptions()).value
        finally:
            await _end([task for task in (running, waiting) if task is not None])

    def trace(self, prompt: Prompt, output_type: Any, **options: Any) -> Trace:
        """One output, and at each of its tokens what the model wanted and what the mask left of that.

        It costs one forward pass over prompt and output more than the output itself.  ``maskwright.pages.explain`` makes a page of it.
        ``options``: see ``generate``; ``n`` is 1.  Raises ``MaskwrightError`` for encoder-decoder models.
        """
        asked = options_of(options)
        if asked.n != 1:
            raise MaskwrightError("a trace is of one output: leave out n")
        (job,) = self._jobs([prompt], [output_type], asked)
        (generation,) = self.generate([prompt], [output_type], **options)
        shown = (
            prompt
            if isinstance(prompt, str)
            else "\n".join(f"{m['role']}: {m.get('content') or ''}" for m in prompt)
        )
        with self._lock:
            return trace(self.model, job.prompt, job.grammar, job.output.source, shown, generation)

    def forget(self) -> None:
        """Drop what is kept of prompts, which is what the model made of them: to be called when the model was changed.

        Other parameters, and those that were trained, loaded, moved or cast, are noticed without it; what is written through
        ``parameter.data`` and adapters that are switched or merged are not."""
        with self._lock:
            self._prefixes.forget()

    def compile(self, output_type: Any) -> CompiledGrammar:
        """The compiled grammar of an output type; equal ones are compiled once."""
        grammar: CompiledGrammar = compile_source(
            Output(output_type).source, self.vocabulary, limits=self.limits
        )
        return grammar

    # --- from arguments to rows

    def _single(self, prompt: Prompt, output_type: Any, options: dict[str, Any]) -> list[Row]:
        asked = options_of(options)
        if asked.n != 1 or asked.particles is not None or asked.num_beams != 1:
            raise MaskwrightError("a stream is one output: leave out n, particles and num_beams")
        (job,) = self._jobs([prompt], [output_type], asked)
        return self._rows(job, asked)

    def _jobs(self, prompts: Sequence[Prompt], output_type: Any, asked: GenerationOptions) -> list[Job]:
        if (
            not is_messages(prompts)
            or not prompts
            or not all(isinstance(p, str) or is_messages(p) for p in prompts)
        ):
            raise MaskwrightError("prompts is a non-empty list of texts, or of lists of messages")
        types = output_type if isinstance(output_type, (list, tuple)) else [output_type] * len(prompts)
        if len(types) != len(prompts):
            raise MaskwrightError(
                f"{len(prompts)} prompts need one output type, or as many, not {len(types)}"
            )
        made: dict[int, Job] = {}
        jobs = []
        for index, (prompt, each) in enumerate(zip(prompts, types, strict=True)):
            known = made.get(id(each))
            if known is None:
                output = Output(each)
                check_stops(output, asked.stops, self.limits)
                grammar = compile_source(output.source, self.vocabulary, limits=self.limits)
                least = len(grammar.matcher().shortest_completion()) + 1
                if least > asked.max_new_tokens:
                    raise too_short("max_new_tokens", least, asked.max_new_tokens)
                known = made[id(each)] = Job(output, grammar, least)
            instruction = known.output.instruction() if asked.schema_in_prompt else None
            ids = self._prompter.ids(prompt, instruction, known.output.schema)
            contrasts = []
            if asked.particles is not None:
                contrasts = self._prompter.contrasts(prompt, instruction, known.output.schema)
            room = self._room(ids, known.least, asked)
            jobs.append(replace(known, prompt=ids, contrasts=contrasts, room=room, index=index))
        return jobs

    def _room(self, ids: list[int], least: int, asked: GenerationOptions) -> int:
        """The tokens that an output may have behind a prompt."""
        if self._context is None:
            return asked.max_new_tokens
        if len(ids) > self._context:
            message = f"the prompt has {len(ids)} tokens, more than the model's context of {self._context}"
            raise LimitError("context", len(ids), self._context, message=message)
        room = self._context if self._encodes else self._context - len(ids)
        if least > room:
            raise too_short(f"the model's context less a prompt of {len(ids)} tokens", least, room)
        return min(asked.max_new_tokens, room)

    def _rows(self, job: Job, asked: GenerationOptions) -> list[Row]:
        """The outputs of one prompt: to be written, or those of a search, to be judged."""
        job.check_wanted()
        if asked.num_beams > 1:
            return self._searched(job, asked)
        if asked.particles is not None:
            return [self._weighed(job, asked)]
        return [
            self._row(job, asked, chooser_of(asked, job.index * asked.n + copy)) for copy in range(asked.n)
        ]

    def _row(
        self, job: Job, asked: GenerationOptions, chooser: Chooser, *, is_candidate: bool = False
    ) -> Row:
        with self._habits_lock:
            habits = self._habits.setdefault(job.grammar, Habits())
        return Row(
            job.grammar.matcher(),
            job.prompt,
            job.room,
            chooser,
            forced=self._forced,
            drafter=Drafter(job.prompt, habits, self._forced),
            stop=Stop(asked.stops) if asked.stops else None,
            scores_all=asked.logprobs is not False,
            top=asked.top,
            on_end=None if is_candidate else self._count,
        )

    def _count(self, row: Row) -> None:
        self.metrics.count(row.usage, valid=row.error is None)

    def _searched(self, job: Job, asked: GenerationOptions) -> list[Row]:
        started = time.perf_counter()
        pad = self.tokenizer.pad_token_id
        pad = self.vocabulary.eos_ids[0] if pad is None else pad
        texts, calls, seconds = beam_search(
            self.model, job.prompt, job.grammar, job.room, asked.num_beams, asked.n, pad,
            lock=self._lock, check=job.check_wanted,
        )  # fmt: skip
        rows = []
        for tokens in texts:
            row = self._row(job, asked, Chooser())
            row.write(tokens, started)
            row.usage.model_calls += calls
            row.usage.mask_seconds += seconds
            rows.append(row)
        return rows

    def _weighed(self, job: Job, asked: GenerationOptions) -> Row:
        """The candidate that the model finds likeliest as a whole."""
        assert asked.particles is not None
        if self._encodes:
            raise MaskwrightError(
                "particles are for decoder-only models: pass num_beams, or n with a temperature"
            )
        started = time.perf_counter()
        rows, guides = [], []
        for index, plan in enumerate(plans(asked.particles, job.contrasts)):
            seed = seed_at(asked.seed, job.index, index)
            drawn = self._row(job, replace(asked, logprobs=False), plan.chooser(seed), is_candidate=True)
            rows.append(drawn)
            guides.append(plan.guide)
        guided = GuidedRows(KeyValueRows(self.model, self._prefixes), guides)
        for _ in self._run(rows, Batch(guided, len(rows))):
            job.check_wanted()
        found = {tuple(row.ids): row for row in rows}
        alone = KeyValueRows(self.model, self._prefixes)
        with self._lock:
            logprobs = {
                ids: whole_logprob(alone, job.prompt, list(ids), self.vocabulary.eos_ids) for ids in found
            }
        best = max(found, key=lambda ids: logprobs[ids])
        row = self._row(job, asked, Chooser())
        row.write(list(best), started)
        row.reason = found[best].reason
        shares: dict[str, float] = {}
        for ids, share in posterior(logprobs).items():
            text = self.vocabulary.decode(ids).decode("utf-8", "replace")
            shares[text] = shares.get(text, 0.0) + share
        row.posterior = dict(sorted(shares.items(), key=lambda share: -share[1]))
        row.usage.model_calls += guided.passes + len(found)
        row.usage.mask_seconds += sum(each.usage.mask_seconds for each in rows)
        return row

    # --- running

    def _batch(self) -> Batch:
        if self._encodes:
            return Batch(EncoderDecoderRows(self.model), self.batch_size)
        return Batch(KeyValueRows(self.model, self._prefixes), self.batch_size)

    def _run(self, rows: list[Row], batch: Batch | None = None) -> Iterator[None]:
        """Move rows to their ends, with a stop behind every pass.  Raises the first error of any."""
        batch = batch or self._batch()
        batch.submit(rows)
        while batch.is_busy:
            with self._lock:
                changed = batch.step()
            for row in changed:
                if row.error is not None:
                    raise row.error
            yield


async def _end(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Cancel what is still running, and wait until it is over."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
