"""Pages of grammars, schemas, particles, canvases and measurements: their content, one file without a network, keyboard, accessibility."""

from __future__ import annotations

import json
import random
import re
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import opened, violations
from html_reader import Reader, check_alone
from places import ROOT

import maskwright as mw
from maskwright.check.grammars import compile_for_bytes
from maskwright.check.sentences import sentences
from maskwright.check.tracks import Fork, Name, Pattern, Row, Text, Track, Tracks, said, track_of, tracks
from maskwright.cli import main
from maskwright.diffusion import EMPTY, OPEN, Gap, MaskedDiffusionModel, frames, infill_steps
from maskwright.diffusion.showing import slot_texts
from maskwright.pages.bench import report
from maskwright.pages.film import Frame, film
from maskwright.pages.genealogy import genealogy
from maskwright.pages.tree import tree
from maskwright.regular.expressions import Alt, Cat, Lit
from maskwright.sampling import CallableModel, GrammarConstraint, Posterior, smc

BAD = '</pre><script>alert("1")</script>&amp; \'<b>'
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        BAD: {"type": "integer", "minimum": 3},
        "tags": {"type": "array", "items": {"enum": ["a", "b", BAD]}, "uniqueItems": True},
        "next": {"$ref": "#"},
        "list": {
            "type": "array",
            "items": {"type": "object", "required": ["q"]},
            "minItems": 1,
            "maxItems": 9,
        },
    },
    "required": ["name"],
    "anyOf": [{"required": ["tags"]}, {"required": ["next"]}],
}


# --- tracks, which diagrams draw


def pattern_of(found: Tracks, track: Track) -> str:
    """A pattern of Python's ``re`` for what is drawn, of grammars that do not recur."""
    if isinstance(track, Text):
        return re.escape(track.text)
    if isinstance(track, Pattern):
        text = track.text
        if text.startswith('"') and ".." in text:
            return "[{}-{}]".format(*(each[1:-1] for each in text.split("..")))
        return f"(?:{text[1:-1]})" if text.startswith("/") else text
    if isinstance(track, Name):
        if track.name in found.terminals:
            shown = found.terminals[track.name]
            return re.escape(shown[1:-1]) if shown.startswith('"') else f"(?:{shown[1:-1]})"
        return pattern_of(found, found.rules[track.name])
    if isinstance(track, Row):
        return "".join(pattern_of(found, each) for each in track.items)
    if isinstance(track, Fork):
        return "(?:" + "|".join(pattern_of(found, each) for each in track.items) + ")"
    most = "" if track.max is None else track.max
    return f"(?:{pattern_of(found, track.body)}){{{track.min},{most}}}"


SOURCES = [
    mw.GBNF('root ::= "yes" | "no" (": " [^\\n]{1,8} tail)?\ntail ::= "." | ("!" | "?"){2,} | [a-c0-9]'),
    mw.GBNF('root ::= ((("a" | "b") "c")* "d"){2} end?\nend ::= "\\"" | "\\\\" | "-" | "]" [^-\\]^]'),
    mw.Lark(
        'start: "let" x ("," x)* [y{x}]\nx: "a".."c" | /[0-9]{1,2}/\ny{z}: z~2..3 | "(" z+ ")"',
        lexer="dynamic",
    ),
    mw.Lark('start: (NAME | "if") (SIGN NAME)?\nNAME: /[d-f]+/\nSIGN: "+" | "*"', lexer="dynamic"),
    mw.Regex(r"(yes|no){1,2}[^a-y0-9\]-]?|\w{2}"),
]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: type(source).__name__)
def test_what_is_drawn_is_the_language(source: Any) -> None:
    """Texts of the compiled grammar, and texts near them, judged by the module re."""
    found = tracks(source)
    judge = re.compile(pattern_of(found, next(iter(found.rules.values()))))
    _, compiled = compile_for_bytes(source)
    draw = random.Random(1)
    verdicts = []
    for text in sentences(compiled, 60, seed=1):
        at = draw.randrange(len(text) + 1)
        for each in (text, text[:at] + draw.choice('abcd01+"!.') + text[at + draw.randrange(2) :]):
            matcher = compiled.matcher()
            taken = matcher.accept_bytes(each.encode()) and matcher.is_accepting
            assert (judge.fullmatch(each) is not None) == taken, each
            verdicts.append(taken)
    assert 60 <= sum(verdicts) < len(verdicts)


