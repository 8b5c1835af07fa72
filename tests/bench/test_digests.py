"""Digests of masks: the same build writes the same file, and a mask that moves by one bit is named."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

pytest.importorskip("mistral_common")

import digest_record
import digest_sources
import digests

import maskwright as mw

SCHEMA = {"type": "array", "items": {"enum": ["a", "b", 12]}, "minItems": 1}
SOURCES = [
    digest_record.Source(
        "array", mw.JsonSchema(SCHEMA), "pieces", ['["a", 12]', '["c"]'], walks=2, canvas=True
    ),
    digest_record.Source("nothing", mw.JsonSchema({"type": "string", "enum": [1]}), "pieces"),
    digest_record.Source("no pattern", mw.Regex("(a"), "pieces"),
    digest_record.Source("list", mw.Lark('start: "a" ("," start)?'), "tight", ["a,a", "aa"], walks=1),
]


def records(sources: list[digest_record.Source] = SOURCES) -> dict[str, Any]:
    return {one.name: digest_record.record(one, digest_sources.words(one.words), 50) for one in sources}


def test_what_is_recorded() -> None:
    found = records()
    array = {text["name"]: text for text in found["array"]["texts"]}
    assert list(array) == ["text 0", "text 1", "walk 0", "walk 1", "sets", "canvas", "batch"]
    whole = array["text 0"]
    assert whole["marks"][-1] == "a" and "r" not in whole["marks"]
    assert len(whole["masks"]) == digest_record.MASK_HEX * (len(whole["ids"]) + 1)
    assert array["text 1"]["marks"][-1] == "r"
    assert len(array["batch"]["masks"]) == digest_record.MASK_HEX * 6
    assert not any(text["error"] for one in found.values() for text in one["texts"])
    assert found["nothing"]["error"].startswith("UnsatisfiableError: ")
    assert found["no pattern"]["error"].startswith("GrammarError: ")


def test_equal_builds_have_equal_digests() -> None:
    before, after = records(), records(SOURCES[::-1])
    assert before == after
    assert list(digests.compare(before, after)) == []


class OneBitMoved:
    """A matcher whose mask has another bit 7 behind two tokens."""

    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._matcher, name)

    def fill_next_token_bitmask(self, row: Any) -> None:
        self._matcher.fill_next_token_bitmask(row)
        if len(self._matcher.accepted_tokens) == 2:
            row[0, 0] ^= 1 << 7


class OtherCompletion(OneBitMoved):
    def fill_next_token_bitmask(self, row: Any) -> None:
        self._matcher.fill_next_token_bitmask(row)

    def shortest_completion_bytes(self) -> bytes:
        found: bytes = self._matcher.shortest_completion_bytes()
        return found if self._matcher.accepted_tokens else found + b" "


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (OneBitMoved, "mask differs at token 2"),
        (OtherCompletion, "length of the shortest completion differs at token 0"),
    ],
)
def test_what_moved_is_named(monkeypatch: pytest.MonkeyPatch, other: type[OneBitMoved], what: str) -> None:
    before = records(SOURCES[:1])
    matcher = mw.CompiledGrammar.matcher
    monkeypatch.setattr(digest_record._Text, "batch", lambda text, _: text.data())
    still = records(SOURCES[:1])
    monkeypatch.setattr(mw.CompiledGrammar, "matcher", lambda compiled: other(matcher(compiled)))
    (named,) = digests.compare(still, records(SOURCES[:1]))
    ids = before["array"]["texts"][0]["ids"]
    tokens = digest_sources.words("pieces").vocabulary.tokens
    assert named.startswith(f"array: text 0: {what}, behind ")
    read = ids[: int(what[-1])]
    assert named.endswith(f"{[tokens[i] for i in read]} (ids {read})")


def test_other_errors_and_sources_are_named() -> None:
    before = records(SOURCES[1:3])
    sources = [SOURCES[1], replace(SOURCES[2], content=mw.Regex("(ab"))]
    assert list(digests.compare(before, records(sources))) == [
        "no pattern: another source by this name: what is asked has changed, not what is answered"
    ]
    told = {**before, "nothing": {**before["nothing"], "error": "GrammarError: x", "digest": ""}}
    (named,) = digests.compare(before, told)
    assert named.startswith("nothing: compiling: 'UnsatisfiableError: ") and named.endswith(
        "is now 'GrammarError: x'"
    )
    assert list(digests.compare(before, {})) == [f"{name}: only in the old file" for name in before]


def test_texts_that_a_limit_ends_are_compared_as_far_as_both_go() -> None:
    before = records(SOURCES[:1])
    text = before["array"]["texts"][0]
    cut = {
        **text,
        "masks": text["masks"][:16],
        "marks": text["marks"][:2],
        "spots": [],
        "error": "LimitError: x",
    }
    batch = {**before["array"]["texts"][-1], "masks": ""}
    ended = {**before["array"], "texts": [cut, *before["array"]["texts"][1:-1], batch], "digest": ""}
    assert list(digests.compare(before, {"array": ended})) == []
    cut["masks"] = "0" * 16
    (named,) = digests.compare(before, {"array": ended})
    assert named.startswith("array: text 0: mask differs at token 0")
    cut["masks"], cut["error"] = text["masks"][:16], "RuntimeError: x"
    (named,) = digests.compare(before, {"array": ended})
    assert named.startswith("array: text 0: mask differs at token 2")


def run(out: Path, hash_seed: str) -> None:
    command = [
        sys.executable,
        str(ROOT / "bench" / "digests.py"),
        "--quick",
        "--only",
        "[cp]*/[crut]*",
        "--out",
        str(out),
    ]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300)


@pytest.mark.slow
def test_equal_files_whatever_the_seed_of_hashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.json.gz", tmp_path / "new.json.gz"
    run(old, "1")
    run(new, "2")
    assert old.read_bytes() == new.read_bytes()
    assert digests.main(["--compare", str(old), str(new)]) == 0
    assert capsys.readouterr().out.endswith(" sources, none differs\n")
    header, found = digests.read(old)
    assert len(found) > 30
    first = next(iter(found))
    found[first] = {**found[first], "error": "GrammarError: x", "digest": ""}
    digests.write(new, lines(header, found))
    assert digests.main(["--compare", str(old), str(new)]) == 1
    assert f"{first}: compiling: " in capsys.readouterr().out


def lines(header: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    return map(digests.json.dumps, [header, *found.values()])


@pytest.mark.slow
def test_the_quick_set_is_a_part_of_the_full_one() -> None:
    groups = [group for group in digest_sources.GROUPS if group is not digest_sources.maskbench]
    full = {source.name: source for source in digest_sources.sources(False, groups)}
    quick = list(digest_sources.sources(True, groups))
    assert len({source.name for source in quick}) == len(quick) > 300
    assert {source.name for source in quick} <= full.keys()
    # What is drawn at random does not depend on how much is drawn.
    for source in quick[::7]:
        if source.name.startswith("random/"):
            assert full[source.name].identity() == source.identity()


def test_arguments(tmp_path: Path) -> None:
    for given in ([], ["--compare", "a", "b", "--out", "c"]):
        with pytest.raises(SystemExit):
            digests.main(given)
