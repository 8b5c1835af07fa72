"""128 tools that nobody has seen before: from their schemas to the first mask, beside other engines.

    python bench/tools_cold.py [--count 128] [--template hermes] [--repeat 3] [--peers llguidance xgrammar] [--seconds 120]

Three sets of object schemas from MaskBench's development cases, small, middle and large.  Each time a new vocabulary (tekken),
whose own tables are made before the clock starts.  Peers get tags of the same form, on one thread, in a process that is
ended after so many seconds; what a peer refuses singly is left out of its set, and counted.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from itertools import islice
from typing import Any

from maskbench_tokenizers import tekken
from tools import object_tools

import maskwright as mw

SETS = {"small": (0, 1_000), "middle": (1_000, 2_300), "large": (9_000, 60_000)}
"""Bytes of a schema as JSON: from, to."""

Tools = list[dict[str, Any]]


def ours(tools: Tools, template: str, vocabulary: mw.Vocabulary) -> float:
    """Milliseconds to the first mask."""
    mw.compile_regex("a", vocabulary)
    bitmask = mw.allocate_token_bitmask(1, len(vocabulary))
    started = time.perf_counter()
    source = mw.StructuralTag.from_tools(tools, template=template)
    mw.compile(source, vocabulary).matcher().fill_next_token_bitmask(bitmask)
    return (time.perf_counter() - started) * 1e3


def hermes(function: dict[str, Any]) -> tuple[str, str]:
    return '<tool_call>\n{"name": ' + json.dumps(function["name"]) + ', "arguments": ', "}\n</tool_call>"


def llguidance(tools: Tools) -> tuple[float, int]:
    import llguidance.hf
    from llguidance import LLMatcher, StructTag
    from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

    huggingface = tekken().huggingface()
    tokenizer = llguidance.hf.from_tokenizer(huggingface, n_vocab=len(huggingface))
    bitmask = allocate_token_bitmask(1, tokenizer.vocab_size)

    def first_mask(grammar: Any) -> str:
        matcher = LLMatcher(tokenizer, grammar, log_level=0)
        error: str = matcher.get_error()
        if not error:
            fill_next_token_bitmask(matcher, bitmask)
        return error

    def whole(functions: list[dict[str, Any]]) -> str:
        tags = [
            StructTag(trigger="<tool_call>", begin=begin, grammar=f["parameters"], end=end)
            for f in functions
            for begin, end in [hermes(f)]
        ]
        return first_mask(StructTag.to_grammar(tags, assume_special=False))

    functions = [t["function"] for t in tools]
    taken = [f for f in functions if not first_mask(LLMatcher.grammar_from_json_schema(f["parameters"]))]
    started = time.perf_counter()
    error = whole(taken)
    took = (time.perf_counter() - started) * 1e3
    if error:
        raise ValueError(error)
    return took, len(taken)


def xgrammar(tools: Tools) -> tuple[float, int]:
    import xgrammar as xgr

    huggingface = tekken().huggingface()
    info = xgr.TokenizerInfo.from_huggingface(huggingface, vocab_size=len(huggingface))
    bitmask = xgr.allocate_token_bitmask(1, len(huggingface))

    def tag(functions: list[dict[str, Any]]) -> Any:
        tags = [
            {
                "type": "tag",
                "begin": begin,
                "content": {"type": "json_schema", "json_schema": f["parameters"]},
                "end": end,
            }
            for f in functions
            for begin, end in [hermes(f)]
        ]
        return xgr.StructuralTag.model_validate(
            {"format": {"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": tags}}
        )

    def is_taken(function: dict[str, Any]) -> bool:
        try:
            xgr.Grammar.from_structural_tag(tag([function]))
        except Exception:
            return False
        return True

    taken = [t["function"] for t in tools if is_taken(t["function"])]
    compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    started = time.perf_counter()
    xgr.GrammarMatcher(compiler.compile_structural_tag(tag(taken))).fill_next_token_bitmask(bitmask)
    return (time.perf_counter() - started) * 1e3, len(taken)


PEERS = {"llguidance": llguidance, "xgrammar": xgrammar}


def _peer(name: str, tools: Tools, answer: Any) -> None:
    try:
        answer.put(PEERS[name](tools))
    except ImportError:
        answer.put("not installed")
    except Exception as error:
        answer.put(f"refuses the set: {str(error).splitlines()[0][:100]}")


def peer(name: str, tools: Tools, seconds: float) -> str:
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=_peer, args=(name, tools, answer))
    process.start()
    try:
        found = answer.get(timeout=seconds)
    except Exception:
        return f"no answer in {seconds:.0f} s"
    finally:
        process.kill()
        process.join()
    return found if isinstance(found, str) else f"{found[0]:.0f} ms ({found[1]} of {len(tools)} tools)"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=128)
    parser.add_argument("--template", default="hermes")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--seconds", type=float, default=120)
    args = parser.parse_args()
    for name, (low, high) in SETS.items():
        tools = list(islice(object_tools(1, low, high), args.count))
        size = sum(len(json.dumps(t["function"]["parameters"])) for t in tools)
        times = [ours(tools, args.template, tekken().vocabulary()) for _ in range(args.repeat)]
        print(
            f"{name}: {len(tools)} tools, {size / 1e3:.0f} kB of schemas: compile and first mask "
            f"{statistics.median(times):.0f} ms (median of {args.repeat}; least {min(times):.0f})",
            flush=True,
        )
        for other in args.peers:
            print(f"    {other}: {peer(other, tools, args.seconds)}", flush=True)


if __name__ == "__main__":
    main()