def test_tracks_say_what_the_author_wrote() -> None:
    grammar = mw.Lark(
        'start: "a"i sum* {"type"} <|end|>\n'.replace('{"type"}', '%json {"type": "null"}')
        + 'sum: sum "+" NAME | NAME\nNAME: /x/\n%import common.INT\n%ignore " "\n'
    )
    found = tracks(grammar)
    assert said(found.rules["start"]) == '"a"i sum* %json {"type": "null"} <|end|>'
    assert said(found.rules["sum"]) == 'sum "+" NAME | NAME'
    assert found.terminals == {"NAME": "/x/"} and found.ignored == ('" "',)
    # Alternatives stand where they were written, those without rules where the first of them was.
    forked = tracks(mw.GBNF('root ::= "yes" | "no" (": " root)? | "maybe"'))
    assert said(forked.rules["root"]) == '"yes" | "maybe" | "no" (": " root)?'
    deep = tracks(mw.GBNF("root ::= " + "(" * 60 + '"x" root' + ")" * 60 + ' | "y"'))
    assert list(deep.rules) == ["root"]
    wide = tracks(mw.GBNF("root ::= " + " | ".join(f'"{i}" root' for i in range(500)) + ' | "y"'))
    assert "more" in said(wide.rules["root"], 10_000)
    shared: Any = Lit("a")
    for _ in range(60):
        shared = Cat((Alt((shared, Lit("b"))), shared))
    assert len(said(track_of(shared), 10**9)) < 10**6 and "…" in said(track_of(shared))
    with pytest.raises(mw.GrammarError, match="has no rules to draw"):
        tracks(mw.Choice(["a"]))  # type: ignore[arg-type]
    with pytest.raises(mw.GrammarError, match="there is no rule"):
        tracks(mw.GBNF("root ::= a"))


def test_railroad_diagrams() -> None:
    pytest.importorskip("railroad", reason="the package railroad-diagrams is not installed")
    from maskwright.pages.railroad import railroad

    made = railroad(mw.shipped_grammar("sql"), title=BAD)
    read = check_alone(made)
    ids = {value for name, value in read.attributes if name == "id"}
    links = [value for name, value in read.attributes if name in ("href", "xlink:href") and value != "data:,"]
    assert len(links) > 200 and all(link and link[1:] in ids for link in links)
    assert read.tags.count("svg") == len(tracks(mw.shipped_grammar("sql")).rules)
    bad = check_alone(railroad(mw.GBNF(f"root ::= {json.dumps(BAD)} x{{2,4}}\nx ::= [<&>]")))
    assert "b" not in bad.tags and "script" not in bad.tags and "2 to 4 times" in bad.text
    blanks = railroad(mw.Lark("start: WS\n%import common.WS"))
    assert (
        "[ \\t\\f\\r\\n]" in check_alone(blanks).text
        and "\t" not in blanks
        and blanks.count(">Terminals<") == 2
    )


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"format": "uuid"}, "string, format uuid"),
        ({"minLength": 1}, "string, at least 1 character"),
        ({"minLength": 2, "maxLength": 2}, "string, 2 characters"),
        ({"minLength": 2, "maxLength": 5, "pattern": "^a+$"}, "string, 2 to 5 characters, pattern ^a+$"),
        ({"type": "string"}, "string"),
        ({"type": "integer", "minimum": 1, "maximum": 999}, "integer from 1 to 999"),
        (
            {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
            "number, more than 0, multiple of 0.5",
        ),
        ({"type": "number", "maximum": 2.5}, "number, at most 2.5"),
        ({"type": "integer"}, "integer"),
        ({"enum": [1, 2]}, "one of the numbers 1, 2"),
        ({"enum": ["new", "paid", "shipped"]}, "one of 'new', 'paid', 'shipped'"),
        ({"const": "new"}, "'new'"),
    ],
    ids=str,
)
def test_lexemes_in_words(schema: dict[str, Any], said: str) -> None:
    kind = {} if "const" in schema or "enum" in schema else {"type": "string"}
    whole = {
        "type": "object",
        "properties": {"a": {**kind, **schema}},
        "required": ["a"],
        "additionalProperties": False,
    }
    made = tree(mw.JsonSchema(whole))
    assert f"<code>{escape(said)}</code>" in made
    assert '<span class="quiet">object</span>' in made


