"""Lines of the input -> rows: what is asked, how its output is constrained, and what is wrong with it, by place.

Two shapes: OpenAI's batch format (``{"custom_id", "method", "url", "body"}``, https://platform.openai.com/docs/guides/batch), and
plain ones (``{"id", "prompt" or "messages", "schema", "metadata"}``).
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

from maskwright.errors import GrammarError, MaskwrightError
from maskwright.frontends.json_schema.algebra.strings import is_text
from maskwright.frontends.json_text import finite, read_json
from maskwright.sources import GBNF, Choice, JsonSchema, Lark, Regex, StructuralTag, response_format

MAX_LINE_BYTES = 16 * 2**20
"""Of one row of the input (bytes); ``--max-line-bytes``."""
MAX_ID_CHARACTERS = 512
"""Of an id, which every line of the output repeats (characters)."""
MAX_OUTPUTS = 128
"""``n`` of a row: outputs for one prompt (count)."""

CHAT_URL = "/v1/chat/completions"
_BATCH_MEMBERS = ("custom_id", "method", "url", "body")
_PLAIN_MEMBERS = ("id", "prompt", "messages", "schema", "metadata")
_SAMPLING = {
    "max_tokens": "max_new_tokens",
    "max_completion_tokens": "max_new_tokens",
    **{
        name: name
        for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "stop", "seed", "n")
    },
}
"""Members of a body, and the options of a generation that they are."""
_WITHOUT_EFFECT = (
    "model",
    "user",
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
)
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "stream": (False,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "parallel_tool_calls": (True, False),
    "tools": ([],),
    "functions": ([],),
}
"""Members that may be there with values that change nothing."""
_CONSTRAINTS = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")


class RowError(MaskwrightError):
    """A row that cannot be filled as it is; ``place`` is a JSON pointer into it.

    ``id`` and ``shape``: its own, as far as they could be read.
    """

    id: str | int | None = None
    shape: Literal["openai", "plain"] = "plain"

    def __init__(self, message: str, place: str = "") -> None:
        self.place = place
        self.message = message
        super().__init__(f"{place}: {message}" if place else message)


@dataclass(frozen=True)
class Row:
    """One row of the input.

    ``key`` says which row of which input under which settings this is.  ``source`` is what ``maskwright.compile`` takes;
    ``options`` those of a generation.  ``body``: what the row says to a server, in OpenAI's format.
    """

    line: int
    id: str | int
    key: str
    shape: Literal["openai", "plain"]
    prompt: str | list[dict[str, Any]]
    source: Any
    options: dict[str, Any]
    body: dict[str, Any] | None = None
    metadata: Any = None


@dataclass(frozen=True)
class Line:
    """A line as it was read: its number, from 1, its bytes, and whether it was longer than allowed (then these are its beginning)."""

    number: int
    data: bytes
    is_long: bool = False


def lines(file: io.BufferedIOBase, most: int) -> Iterator[Line]:
    """The lines of a file that are not blank; of longer ones than ``most`` bytes, only the beginning is held."""
    number = 0
    while data := file.readline(most + 2):
        number += 1
        rest, is_long = data, False
        while not rest.endswith(b"\n") and (rest := file.readline(2**20)):
            is_long = True
        if number == 1:
            data = data.removeprefix(b"\xef\xbb\xbf")
        data = data.strip(b" \t\r\n")
        if data:
            yield Line(number, data, is_long or len(data) > most)


@dataclass(frozen=True)
class Reader:
    """Reads rows.  What a row does not say itself is said here.

    ``source``: of rows without a schema; None: there is none.  ``schema_options``: of schemas in rows.  ``options``: of generations.
    ``system``: a system message for rows with a ``prompt``.  ``settings``: a digest of all that outputs depend on, part of every key.
    ``is_forwarded``: bodies go to a server, which judges members that are not known here.
    """

    source: Any = None
    schema_options: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    system: str | None = None
    settings: bytes = b""
    max_line_bytes: int = MAX_LINE_BYTES
    is_forwarded: bool = False

    def key(self, line: Line) -> str:
        """What a row is recognised by: the number of its line, and a digest of its content and of the settings."""
        digest = blake2b(self.settings + line.data, digest_size=12).hexdigest()
        return f"{line.number}-{digest}"

    def row(self, line: Line) -> Row:
        """Raises ``RowError``; what is wrong with a schema is found when it is compiled."""
        if line.is_long:
            raise RowError(
                f"the line is longer than {self.max_line_bytes} bytes: shorten it, or raise --max-line-bytes"
            )
        try:
            # Numbers as Python has them: schemas are written anew from them, and lose nothing that a double holds.
            value = read_json(line.data.decode("utf-8"), number=finite)
        except UnicodeDecodeError as error:
            raise RowError(f"not UTF-8 text (byte {error.start} of the line)") from None
        except GrammarError as error:
            column = (error.place or "").partition(":")[2]
            raise RowError(error.message + (f" at column {column}" if column else "")) from None
        if not isinstance(value, dict):
            raise RowError(f"a row is a JSON object, not {_kind(value)}")
        is_batch = any(name in value for name in _BATCH_MEMBERS)
        try:
            return self._batch_row(line, value) if is_batch else self._plain_row(line, value)
        except RowError as error:
            name = value.get("custom_id" if is_batch else "id")
            error.shape = "openai" if is_batch else "plain"
            if isinstance(name, (str, int)) and len(str(name)) <= MAX_ID_CHARACTERS:
                error.id = name
            raise

    # --- OpenAI's batch format

    def _batch_row(self, line: Line, value: dict[str, Any]) -> Row:
        _check_members(value, _BATCH_MEMBERS, "")
        name = value.get("custom_id")
        if not isinstance(name, str):
            raise RowError(f"expected a text, got {_kind(name)}", "/custom_id")
        _check_id(name, "/custom_id")
        if value.get("method", "POST") != "POST":
            raise RowError(f"the method is POST, not {value['method']!r}"[:200], "/method")
        if value.get("url", CHAT_URL) != CHAT_URL:
            raise RowError(f"only {CHAT_URL} can be asked, not {value['url']!r}"[:200], "/url")
        body = value.get("body")
        if not isinstance(body, dict):
            raise RowError(f"expected an object, got {_kind(body)}", "/body")
        body = {name: each for name, each in body.items() if each is not None}
        if body.get("tools"):
            raise RowError(
                "tools are not filled by a batch: ask for the arguments by a schema", "/body/tools"
            )
        messages = _messages(body.get("messages"), "/body/messages")
        own = self._own_source(body)
        options = self._options_of(line, body)
        return Row(
            line.number,
            name,
            self.key(line),
            "openai",
            messages,
            self._source(own, "/body/response_format"),
            options,
            body,
        )

    def _own_source(self, body: dict[str, Any]) -> Any:
        """The source that a body names: ``response_format``, or vLLM's ``structured_outputs``; None where it names none."""
        given = [name for name in ("response_format", "structured_outputs") if name in body]
        if len(given) > 1:
            raise RowError(
                "response_format and structured_outputs are two constraints: leave one out", "/body"
            )
        if not given:
            return None
        place, value = f"/body/{given[0]}", body[given[0]]
        if given[0] == "structured_outputs":
            return self._structured(value, place)
        if isinstance(value, dict) and value.get("type") == "text":
            raise RowError("a row that asks for any text has nothing to fill: leave it out", f"{place}/type")
        try:
            found = response_format(value)
        except GrammarError as error:
            raise RowError(error.message, place + (error.place or "")) from None
        return found if isinstance(found, StructuralTag) else JsonSchema(found.schema, **self.schema_options)

    def _structured(self, value: Any, place: str) -> Any:
        if not isinstance(value, dict):
            raise RowError(f"expected an object, got {_kind(value)}", place)
        given = {name: each for name, each in value.items() if each is not None}
        if len(given) != 1 or not set(given) <= set(_CONSTRAINTS):
            raise RowError(
                f"expected one of {', '.join(_CONSTRAINTS)}, got {', '.join(given) or 'none'}"[:300], place
            )
        ((kind, source),) = given.items()
        if kind == "json" and isinstance(source, (dict, bool, str)):
            return JsonSchema(source, **self.schema_options)
        if kind == "json_object" and source is True:
            return JsonSchema({"type": "object"}, **self.schema_options)
        if kind == "regex" and isinstance(source, str):
            return Regex(source)
        if kind == "choice" and isinstance(source, list):
            return Choice(source)
        if kind == "structural_tag" and isinstance(source, (dict, str)):
            return StructuralTag(source)
        if kind == "grammar" and isinstance(source, str):
            return GBNF(source) if "::=" in source else Lark(source)
        raise RowError(f"not what {kind} is given as: {_kind(source)}", f"{place}/{kind}")

    def _options_of(self, line: Line, body: dict[str, Any]) -> dict[str, Any]:
        options = dict(self.options)
        for name, value in body.items():
            place = f"/body/{name}"
            if name in ("messages", "response_format", "structured_outputs", *_WITHOUT_EFFECT):
                continue
            if name in _SAMPLING:
                value = _option(name, value, place)
                # The older name counts where the newer one is not there, as for servers.
                if name != "max_tokens" or "max_completion_tokens" not in body:
                    options[_SAMPLING[name]] = value
            elif name == "stream" and value is not False:
                raise RowError("a row of a batch is answered whole: leave it out", place)
            elif self.is_forwarded or value in _NEUTRAL.get(name, ()):
                continue
            else:
                raise RowError("this option is not supported here: leave it out", place)
        if "temperature" in body and not options["temperature"]:
            # The likeliest token is the same, whatever else is cut.
            options.update(dict.fromkeys(("top_p", "top_k", "min_p")))
        if options.get("top_p") == 1:
            options["top_p"] = None
        return self._seeded(line, options, "seed" in body)

    def _seeded(self, line: Line, options: dict[str, Any], has_own: bool) -> dict[str, Any]:
        """A seed of its own for each row, which does not depend on what was filled before."""
        if not has_own and options.get("seed") is not None:
            text = f"{options['seed']} {line.number}".encode()
            options["seed"] = int.from_bytes(blake2b(text, digest_size=4).digest(), "big")
        return options

    # --- plain rows

    def _plain_row(self, line: Line, value: dict[str, Any]) -> Row:
        _check_members(
            value, _PLAIN_MEMBERS, 'what is your own goes into "metadata", which the output repeats'
        )
        name = value.get("id")
        if name is None:
            name = line.number
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            raise RowError(f"expected a text or an integer, got {_kind(name)}", "/id")
        _check_id(str(name), "/id")
        given = [each for each in ("prompt", "messages") if value.get(each) is not None]
        if len(given) != 1:
            raise RowError(
                "a row has either a prompt or messages" if given else "a row needs a prompt, or messages"
            )
        prompt: str | list[dict[str, Any]]
        if given == ["messages"]:
            prompt = _messages(value["messages"], "/messages")
        else:
            if not isinstance(value["prompt"], str):
                raise RowError(f"expected a text, got {_kind(value['prompt'])}", "/prompt")
            prompt = value["prompt"]
            if self.system is not None:
                prompt = [{"role": "system", "content": self.system}, {"role": "user", "content": prompt}]
        own = value.get("schema")
        if own is not None and not isinstance(own, (dict, bool)):
            raise RowError(f"a JSON Schema is an object or a boolean, not {_kind(own)}", "/schema")
        own = None if own is None else JsonSchema(own, **self.schema_options)
        options = self._seeded(line, dict(self.options), False)
        source = self._source(own, "/schema")
        return Row(
            line.number, name, self.key(line), "plain", prompt, source, options, None, value.get("metadata")
        )

    def _source(self, own: Any, place: str) -> Any:
        if own is None and self.source is None:
            raise RowError("the row has no schema, and --schema gives none", place)
        return self.source if own is None else own


