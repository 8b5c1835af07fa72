"""What the playground's page asks, and what it is told.  Everything in it is a stranger's, with limits of size and time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from maskwright.base.deadline import deadline
from maskwright.check.grammars import check_grammar, compile_for_bytes
from maskwright.check.report import Finding
from maskwright.check.sentences import sentences
from maskwright.check.texts import Explainer, allowed_tokens
from maskwright.compiling.compiler import compile_grammar
from maskwright.errors import MaskwrightError
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.sources import GBNF, JsonSchema, Lark, Regex
from maskwright.vocabulary.vocabulary import Vocabulary

LANGUAGES: dict[str, Callable[[str], Any]] = {
    "json-schema": JsonSchema,
    "lark": Lark,
    "gbnf": GBNF,
    "regex": lambda text: Regex(text.removesuffix("\n")),
}
LIMITS = replace(DEFAULT_LIMITS, max_seconds=5.0)
MOST_CHARACTERS = 100_000
"""Of a source, an instance, or a prompt."""
MOST_FINDINGS = 100
SAMPLES = 5
SHOWN_TOKENS = 40
MOST_NEW_TOKENS = 1024


class RequestError(MaskwrightError):
    """The page's request has another shape."""


def check(request: Any, vocabulary: Vocabulary | None = None, limits: Limits = LIMITS) -> dict[str, Any]:
    """What is to be said of a source, an instance, and the place of the cursor in it.

    request: ``language``, ``source``, ``instance`` and ``prefix`` (the instance up to the cursor), all texts; ``seed`` of the samples.
    Raises ``RequestError`` for other shapes.  What is wrong with the texts is part of the answer.
    """
    source = _source(request)
    instance, prefix, seed = _text(request, "instance"), _text(request, "prefix"), _seed(request)
    answer: dict[str, Any] = {"problems": [], "samples": [], "instance": None, "cursor": None}
    try:
        report = check_grammar(source, limits=limits)
        answer["problems"] = [_finding(each) for each in report.findings[:MOST_FINDINGS]]
        if not report.compiles:
            return answer
        grammar, compiled = compile_for_bytes(source, limits)
        explainer = Explainer(grammar, compiled, is_schema=isinstance(source, JsonSchema), limits=limits)
        with deadline(limits.max_seconds):
            answer["samples"] = list(sentences(compiled, SAMPLES, seed=seed))
            if instance:
                answer["instance"] = [_finding(each) for each in explainer.check(instance)]
            answer["cursor"] = _cursor(explainer, prefix, vocabulary, limits)
    except MaskwrightError as error:
        place = getattr(error, "place", None)
        answer["problems"].append(_finding(Finding("error", type(error).__name__, place or "", str(error))))
    return answer


def generate(request: Any, generator: Any) -> dict[str, Any]:
    """What a model writes: ``language``, ``source``, ``prompt``, ``max_tokens``, ``schema_in_prompt``.

    Raises ``RequestError``; what is wrong with the texts is in ``error``.
    """
    source = _source(request)
    prompt = _text(request, "prompt")
    most = request.get("max_tokens", 200)
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MOST_NEW_TOKENS:
        raise RequestError(f"max_tokens is a whole number from 1 to {MOST_NEW_TOKENS}")
    try:
        (found,) = generator.generate(
            [prompt], source, max_new_tokens=most, schema_in_prompt=request.get("schema_in_prompt") is True
        )
    except MaskwrightError as error:
        return {"error": str(error)}
    usage = found.usage
    return {
        "text": found.text,
        "finish_reason": found.finish_reason,
        "tokens": usage.generated_tokens,
        "forced": usage.forced_tokens,
        "passes": usage.model_calls,
        "removed": found.removed_mass.total,
    }


def _source(request: Any) -> Any:
    if not isinstance(request, dict):
        raise RequestError("a request is an object")
    make = LANGUAGES.get(str(request.get("language")))
    if make is None:
        raise RequestError(f"language is one of {', '.join(LANGUAGES)}")
    return make(_text(request, "source"))


def _text(request: dict[str, Any], name: str) -> str:
    text = request.get(name, "")
    if not isinstance(text, str):
        raise RequestError(f"{name} is a text")
    if len(text) > MOST_CHARACTERS:
        raise RequestError(f"{name} has {len(text)} characters; {MOST_CHARACTERS} are allowed")
    # A lone surrogate is no text.
    return text.encode("utf-8", "replace").decode()


def _seed(request: dict[str, Any]) -> int:
    seed = request.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**32:
        raise RequestError("seed is a whole number from 0 to 4294967295")
    return seed


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity,
        "code": finding.code,
        "place": finding.place,
        "message": finding.message,
    }


def _cursor(
    explainer: Explainer, prefix: str, vocabulary: Vocabulary | None, limits: Limits
) -> dict[str, Any]:
    data = prefix.encode()
    matcher = explainer.compiled.matcher()
    read = matcher.longest_prefix(data)
    if read < len(data):
        return {
            "reached": False,
            "fits": _shown(data[:read]),
            "expected": str(explainer.expected(data[:read])),
        }
    matcher.accept_bytes(data)
    compiled, at = explainer.compiled, matcher
    if vocabulary is not None:
        compiled = compile_grammar(explainer.grammar, vocabulary, limits)
        at = compiled.matcher()
        at.accept_bytes(data)
    tokens = allowed_tokens(compiled, at)
    return {
        "reached": True,
        "complete": matcher.is_accepting,
        "forced": _shown(matcher.forced_bytes()),
        "shortest_completion": _shown(matcher.shortest_completion_bytes()),
        "expected": str(explainer.expected(data)),
        "kind": "bytes" if vocabulary is None else "tokens",
        "allowed": len(tokens),
        "of": compiled.vocabulary.vocab_size - len(compiled.vocabulary.eos_ids),
        "tokens": [_shown(token) for token in tokens[:SHOWN_TOKENS]],
    }


def _shown(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def read_request(body: bytes) -> Any:
    """A body as JSON.  Raises ``RequestError``."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise RequestError("the body is no JSON") from None
