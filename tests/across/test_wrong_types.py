"""Every argument of every public function, with values of every wrong kind: an answer or one of our errors, never another's.

``CALLS`` has a call that is right for each public name; one argument at a time is replaced by each of ``ODD``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from byte_walks import BYTES
from sampling_models import EOS, Exact, bigram, bigram_model, predicate

import maskwright as mw
import maskwright.diffusion as diffusion
import maskwright.sampling as sampling
import maskwright.search as search
from maskwright.errors import MaskwrightError
from maskwright.frontends.regex import to_grammar
from maskwright.hf import LogitsProcessor

ODD: list[Any] = [
    None, True, -1, 0, 2**31, 2**70, -(2**70), 10**400, 1.5, float("nan"), float("inf"), "", "a", "\0", "\ud800", b"a", [], {}, (),
    [None], [[1]], {"a": 1}, {1: 2}, np.array(3), np.array([1, 2]), np.float32("nan"), np.int8(3), object(),
]  # fmt: skip

Call = tuple[Callable[..., Any], Mapping[str, Any]]
TEXT = "start: word+\nword: /[ab]/"
LARK = mw.compile_lark(TEXT, BYTES)
WORDS = mw.Vocabulary([b"a", b"b", b"(", b")", b""], [EOS])
IN_WORDS = mw.compile_lark(TEXT, WORDS)
TRIE = mw.TokenTrie([[1, 2], [3]], 5, [EOS])


def matcher() -> mw.Matcher:
    return LARK.matcher()


def constraint() -> sampling.GrammarConstraint:
    return sampling.GrammarConstraint(IN_WORDS)


def run(**more: Any) -> dict[str, Any]:
    return {"model": bigram_model(), "constraint": Exact(), "max_tokens": 3, "seed": 1, **more}


def sequence(name: str, value: Any) -> Any:
    return getattr(matcher(), name)(value)


DATABASE = sqlite3.connect(":memory:")
DATABASE.execute("CREATE TABLE t (a)")
OPTIONS = {field.name: getattr(mw.SchemaOptions(), field.name) for field in fields(mw.SchemaOptions)}

CALLS: dict[str, Call] = {
    "set_threads": (lambda count: (mw.set_threads(count), mw.set_threads()), {"count": 2}),
    "allocate_token_bitmask": (mw.allocate_token_bitmask, {"batch": 1, "vocab_size": 5}),
    "apply_token_bitmask_inplace": (
        mw.apply_token_bitmask_inplace,
        {"logits": np.zeros((2, 5), np.float32), "bitmask": np.zeros((2, 1), np.int32), "indices": [0]},
    ),
    "fill_next_token_bitmasks": (
        mw.fill_next_token_bitmasks,
        {"matchers": [IN_WORDS.matcher()], "bitmask": np.zeros((1, 1), np.int32)},
    ),
    "Compiler": (lambda **given: mw.Compiler(**given).close(), {"vocabulary": BYTES, "workers": 1, "cache_bytes": 9}),
    "compile": (mw.compile, {"source": mw.Regex("a"), "vocabulary": BYTES, "limits": mw.Limits()}),
    "compile_choice": (mw.compile_choice, {"options": ["a"], "vocabulary": BYTES}),
    "compile_gbnf": (
        mw.compile_gbnf,
        {"text": 'root ::= "a"', "vocabulary": BYTES, "root": "root", "symbols": ["root"]},
    ),
    "compile_grammar": (mw.compile_grammar, {"grammar": to_grammar("a"), "vocabulary": BYTES, "limits": mw.Limits()}),
    "compile_json_schema": (mw.compile_json_schema, {"schema": True, "vocabulary": BYTES, **OPTIONS}),
    "compile_lark": (
        mw.compile_lark,
        {"text": TEXT, "vocabulary": BYTES, "start": "start", "lexer": "contextual", "import_paths": (), "indentation": None},
    ),
    "compile_regex": (
        mw.compile_regex,
        {"pattern": "a", "vocabulary": BYTES, "flavour": "python", "flags": "", "limits": mw.Limits()},
    ),
    "compile_structural_tag": (mw.compile_structural_tag, {"tag": {"type": "any_text"}, "vocabulary": BYTES}),
    "SchemaOptions": (mw.SchemaOptions, OPTIONS),
    "check_json_schema": (
        mw.check_json_schema,
        {"schema": True, "options": None, "limits": mw.Limits(), "profile": None},
    ),
    "check_grammar": (mw.check_grammar, {"source": mw.Regex("a"), "limits": mw.Limits()}),
    "response_format": (mw.response_format, {"value": {"type": "json_object"}}),
    "shipped_grammar": (mw.shipped_grammar, {"name": "sql", "version": None}),
    "DirectoryCache": (mw.DirectoryCache, {"path": "somewhere"}),
    "DirectoryCache.get": (mw.DirectoryCache("somewhere").get, {"name": "a"}),
    "ToolTemplate": (mw.ToolTemplate.load, {"template": "hermes"}),
    "ToolTemplate.parse": (mw.ToolTemplate.load("hermes").parse, {"text": "a"}),
    "TokenTrie": (mw.TokenTrie, {"sequences": [[1]], "vocab_size": 5, "eos_ids": [EOS], "max_bytes": 1 << 20}),
    "TokenTrie.children": (TRIE.children, {"state": 0}),
    "TokenTrie.next": (TRIE.next, {"state": 0, "token": 1}),
    "TokenTrie.to": (lambda dense_bytes: TRIE.to("cpu", dense_bytes), {"dense_bytes": 9}),
    "MaskTable": (lambda **given: mw.MaskTable(**given, device="cpu"), {"vocab_size": 5, "capacity": 8}),
    "MaskTable.rows": (mw.MaskTable(257, 8, "cpu").rows, {"matchers": [matcher()]}),
    "Vocabulary": (
        mw.Vocabulary,
        {"tokens": [b"a", b""], "eos_ids": [1], "special_ids": [], "special_tokens": None, "start_tokens": None},
    ),
    "Vocabulary.decode": (BYTES.decode, {"ids": [97]}),
    "Vocabulary.at_start": (BYTES.at_start, {"ids": [97]}),
    "CompiledGrammar.matcher": (LARK.matcher, {"max_rollback": 1}),
    "CompiledGrammar.from_bytes": (mw.CompiledGrammar.from_bytes, {"data": LARK.to_bytes(), "vocabulary": BYTES}),
    **{
        f"Matcher.{name}": (lambda value, name=name: sequence(name, value), {"value": value})
        for name, value in {
            "accept_token": 97, "accept_tokens": [97], "validate_tokens": [97], "accept_bytes": b"a", "longest_prefix": b"a",
            "rollback": 0, "waits": 0, "callers": 0, "fill_next_token_bitmask": np.zeros(9, np.int32),
        }.items()
    },
    "Matcher.validate_tree": (matcher().validate_tree, {"tokens": [97], "parents": [-1]}),
    "TrieMatcher.accept_tokens": (lambda ids: mw.compile(TRIE, WORDS).matcher().accept_tokens(ids), {"ids": [1]}),
    "LogitsProcessor": (LogitsProcessor, {"grammars": IN_WORDS, "prompt_length": 1}),
    "Lark": (lambda **given: mw.compile(mw.Lark(**given), BYTES), {"text": TEXT, "start": "start", "lexer": "contextual"}),
    "GBNF": (lambda **given: mw.compile(mw.GBNF(**given), BYTES), {"text": 'root ::= "a"', "root": "root", "symbols": ()}),
    "Regex": (lambda **given: mw.compile(mw.Regex(**given), BYTES), {"pattern": "a", "flavour": "python", "flags": ""}),
    "JsonSchema": (lambda **given: mw.compile(mw.JsonSchema(**given), BYTES), {"schema": True}),
    "JsonString": (
        lambda **given: mw.compile(mw.JsonString(**given), BYTES),
        {"content": mw.Regex("a"), "escapes": "printed"},
    ),
    "StructuralTag": (lambda **given: mw.compile(mw.StructuralTag(**given), BYTES), {"tag": {"type": "any_text"}}),
    "Choice": (lambda **given: mw.compile(mw.Choice(**given), BYTES), {"options": ["a"]}),
    "Contains": (lambda **given: mw.compile(mw.Contains(**given), BYTES), {"texts": ["a"]}),
    "Not": (lambda **given: mw.compile(mw.Not(**given), BYTES), {"item": mw.Regex("a")}),
    "Optional": (lambda **given: mw.compile(mw.Optional(**given), BYTES), {"item": mw.Regex("a")}),
    "Type": (lambda **given: mw.compile(mw.Type(**given), BYTES), {"of": int}),
    "Source * times": (lambda times: mw.compile(mw.Regex("a") * times, BYTES), {"times": 2}),
    # sampling
    "anchored": (
        lambda **given: sampling.anchored(**given).state([[]]).logprobs,
        {"strong": bigram_model(), "safe": bigram_model(), "budget": 1.0, "steps": 3, "constraint": None},
    ),
    "Asap": (lambda n_samples, **given: sampling.Asap(**given).sample(n_samples), run(n_samples=2)),
    "awrs": (
        sampling.awrs,
        {
            "logprobs": np.log(bigram([])), "accept": bool, "rng": 1, "allowed": None, "method": "auto", "probes": 1, "max_rejects": 5,
            "max_accepts": 2, "min_remaining": 0.1,
        },
    ),
    "awrs_batch": (
        sampling.awrs_batch,
        {"logprobs": np.log([bigram([])]), "accept": lambda rows, tokens: tokens > 1, "rng": 1, "method": "auto"},
    ),
    "locally_constrained": (sampling.locally_constrained, run(n_samples=2)),
    "rejection_sampling": (
        sampling.rejection_sampling,
        run(constraint=predicate(), n_samples=2, reward=None, reward_bound=1.0, max_proposals=9),
    ),
    "sample_verify": (sampling.sample_verify, run(constraint=predicate(), n_samples=2, reward=None)),
    "smc": (
        sampling.smc,
        run(
            n_particles=2, ess_threshold=0.5, reward=None, power=1.0, resampling="systematic", twist=None, ramp=0, lookahead=0, rollouts=2,
            block="token", rejuvenation=0, islands=1, awrs_options=None,
        ),
    ),
    "phrase_smc": (
        sampling.phrase_smc,
        {
            "model": bigram_model(), "constraint": constraint(), "texts": ["a"], "vocabulary": WORDS, "n_particles": 2, "boost": None,
            "pull": None, "max_tokens": 3,
        },
    ),
    "SymbolEnds": (sampling.SymbolEnds, {"grammar": IN_WORDS, "symbols": "word"}),
    "ByteModel": (
        lambda **given: sampling.ByteModel(**given).next_byte_logprobs(b""),
        {"model": bigram_model(), "vocabulary": WORDS, "prompt": b"", "prune": None, "max_sequences": None},
    ),
    "mixture": (
        lambda **given: sampling.mixture(**given).state([[]]).logprobs,
        {"models": [bigram_model()] * 2, "weights": [1, 1]},
    ),
    "product": (
        lambda **given: sampling.product(**given).state([[]]).logprobs,
        {"models": [bigram_model()] * 2, "weights": [1, 1]},
    ),
    "GrammarConstraint": (sampling.GrammarConstraint, {"grammar": IN_WORDS}),
    "GrammarConstraint.complete": (constraint().complete, {"ids": [0]}),
    "GrammarConstraint.prefix": (constraint().prefix, {"ids": [0]}),
    "Product": (sampling.Product, {"factors": [Exact(), predicate()]}),
    "CallableModel": (
        sampling.CallableModel,
        {"function": lambda prefixes: np.log([bigram(ids) for ids in prefixes]), "vocab_size": 5, "eos_id": EOS},
    ),
    "PythonAttributes": (sampling.PythonAttributes, {"vocabulary": BYTES, "context": "", "private": True}),
    "Monitor": (
        sampling.Monitor,
        {"vocabulary": BYTES, "options": lambda text: None, "triggers": b".", "word": b"ab", "ignore_case": False, "between": b""},
    ),
    "SqlNames": (sampling.SqlNames, {"vocabulary": BYTES, "database": DATABASE}),
    "pooled": (sampling.pooled, {"parts": [sampling.smc(**run(n_particles=2))]}),
    "Predicate": (
        sampling.Predicate,
        {"prefix": lambda ids: True, "complete": lambda ids: True, "workers": 0, "pool": "thread"},
    ),
    "Predicate.prefix": (predicate().prefix, {"ids": [0]}),
    "Predicate.complete": (predicate().complete, {"ids": [0]}),
    "WeightRecorder": (sampling.WeightRecorder, {"grammars": IN_WORDS, "prompt_length": 1}),
    "resample": (
        sampling.resample,
        {"weights": [0.5, 0.5], "scheme": "systematic", "rng": np.random.default_rng(1)},
    ),
    "TrieConstraint": (sampling.TrieConstraint, {"trie": TRIE}),
    # search
    "best_first": (
        search.best_first,
        {"model": bigram_model(), "constraint": Exact(), "n": 1, "reward": None, "bound": None, "max_tokens": 3, "max_nodes": 9, "batch": 2},
    ),
    "mcts": (search.mcts, run(reward=lambda ids: 0.5, simulations=5, exploration=1.0)),
    "Strategy": (
        search.Strategy,
        {"method": "smc", "width": 2, "temperature": 1.0, "exploration": 1.0, "power": 1.0, "max_tokens": 3, "constraints": ("grammar",), "parameters": {}},
    ),
    "search": (
        search.search,
        {
            "model": bigram_model(), "strategy": search.Strategy("greedy", max_tokens=3), "constraints": {"grammar": Exact()},
            "reward": lambda ids: 0.5, "budget": 9, "seed": 1,
        },
    ),
    "Session": (
        lambda **given: search.Session(**given).forward("token"),
        {
            "model": bigram_model(), "grammar": IN_WORDS, "symbols": None, "max_tokens": 3, "max_retries": 3, "greedy": False, "penalty": 0.0,
            "seed": 1,
        },
    ),
    "Session.forward": (
        lambda **given: search.Session(bigram_model(), IN_WORDS, max_tokens=3, seed=1).forward(**given),
        {"symbol": "token", "n": 1},
    ),
    "Session.view": (search.Session(bigram_model(), IN_WORDS).view, {"symbol": "token"}),
    "Symbols": (search.Symbols, {"grammar": LARK, "names": None}),
    "scored": (search.scored, {"grammar": IN_WORDS, "token_ids": [0, EOS], "logprobs": [-1.0, -1.0]}),
    "PartialPrograms.contains": (
        search.PartialPrograms(LARK).contains,
        {"partial": search.PartialProgram(b"a", (), 0.0), "right": b"a"},
    ),
    "PartialPrograms": (search.PartialPrograms, {"grammar": LARK, "symbols": None}),
    # diffusion
    "Canvas": (diffusion.Canvas, {"grammar": IN_WORDS, "slots": [None, 0, None], "search_budget": 99}),
    "Gap": (diffusion.Gap, {"min": 0, "max": 2}),
    "Schedule": (
        diffusion.Schedule,
        {"steps": None, "block": None, "score": "confidence", "threshold": None, "temperature": None, "remask": 0, "ahead": 1, "verify": False},
    ),
    "frames": (lambda **given: list(diffusion.frames(**given)), {"steps": [], "vocabulary": WORDS}),
}  # fmt: skip

NOT_CALLED = {
    **dict.fromkeys(["Matcher", "CompiledGrammar", "CompiledTrie"], "made by other functions"),
    **dict.fromkeys(
        ["Refusal", "Finding", "Report", "Metrics", "Draw", "Draws", "Posterior", "Best", "Calibration", "Found", "PartialProgram", "Scored",
         "SearchResult", "Trial", "Tuned", "Step"],
        "results",
    ),
    **dict.fromkeys(["Constraint", "Everything", "LanguageModel", "ModelState", "MaskedDiffusionModel"], "interfaces"),
    **dict.fromkeys(["Generator", "HuggingFaceModel", "LanguageServerNames"], "take models and programs: tests of their own"),
    **dict.fromkeys(["infill", "infill_steps", "infill_smc"], "tests of their own: test_diffusion_edges"),
    **dict.fromkeys(["Configurable", "Task", "tune"], "tests of their own: test_tuning"),
    "Limits": "raises ValueError: test_limits",
    "acompile": "is compile, awaited",
    "shipped_grammars": "takes nothing",
}  # fmt: skip

TAKE_ROOM = {"allocate_token_bitmask": {"batch", "vocab_size"}, "MaskTable": {"capacity", "vocab_size"}}
"""Arguments that get what they ask for, gigabytes for 2**31."""


def test_every_public_name_is_here() -> None:
    names = {
        name
        for module in (mw, sampling, search, diffusion)
        for name in module.__all__
        if callable(getattr(module, name)) and not _is_error(getattr(module, name))
    }
    assert names - CALLS.keys() == NOT_CALLED.keys() & names


def _is_error(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_wrong_types(name: str) -> None:
    function, given = CALLS[name]
    function(**given)
    wrong = []
    for argument in given:
        for odd in ODD:
            if argument in TAKE_ROOM.get(name, ()) and isinstance(odd, int) and odd == 2**31:
                continue
            try:
                function(**{**given, argument: odd})
            except MaskwrightError:
                pass
            except Exception as error:
                wrong.append(f"{argument}={odd!r}"[:60] + f": {type(error).__name__}: {error}"[:120])
    assert not wrong, "\n".join(wrong)