def test_the_tree_of_a_schema() -> None:
    made = tree(mw.JsonSchema(SCHEMA))
    read = check_alone(made)
    assert "b" not in read.tags and read.text.count("'name', required") >= 1
    ids = {value for name, value in read.attributes if name == "id"}
    links = [value for name, value in read.attributes if name == "href" and value != "data:,"]
    assert links and all(link and link[1:] in ids for link in links)
    for part in (
        "string, at most 20 characters",
        "integer, at least 3",
        "all different",
        "items: 1 to 9",
        '"[", whitespace printed',
        "the grammar of any value",
    ):
        assert part in read.text, part
    assert "SchemaOptions" not in read.text and "printed 64" not in read.text
    assert json.dumps(SCHEMA, indent=2) in read.text
    alone = tree(mw.JsonSchema({"properties": {"\ud800": True}}), title="\ud800")
    assert alone.encode() and "\\ud800" in check_alone(alone).text
    for source in (
        mw.shipped_grammar("json"),
        mw.Regex("a|b*"),
        mw.Choice(["x", BAD]),
        mw.JsonSchema(True),
    ):
        check_alone(tree(source))
    with pytest.raises(mw.MaskwrightError):
        tree(mw.JsonSchema({"type": "string", "not": {"type": "string"}}))


# --- particles


def particles(seed: int = 4, **more: Any) -> tuple[Posterior, mw.Vocabulary]:
    shares = np.random.default_rng(3).dirichlet(np.full(7, 0.6), size=8)
    model = CallableModel(lambda prefixes: np.log([shares[ids[-1] if ids else 7] for ids in prefixes]), 7, 6)
    vocabulary = mw.Vocabulary.from_bytes([b"a", b"b", b"c", b"d", b"e", b"<b>", b""], eos_ids=6)
    grammar = GrammarConstraint(mw.compile_regex("[abc]{2,6}(d|e(a|b|<b>)+)*", vocabulary))
    options = {"n_particles": 12, "ess_threshold": 0.9, "max_tokens": 24, **more}
    return smc(model, grammar, seed=seed, **options), vocabulary


def test_a_genealogy() -> None:
    found, vocabulary = particles()
    read = check_alone(genealogy(found, lambda ids: vocabulary.decode(ids).decode(), BAD))
    assert "b" not in read.tags and read.tags.count("svg") == 1
    assert f"{found.log_evidence:.3f}" in read.text
    resampled = sum(line.tolist() != list(range(12)) for line in found.genealogy)
    assert resampled > 2 and read.text.count("resampled") >= resampled
    check_alone(genealogy(Posterior([], np.zeros(0), np.zeros(0, dtype=bool))))
    check_alone(genealogy(particles(islands=2)[0]))
    dead, _ = particles(reward=lambda ids: 0.0)
    assert dead.all_dead and "NaN" not in genealogy(dead)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_genealogy_in_a_browser(tmp_path: Path, scheme: str) -> None:
    found, _ = particles()
    path = tmp_path / "page.html"
    path.write_text(genealogy(found), "utf-8")
    with opened(path.as_uri(), scheme) as shown:
        shown.locator("#particle").focus()
        shown.keyboard.press("End")
        shown.locator("#step").focus()
        steps = len(found.genealogy)
        for back in range(4):
            ancestor = 11
            for line in reversed(found.genealogy[steps - back :]):
                ancestor = int(line[ancestor])
            assert shown.locator("[data-figure=ancestor]").inner_text() == str(ancestor)
            shown.keyboard.press("ArrowLeft")
        assert shown.locator("#text").inner_text() == str(found.sequences[11])
        box = shown.locator("svg.genealogy").bounding_box()
        shown.mouse.click(box["x"] + box["width"] * 0.04, box["y"] + box["height"] * 0.06)
        assert shown.locator("#particle").input_value() == "0" and shown.locator("#step").input_value() == "0"
        assert not violations(shown) and not shown.problems


