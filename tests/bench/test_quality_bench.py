"""The tasks and judges of ``bench/quality.py``: answers are right in their own judges' eyes, and wrong ones are not."""

from __future__ import annotations

import json
import re
import sqlite3
from typing import Any

import jsonschema
import pytest
import quality_programs as programs
from quality_judges import (
    MISSING,
    compare,
    first_json,
    judge_json,
    parse_json,
    same,
    spelling,
)
from quality_report import paired_interval, render, summary
from quality_tasks import KINDS, Task, make_tasks
from toys import byte_vocabulary

import maskwright as mw

BYTES = byte_vocabulary()
TASKS = list(make_tasks(list(KINDS), 4, seed=5))


@pytest.fixture(params=TASKS, ids=lambda task: task.name)
def task(request: pytest.FixtureRequest) -> Task:
    return request.param


def test_ten_kinds_and_more_the_same_from_one_seed() -> None:
    again = list(make_tasks(list(KINDS), 4, seed=5))
    others = list(make_tasks(list(KINDS), 4, seed=6))
    assert len(KINDS) >= 10
    assert [each.expected for each in again] == [each.expected for each in TASKS]
    assert [each.text for each in others] != [each.text for each in TASKS]


def test_tasks_do_not_depend_on_what_else_is_asked_for() -> None:
    alone = list(make_tasks(["sql"], 2, seed=5))
    assert [each.text for each in alone] == [each.text for each in TASKS if each.kind == "sql"][:2]


def test_right_answers_score_one(task: Task) -> None:
    for text, free in ((task.expected, False), (f"Sure, here it is:\n{task.expected}\nAnything else?", True)):
        score = task.judge(text, free)
        assert (score.valid, score.fields, score.whole) == (True, 1.0, True)
        assert score.executes in (None, True)


def test_wrong_answers_score_less(task: Task) -> None:
    for text in ("", "[]", "SELECT", task.expected[:-2], f"{task.expected} {task.expected}"):
        score = task.judge(text, False)
        # A query without its last letters can still be one, of a name that is not there.
        assert not score.whole and (not score.valid or score.executes is False)
        assert score.fields < 1


def test_queries_that_run_queries_that_can_be_read_and_other_texts() -> None:
    [task] = make_tasks(["sql"], 1, seed=5)
    given = {
        "SELECT 1;": (True, True),
        "SELECT colour FROM nowhere;": (True, False),
        "SELECT FROM;": (False, False),
        "SELECT 1; SELECT 2;": (False, False),
        "DROP": (False, False),
        "": (False, False),
    }
    scores = {text: task.judge(text, False) for text in given}
    assert {text: (score.valid, score.executes) for text, score in scores.items()} == given


def test_expected_answers_are_in_every_form_of_their_language(task: Task) -> None:
    language = task.language
    sources: list[Any] = []
    if language.schema is not None:
        jsonschema.Draft202012Validator.check_schema(language.schema)
        sources.append(mw.JsonSchema(language.schema))
    if language.regex is not None:
        assert re.fullmatch(language.regex, task.expected)
        sources.append(mw.Regex(language.regex))
    if language.grammar is not None:
        sources.append(mw.GBNF(language.grammar))
    assert sources
    for source in sources:
        matcher = mw.compile(source, BYTES).matcher()
        assert matcher.accept_bytes(task.expected.encode()) and matcher.is_accepting


def test_the_schema_is_in_the_prompt_only_when_asked_for(task: Task) -> None:
    without, with_schema = (task.messages(asked)[1]["content"] for asked in (False, True))
    assert task.text in without and task.text in with_schema
    assert "JSON Schema" not in without
    assert ("JSON Schema" in with_schema) == (task.language.schema is not None)


def test_leaves_are_counted_by_hand() -> None:
    expected = {"a": 1, "b": [1, 2], "c": [{"d": "x"}, {"d": "y"}], "e": [], "f": None}
    assert compare(expected, expected) == (7, 7)
    assert compare(expected, {**expected, "b": [2, 1], "new": 1}) == (7, 7)
    assert not same(expected, {**expected, "new": 1})
    assert compare(expected, {**expected, "b": [2, 2, 3]}) == (6, 8)
    assert compare(expected, {**expected, "c": [{"d": "y"}]}) == (5, 7)
    assert compare(expected, {**expected, "c": [*expected["c"], {"d": "z"}]}) == (7, 8)
    assert compare(expected, {"a": True, "f": MISSING}) == (0, 7)
    assert compare({"a": 1}, {"a": 1.0}) == (1, 1)
    assert compare({"a": 1}, {"a": "1"}) == (0, 1)


