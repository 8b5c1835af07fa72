"""Masks of shipped grammars on real texts, beside llguidance (and XGrammar for JSON) where these can express them.

Per engine and grammar: compile time, and mask + accept for each token (microseconds), over texts that come one after
another, so that later ones meet states that earlier ones have made, as in serving.  llguidance has no look-ahead in
terminals and no priorities: it gets the same grammar without (real texts do not depend on them).

    python bench/grammars.py [--texts N] [--engines ours,llguidance,xgrammar] [--out FILE]
    python bench/grammars.py --engines ours --grammars javascript --texts 100 --files FOLDER
        files of the language below a folder, of those that the grammar accepts, in an order by chance that is always the same
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from languages import JUDGES, accepts
from maskbench_tokenizers import Tokenizer, tekken

import maskwright as mw
from maskwright.check.grammars import compile_for_bytes
from maskwright.compiling.shipped import examples, shipped_grammar

Step = Callable[[int], bool]
MOST_BYTES = 20_000


def files_of(name: str, folder: Path, count: int) -> list[str]:
    """Some that the grammar accepts."""
    grammar = compile_for_bytes(shipped_grammar(name), mw.Limits(max_seconds=60.0))[1]
    suffixes = next(judge.suffixes for key, judge in JUDGES.items() if re.split("[:-]", key)[0] == name)
    paths = sorted(path for suffix in suffixes for path in folder.rglob(f"*{suffix}") if path.is_file())
    random.Random(3).shuffle(paths)
    texts: list[str] = []
    for path in paths:
        if len(texts) == count:
            break
        if 500 < path.stat().st_size < MOST_BYTES:
            text = path.read_text(encoding="utf-8", errors="replace")
            if accepts(grammar, text):
                texts.append(text)
    return texts


def texts_of(name: str, count: int) -> list[str]:
    if name == "python":
        files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
        return [text for text in texts if 1000 < len(text) < MOST_BYTES and "\r" not in text][:count]
    if name == "json":
        record = {
            "name": "Ada",
            "tags": ["x", "longer text, with words", "été"],
            "n": 1.5,
            "sub": {"a": None},
        }
        return [
            json.dumps([{**record, "id": i}] * 10, indent=i % 3, ensure_ascii=False) for i in range(count)
        ]
    if name == "sql":
        _, *queries = (Path(__file__).parent / "queries.sql").read_text(encoding="utf-8").split("\n\n")
        return [query.strip() for query in queries][:count]
    if name == "c":
        return [text * 5 for text in examples(name)["accept"]][:count]
    return examples(name)["accept"][:count]


class Ours:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self.vocabulary = tokenizer.vocabulary()
        self.bitmask = mw.allocate_token_bitmask(1, self.vocabulary.vocab_size)
        mw.compile_lark('start: "x"', self.vocabulary)

    def compile(self, name: str) -> Callable[[], Step]:
        grammar = mw.compile(shipped_grammar(name), self.vocabulary)

        def begin() -> Step:
            matcher = grammar.matcher()

            def step(token: int) -> bool:
                matcher.fill_next_token_bitmask(self.bitmask)
                return matcher.accept_token(token)

            return step

        return begin


class LlGuidance:
    def __init__(self, tokenizer: Tokenizer) -> None:
        import llguidance
        import llguidance.hf
        import llguidance.numpy

        self.api, self.arrays = llguidance, llguidance.numpy
        self.tokenizer = llguidance.hf.from_tokenizer(tokenizer.huggingface())
        self.bitmask = llguidance.numpy.allocate_token_bitmask(1, self.tokenizer.vocab_size)

    def compile(self, name: str) -> Callable[[], Step]:
        if name in ("python", "yaml"):
            raise ValueError("it has no indentation")
        text = re.sub(r"\(\?![^()]*(\([^()]*\)[^()]*)*\)", "", shipped_grammar(name).text)
        text = re.sub(r"^(\w+)\.-?[0-9]+:", r"\1:", text, flags=re.M)
        source = self.api.LLMatcher.grammar_from_lark(text)

        def begin() -> Step:
            matcher = self.api.LLMatcher(self.tokenizer, source)
            if matcher.is_error():
                raise ValueError(matcher.get_error().split("\n")[0][:120])

            def step(token: int) -> bool:
                self.arrays.fill_next_token_bitmask(matcher, self.bitmask, 0)
                return bool(matcher.consume_token(token))

            return step

        begin()
        return begin


class XGrammar:
    def __init__(self, tokenizer: Tokenizer) -> None:
        import xgrammar

        self.api = xgrammar
        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer.huggingface())
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        self.bitmask = xgrammar.allocate_token_bitmask(1, info.vocab_size)

    def compile(self, name: str) -> Callable[[], Step]:
        if name != "json":
            raise ValueError("its grammars have no lexer")
        compiled = self.compiler.compile_builtin_json_grammar()

        def begin() -> Step:
            matcher = self.api.GrammarMatcher(compiled)

            def step(token: int) -> bool:
                matcher.fill_next_token_bitmask(self.bitmask)
                return bool(matcher.accept_token(token))

            return step

        return begin


ENGINES: dict[str, Callable[[Tokenizer], Any]] = {
    "ours": Ours,
    "llguidance": LlGuidance,
    "xgrammar": XGrammar,
}


def measure(engine: Any, tokenizer: Tokenizer, name: str, texts: list[str]) -> dict[str, Any]:
    begun = time.perf_counter()
    begin = engine.compile(name)
    result: dict[str, Any] = {"compile_ms": (time.perf_counter() - begun) * 1e3, "texts": 0, "refused": 0}
    steps: list[float] = []
    for text in texts:
        step = begin()
        for token in tokenizer.encode(text):
            at = time.perf_counter()
            accepted = step(token)
            steps.append(time.perf_counter() - at)
            if not accepted:
                result["refused"] += 1
                break
        result["texts"] += 1
    micro = np.array(steps) * 1e6
    result["tokens"] = len(micro)
    for label, quantile in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)):
        result[label] = float(np.quantile(micro, quantile))
    result["avg"] = float(micro.mean())
    result["above 2 ms"] = float((micro > 2000).mean())
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=20)
    parser.add_argument("--grammars", default="json,sql,python,c")
    parser.add_argument("--engines", default="ours,llguidance,xgrammar")
    parser.add_argument("--files", type=Path, help="a folder of files of the language")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    tokenizer = tekken()
    results: dict[str, Any] = {}
    for engine_name in args.engines.split(","):
        engine = ENGINES[engine_name](tokenizer)
        for name in args.grammars.split(","):
            texts = files_of(name, args.files, args.texts) if args.files else texts_of(name, args.texts)
            try:
                found = measure(engine, tokenizer, name, texts)
            except ValueError as error:
                found = {"left out": str(error)}
            results.setdefault(name, {})[engine_name] = found
            shown = {
                key: round(value, 1 if value > 1 else 4) if isinstance(value, float) else value
                for key, value in found.items()
            }
            print(name, engine_name, shown, flush=True)
    if args.out is not None:
        args.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
