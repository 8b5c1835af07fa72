"""OpenAI-compatible servers (vLLM, ``maskwright serve``, ...): rows go to the replica that has least to do.

A replica that fails is left alone for a while, then tried with one row at a time until it answers (a circuit breaker); one that
failed too often in a row is given up, and others get its rows.  Every answer is checked against the grammar of its row, so a server that
does not enforce what it is asked for cannot put anything else into the output.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2 as httpx

from maskwright.check.grammars import compile_for_bytes
from maskwright.errors import MaskwrightError
from maskwright.frontends.json_text import finite, read_json
from maskwright.generation.outputs import Output
from maskwright.generation.prompts import instructed
from maskwright.offline.rows import Row
from maskwright.sources import JsonSchema, Lark, Regex

GIVE_UP_AFTER = 8
"""Failures in a row, or rows in a row that end in a 500, after which a replica is given up (count): some two minutes."""
MOST_PAUSE = 60.0
"""Before a replica that failed is tried again, and of what ``Retry-After`` asks for (seconds)."""
MAX_ANSWER_BYTES = 64 * 2**20
"""Of one answer of a server (bytes)."""
_CHECKERS_KEPT = 64
_KEY = re.compile("[!-~]+")
_SENT = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "stop", "seed")
"""Options of a generation that requests call by the same names."""


class EndpointError(MaskwrightError):
    """What a server said about one row."""


class NoEndpointError(MaskwrightError):
    """No server is left that answers; rows that are not filled yet can be filled later."""


@dataclass
class _Replica:
    """A server, and how it has behaved."""

    url: str
    in_flight: int = 0
    failures: int = 0
    failed_at: float = 0.0
    resume_at: float = 0.0
    problem: str = ""
    is_given_up: bool = False
    refused: set[int] = field(default_factory=set)
    """Rows that it answered with a 500, and no other answer since."""
    models: list[dict[str, Any]] | None = None
    """What it says that it has, once it was asked."""

    def works(self) -> None:
        """It answered as it should."""
        self.failures = 0
        self.refused.clear()

    @property
    def is_ours(self) -> bool:
        """Whether it is ``maskwright serve``."""
        return any(each.get("owned_by") == "maskwright" for each in self.models or [])


class Endpoints:
    """Servers that share the rows of a batch.

    ``urls``: of the servers, with or without ``/v1``.  ``model``: the name to ask for; None: the row's own, else the only one that a server has.
    ``concurrency``: requests at a time to each server; ``retries``: of one row; ``timeout``: of one request (seconds); ``pause``: after the first
    failure of a server, doubled with each further one (seconds).  ``key``: sent as a bearer token.

    Raises ``MaskwrightError`` for what is no URL, and for a key that no header can have.
    """

    def __init__(
        self,
        urls: Iterable[str],
        *,
        model: str | None = None,
        concurrency: int = 16,
        retries: int = 4,
        timeout: float = 600.0,
        pause: float = 0.5,
        key: str | None = None,
    ) -> None:
        if key is not None and not _KEY.fullmatch(key):
            raise MaskwrightError("OPENAI_API_KEY: expected ASCII characters, and no blanks")
        self._replicas = [_Replica(url) for url in dict.fromkeys(map(_base, urls))]
        self._model = model
        self._concurrency = concurrency
        self._retries = retries
        self._timeout = timeout
        self._pause = pause
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._checkers: dict[str, Any] = {}
        self._changed = asyncio.Event()

    def fill(self, rows: Iterable[Row]) -> Iterator[tuple[Row, dict[str, Any] | Exception]]:
        """Each row with the body of its completion, or with its error, as they are answered.

        Not for callers that run in an event loop.  Raises ``NoEndpointError`` when no server is left.
        """
        coming = iter(rows)
        waited: dict[asyncio.Task[dict[str, Any]], Row] = {}
        most = self._concurrency * len(self._replicas)
        with asyncio.Runner() as runner:
            self._changed = asyncio.Event()
            client = httpx.AsyncClient(
                timeout=httpx.Timeout(self._timeout, connect=min(self._timeout, 10.0)),
                limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
                headers=self._headers,
            )
            try:
                while True:
                    while len(waited) < most and (row := next(coming, None)) is not None:
                        waited[runner.get_loop().create_task(self._ask(client, row))] = row
                    if not waited:
                        return
                    for task in runner.run(_first_done(waited)):
                        row = waited.pop(task)
                        error = task.exception()
                        if error is None:
                            yield row, task.result()
                        elif isinstance(error, Exception) and not isinstance(error, NoEndpointError):
                            yield row, error
                        else:
                            raise error
            finally:
                runner.run(_close(client, list(waited)))

    # --- one row

    async def _ask(self, client: httpx.AsyncClient, row: Row) -> dict[str, Any]:
        """The body of the answer.  Raises ``EndpointError``, ``NoEndpointError``, and the compiler's errors for the row's grammar."""
        checker = self._checker(row.source)
        request = self._request(row)
        attempts, problem = 0, ""
        while attempts <= self._retries:
            replica = await self._take()
            began = time.monotonic()
            try:
                answer = await self._post(client, replica, row, request)
            except httpx.HTTPError as error:
                problem = f"{replica.url}: {type(error).__name__}: {error}"[:300]
                self._failed(replica, began, problem)
                # What never reached the server cannot be the row's fault.
                attempts += not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
                continue
            finally:
                replica.in_flight -= 1
                self._notify()
            if answer.status_code == 200:
                replica.works()
                return _checked(answer, row, checker)
            problem = f"{replica.url} answers {answer.status_code}: {_message(answer)}"
            if answer.status_code == 404 and self._model is None and _is_about_its_model(row, problem):
                replica.works()
                raise EndpointError(problem)
            if answer.status_code in (401, 403, 404):
                # It has no such model, or does not want us: so it is with all rows.
                replica.problem, replica.is_given_up = problem, True
            elif answer.status_code < 500 and answer.status_code not in (408, 425, 429):
                replica.works()
                raise EndpointError(problem)
            else:
                # A row may be the reason of a 500, but not of many in a row.
                is_alive = answer.status_code == 500
                if is_alive:
                    replica.refused.add(row.line)
                self._failed(replica, began, problem, _retry_after(answer), is_alive=is_alive)
                attempts += answer.status_code >= 500
        raise EndpointError(f"{attempts} requests failed, the last one: {problem}")

    async def _post(
        self, client: httpx.AsyncClient, replica: _Replica, row: Row, request: dict[str, Any]
    ) -> httpx.Response:
        is_json = isinstance(row.source, JsonSchema)
        if replica.models is None and (request.get("model") is None or not is_json):
            answer = await client.get(f"{replica.url}/models")
            if answer.status_code != 200:
                return answer
            replica.models = _models(answer)
        if request.get("model") is None:
            request = {**request, "model": _only_model(replica)}
        if "response_format" not in request and "structured_outputs" not in request:
            request = {**request, **_constraint(row.source, replica.is_ours)}
        async with client.stream("POST", f"{replica.url}/chat/completions", json=request) as answer:
            data = bytearray()
            async for part in answer.aiter_bytes():
                data += part
                if len(data) > MAX_ANSWER_BYTES:
                    raise EndpointError(f"{replica.url}: an answer is longer than {MAX_ANSWER_BYTES} bytes")
        # The content is decoded: what the headers say of how it travelled is over.
        kept = [
            (name, value)
            for name, value in answer.headers.raw
            if name.lower() in (b"content-type", b"retry-after")
        ]
        return httpx.Response(answer.status_code, headers=kept, content=bytes(data))

    def _request(self, row: Row) -> dict[str, Any]:
        """The body to send, the row's own or one made from it, as far as it is the same for all servers."""
        body = dict(row.body) if row.body is not None else {}
        messages = row.prompt if isinstance(row.prompt, list) else [{"role": "user", "content": row.prompt}]
        if row.options.get("schema_in_prompt"):
            messages = instructed(messages, Output(row.source).instruction())
        body["messages"] = messages
        if "max_completion_tokens" not in body:
            body.setdefault("max_tokens", row.options["max_new_tokens"])
        for name in _SENT:
            if row.options.get(name) is not None:
                body.setdefault(name, row.options[name])
        if row.body is None:
            # The likeliest token, as where rows are filled here: a server would draw.
            body.setdefault("temperature", 0)
        body["model"] = self._model or body.get("model")
        return body

    # --- whether an answer is what was asked for

    def _checker(self, source: Any) -> Any:
        """A grammar over bytes that takes every spelling: no server writes just as the row's options say."""
        key = repr(source)
        found = self._checkers.pop(key, None)
        if found is None:
            if isinstance(source, JsonSchema):
                spelling = {"property_order": "any", "whitespace": "flexible", "escapes": "any"}
                source = JsonSchema(**(asdict(source) | spelling))
            found = compile_for_bytes(source)[1]
        self._checkers[key] = found
        while len(self._checkers) > _CHECKERS_KEPT:
            del self._checkers[next(iter(self._checkers))]
        return found

    # --- which replica

    async def _take(self) -> _Replica:
        """The one with least to do of those that may be asked; waits until there is one.  Raises ``NoEndpointError``."""
        while True:
            left = [each for each in self._replicas if not each.is_given_up]
            if not left:
                problems = "; ".join(each.problem for each in self._replicas)
                raise NoEndpointError(f"no endpoint answers any more: {problems}")
            now = time.monotonic()
            free = [each for each in left if each.resume_at <= now and self._has_room(each)]
            if free:
                chosen = min(free, key=lambda each: each.in_flight)
                chosen.in_flight += 1
                return chosen
            later = [each.resume_at - now for each in left if each.resume_at > now]
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(later, default=None))

    def _has_room(self, replica: _Replica) -> bool:
        return replica.in_flight < (1 if replica.failures else self._concurrency)

    def _failed(
        self,
        replica: _Replica,
        began: float,
        problem: str,
        pause: float | None = None,
        *,
        is_alive: bool = False,
    ) -> None:
        """Leave a replica alone for a while.  ``began``: when the request did that failed."""
        if began < replica.failed_at:
            return  # This is the failure that another request has told already.
        replica.failed_at = time.monotonic()
        replica.problem = problem
        replica.failures = max(replica.failures, 1) if is_alive else replica.failures + 1
        if pause is None:
            pause = self._pause * 2 ** (replica.failures - 1) * random.uniform(0.75, 1.25)
        replica.resume_at = replica.failed_at + min(pause, MOST_PAUSE)
        replica.is_given_up = max(replica.failures, len(replica.refused)) > GIVE_UP_AFTER

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def problems(self) -> list[str]:
        """Of the replicas that were given up, why."""
        return [each.problem for each in self._replicas if each.is_given_up]


