"""From a request to its outputs: prompts are read and rows made in threads, sources compiled in others, and rows queued."""

from __future__ import annotations

import asyncio
import functools
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from maskwright.base.arguments import written
from maskwright.compiling.compiled import CompiledGrammar
from maskwright.compiling.pool import Compiler
from maskwright.errors import MaskwrightError
from maskwright.frontends.tools.templates import ToolTemplate
from maskwright.generation.batch import Batch
from maskwright.generation.drafts import Drafter, Habits
from maskwright.generation.generator import Generator
from maskwright.generation.key_values import KeyValueRows, Prefixes
from maskwright.generation.row import Row, Stop, StopError
from maskwright.generation.stops import check_stops
from maskwright.limits import Limits
from maskwright.masks.forced import ForcedText, mask_words
from maskwright.serve.constraints import Constraint, Writing, of_compile
from maskwright.serve.engine import Engine, Entry
from maskwright.serve.errors import RequestError, of_source, refused
from maskwright.serve.free_text import FreeText
from maskwright.serve.metrics import Metrics
from maskwright.serve.outputs import Outputs
from maskwright.serve.prompts import Prompts
from maskwright.serve.sampling import Sampling
from maskwright.serve.settings import Settings

_T = TypeVar("_T")
_PREPARING = 8
"""Threads that read prompts and make rows: more than CPUs, as one may search for a completion for all of ``step_seconds``."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a request asks for, once it was read.

    ``prompts``: makes the token ids of its prompts, in a thread, ``prompt_count`` of them; ``prompt_param``: what they are called.
    ``max_tokens``: None where it says nothing; ``max_param``: what it is called.  ``top``: likeliest tokens at each place; None: no probabilities;
    ``top_param``: what it is called.
    """

    prompts: Callable[[], list[list[int]]]
    prompt_param: str
    constraint: Constraint
    sampling: Sampling
    prompt_count: int = 1
    n: int = 1
    max_tokens: int | None = None
    max_param: str = "max_tokens"
    stops: list[str] = field(default_factory=list)
    top: int | None = None
    top_param: str = "top_logprobs"
    stream: bool = False


