"""What a caller may ask of a generation, checked before anything is computed."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from maskwright.base.arguments import real, whole
from maskwright.errors import MaskwrightError
from maskwright.frontends.json_schema.algebra.strings import is_text

_MOST_TOP_LOGPROBS = 100


@dataclass(frozen=True, kw_only=True)
class GenerationOptions:
    """The keyword arguments of ``Generator.generate``.

    ``max_new_tokens`` counts EOS.  ``temperature``: None or 0 takes the likeliest token; else tokens are sampled, and
    ``top_p``, ``top_k`` and ``min_p`` cut the distribution that the grammar leaves, as in transformers.
    ``repetition_penalty`` as there (1: none).  ``stop``: texts at which the output ends; what they begin is not part of it.
    ``n``: outputs for each prompt.  ``logprobs``: True, or how many of the likeliest tokens to list at each place.
    ``particles``: candidates that are written side by side, of which the likeliest whole text is returned, ``num_beams``: beam search.
    Raises ``MaskwrightError`` for values out of range, and for arguments that contradict each other.
    """

    max_new_tokens: int = 512
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    stop: str | Sequence[str] | None = None
    seed: int | None = None
    n: int = 1
    logprobs: bool | int = False
    particles: int | None = None
    num_beams: int = 1
    schema_in_prompt: bool = False

    def __post_init__(self) -> None:
        self._keep("max_new_tokens", whole(self.max_new_tokens, "max_new_tokens", low=0))
        if self.temperature is not None:
            self._keep("temperature", real(self.temperature, "temperature"))
            if not math.isfinite(self.temperature):
                raise MaskwrightError(
                    f"temperature is {self.temperature}; it must be finite and not negative"
                )
        for name, low in (("top_k", 1), ("particles", 1), ("seed", 0)):
            if getattr(self, name) is not None:
                self._keep(name, whole(getattr(self, name), name, low=low))
        for name in ("n", "num_beams"):
            self._keep(name, whole(getattr(self, name), name, low=1))
        for name in ("top_p", "min_p"):
            if getattr(self, name) is not None:
                self._keep(name, real(getattr(self, name), name, high=1.0))
        self._keep("stop", _texts(self.stop))
        if self.top_p == 0:
            raise MaskwrightError("top_p is 0, which leaves no token; temperature=0 takes the likeliest one")
        if (
            self.repetition_penalty is not None
            and not real(self.repetition_penalty, "repetition_penalty") > 0
        ):
            raise MaskwrightError("repetition_penalty is positive (1: none), not 0")
        if not isinstance(self.logprobs, bool):
            self._keep("logprobs", whole(self.logprobs, "logprobs", low=0))
            if self.logprobs > _MOST_TOP_LOGPROBS:
                raise MaskwrightError(
                    f"logprobs is {self.logprobs}; at most {_MOST_TOP_LOGPROBS} are listed a token"
                )
        if not isinstance(self.schema_in_prompt, bool):
            raise MaskwrightError(f"schema_in_prompt is True or False, not {self.schema_in_prompt!r}")
        self._check_together()

    def _keep(self, name: str, value: Any) -> None:
        """Store a checked value, of a plain type."""
        object.__setattr__(self, name, value)

    def _check_together(self) -> None:
        name = useless_cut(self)
        if name is not None:
            raise MaskwrightError(
                f"{name} cuts the distribution that tokens are sampled from: "
                "pass a temperature above 0 as well (temperature=1.0 leaves probabilities as they are)"
            )
        if self.particles is not None and self.num_beams > 1:
            raise MaskwrightError("particles and num_beams are two ways to keep candidates: pass one of them")
        if self.particles is not None or self.num_beams > 1:
            way = "particles" if self.particles is not None else "num_beams"
            given = [name for name in ("temperature", "repetition_penalty", "stop") if getattr(self, name)]
            if given:
                raise MaskwrightError(f"{way} and {given[0]} cannot be combined: leave one of them out")
        if self.particles is not None and self.n > 1:
            raise MaskwrightError("particles give one output; Generation.posterior has the others")
        if self.num_beams > 1 and self.n > self.num_beams:
            raise MaskwrightError(f"n is {self.n}, but {self.num_beams} beams give that many outputs at most")
        if self.n > 1 and not self.samples and self.num_beams == 1:
            raise MaskwrightError(
                f"n is {self.n}, but the likeliest token is one and the same each time: "
                "pass a temperature or num_beams"
            )

    @property
    def samples(self) -> bool:
        """Whether tokens are drawn, rather than the likeliest taken."""
        return bool(self.temperature)

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop texts."""
        return () if self.stop is None else tuple(self.stop)

    @property
    def top(self) -> int:
        """How many of the likeliest tokens to list at each place."""
        return 0 if isinstance(self.logprobs, bool) else self.logprobs


def useless_cut(options: Any) -> str | None:
    """Which of ``top_p``, ``top_k`` and ``min_p`` is given where nothing is sampled; of ``GenerationOptions``, or what a command line has."""
    given = [name for name in ("top_p", "top_k", "min_p") if getattr(options, name) is not None]
    return given[0] if given and not options.temperature else None


def _texts(stop: Any) -> tuple[str, ...] | None:
    """Stop texts as a tuple."""
    if stop is None:
        return None
    if not isinstance(stop, (str, Iterable)) or isinstance(stop, (bytes, Mapping)):
        raise MaskwrightError(f"stop is a text or a list of texts, not {stop!r}")
    texts = (stop,) if isinstance(stop, str) else tuple(stop)
    for text in texts:
        if not isinstance(text, str) or not text:
            raise MaskwrightError(f"stop is one or more texts that are not empty, not {text!r}")
        if not is_text(text):
            raise MaskwrightError(f"stop={text!r} has a lone surrogate, which no output can have")
    return texts


def options_of(given: dict[str, Any]) -> GenerationOptions:
    """Options by name.  Raises ``MaskwrightError`` for a name that is none, and for bad values."""
    known = {each.name for each in fields(GenerationOptions)}
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, 1)
            hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(sorted(known))}"
            raise MaskwrightError(f"{name} is no option of a generation{hint}")
    return GenerationOptions(**given)