async def _first_done(tasks: Iterable[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    return (await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED))[0]


async def _close(client: httpx.AsyncClient, tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await client.aclose()


def _models(answer: httpx.Response) -> list[dict[str, Any]]:
    try:
        return [each for each in answer.json()["data"] if isinstance(each["id"], str)]
    except (ValueError, KeyError, TypeError):
        return []


def _only_model(replica: _Replica) -> str:
    names = [each["id"] for each in replica.models or []]
    if len(names) == 1:
        return str(names[0])
    has = f"the models {', '.join(names[:10])}" if names else "no list of models"
    raise NoEndpointError(f"{replica.url} has {has}: choose one with --model")


def _base(url: str) -> str:
    """The address below which ``/chat/completions`` is.  Raises ``MaskwrightError`` for what is no URL."""
    try:
        parsed = httpx.URL(url)
        parsed.host.encode("idna")  # As whoever looks it up does.
    except (httpx.InvalidURL, UnicodeError) as error:
        raise MaskwrightError(f"--endpoint {url}: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise MaskwrightError(f"--endpoint {url}: expected http://HOST:PORT or https://HOST/PATH")
    if parsed.port is not None and not 0 < parsed.port < 1 << 16:
        raise MaskwrightError(f"--endpoint {url}: expected a port from 1 to 65535")
    base = str(parsed).rstrip("/").removesuffix("/chat/completions")
    return base if parsed.path.strip("/") else f"{base}/v1"


def _constraint(source: Any, is_ours: bool) -> dict[str, Any]:
    """A source of the command line as members of a request.

    Schemas are OpenAI's ``response_format``.  For what that cannot say, vLLM has ``structured_outputs``, and our own server further formats.
    """
    if isinstance(source, JsonSchema):
        schema = read_json(source.schema, finite) if isinstance(source.schema, str) else source.schema
        named = {"name": "output", "schema": schema, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    if isinstance(source, Regex):
        if is_ours:
            return {"response_format": {"type": "regex", "pattern": source.pattern}}
        return {"structured_outputs": {"regex": source.pattern}}
    if is_ours:
        syntax = "lark" if isinstance(source, Lark) else "gbnf"
        return {"response_format": {"type": "grammar", "syntax": syntax, "grammar": source.text}}
    return {"structured_outputs": {"grammar": source.text}}


def _checked(answer: httpx.Response, row: Row, checker: Any) -> dict[str, Any]:
    """The body of an answer, each text of which is in the language.  Raises ``EndpointError``."""
    try:
        body: Any = read_json(answer.content, finite)
        texts = [choice["message"]["content"] for choice in body["choices"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise EndpointError("the answer is no chat completion") from None
    if not texts:
        raise EndpointError("the answer has no choices")
    for index, text in enumerate(texts):
        place = f"/choices/{index}/message/content"
        reason = body["choices"][index].get("finish_reason")
        if not isinstance(text, str):
            raise EndpointError(f"{place}: the answer has no text (finish_reason {reason!r})")
        matcher = checker.matcher()
        data = text.encode("utf-8", "surrogatepass")
        if isinstance(row.source, JsonSchema):
            data = data.strip(b" \t\r\n")  # of JSON texts (RFC 8259, section 2)
        if not (not data or matcher.accept_bytes(data)) or not matcher.is_accepting:
            cut = "; it was cut off: raise max_tokens" if reason == "length" else ""
            raise EndpointError(f"{place}: the answer does not follow the schema{cut}: {text[:200]!r}")
    return dict(body)


def _is_about_its_model(row: Row, problem: str) -> bool:
    """Whether a row asks for a model of its own, which there is not."""
    model = (row.body or {}).get("model")
    return isinstance(model, str) and model != "" and model in problem


def _message(answer: httpx.Response) -> str:
    """What a server says is wrong."""
    try:
        value = answer.json()
        error = value.get("error", value)
        text = error.get("message", error) if isinstance(error, dict) else error
    except (ValueError, AttributeError, RecursionError):
        text = answer.text
    # It goes to a terminal, and is one line there.
    return "".join(c if c.isprintable() else " " for c in str(text)[:500])


def _retry_after(answer: httpx.Response) -> float | None:
    """Seconds, as RFC 9110, 10.2.3, has them: a number or a date."""
    text = answer.headers.get("retry-after", "")
    try:
        seconds = float(text)
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError):
        return None
