"""What notebooks show of results: read by parsers that are not ours, with texts that would like to be markup."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from html_reader import Reader

import maskwright as mw
from maskwright.check.report import Finding, Report
from maskwright.diffusion import Canvas, Gap
from maskwright.generation.results import Generation, RemovedMass, Usage
from maskwright.sampling import CallableModel, GrammarConstraint, Posterior, smc

BAD = '</pre></td><script>alert("1")</script>&amp; \'<b>'
VOCABULARY = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b"", b"<b>", b"\xc3"], eos_ids=256)


def shown(thing: Any) -> Reader:
    """What a notebook shows, well-formed and without scripts."""
    read = Reader(thing._repr_html_())
    assert "script" not in read.tags and "b" not in read.tags
    assert not any(name.startswith("on") for name, _ in read.attributes)
    return read


def generation(text: str, **more: Any) -> Generation:
    usage = Usage(3, 12, 5, 8, 1.25, 0.01)
    return Generation(text, text, [1], "budget", usage, RemovedMass([0.5, 0.5]), **more)


def test_a_generation() -> None:
    read = shown(generation(BAD, posterior={BAD: 0.75, "b": 0.25}))
    assert read.text.count(BAD) == 2 and "75.0 %" in read.text
    assert "12, 5 of them forced" in read.text and "the token budget" in read.text
    long = shown(generation("x" * 100_000)).text
    assert "80,000 more characters" in long and len(long) < 25_000


def test_a_report() -> None:
    finding = Finding("error", "malformed", "1:2", f"wrong:\n{BAD}")
    read = shown(Report([finding], hints=[Finding("note", "n", BAD, "x")]))
    assert "It does not compile." in read.text and read.text.count(BAD) == 2
    found = mw.check_json_schema({"type": "object", "$comment": "x", "properties": {"a": {"x-mine": 1}}})
    assert "It compiles." in shown(found).text and "x-mine" in shown(found).text
    snippet = shown(mw.check_grammar(mw.GBNF('root ::= "a" b')))
    assert "pre" in snippet.tags and "^" in snippet.text
    many = shown(Report([finding] * 200))
    assert many.tags.count("tr") == 51 and "150 more" in many.text


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    scores = np.log(np.full(7, 1 / 7))
    model = CallableModel(lambda prefixes: np.tile(scores, (len(prefixes), 1)), 7, 6)
    vocabulary = mw.Vocabulary.from_bytes([b"a", b"b", b"c", b"d", b"e", b"f", b""], eos_ids=6)
    grammar = GrammarConstraint(mw.compile_regex("a(b|c{3,5}d?)e*", vocabulary))
    return smc(model, grammar, n_particles=12, max_tokens=12, seed=1, reward=lambda ids: 1.0 + ids[-1])


def test_a_posterior(posterior: Posterior) -> None:
    read = shown(posterior)
    assert "svg" in read.tags and f"{posterior.log_evidence:.3f}" in read.text
    (best, *_) = posterior.probabilities()
    assert " ".join(map(str, best)) in read.text
    dead = Posterior([[1]], np.array([-np.inf]), np.array([False]))
    assert "-inf" in shown(dead).text and "nan" not in shown(dead).text
    assert "particles" in shown(Posterior([], np.zeros(0), np.zeros(0, dtype=bool))).text


def test_a_canvas() -> None:
    grammar = mw.compile_regex("x<b>[é\n]{2}(y|zz)", VOCABULARY)
    canvas = Canvas(grammar, ["x", None, *[None] * 4, Gap(1, 2)])
    assert canvas.try_commit(1, 257)
    read = shown(canvas)
    titles = [value for name, value in read.attributes if name == "title"]
    assert titles[:3] == ["slot 0: token 120, b'x'", "slot 1: token 257, b'<b>'", "slot 2, open"]
    assert "8 slots, 6 open" in read.text and "x<b>" in read.text
    assert canvas.commit_many([(2, 0xC3), (3, 0xA9)]) == [2, 3]
    assert "x<b>é" in shown(canvas).text and "�" not in shown(canvas).text
    assert "x<b>�" in shown(Canvas(grammar, ["x", 257, 0xC3, None, None, None])).text
    canvas.commit_many(list(enumerate(canvas.witness())))
    assert "0 open" in shown(canvas).text and "Faint" not in shown(canvas).text


def test_notebooks_find_them(posterior: Posterior) -> None:
    formatters = pytest.importorskip("IPython.core.formatters", reason="IPython is not installed")
    for thing in (generation("a"), Report(), posterior):
        assert formatters.HTMLFormatter()(thing) == thing._repr_html_()


def test_names_that_are_no_text_can_be_sent() -> None:
    report = Report([Finding("error", "keyword", "/properties/\ud800", "\ud800")])
    assert report._repr_html_().encode().decode().count("\\ud800") == 2
