"""The grammar back-end of SGLang, against SGLang's own classes (``make test-engines``)."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from places import ROOT

pytest.importorskip(
    "sglang", reason="SGLang is not installed: make test-engines has it in an environment of its own"
)

import torch
from sglang_requests import (
    END_THINK,
    EOS,
    TOKENIZER,
    WIDTH,
    Scheduler,
    ServerArgs,
    allowed,
    ids,
    tree_masks,
    vocabulary,
)

import maskwright as mw
from maskwright.integrations import sglang_backend

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 6}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TAG = {
    "structures": [{"begin": "<f>", "schema": {"type": "integer", "maximum": 99}, "end": "</f>"}],
    "triggers": ["<f"],
}
FORMAT = {
    "type": "structural_tag",
    "format": {"type": "tag", "begin": "<f>", "content": {"type": "json_schema", "json_schema": {"type": "boolean"}}, "end": "</f>"},
}  # fmt: skip
GBNF = 'root ::= "a" ("b" | "cd")* "!"'
LARK = 'start: "a" ("b" | "cd")* "!"'
CASES: dict[str, tuple[dict[str, str], Any]] = {
    "schema": ({"json_schema": json.dumps(SCHEMA)}, mw.JsonSchema(SCHEMA)),
    "any JSON": ({"json_schema": "$$ANY$$"}, mw.JsonSchema(True)),
    "regex": ({"regex": r"[a-c]{2,5}\d+x"}, mw.Regex(r"[a-c]{2,5}\d+x")),
    "gbnf": ({"ebnf": GBNF}, mw.GBNF(GBNF)),
    "lark": ({"ebnf": LARK}, mw.Lark(LARK)),
    "older tag": ({"structural_tag": json.dumps(TAG)}, mw.StructuralTag(TAG)),
    "tag": ({"structural_tag": json.dumps(FORMAT)}, mw.StructuralTag(FORMAT)),
}


def mask_of(matcher: Any) -> Any:
    return allowed(np.asarray(matcher.next_token_bitmask())[None])[0]


def pick(mask: Any, rng: random.Random, ending: bool) -> int:
    """One of the allowed tokens; EOS if one may and should."""
    return EOS if ending and mask[EOS] else rng.choice(np.flatnonzero(mask).tolist())


def aborted(request: Any) -> str:
    assert request.finished() and request.finished_reason.to_json()["type"] == "abort"
    assert request.finished_reason.status_code == 400
    return str(request.finished_reason.message)


# --- as the scheduler uses it


def test_the_name_is_an_option_of_the_command_line() -> None:
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    assert (
        parser.parse_args(["--model-path", "m", "--grammar-backend", "maskwright"]).grammar_backend
        == "maskwright"
    )


def test_every_process_finds_it_as_a_plug_in(tmp_path: Path) -> None:
    """With the entry points as they are declared here, whatever is installed."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    found = declared["sglang.srt.plugins"]
    info = tmp_path / "plugged-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[sglang.srt.plugins]\n" + "".join(f"{name} = {place}\n" for name, place in found.items())
    )
    code = (
        "from sglang.srt.plugins import load_plugins; load_plugins()\n"
        "from sglang.srt.constrained.base_grammar_backend import GRAMMAR_BACKEND_REGISTRY\n"
        "from sglang.srt.server_args import GRAMMAR_BACKEND_CHOICES\n"
        "assert 'maskwright' in GRAMMAR_BACKEND_REGISTRY and GRAMMAR_BACKEND_CHOICES.count('maskwright') == 1"
    )
    paths = os.pathsep.join([str(tmp_path), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-2000:]


@pytest.mark.parametrize("case", CASES)
def test_walks_are_those_of_a_matcher(case: str) -> None:
    given, source = CASES[case]
    scheduler, plain = Scheduler(), mw.compile(source, vocabulary()).matcher()
    assert type(scheduler.backend) is sglang_backend.MaskwrightGrammarBackend
    rng = random.Random(case)
    for walk in range(5):
        request, matcher = scheduler.add(**given), plain.fork()
        for step in range(200):
            (row,) = scheduler.masks(request)
            assert len(row) == WIDTH and (row == mask_of(matcher)).all()
            assert not row[len(TOKENIZER) :].any()
            token = pick(row, rng, ending=step > 10 * walk)
            assert scheduler.take(request, [token]) == [token] and matcher.accept_token(token)
            assert request.grammar.is_terminated() == matcher.is_terminated
            if matcher.is_terminated:
                assert request.finished() and request.finished_reason.to_json()["type"] == "stop"
                break


@pytest.mark.parametrize("case", CASES)
def test_draft_trees_have_the_masks_of_a_matcher(case: str) -> None:
    given, source = CASES[case]
    scheduler, matcher = Scheduler(speculative=True), mw.compile(source, vocabulary()).matcher()
    request, rng = scheduler.add(**given), random.Random(case)
    accepted: list[int] = []
    while not matcher.is_terminated:
        states, tokens, parents = [matcher], [accepted[-1] if accepted else 1], [-1]
        for _ in range(rng.randrange(8)):
            above = rng.randrange(len(states))
            row = mask_of(states[above]) if states[above] is not None else np.ones(WIDTH, dtype=bool)
            token = pick(row, rng, False) if rng.random() < 0.8 and row.any() else rng.randrange(WIDTH)
            ahead = states[above].fork() if states[above] is not None else None
            legal = ahead is not None and not ahead.is_terminated and ahead.accept_token(token)
            states.append(ahead if legal else None)
            tokens.append(token)
            parents.append(above)
        rows = tree_masks(request.grammar, tokens, parents)
        for state, row in zip(states, rows, strict=True):
            # What is illegal, or follows an end, stays as it was allocated.
            expected = row | True if state is None or state.is_terminated else mask_of(state)
            assert (row == expected).all()
        path = max((node for node, state in enumerate(states) if state is not None), default=0)
        taken: list[int] = []
        while path > 0:
            taken.insert(0, tokens[path])
            path = parents[path]
        ahead = matcher.fork()
        ahead.accept_tokens(taken)
        if not ahead.is_terminated:
            taken.append(pick(mask_of(ahead), rng, len(accepted) > 20))
        assert scheduler.take(request, taken) == taken
        assert matcher.accept_tokens(taken) == len(taken)
        accepted += taken
    assert request.finished()


def test_mixed_batches() -> None:
    scheduler = Scheduler()
    requests = [scheduler.add(**CASES[case][0]) for case in CASES]
    free = SimpleNamespace(grammar=None)
    (done,) = [scheduler.add(regex="a")]
    scheduler.take(done, [*ids("a"), EOS])
    rows = scheduler.masks(requests[0], free, *requests[1:], done)
    assert rows[1].all() and rows[-1].all(), "no grammar, or none any more"
    for row, (_, source) in zip([rows[0], *rows[2:-1]], CASES.values(), strict=True):
        assert (row == mask_of(mw.compile(source, vocabulary()).matcher())).all()


def test_many_rows_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sglang_backend, "_ROWS_ALONE", 2)
    test_mixed_batches()


