"""Traces of generations and their page: figures against slow ones, one file without a network, keyboard, accessibility."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="traces are of transformers models")
import torch
from browser import opened, violations
from html_reader import Reader, check_alone
from tiny_model import REQUESTS, TINY

import maskwright as mw
from maskwright.base.html import table
from maskwright.cli import main
from maskwright.generation.partial import open_parts
from maskwright.pages.explain import explain
from maskwright.pages.page import embedded, page

NAME = next(iter(REQUESTS))


@pytest.fixture(scope="module")
def generator() -> mw.Generator:
    return mw.Generator.from_pretrained(str(TINY))


@pytest.fixture(scope="module")
def trace(generator: mw.Generator) -> Any:
    request = REQUESTS[NAME]
    return generator.trace(request["request"], request["schema"], max_new_tokens=120)


def test_a_trace_is_of_what_was_written(generator: mw.Generator, trace: Any) -> None:
    request = REQUESTS[NAME]
    (again,) = generator.generate([request["request"]], request["schema"], max_new_tokens=120, logprobs=True)
    assert trace.text == again.text and "".join(t.text for t in trace.tokens[:-1]) == again.text
    assert trace.tokens[-1].text == "end of the output"
    # The loop itself has the same figures, from passes with a cache.
    steps = again.removed_mass.steps
    assert [t.removed for t in trace.tokens[: len(steps)]] == pytest.approx(steps, abs=1e-4)
    assert [math.log(t.probability) for t in trace.tokens[:-1]] == pytest.approx(again.logprobs, abs=1e-3)
    assert trace.removed == pytest.approx(1 - math.prod(1 - t.removed for t in trace.tokens), abs=1e-9)


def test_figures_of_a_place_the_slow_way(generator: mw.Generator, trace: Any) -> None:
    request = REQUESTS[NAME]
    ids = trace.generation.token_ids
    (job,) = generator._jobs([request["request"]], [request["schema"]], _options(generator))
    matcher = job.grammar.matcher()
    for at in (0, 1, len(ids) // 2, len(ids)):
        matcher.reset()
        matcher.accept_tokens(ids[:at])
        with torch.inference_mode():
            logits = generator.model(torch.tensor([[*job.prompt, *ids[:at]]])).logits[0, -1].double()
        chances = torch.softmax(logits, -1).tolist()
        allowed = [i for i in range(len(chances)) if matcher.fork().accept_token(i)]
        left = sum(chances[i] for i in allowed)
        place = trace.tokens[at]
        assert place.allowed == len(allowed)
        assert place.removed == pytest.approx(1 - left, abs=1e-5)
        bits = -sum(p * math.log2(p) for p in chances if p)
        after = -sum(p / left * math.log2(p / left) for p in (chances[i] for i in allowed) if p)
        assert place.entropy_before == pytest.approx(bits, abs=1e-3)
        assert place.entropy_after == pytest.approx(after, abs=1e-3)
        first = max(range(len(chances)), key=chances.__getitem__)
        assert place.wanted[0].before == pytest.approx(chances[first], abs=1e-5)
        assert place.wanted[0].after == pytest.approx(
            chances[first] / left if first in allowed else 0, abs=1e-4
        )


def _options(generator: mw.Generator) -> Any:
    from maskwright.generation.options import GenerationOptions

    return GenerationOptions(max_new_tokens=120)


def test_forced_places_have_one_text(generator: mw.Generator) -> None:
    found = generator.trace("x", mw.Regex("(yes|no), captain"), max_new_tokens=40)
    assert (
        "".join(t.text for t in found.tokens if t.forced).endswith(", captain") or ", captain" in found.text
    )
    assert not found.tokens[0].forced and any(t.forced for t in found.tokens)
    assert all(t.entropy_after < 20 for t in found.tokens)


def test_rules_of_a_grammar_are_the_open_parts(generator: mw.Generator) -> None:
    grammar = mw.Lark(
        'start: "let" NAME "=" sum\nsum: NUMBER ("+" NUMBER)*\nNAME: /[a-z]{1,3}/\nNUMBER: /[0-9]{1,2}/'
    )
    found = generator.trace("x", grammar, max_new_tokens=40)
    assert any(part == "sum" for token in found.tokens for part in token.open)


def test_refused_options(generator: mw.Generator) -> None:
    with pytest.raises(mw.MaskwrightError, match="a trace is of one output"):
        generator.trace("x", mw.Regex("a"), n=2, temperature=1.0)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ('{"na', ()),
        ('{"name":', ("/name",)),
        ('{"name": "x"', ()),
        ('{"name": "x", ', ()),
        ('{"a":{"b', ("/a",)),
        ('{"a":{"b":[1,{"c":"x', ("/a/b/1/c", "/a/b/1", "/a/b", "/a")),
        ('{"a":{"b":[1, 2]}', ()),
        ('{"a":1', ("/a",)),
        ('{"a":true', ()),
        ("[", ("/0",)),
        ('["x",', ("/1",)),
        ('{"a/b~":"\\"{', ("/a~1b~0",)),
        ('{"a\\"b": [1,', ('/a"b/1', '/a"b')),
        ('{"\\u00e9": {"x', ("/\u00e9",)),
        ('{"a\\x": [1,', ("/a\\x/1", "/a\\x")),
        ("12", ()),
    ],
)
def test_open_parts(text: str, parts: tuple[str, ...]) -> None:
    assert open_parts(text) == parts


# --- the page


def test_the_page_is_one_file(trace: Any) -> None:
    shown = explain(trace)
    check_alone(shown)
    places = json.loads(re.search(r'id="data">(.*?)</script>', shown, re.DOTALL).group(1))  # type: ignore[union-attr]
    assert len(places) == len(trace.tokens) == shown.count('aria-pressed="false"')


def test_texts_cannot_leave_their_place() -> None:
    bad = '</script><script>alert("x")</script>\u2028'
    assert "</" not in embedded({"a": bad}) and json.loads(embedded({"a": bad})) == {"a": bad}
    Reader(page(bad, table(bad, [bad], [[bad]]), data=bad))
    assert "<script>alert" not in page(bad, table(bad, [bad], [[bad]]), data=bad)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_in_a_browser(trace: Any, tmp_path: Path, scheme: str) -> None:
    path = tmp_path / "page.html"
    path.write_text(explain(trace), "utf-8")
    with opened(path.as_uri(), scheme) as shown:
        title = shown.locator("#panel h2")
        shown.locator(".token").first.focus()
        shown.keyboard.press("Home")
        assert title.inner_text().startswith("Place 1 of")
        shown.keyboard.press("ArrowRight")
        assert title.inner_text().startswith("Place 2 of")
        assert shown.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
        shown.keyboard.press("End")
        assert '"end of the output"' in title.inner_text()
        shown.locator("summary").last.click()
        assert shown.locator("table").last.locator("tbody tr").count() == len(trace.tokens)
        assert not violations(shown) and not shown.problems


# --- the command


@pytest.mark.slow
def test_the_command_writes_a_page(tmp_path: Path, file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    schema = file("s.json", json.dumps(REQUESTS[NAME]["schema"]))
    out = tmp_path / "page.html"
    arguments = ["explain", "--schema", schema, "--prompt", REQUESTS[NAME]["request"], "--model", str(TINY)]
    assert main([*arguments, "--html", str(out), "--max-tokens", "120"]) == 0
    assert "What the mask did" in out.read_text("utf-8")
    for wrong, said in (
        (arguments, "needs both --html and --prompt"),
        ([*arguments, "--html", str(out), "--prefix", "{"], "do not go with --html"),
        ([*arguments, "--html", str(tmp_path / "no" / "page.html"), "--max-tokens", "120"], "No such file"),
    ):
        assert main(wrong) == 2
        assert said in capsys.readouterr().err