class Service:
    """One model and all that serves it.  Raises ``MaskwrightError`` for a model that writes behind an encoder."""

    def __init__(self, generator: Generator, settings: Settings) -> None:
        model = generator.model
        if getattr(model.config, "is_encoder_decoder", False):
            raise MaskwrightError("maskwright serve is for decoder-only models")
        self.settings = settings
        self.vocabulary = generator.vocabulary
        self.tokenizer = generator.tokenizer
        template = ToolTemplate.load(settings.tool_template)
        thinking: Any = settings.thinking or None
        self.writing = Writing(template, thinking, generator.vocabulary)
        positions = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        self._context = positions if isinstance(positions, int) and positions > 0 else 2**31
        self._most_prompt = min(settings.max_prompt_tokens or self._context, self._context - 1)
        self.prompts = Prompts(generator.tokenizer, template, self._most_prompt)
        self._forced = ForcedText(generator.tokenizer, self.vocabulary)
        self._free = FreeText(self.vocabulary)
        self._habits: weakref.WeakKeyDictionary[Any, Habits] = weakref.WeakKeyDictionary()
        self._stepped: weakref.WeakKeyDictionary[CompiledGrammar, CompiledGrammar] = (
            weakref.WeakKeyDictionary()
        )
        self._shortest: weakref.WeakKeyDictionary[CompiledGrammar, int] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(_PREPARING, "maskwright-prepare")
        self._limits = Limits(max_seconds=settings.compile_seconds)
        self._step_limits = replace(self._limits, max_seconds=settings.step_seconds)
        self._compiler = Compiler(
            self.vocabulary,
            workers=settings.compile_workers,
            cache_bytes=settings.compile_cache_bytes,
            limits=self._limits,
        )
        self.metrics = Metrics(self._compiler)
        prefixes = Prefixes()
        self.engine = Engine(
            lambda: Batch(KeyValueRows(model, prefixes), settings.max_rows), settings, self.metrics
        )
        self.open_requests = 0

    async def start(self, plan: Plan) -> Outputs:
        """Queue the outputs of a request.  Raises ``RequestError``.  Whoever gets them calls ``cancel`` in the end."""
        self._check(plan)
        grammar = None if plan.constraint.source is None else await self._compile(plan.constraint)
        rows = await self.in_thread(self._rows, plan, grammar)
        outputs = Outputs(rows, plan.stream, names=plan.constraint.reader is not None)
        self.engine.submit(
            [Entry(row, outputs.watcher(i), grammar is not None) for i, row in enumerate(rows)]
        )
        return outputs

    async def in_thread(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """The result of a function that would hold up the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, functools.partial(function, *arguments))

    def close(self) -> None:
        """End everything that is under way."""
        self.engine.close()
        self._compiler.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _check(self, plan: Plan) -> None:
        settings = self.settings
        count = plan.n * plan.prompt_count
        for most, name in (
            (settings.max_outputs, "max_outputs"),
            (settings.max_rows + settings.max_queued, "max_rows and max_queued together"),
        ):
            if count > most:
                message = f"n: {written(count)} outputs are more than {name}, which is {most}"
                raise refused(message, "n", "limit_max_outputs")
        if len(plan.stops) > settings.max_stops:
            raise refused(
                f"stop: {len(plan.stops)} texts are more than max_stops, which is {settings.max_stops}",
                "stop",
            )
        for stop in plan.stops:
            if not stop or len(stop) > settings.max_stop_characters:
                raise refused(
                    f"stop: a text has from 1 to {settings.max_stop_characters} characters (max_stop_characters)",
                    "stop",
                )
        if plan.top is not None and plan.top > settings.max_top_logprobs:
            raise refused(
                f"{plan.top_param}: {plan.top} is above max_top_logprobs, which is {settings.max_top_logprobs}",
                plan.top_param,
            )
        if plan.max_tokens is not None and plan.max_tokens > settings.max_tokens:
            raise refused(
                f"{plan.max_param}: {plan.max_tokens} is above the server's max_tokens, which is {settings.max_tokens}",
                plan.max_param,
                "limit_max_tokens",
            )

    async def _compile(self, constraint: Constraint) -> CompiledGrammar:
        try:
            return await self._compiled(constraint.source)
        except MaskwrightError as error:
            raise await self._blamed(error, constraint) from None

    async def _compiled(self, source: Any) -> CompiledGrammar:
        future = await self.in_thread(self._compiler.compile, source)
        return await asyncio.wrap_future(future)

    async def _blamed(self, error: MaskwrightError, constraint: Constraint) -> RequestError:
        """The refusal, with the name of the tool that it is about, if that is found in the time of one compile."""
        try:
            async with asyncio.timeout(self.settings.compile_seconds):
                for name, source in constraint.parts():
                    try:
                        await self._compiled(source)
                    except MaskwrightError as found:
                        return of_compile(found, constraint, name)
        except TimeoutError:
            pass
        return of_compile(error, constraint)

    def _rows(self, plan: Plan, grammar: CompiledGrammar | None) -> list[Row]:
        prompts = plan.prompts()
        param = plan.constraint.param
        output = plan.constraint.output
        try:
            if output is not None:
                check_stops(output, plan.stops, self._limits)
        except MaskwrightError as error:
            raise of_source(error, "stop") from None
        try:
            # Here and not on the thread of the model: the first mask of a grammar takes longest.
            matcher: Any = self._free if grammar is None else self._with_step_limits(grammar).matcher()
            mask_words(matcher, self.vocabulary.vocab_size)
            least = 0 if grammar is None else self._least_tokens(grammar, matcher)
            rooms = [self._room(len(prompt), least, plan) for prompt in prompts]
            return [
                self._row(plan, grammar, matcher.fork(), prompt, room, at * plan.n + copy)
                for at, (prompt, room) in enumerate(zip(prompts, rooms, strict=True))
                for copy in range(plan.n)
            ]
        except StopError as error:
            # What is forced already runs into a stop text.
            raise of_source(error, "stop") from None
        except MaskwrightError as error:
            raise of_source(error, param) from None

    def _least_tokens(self, grammar: CompiledGrammar, matcher: Any) -> int:
        """Of an output.  Searched for once: meanwhile, rows that are written with the grammar wait."""
        with self._lock:
            known = self._shortest.get(grammar)
        if known is None:
            known = len(matcher.shortest_completion())
            with self._lock:
                self._shortest[grammar] = known
        return known

    def _with_step_limits(self, grammar: CompiledGrammar) -> CompiledGrammar:
        with self._lock:
            stepped = self._stepped.get(grammar)
            if stepped is None:
                stepped = self._stepped[grammar] = grammar.with_limits(self._step_limits)
            return stepped

    def _row(
        self,
        plan: Plan,
        grammar: CompiledGrammar | None,
        matcher: Any,
        prompt: list[int],
        room: int,
        index: int,
    ) -> Row:
        with self._lock:
            habits = Habits() if grammar is None else self._habits.setdefault(grammar, Habits())
        return Row(
            matcher,
            prompt,
            room,
            plan.sampling.chooser(len(prompt), index),
            forced=self._forced,
            drafter=Drafter(prompt, habits, self._forced),
            stop=Stop(plan.stops) if plan.stops else None,
            scores_all=plan.top is not None,
            top=plan.top or 0,
        )

    def _room(self, prompt: int, least: int, plan: Plan) -> int:
        """The tokens that an output may have, the end included, which is not counted for the client."""
        settings = self.settings
        most = self._most_prompt
        if prompt > most:
            raise RequestError(
                400,
                f"the prompt has {prompt} tokens; at most {most} are read (max_prompt_tokens, and a context of {self._context})",
                param=plan.prompt_param,
                code="context_length_exceeded",
            )
        wanted = plan.max_tokens
        if wanted is None:
            wanted = min(max(settings.default_max_tokens, least), settings.max_tokens)
        allowed = min(wanted, self._context - prompt)
        if least > allowed:
            raise refused(
                f"{plan.max_param}: the shortest output takes {least} tokens, and there is room for {allowed}",
                plan.max_param,
                "limit_max_tokens",
            )
        return allowed + 1