def test_a_grammar_that_is_known_is_copied() -> None:
    scheduler = Scheduler()
    first = scheduler.add(regex="ab*")
    scheduler.take(first, ids("a"))
    second = scheduler.add(regex="ab*")
    assert second.grammar is not first.grammar
    assert second.grammar.grammar_stats.is_cache_hit and not first.grammar.grammar_stats.is_cache_hit
    rows = scheduler.masks(first, second)
    assert rows[0][ids("b")].all() and not rows[1][ids("b")].any() and rows[1][ids("a")].all()


def test_a_rejected_token_ends_its_request_alone() -> None:
    scheduler = Scheduler()
    wrong, right = scheduler.add(regex="ab*"), scheduler.add(regex="ab*")
    before = scheduler.masks(wrong, right)
    assert scheduler.take(wrong, ids("c")) == []
    assert (scheduler.masks(wrong, right)[1] == before[1]).all()
    wrong.update_finish_state(0)
    assert (
        wrong.finished_reason.to_json()["type"] == "abort"
        and "does not allow" in wrong.finished_reason.message
    )
    assert scheduler.take(right, [*ids("a"), EOS]) and right.finished_reason.to_json()["type"] == "stop"


def test_several_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the model, of the tokenizer, and the stop tokens that SGLang finds in it."""
    of_model, other = TOKENIZER.convert_tokens_to_ids(["<|json|>", "<think>"])
    monkeypatch.setattr(TOKENIZER, "additional_stop_token_ids", {other})
    ends = [EOS, of_model, other]
    scheduler = Scheduler(eos_token_ids={of_model})
    for end in ends:
        request = scheduler.add(regex="a+")
        assert not scheduler.masks(request)[0][ends].any()
        scheduler.take(request, ids("a"))
        assert scheduler.masks(request)[0][ends].all()
        assert scheduler.take(request, [end]) == [end] and request.grammar.is_terminated()


def test_jumps() -> None:
    scheduler = Scheduler()
    grammar = scheduler.add(regex="number: (3|4)").grammar
    matcher = mw.compile(mw.Regex("number: (3|4)"), vocabulary()).matcher()
    helper = grammar.try_jump_forward(TOKENIZER)
    assert helper is not None
    text, state = grammar.jump_forward_str_state(helper)
    assert text == "number: "
    old = ids("n")
    for token in old:
        grammar.accept_token(token)
    new = ids(text)
    assert new[0] != old[0], "the tokenizer's own tokens are others"
    grammar.jump_and_retokenize(old, new, state)
    matcher.accept_tokens(new)
    row = grammar.allocate_vocab_mask(WIDTH, 1, "cpu")
    grammar.fill_vocab_mask(row, 0)
    assert (allowed(row)[0] == mask_of(matcher)).all()
    with pytest.raises(ValueError, match="does not allow"):
        grammar.jump_and_retokenize(new, [*new, *ids("5")], state)
    grammar.fill_vocab_mask(row, 0)
    assert (allowed(row)[0] == mask_of(matcher)).all()
    assert scheduler.add(regex="a|b").grammar.try_jump_forward(TOKENIZER) is None
    assert scheduler.add(regex="é|è").grammar.try_jump_forward(TOKENIZER) is None, (
        "half a character is no text"
    )


# --- reasoning


@pytest.mark.parametrize("thought", ["", "so"])
def test_the_grammar_waits_for_the_end_of_thinking(thought: str) -> None:
    scheduler = Scheduler(reasoning_parser="qwen3")
    request = scheduler.add(json_schema=json.dumps(SCHEMA), reasoning=True)
    for token in [*ids(thought), END_THINK]:
        assert scheduler.masks(request).all()
        scheduler.take(request, [token])
    matcher = mw.compile(mw.JsonSchema(SCHEMA), vocabulary()).matcher()
    assert (scheduler.masks(request)[0] == mask_of(matcher)).all()
    scheduler.take(request, ids("{"))
    matcher.accept_tokens(ids("{"))
    assert (scheduler.masks(request)[0] == mask_of(matcher)).all()
    request.grammar.rollback(2 + len(ids(thought)))
    assert scheduler.masks(request).all()


def test_without_thinking_it_begins_at_once() -> None:
    scheduler = Scheduler(reasoning_parser="qwen3")
    request = scheduler.add(regex="ab")
    assert scheduler.masks(request)[0][ids("a")].all() and not scheduler.masks(request)[0][ids("b")].any()


def test_strict_thinking_filters_tokens() -> None:
    scheduler = Scheduler(reasoning_parser="qwen3", enable_strict_thinking=True)
    assert scheduler.backend.grammar_backend.is_support_token_filter
    request = scheduler.add(regex="ab", reasoning=True)
    request.grammar.max_think_tokens = 1
    request.grammar.enable_token_filter = True
    request.grammar.token_filter_fn = scheduler.backend.grammar_backend.set_token_filter
    scheduler.take(request, ids("so")[:1])
    assert np.flatnonzero(scheduler.masks(request)[0]).tolist() == [END_THINK]


# --- requests that cannot be served


BAD: dict[str, tuple[dict[str, str], str]] = {
    "schema": (
        {"json_schema": '{"type": "object", "properties": {"a": {"$ref": "http://example.org/x"}}}'},
        "/properties/a",
    ),
    "no JSON": ({"json_schema": "{"}, "JSON"),
    "contradiction": ({"json_schema": '{"type": "integer", "minimum": 3, "maximum": 2}'}, "minimum"),
    "regex": ({"regex": "a(b"}, "1:"),
    "gbnf": ({"ebnf": 'root ::= "a'}, "read as GBNF"),
    "lark": ({"ebnf": 'start: "a'}, "read as Lark"),
    "tag": ({"structural_tag": '{"type": "structural_tag", "format": {"type": "no_such"}}'}, "no_such"),
    "depth": ({"json_schema": '{"properties":{"a":' * 300 + "{}" + "}}" * 300}, "max_depth"),
    "too deep for SGLang": ({"json_schema": '{"items":' * 5000 + "{}" + "}" * 5000}, "recursion"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_served_is_an_answer_for_that_request(case: str) -> None:
    given, words = BAD[case]
    scheduler = Scheduler()
    good = scheduler.add(regex="ab*")
    for _ in range(2):  # compiled, and kept
        assert words in aborted(scheduler.add(**given))
    assert scheduler.masks(good)[0][ids("a")].all()


def test_limits_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_SGLANG_LIMITS", '{"max_schema_values": 5}')
    assert "max_schema_values" in aborted(Scheduler().add(json_schema=json.dumps(SCHEMA)))
    monkeypatch.setenv("MASKWRIGHT_SGLANG_LIMITS", "[1]")
    with pytest.raises(mw.MaskwrightError, match="MASKWRIGHT_SGLANG_LIMITS"):
        Scheduler()


def test_a_kind_that_nobody_knows() -> None:
    grammar = Scheduler().backend._init_value_dispatch(("sql", "select"), False)
    assert "'sql'" in grammar.error_message


def test_a_tokenizer_without_bytes() -> None:
    scheduler = Scheduler(tokenizer=SimpleNamespace(eos_token_id=EOS, additional_stop_token_ids=None))
    assert "SimpleNamespace" in aborted(scheduler.add(regex="a"))


@pytest.mark.parametrize(
    "option", [{"constrained_json_whitespace_pattern": " "}, {"constrained_json_max_whitespace_cnt": 3}]
)
def test_options_that_are_not_supported(option: dict[str, Any]) -> None:
    with pytest.raises(mw.MaskwrightError, match="constrained-json"):
        Scheduler(**option)


def test_json_without_white_space() -> None:
    given = {"json_schema": json.dumps(SCHEMA)}
    for compact in (False, True):
        scheduler = Scheduler(constrained_json_disable_any_whitespace=compact)
        request = scheduler.add(**given)
        scheduler.take(request, ids('{"name":'))
        assert scheduler.masks(request)[0][ids(" ")].all() != compact
        tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": SCHEMA}}
        request = scheduler.add(structural_tag=json.dumps(tag))
        scheduler.take(request, ids('{"name":'))
        assert scheduler.masks(request)[0][ids(" ")].all() != compact


# --- limits that are reached later


class Unlucky:
    """A matcher that reaches a limit at one place."""

    def __init__(self, matcher: Any, at: tuple[int, ...], masks: bool) -> None:
        self.matcher, self.at, self.masks, self.read = matcher, at, masks, []

    def _check(self) -> None:
        if tuple(self.read) == self.at:
            raise mw.LimitError("max_states", 2, 1)

    def fill_next_token_bitmask(self, rows: Any, row: int) -> None:
        if self.masks:
            self._check()
        self.matcher.fill_next_token_bitmask(rows, row)

    def accept_token(self, token: int) -> bool:
        if not self.masks:
            self._check()
        taken = self.matcher.accept_token(token)
        if taken:
            self.read.append(token)
        return bool(taken)

    def rollback(self, count: int) -> None:
        self.matcher.rollback(count)
        del self.read[len(self.read) - count :]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.matcher, name)


@pytest.mark.parametrize("masks", [True, False])
def test_a_limit_ends_its_request_with_an_error(masks: bool) -> None:
    scheduler = Scheduler()
    request, other = scheduler.add(regex="abc"), scheduler.add(regex="abc")
    request.grammar._matcher = Unlucky(request.grammar._matcher, tuple(ids("a")), masks)
    for each in (request, other):
        scheduler.take(each, ids("a"))
    rows = scheduler.masks(request, other)
    assert rows[1][ids("b")].all()
    if masks:
        assert np.flatnonzero(rows[0]).tolist() == [EOS]
    assert scheduler.take(request, [EOS] if masks else ids("b")) == []
    request.update_finish_state(0)
    assert "max_states" in request.finished_reason.message and request.finished_reason.status_code == 500
    assert scheduler.take(other, ids("b"))


@pytest.mark.parametrize("masks", [True, False])
def test_a_limit_within_a_draft_raises_nothing(masks: bool) -> None:
    scheduler = Scheduler(speculative=True)
    request = scheduler.add(regex="ab(c|d)e")
    a, b, c, d = (ids(letter)[0] for letter in "abcd")
    scheduler.take(request, [a])
    request.grammar._matcher = Unlucky(request.grammar._matcher, (b,), masks)
    rows = tree_masks(request.grammar, [a, b, EOS, c, d, EOS], [-1, 0, 1, 1, 1, 3])
    assert rows[0][b]
    if masks:
        assert np.flatnonzero(rows[1]).tolist() == [EOS]
    else:
        assert rows[1][[c, d]].all() and not rows[1][EOS]
        assert np.flatnonzero(rows[3]).tolist() == np.flatnonzero(rows[4]).tolist() == [EOS]
    # What was drafted left nothing behind.
    assert (tree_masks(request.grammar, [a, b], [-1, 0])[0] == rows[0]).all()
    taken = [b, EOS] if masks else [b, c, EOS]
    assert scheduler.take(request, taken) == taken
    assert request.finished() and request.grammar.is_terminated()


@pytest.mark.parametrize("alone", [1, 128])
def test_a_limit_that_is_reached_while_writing(alone: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sglang_backend, "_ROWS_ALONE", alone)
    monkeypatch.setenv("MASKWRIGHT_SGLANG_LIMITS", '{"max_parser_states": 5}')
    scheduler, rng = Scheduler(), random.Random(0)
    several = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}},
    }
    request, other = scheduler.add(json_schema=json.dumps(several)), scheduler.add(regex="ab+")
    while not request.finished():
        rows = scheduler.masks(request, other)
        scheduler.take(request, [pick(rows[0], rng, True)])
    assert request.finished_reason.to_json()["type"] == "abort"
    assert "max_parser_states" in request.finished_reason.message
    assert scheduler.take(other, ids("a")) == ids("a")


# --- memory


def test_kept_grammars_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sglang_backend, "_GRAMMARS_KEPT", 3)
    for parser in (None, "qwen3"):
        scheduler = Scheduler(reasoning_parser=parser)
        for number in (0, 1, 2, 0, 3):
            scheduler.add(regex=f"{number}+")
        assert [key[1] for key in scheduler.backend.cache] == ["2+", "0+", "3+"]
        scheduler.manager.clear()
        assert not scheduler.backend.cache


def test_pinned_only_where_there_is_a_device() -> None:
    mask = sglang_backend.MaskwrightGrammarBackend.allocate_vocab_mask(WIDTH, 2, "cpu")
    assert mask.shape == (2, WIDTH // 32) and (mask == -1).all()
    assert mask.is_pinned() == torch.cuda.is_available()
