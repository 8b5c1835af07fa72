"""What masks let a model write, as the parsers of vLLM and SGLang read it: the same calls as ours.

Each part runs where its engine is installed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
import tool_judges
import toys
from byte_walks import finished_walk
from tool_transcripts import CALLS, TOOLS, TRANSCRIPTS, tool

import maskwright as mw

# No negative number: SGLang's reader of Python's literals knows none.  Lists hold brackets, and one of vLLM's parsers (Phi 4 mini) ends at the first one.
FLAT = [
    tool(
        "find",
        text={"type": "string", "pattern": "^[a-z .,:'<>/]{1,9}$"},
        limit={"type": "integer", "minimum": 1, "maximum": 20},
        ratio={"type": "number", "minimum": 0.5, "maximum": 1},
        exact={"type": "boolean"},
    ),
    tool("list_all", kind={"type": "string", "enum": ["new", "old"]}),
]
NESTED = [
    *FLAT,
    tool(
        "save",
        tags={"type": "array", "items": {"type": "string", "pattern": "^[a-z]{0,3}$"}, "maxItems": 3},
        place={
            "type": "object",
            "properties": {
                "x": {"type": "integer", "minimum": 1},
                "name": {"type": "string", "pattern": "^[ -~]{0,4}$"},
            },
            "required": ["x"],
            "additionalProperties": False,
        },
    ),
]


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """Parsers log what they cannot read."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def tools_for(family: str) -> list[dict[str, Any]]:
    return FLAT if family == "phi4_mini" else NESTED


def as_read_by_sglang(family: str, text: str) -> str:
    """The text in the spelling that SGLang looks for, of several that models write."""
    if family == "mistral_v3":
        return text.replace("[TOOL_CALLS][", "[TOOL_CALLS] [")
    # The prompt ends with these; and its parser knows no call without a constraint.
    return "<|start|>assistant" + text if family == "harmony" else text


def as_read_by_vllm(family: str, text: str) -> str:
    """Its parsers of DeepSeek's calls read arguments only where they are on one line."""
    if not family.startswith("deepseek") or family == "deepseek_v3_2":
        return text
    return re.sub(r"(?<=[\[{,])[ \t]*\n\s*|\s*\n\s*(?=[\]}])", "", text.replace("\r", ""))


def judged(family: str, read: Callable[[str], tool_judges.Calls], change: Callable[[str], str]) -> None:
    template = mw.ToolTemplate.load(family)
    tools = tools_for(family)
    schemas = {t["function"]["name"]: t["function"]["parameters"] for t in tools}
    pieces = [b"find", b"save", b"list_all", b'"', b"true", *(mark.encode() for mark in template.tokens)]
    source = mw.StructuralTag.from_tools(tools, "required", template=family, thinking="off")
    grammar = mw.compile(source, toys.piece_vocabulary(3, pieces))
    names = set()
    for seed in range(30):
        text = finished_walk(grammar, seed, 120).decode()
        if family == "harmony" and "commentary to=" not in text:
            continue
        ours = [(c.name, c.arguments) for c in template.parse(text, tools, thinking="off").calls]
        assert ours and read(change(text)) == ours, text
        for name, arguments in ours:
            jsonschema.Draft202012Validator(schemas[name]).validate(arguments)
            names.add(name)
    assert len(names) > 1


@pytest.mark.parametrize("family", sorted(tool_judges.VLLM))
def test_vllm_reads_what_masks_allow(family: str) -> None:
    pytest.importorskip("vllm")
    marks = mw.ToolTemplate.load(family).tokens
    read = tool_judges.vllm_reader(family, marks, tools_for(family))
    judged(family, read, lambda text: as_read_by_vllm(family, text))


@pytest.mark.parametrize("family", sorted(tool_judges.SGLANG))
def test_sglang_reads_what_masks_allow(family: str) -> None:
    pytest.importorskip("sglang.srt.function_call.function_call_parser")
    judged(
        family,
        tool_judges.sglang_reader(family, tools_for(family)),
        lambda text: as_read_by_sglang(family, text),
    )


@pytest.mark.parametrize("family", sorted(tool_judges.VLLM))
def test_vllm_reads_the_transcripts(family: str) -> None:
    pytest.importorskip("vllm")
    read = tool_judges.vllm_reader(family, mw.ToolTemplate.load(family).tokens, TOOLS)
    transcript = TRANSCRIPTS[family]
    assert read(transcript.one) == CALLS[:1]
    assert not transcript.two or read(transcript.two) == CALLS


@pytest.mark.parametrize("family", sorted(tool_judges.SGLANG))
def test_sglang_reads_the_transcripts(family: str) -> None:
    pytest.importorskip("sglang.srt.function_call.function_call_parser")
    read = tool_judges.sglang_reader(family, TOOLS)
    transcript = TRANSCRIPTS[family]
    assert read(as_read_by_sglang(family, transcript.one)) == CALLS[:1]
    assert not transcript.two or read(as_read_by_sglang(family, transcript.two)) == CALLS