def test_formats_count_for_validity() -> None:
    schema = {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}}
    assert judge_json(schema, {"day": "2025-02-28"}, {"day": "2025-02-28"}).valid
    assert not judge_json(schema, {"day": "2025-02-28"}, {"day": "2025-02-30"}).valid


def test_json_in_free_text() -> None:
    assert first_json('Well {not json} ```json\n{"a": [1]}\n``` and {"b": 2}') == {"a": [1]}
    assert first_json("nothing") is MISSING
    assert parse_json('{"a": 1} x') is MISSING


def test_spelling_finds_what_no_printer_writes() -> None:
    for printed in (
        json.dumps({"é": "\n\x01", "a/b": [1, 2]}),
        json.dumps({"é": "a ,b", "q": '"\\,'}, indent=2, ensure_ascii=False),
        r'{"a": "\u003c"}',
    ):
        assert (spelling(printed).escaped, spelling(printed).blanks) == (0, 0)
    assert spelling(r'{"\u0061": "\/", "b": "\u0022"').escaped == 3
    assert spelling('{"a": 1 , "b": [2\n, 3], "c ,": " ,').blanks == 2


def test_queries_are_judged_by_their_rows() -> None:
    queries = [each for each in TASKS if each.kind == "sql"]
    for each in queries:
        again = each.expected.replace("SELECT ", "select  ").replace(";", "")
        assert each.judge(again, True).whole
        broken = each.judge("SELECT colour FROM nowhere;", False)
        assert broken.executes is False and broken.valid
        assert each.judge("DELETE FROM boats", False).executes is False


def test_an_endless_query_ends() -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n"
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        programs.run_query(programs.TABLES["shop"], 0.5, endless)


@pytest.mark.parametrize("domain", programs.TABLES)
def test_every_question_has_a_query_that_runs(domain: str) -> None:
    import random

    tables = programs.TABLES[domain]
    regex = programs.regex_of(programs.query_gbnf(tables))
    for make in programs.QUESTIONS[domain]:
        for seed in range(5):
            _, query = make(random.Random(seed))
            programs.run_query(tables, 0.25, query)
            assert re.fullmatch(regex, query)


def test_calls_are_judged_by_their_results() -> None:
    ran, result = programs.run_call(
        {"name": "convert_temperature", "arguments": {"value": 100, "unit": "celsius"}}
    )
    assert ran and result == 212
    assert programs.run_call({"name": "set_alarm", "arguments": {"hour": 24, "minute": 0, "label": "x"}}) == (
        False,
        None,
    )
    assert programs.run_call({"name": "no_such", "arguments": {}}) == (False, None)
    assert programs.run_call([1]) == (False, None)


def test_intervals_are_of_paired_differences() -> None:
    found = paired_interval([0.5] * 20)
    assert (found.mean, found.low, found.high) == (0.5, 0.5, 0.5)
    mixed = paired_interval([1.0, -1.0] * 50)
    assert mixed.mean == 0 and -0.3 < mixed.low < -0.1 and 0.1 < mixed.high < 0.3


def test_a_summary_compares_the_tasks_that_all_engines_have() -> None:
    def record(engine: str, task: str, fields: float, refused: str | None = None) -> dict[str, Any]:
        right = fields == 1
        return {
            "engine": engine, "task": task, "kind": "person", "mode": "no", "fields": fields, "valid": True, "whole": right,
            "executes": right, "refused": refused, "finished": True, "tokens": 10, "paid_tokens": 20, "model_calls": 5,
            "removed": 0.5, "seconds": 1.0, "escaped": 0, "blanks": 1,
        }  # fmt: skip

    records = [
        *(record("maskwright", name, 1.0) for name in "abc"),
        record("free", "a", 0.0),
        record("free", "b", 0.5, refused="no"),
    ]
    found = summary(records, ["maskwright", "free"], "maskwright")
    assert list(found) == ["no"] and found["no"]["tasks"] == 2
    free = found["no"]["engines"]["free"]
    assert (free["fields"], free["refused"], free["cost_per_success"]) == (0.25, 1, None)
    assert found["no"]["engines"]["maskwright"]["cost_per_success"] == 20
    assert found["no"]["differences"]["free"]["fields"]["mean"] == -0.75
    assert "| free | 100 | 25 |" in render(found, "maskwright")