def _option(name: str, value: Any, place: str) -> Any:
    kinds: dict[str, tuple[type, ...]] = {
        "stop": (str, list),
        **dict.fromkeys(("temperature", "top_p", "min_p", "repetition_penalty"), (int, float)),
    }
    if not isinstance(value, kinds.get(name, (int,))) or isinstance(value, bool):
        wanted = (
            "a text or a list of texts"
            if name == "stop"
            else "a number"
            if name in kinds
            else "a whole number"
        )
        raise RowError(f"expected {wanted}, got {_kind(value)}", place)
    if name == "n" and value not in range(1, MAX_OUTPUTS + 1):
        raise RowError(f"n is a number from 1 to {MAX_OUTPUTS}, not {value}", place)
    return value


def _messages(value: Any, place: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        raise RowError(
            f"expected a list of messages, got {_kind(value) if value != [] else 'an empty one'}", place
        )
    for i, message in enumerate(value):
        if not isinstance(message, dict):
            raise RowError(f"a message is an object, not {_kind(message)}", f"{place}/{i}")
        if not isinstance(message.get("role"), str):
            raise RowError(f"expected a text, got {_kind(message.get('role'))}", f"{place}/{i}/role")
    return value


def _check_members(value: dict[str, Any], known: Iterable[str], hint: str) -> None:
    known = tuple(known)
    for name in value:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            advice = f"did you mean {close[0]!r}?" if close else hint or f"there are {', '.join(known)}"
            pointer = name[:100].replace("~", "~0").replace("/", "~1")
            raise RowError(f"no member of a row has this name; {advice}", f"/{pointer}")


def _check_id(name: str, place: str) -> None:
    if len(name) > MAX_ID_CHARACTERS:
        raise RowError(f"an id has at most {MAX_ID_CHARACTERS} characters, not {len(name)}", place)
    if not is_text(name):
        raise RowError("an id has a lone surrogate, which is no text", place)


_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "a boolean"),
    (str, "a text"),
    (int, "a number"),
    (float, "a number"),
    (list, "a list"),
    (dict, "an object"),
)


def _kind(value: Any) -> str:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "nothing")
