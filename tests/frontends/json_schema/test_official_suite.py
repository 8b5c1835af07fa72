"""The official JSON Schema test suite: what has passed once goes on passing.

``official_suite_passing.txt`` lists the tests that pass; ``python bench/official_suite.py
--write-ratchet`` updates it.
"""

from __future__ import annotations

from decimal import Decimal

import official_suite
import pytest
from places import DATA

SUITE = DATA / "json-schema-test-suite"

needs_suite = pytest.mark.skipif(
    not (SUITE / "tests").is_dir(), reason=f"the official JSON Schema test suite is not at {SUITE}"
)


@pytest.fixture(scope="module")
def suite() -> official_suite.Suite:
    return official_suite.Suite(SUITE)


@needs_suite
@pytest.mark.parametrize("draft", official_suite.DRAFTS)
def test_what_passed_still_passes(draft, suite):
    listed = {entry for entry in official_suite.read_ratchet() if entry[0].startswith(f"{draft}/")}
    results = list(suite.run([draft]))
    wrong = [r for r in results if r.section != "optional" and r.outcome == "invalid accepted"]
    wrong += [r for r in results if r.section == "required" and r.outcome in ("valid rejected", "error")]
    assert not [f"{r.outcome}: {r.file}: {r.description}: {r.detail}" for r in wrong]
    broken = [r for r in results if (r.file, r.identity) in listed and r.outcome != "pass"]
    assert not [f"{r.outcome}: {r.file}: {r.description}: {r.detail}" for r in broken]
    found = {(r.file, r.identity) for r in results}
    assert len(listed & found) > 0.9 * len(listed), "this is another suite: write the list anew"


def test_spellings():
    assert official_suite.spellings({"é": [Decimal("1.0"), "\U0001d54f"], "a": {}}) == [
        '{"é":[1.0,"\U0001d54f"],"a":{}}'.encode(),
        b'{"\\u00e9": [1.0, "\\ud835\\udd4f"], "a": {}}',
        '{\n  "é": [\n    1.0,\n    "\U0001d54f"\n  ],\n  "a": {}\n}'.encode(),
        b'{"\\u00e9":[1.0,"\\ud835\\udd4f"],"a":{}}',
        b'{"\\u00e9":[1.0,"\\ud835\\udd4f"],"\\u0061":{}}',
    ]
    assert official_suite.spellings("\ud800") == [b'"\\ud800"']


def test_equal_numbers():
    value = [1, Decimal("1.5"), Decimal("1E+400"), True, {"a": -3}]
    assert official_suite.equal_numbers(value, True) == [b'[1.0,1.50,1E+400,true,{"a":-3.0}]']
    assert official_suite.equal_numbers(value, False)[1:] == [
        b'[1e0,1.5e0,1E+400,true,{"a":-3e0}]',
        b'[10e-1,1.5,1E+400,true,{"a":-30e-1}]',
    ]


class TestJudging:
    """An instance counts in all of its ways of writing, and no other way may let an invalid one in."""

    @pytest.mark.parametrize(
        ("schema", "data", "valid", "outcome"),
        [
            ({"enum": [{"a": 1, "b": 2}]}, {"a": 1, "b": 2}, True, "pass"),
            ({"type": "integer"}, 3, True, "pass"),
            ({"type": "integer"}, 3, False, "invalid accepted"),
            ({"const": Decimal("1.5")}, 1, False, "pass"),
            ({"maxLength": 1}, "é", True, "pass"),
            ({"maxLength": 1}, "é", False, "invalid accepted"),
        ],
    )
    def test_outcomes(self, schema, data, valid, outcome):
        suite = official_suite.Suite(SUITE)
        compiled = suite.compile(schema, "draft2020-12", "required")
        assert suite.judge(compiled, data, valid)[0] == outcome

    def test_an_instance_that_is_rejected_in_one_way(self):
        suite = official_suite.Suite(SUITE)
        ordered = official_suite.mw.compile_json_schema(
            {"properties": {"a": True, "b": True}, "additionalProperties": False},
            suite.vocabulary,
            whitespace="flexible",
            escapes="any",
        )
        assert suite.judge(ordered, {"a": 1, "b": 2}, True) == ("valid rejected", '{"b":2,"a":1}')


def test_ratchet_file(tmp_path):
    path = tmp_path / "passing.txt"
    results = [
        official_suite.Result("draft7/a.json", "required", f"test {i}", f"{i:06x}", outcome)
        for i, outcome in enumerate(["pass", "refused", "pass"])
    ]
    official_suite.write_ratchet(results, path)
    assert official_suite.read_ratchet(path) == {("draft7/a.json", "000000"), ("draft7/a.json", "000002")}