# --- canvases

BYTES = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b"", b"", b"<b>"], eos_ids=256)


class Loves(MaskedDiffusionModel):
    """A model that would write the last letters."""

    mask_id, eos_ids = 257, [256]

    def logits(self, canvas: list[int]) -> Any:
        return np.tile(np.arange(259, dtype=np.float32) % 256 / 40, (len(canvas), 1))


def test_texts_of_slots() -> None:
    assert slot_texts([120, 0xC3, 0xA9, OPEN, 258, EMPTY], BYTES) == ["x", "", "é", None, "<b>", ""]
    assert slot_texts([0xC3, OPEN, 0xA9, 256], BYTES) == ["�", None, "�", ""]
    assert slot_texts([0xE2, 0x82], BYTES) == ["", "�"] and slot_texts([], BYTES) == []
    words = mw.Vocabulary.from_bytes([b" yes", b" no", b""], eos_ids=2, start_tokens={0: b"yes"})
    assert slot_texts([0, 0], words) == ["yes", " yes"] and slot_texts([OPEN, 0], words) == [None, " yes"]


def steps_of() -> Any:
    grammar = mw.compile_regex("[a-z]{3}(<b>)?[0-9]{2,4}", BYTES)
    return list(infill_steps(Loves(), grammar, [None, "x", None, Gap(1, 5)], seed=0))


def test_a_film() -> None:
    made = frames(steps_of(), BYTES)
    check_alone(film(made, BAD))
    assert [sum(slot is None for slot in frame.slots) for frame in made] == sorted(
        (sum(slot is None for slot in frame.slots) for frame in made), reverse=True
    )
    assert re.fullmatch("[a-z]x[a-z](<b>)?[0-9]{2,4}", "".join(slot or "" for slot in made[-1].slots))
    with pytest.raises(mw.MaskwrightError, match="at least one frame"):
        film([])
    with pytest.raises(mw.MaskwrightError, match="same number of slots"):
        film([Frame((None,)), Frame(("a", "b"))])


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_film_in_a_browser(tmp_path: Path, scheme: str) -> None:
    made = frames(steps_of(), BYTES)
    path = tmp_path / "page.html"
    path.write_text(film(made), "utf-8")
    with opened(path.as_uri(), scheme) as shown:
        canvas = shown.locator("#slots")

        def seen() -> str:
            return str(canvas.evaluate("each => each.textContent"))

        expected = ["".join("·" if slot is None else slot for slot in frame.slots) for frame in made]
        for text in expected:
            assert seen() == text
            shown.keyboard.press("ArrowRight")
        shown.keyboard.press("ArrowLeft")
        assert seen() == expected[-2]
        shown.keyboard.press("Home")
        assert seen() == expected[0]
        shown.keyboard.press(" ")
        shown.wait_for_function("document.getElementById('play').textContent === 'Play'", timeout=20_000)
        assert seen() == expected[-1]
        assert not violations(shown) and not shown.problems


# --- measurements


def test_a_report() -> None:
    results = {
        BAD: {
            "date": "2026-11-24", "machine": {"cores": 2},
            "engines": {"ours": {"mask": {"p50": 0.5213, "p99": 82.47}}, "other": {"mask": {"p50": 18.16, "p99": 1202.0}, "odd": [1]}},
            "points": [{"size": 10**i, "ms": 2.5 * i, "inner": {"a": i}, "what": BAD} for i in range(6)],
            "empty": [], "none": None, "flag": True, "deep": [[1, [2, {"x": 3}]]], "curve": list(range(1, 9)),
        },
        "all the same": [1.0] * 10,
    }  # fmt: skip
    read = check_alone(report(results))
    assert "b" not in read.tags
    for part in ("0.5213", "18.16", "1,202", "82.47", "100,000", "12.5", "True", "logarithmic"):
        assert part in read.text, part
    assert read.tags.count("svg") == 3
    with pytest.raises(mw.MaskwrightError, match="needs results"):
        report({})


