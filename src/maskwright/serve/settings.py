"""What may be set: limits of what strangers send, and defaults.  Each is an option of ``maskwright serve``."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from maskwright.base.arguments import real, whole
from maskwright.errors import MaskwrightError
from maskwright.frontends.tools.templates import THINKS, ToolTemplate

_MOST_SECONDS = 1e9
"""What every clock can wait for."""


def _setting(default: Any, told: str) -> Any:
    """A field, and what it is, for the command line."""
    return field(default=default, metadata={"help": told})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Raises ``MaskwrightError`` for values out of range; the message says which."""

    max_body_bytes: int = _setting(4 * 2**20, "a request's body; beyond it, 413 (bytes)")
    max_prompt_tokens: int = _setting(
        0, "tokens of one prompt; 0: as many as the model's context has (count)"
    )
    max_tools: int = _setting(256, "tools of one request (count)")
    max_outputs: int = _setting(16, "outputs of one request: n, times its prompts (count)")
    max_tokens: int = _setting(4096, "tokens that a request may ask for, for each output (count)")
    default_max_tokens: int = _setting(
        1024, "tokens of an output where the request says nothing; of completions 16, as OpenAI's (count)"
    )
    max_stops: int = _setting(8, "stop texts of one request (count)")
    max_stop_characters: int = _setting(1000, "characters of one stop text (count)")
    max_top_logprobs: int = _setting(20, "likeliest tokens that are listed at each place (count)")
    max_rows: int = _setting(32, "outputs that are written at the same time (count)")
    max_queued: int = _setting(256, "outputs that wait for a place; beyond it, 429 (count)")
    max_requests: int = _setting(
        512, "requests under way, from their first byte to their last; beyond it, 429 (count)"
    )
    prefill_tokens: int = _setting(
        2048, "tokens of prompts that are read in one pass; a longer prompt is read alone (count)"
    )
    compile_seconds: float = _setting(5.0, "to compile one source (seconds)")
    step_seconds: float = _setting(
        1.0, "for one mask or token of one output; beyond it, that output is an error (seconds)"
    )
    mask_seconds: float = _setting(
        10.0, "for all masks of one output; beyond it, that output is an error (seconds)"
    )
    body_seconds: float = _setting(30.0, "to send the body of a request; beyond it, 408 (seconds)")
    request_seconds: float = _setting(
        600.0, "from a request to the end of its answer; beyond it, 504 (seconds)"
    )
    shutdown_seconds: float = _setting(30.0, "to finish what runs, when the server is told to end (seconds)")
    retry_after: int = _setting(1, "what Retry-After says to those who are turned away (seconds)")
    compile_workers: int = _setting(2, "threads that compile (count)")
    compile_cache_bytes: int = _setting(2**28, "about what compiled grammars take together (bytes)")
    tool_template: str = _setting(
        "hermes", "how the model writes calls: a name (docs/tools.md), or a JSON file"
    )
    thinking: str = _setting(
        "", f"whether it thinks in front of calls: {', '.join(THINKS)}; what the template says"
    )
    schema_in_prompt: bool = _setting(
        False, "show the schema, pattern or grammar of a request to the model, in the system message"
    )

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.type == "int":
                low = (
                    0
                    if each.name in ("max_prompt_tokens", "max_queued", "retry_after", "compile_cache_bytes")
                    else 1
                )
                object.__setattr__(self, each.name, whole(value, each.name, low=low))
            elif each.type == "float":
                if not real(value, each.name, high=_MOST_SECONDS) > 0:
                    raise MaskwrightError(f"{each.name} must be above 0, not {value}")
        ToolTemplate.load(self.tool_template)
        if self.thinking not in ("", *THINKS):
            raise MaskwrightError(f"thinking is one of {', '.join(THINKS)}, not {self.thinking!r}")
        if not isinstance(self.schema_in_prompt, bool):
            raise MaskwrightError(f"schema_in_prompt is True or False, not {self.schema_in_prompt!r}")
        if self.default_max_tokens > self.max_tokens:
            raise MaskwrightError(
                f"default_max_tokens is {self.default_max_tokens}, above max_tokens, which is {self.max_tokens}"
            )
