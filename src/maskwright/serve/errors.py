"""Refusals and failures, as OpenAI's servers write them."""

from __future__ import annotations

from typing import Any

from maskwright.errors import (
    GrammarError,
    LimitError,
    MaskwrightError,
    ModelError,
    UnsatisfiableError,
    UnsupportedSchemaError,
)
from maskwright.generation.row import StopError


class RequestError(Exception):
    """An answer that is an error.

    ``status``: of HTTP.  ``param``: the parameter that it is about, or None.  ``retry_after``: seconds, for those who may come again.
    ``refusals``: keywords that cannot be enforced, each with its JSON pointer and the reason.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        kind: str | None = None,
        retry_after: int | None = None,
        refusals: list[dict[str, str]] | None = None,
    ) -> None:
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.kind = kind or ("invalid_request_error" if status < 500 else "server_error")
        self.retry_after = retry_after
        self.refusals = refusals
        super().__init__(message)

    @property
    def body(self) -> dict[str, Any]:
        """``{"error": {"message", "type", "param", "code"}}``, and ``refusals`` where there are any."""
        error: dict[str, Any] = {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        }
        if self.refusals:
            error["refusals"] = self.refusals
        return {"error": error}

    @property
    def headers(self) -> dict[str, str]:
        """``Retry-After``, where it makes sense."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


def refused(message: str, param: str | None, code: str | None = None) -> RequestError:
    """A 400."""
    return RequestError(400, message, param=param, code=code)


def of_source(error: MaskwrightError, param: str, subject: str | None = None) -> RequestError:
    """The 400 for a schema, grammar or pattern; ``subject`` says which, as in ``tool 'search'``."""
    message = _said(error, "compile_seconds")
    message = message if subject is None else f"{subject}: {message}"
    refusals = None
    if isinstance(error, UnsupportedSchemaError):
        code = "unsupported_schema"
        refusals = [refusal._asdict() for refusal in error.refusals]
    elif isinstance(error, UnsatisfiableError):
        code = "unsatisfiable_schema"
    elif isinstance(error, LimitError):
        code = f"limit_{error.limit}"
    elif isinstance(error, GrammarError):
        code = "invalid_schema"
    else:
        code = "invalid_value"
    return RequestError(400, message, param=param, code=code, refusals=refusals)


def of_row(error: Exception) -> RequestError:
    """What a client is told when its output ended with an error."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, ModelError):
        return RequestError(500, str(error), code="model_error")
    if isinstance(error, LimitError):
        return RequestError(400, _said(error, "step_seconds"), code=f"limit_{error.limit}")
    if isinstance(error, StopError):
        return refused(str(error), "stop", "invalid_value")
    if isinstance(error, MaskwrightError):
        return refused(str(error), None, "invalid_value")
    return RequestError(500, "the model failed; the log of the server says why", code="internal_error")


def _said(error: MaskwrightError, seconds: str) -> str:
    """The message; for a limit of time, with what it is called here."""
    late = isinstance(error, LimitError) and error.limit == "max_seconds"
    return f"{error} (this server's {seconds})" if late else str(error)