@pytest.mark.slow
def test_all_results_are_reported() -> None:
    files = sorted((ROOT / "bench" / "results").glob("*.json"))
    assert len(files) > 10
    check_alone(report({path.stem: json.loads(path.read_text("utf-8")) for path in files}))


# --- the command, and browsers


def pages(folder: Path) -> dict[str, Path]:
    """Pages as the command writes them."""
    (folder / "s.json").write_text(json.dumps(SCHEMA), "utf-8")
    (folder / "g.gbnf").write_text('root ::= "yes" | "no" (": " [^\\n]{1,80} root)?', "utf-8")
    made = {name: folder / f"{name}.html" for name in ("tree", "railroad", "bench")}
    assert main(["explain", "--schema", str(folder / "s.json"), "--html", str(made["tree"])]) == 0
    assert main(["explain", "--grammar", str(folder / "g.gbnf"), "--html", str(made["railroad"])]) == 0
    measured = [
        "bench",
        "--grammar",
        str(folder / "g.gbnf"),
        "--tokenizer",
        "bytes",
        "--repeat",
        "1",
        "--sentences",
        "2",
    ]
    assert main([*measured, "--html", str(made["bench"])]) == 0
    return made


def test_the_commands_write_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("railroad", reason="the package railroad-diagrams is not installed")
    made = pages(tmp_path)
    for path in made.values():
        check_alone(path.read_text("utf-8"))
    measured = Reader(made["bench"].read_text("utf-8")).text
    for unit in ("compile, ms", "first mask, ms", "microseconds a token"):
        assert unit in measured, unit
    capsys.readouterr()
    assert main(["explain", "--schema", str(tmp_path / "s.json"), "--html", "-"]) == 0
    assert Reader(capsys.readouterr().out).text.count("The compiled form of s.json") == 2
    wrong = ["explain", "--schema", str(tmp_path / "s.json")]
    assert main([*wrong, "--prompt", "x"]) == 2 and "needs both" in capsys.readouterr().err
    assert main([*wrong, "--html", "-", "--prefix", "{"]) == 2 and "do not go" in capsys.readouterr().err
    (tmp_path / "bad.gbnf").write_text("root ::= x", "utf-8")
    assert main(["explain", "--grammar", str(tmp_path / "bad.gbnf"), "--html", "-"]) == 1
    assert "no rule 'x'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_in_a_browser(tmp_path: Path, scheme: str) -> None:
    pytest.importorskip("railroad", reason="the package railroad-diagrams is not installed")
    made = pages(tmp_path)
    with opened(made["railroad"].as_uri(), scheme) as shown:
        shown.locator("svg a").first.focus()
        shown.keyboard.press("Enter")
        assert shown.url.endswith("#rule-0")
        # Labels fit into their boxes.
        overflowing = shown.evaluate(
            "[...document.querySelectorAll('svg g.terminal, svg g.non-terminal')].filter(g => g.querySelector('rect') && g.querySelector('text').getBBox().width > "
            "g.querySelector('rect').getBBox().width).length"
        )
        assert overflowing == 0 and not violations(shown) and not shown.problems
    with opened(made["tree"].as_uri(), scheme) as shown:
        shown.locator("#open").focus()
        shown.keyboard.press("Enter")
        assert shown.evaluate("[...document.querySelectorAll('.tree details')].every(each => each.open)")
        assert not violations(shown) and not shown.problems
        shown.locator("#close").click()
        shown.evaluate("document.querySelectorAll('.tree a')[0].click()")
        assert shown.evaluate(
            "document.activeElement.tagName === 'SUMMARY' && document.activeElement.getClientRects().length > 0"
        )
    with opened(made["bench"].as_uri(), scheme) as shown:
        table = shown.locator("table").inner_text()
        assert "microseconds a token" in table and "mask, known states" in table
        assert "compile, ms" in shown.inner_text("main") and not violations(shown) and not shown.problems
