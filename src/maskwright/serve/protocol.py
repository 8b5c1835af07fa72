"""The requests of the three end points.

A parameter is used, or it cannot change the answer (``user``, ``metadata``), or the request is refused and the parameter
named.  null is the same as leaving it out.
"""

from __future__ import annotations

from types import NoneType
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from maskwright.serve.errors import RequestError, refused
from maskwright.serve.sampling import Sampling

_NOT_HERE = "this server does not have it: leave it out"
_T = TypeVar("_T")
_List = Annotated[list[_T], Field(fail_fast=True)]
"""One error, and not one for each item: a body may have a million."""
_Some = Annotated[list[_T], Field(fail_fast=True, min_length=1)]


class _Members(BaseModel):
    """An object with members that are known."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _one_unknown(cls, given: Any) -> Any:
        """Of members that are not known, the first is enough: each would be an error."""
        known = cls.model_fields
        unknown = {name for name in given if name not in known} if isinstance(given, dict) else ()
        if len(unknown) < 2:
            return given
        first = next(name for name in given if name in unknown)
        return {name: value for name, value in given.items() if name == first or name not in unknown}


class StreamOptions(_Members):
    """``stream_options``.  Obfuscation adds characters that mean nothing to a stream; there are none here."""

    include_usage: bool = False
    include_obfuscation: bool = False


class _Request(_Members):
    """What the requests have in common."""

    _refused: ClassVar[dict[str, str]] = {}
    """Parameters that others have: why they are refused here."""
    _neutral: ClassVar[dict[str, Any]] = {}
    """Of these, the values that change nothing."""

    model: str
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: float = Field(1.0, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    # They say who asks, or how the answer is kept, paid or hurried.
    user: str | None = None
    metadata: dict[str, Any] | None = None
    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None

    @classmethod
    def read(cls, body: object) -> Self:
        """A request from decoded JSON.  Raises ``RequestError`` (400) that names the parameter."""
        if not isinstance(body, dict):
            raise refused("the body is a JSON object", None)
        given = {name: value for name, value in body.items() if value is not None}
        for name, reason in cls._refused.items():
            if name in given:
                neutral = cls._neutral.get(name)
                if neutral is None or given.pop(name) != neutral:
                    raise refused(f"{name}: {reason}", name, "unsupported_parameter")
        try:
            made = cls.model_validate(given)
        except ValidationError as error:
            raise _refusal(error, cls) from None
        if made.stream_options is not None and not made.stream:
            raise refused("stream_options: only for stream: true", "stream_options")
        return made


class _Sampled(_Request):
    """Chats and completions."""

    n: int = Field(1, ge=1)
    seed: int | None = None
    stop: str | _List[str] | None = None
    max_tokens: int | None = Field(None, ge=1)
    frequency_penalty: float = Field(0.0, ge=-2, le=2)
    presence_penalty: float = Field(0.0, ge=-2, le=2)
    logit_bias: dict[str, Any] = Field(default_factory=dict)
    response_format: dict[str, Any] | None = None
    # Of other servers.
    top_k: int | None = Field(None, ge=1)
    min_p: float | None = Field(None, ge=0, le=1)
    repetition_penalty: float | None = Field(None, gt=0)

    def sampling(self, vocab_size: int) -> Sampling:
        """How tokens are chosen.  Raises ``RequestError`` for a bias of no token."""
        biases: dict[int, float] = {}
        for name, bias in self.logit_bias.items():
            if not (name.isascii() and name.isdecimal() and int(name[:10]) < vocab_size and len(name) < 11):
                raise refused(f"logit_bias: {name[:40]!r} is no token id below {vocab_size}", "logit_bias")
            if type(bias) not in (int, float) or not -100 <= bias <= 100:
                message = f"logit_bias: {bias!r} for token {name} is no number from -100 to 100"
                raise refused(message[:300], "logit_bias")
            biases[int(name)] = float(bias)
        return Sampling(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            logit_bias=biases,
            seed=self.seed,
        )

    @property
    def stops(self) -> list[str]:
        """The stop texts."""
        if self.stop is None:
            return []
        return [self.stop] if isinstance(self.stop, str) else self.stop

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with what it took."""
        return self.stream_options is not None and self.stream_options.include_usage


