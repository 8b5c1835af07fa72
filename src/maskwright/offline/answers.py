"""What a back-end gives -> a line of the output.

Every back-end answers with the body of an OpenAI chat completion.  A row of OpenAI's format carries it whole, a plain one what people
need of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from maskwright.errors import GrammarError
from maskwright.frontends.json_text import finite, read_json
from maskwright.offline.journal import OPENAI_PREFIX
from maskwright.offline.rows import Row, RowError
from maskwright.sources import JsonSchema

if TYPE_CHECKING:
    from maskwright.generation.results import Generation


def completion(row: Row, outputs: list[Generation], model: str) -> dict[str, Any]:
    """The body of a chat completion from what a generator wrote.

    The text is complete and valid, also where ``finish_reason`` is ``"length"``: there the budget ran short, and the shortest
    completion was written.
    """
    written = sum(output.usage.generated_tokens for output in outputs)
    read = outputs[0].usage.prompt_tokens
    return {
        "id": f"chatcmpl-{row.key}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": index,
                "message": {"role": "assistant", "content": output.text, "refusal": None},
                "finish_reason": "length" if output.finish_reason == "budget" else "stop",
                "logprobs": None,
            }
            for index, output in enumerate(outputs)
        ],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }


def record(row: Row, body: dict[str, Any]) -> dict[str, Any]:
    """The line of the output for a row, in the shape of its line in the input.  Raises ``RowError`` where Python cannot read the output."""
    if row.shape == "openai":
        return {
            "id": OPENAI_PREFIX + row.key,
            "custom_id": row.id,
            "response": {"status_code": 200, "request_id": body.get("id", row.key), "body": body},
            "error": None,
        }
    choice = body["choices"][0]
    text = choice["message"]["content"]
    return {
        "id": row.id,
        "value": _value(text) if isinstance(row.source, JsonSchema) else text,
        "text": text,
        "finish_reason": choice.get("finish_reason"),
        "usage": body.get("usage"),
        "model": body.get("model"),
        **({} if row.metadata is None else {"metadata": row.metadata}),
        "row": row.key,
    }


def _value(text: str) -> Any:
    try:
        return read_json(text, finite)
    except GrammarError as error:
        raise RowError(f"the output cannot be read: {error.message}; bound it in the schema") from None