class ChatRequest(_Sampled):
    """``POST /v1/chat/completions``."""

    _refused = {
        "audio": "the model writes text",
        "modalities": "the model writes text",
        "function_call": "it was replaced by tool_choice",
        "functions": "they were replaced by tools",
        "moderation": _NOT_HERE,
        "reasoning_effort": "the model has no such setting",
        "verbosity": "the model has no such setting",
        "web_search_options": _NOT_HERE,
    }
    _neutral = {"modalities": ["text"], "reasoning_effort": "none"}

    messages: _List[dict[str, Any]] = Field(min_length=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    tools: list[Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool = True
    logprobs: bool = False
    top_logprobs: int | None = Field(None, ge=0)
    prediction: dict[str, Any] | None = None
    """It may only hasten the answer."""

    @property
    def top(self) -> int | None:
        """How many likeliest tokens to list at each place; None: no probabilities.  Raises ``RequestError``."""
        if self.top_logprobs is not None and not self.logprobs:
            raise refused("top_logprobs: only with logprobs: true", "top_logprobs")
        return (self.top_logprobs or 0) if self.logprobs else None


class CompletionRequest(_Sampled):
    """``POST /v1/completions``."""

    _refused = {
        "best_of": "it is n; outputs are not ranked",
        "echo": "the prompt is not part of the answer",
        "suffix": "the model writes behind a prompt only",
    }
    _neutral = {"echo": False, "best_of": 1, "suffix": ""}

    prompt: str | _Some[str] | _Some[int] | _Some[_List[int]]
    max_tokens: int | None = Field(16, ge=1)
    logprobs: int | None = Field(None, ge=0)


class ResponseRequest(_Request):
    """``POST /v1/responses``."""

    _refused = {
        "background": "answers are given at once",
        "context_management": _NOT_HERE,
        "conversation": "nothing is kept: send all items as input",
        "include": _NOT_HERE,
        "max_tool_calls": _NOT_HERE,
        "moderation": _NOT_HERE,
        "previous_response_id": "nothing is kept: send all items as input",
        "prompt": "there are no stored prompts",
        "reasoning": "the model has no such setting",
        "top_logprobs": "probabilities are given by /v1/chat/completions",
        "truncation": "a prompt that is too long is refused",
    }
    _neutral = {"background": False, "truncation": "disabled", "include": [], "top_logprobs": 0}

    input: str | _Some[Any]
    instructions: str | None = None
    text: dict[str, Any] | None = None
    tools: list[Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool = True
    max_output_tokens: int | None = Field(None, ge=1)


def _refusal(error: ValidationError, kind: type[_Request]) -> RequestError:
    """The first thing that is wrong, as OpenAI says it."""
    known = sorted(kind.model_fields)
    errors = error.errors(include_url=False, include_context=False)
    name, *_ = errors[0]["loc"]
    found, inner = _nearest(errors, str(name)) if _is_union(kind, name) else (errors[0], errors[0]["loc"][1:])
    param = str(name) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in inner)
    if found["type"] == "extra_forbidden":
        names = "" if inner else f"; there are {', '.join(known)}"
        if param.startswith("guided_"):  # As older versions of vLLM have it.
            names = f"; use {'response_format' if 'response_format' in known else 'text.format'}"
        return refused(f"{param}: this parameter is not known{names}", param, "unknown_parameter")
    if found["type"] == "missing":
        return refused(f"{param}: this parameter is missing", param, "missing_required_parameter")
    shown = repr(found["input"])
    shown = shown if len(shown) < 80 else f"{shown[:76]} ..."
    return refused(f"{param}: {found['msg']}, got {shown}", param, "invalid_value")


def _is_union(kind: type[_Request], name: int | str) -> bool:
    """Whether a parameter may have values of several types, each of which has errors of its own."""
    field = kind.model_fields.get(str(name))
    return (
        field is not None and len([each for each in get_args(field.annotation) if each is not NoneType]) > 1
    )


def _nearest(errors: list[ErrorDetails], name: str) -> tuple[ErrorDetails, tuple[int | str, ...]]:
    """Of the types that a parameter may have, the error of the one that its value fits longest, and the place within the value."""
    firsts: dict[int | str | None, tuple[ErrorDetails, tuple[int | str, ...]]] = {}
    for each in errors:
        if each["loc"][0] == name:
            branch, *inner = each["loc"][1:] or (None,)
            firsts.setdefault(branch, (each, tuple(inner)))
    found, place = max(firsts.values(), key=lambda first: first[1])
    messages = dict.fromkeys(each["msg"] for each, inner in firsts.values() if inner == place)
    return {**found, "msg": " or ".join(messages).replace(" or Input should be ", " or ")}, place
