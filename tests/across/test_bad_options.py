"""Options of the compilers, the samplers and the command line: one typed error that says what is expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toys import byte_vocabulary

import maskwright as mw
from maskwright.cli.sources import read_source
from maskwright.errors import GrammarError, MaskwrightError, VocabularyError
from maskwright.sampling.resampling import check_particles

BYTES = byte_vocabulary()
LARK = 'start: "a"'


@pytest.mark.parametrize("limits", [None, 5])
def test_limits(limits: Any) -> None:
    for call in (
        lambda: mw.compile_json_schema({"type": "integer"}, BYTES, limits=limits),
        lambda: mw.compile_regex("a", BYTES, limits=limits),
        lambda: mw.compile_gbnf('root ::= "a"', BYTES, limits=limits),
        lambda: mw.compile_choice(["a"], BYTES, limits=limits),
        lambda: mw.compile_structural_tag({"type": "const_string", "value": "a"}, BYTES, limits=limits),
        lambda: mw.check_json_schema(True, limits=limits),
        lambda: mw.check_grammar(mw.JsonSchema(True), limits=limits),
        lambda: mw.check_grammar(mw.Lark(LARK), limits=limits),
        lambda: mw.check_grammar(mw.Choice(["a"]), limits=limits),
    ):
        with pytest.raises(GrammarError, match="limits: expected Limits"):
            call()


def test_other_options() -> None:
    wrong: Any
    for wrong in (5, ["start"]):
        with pytest.raises(GrammarError, match="start: expected str"):
            mw.compile_lark(LARK, BYTES, start=wrong)
    with pytest.raises(GrammarError, match="import_paths: expected"):
        mw.compile_lark(LARK, BYTES, import_paths=5)  # type: ignore[arg-type]
    with pytest.raises(GrammarError, match="flags: expected"):
        mw.compile_regex("a", BYTES, flags=None)  # type: ignore[arg-type]
    with pytest.raises(GrammarError, match="registry: expected"):
        mw.compile_json_schema({}, BYTES, registry=5)  # type: ignore[arg-type]
    with pytest.raises(GrammarError, match="options: expected"):
        mw.compile_choice(None, BYTES)
    with pytest.raises(GrammarError, match="options: expected SchemaOptions or None"):
        mw.check_json_schema(True, 5)  # type: ignore[arg-type]
    for source in ({"type": "integer"}, True):
        with pytest.raises(VocabularyError, match="vocabulary: expected Vocabulary"):
            mw.compile_json_schema(source, None)  # type: ignore[arg-type]
    with pytest.raises(VocabularyError, match="vocabulary: expected Vocabulary"):
        mw.compile_choice([[1]], None)  # type: ignore[arg-type]
    for wrong in ("a", None, -1, 2, float("nan")):
        with pytest.raises(MaskwrightError, match="ess_threshold"):
            check_particles(4, wrong, "systematic")


def test_a_byte_order_mark_is_no_part_of_a_source(tmp_path: Path) -> None:
    path = tmp_path / "grammar.gbnf"
    path.write_bytes(b'\xef\xbb\xbfroot ::= "a"\r\n')
    assert read_source(str(path)) == 'root ::= "a"\r\n'


def test_a_member_that_comes_twice() -> None:
    for text, name, place in [
        ('{"items": {"type": "integer", "type": "string"}}', "type", "1:31"),
        ('{"a": ["type", {"type": 1}],\n "b": {"a": "{", "c": {}},\n  "a": 2}', "a", "3:3"),
        ('{"x": {"\\u0061": "a, \\"a\\":", "a": 1, "a": 2}}', "a", "1:31"),
    ]:
        for given in (text, text.encode(), text.encode("utf-16")):
            with pytest.raises(GrammarError, match=f"'{name}' comes twice") as caught:
                mw.compile_json_schema(given, BYTES)  # type: ignore[arg-type]
            assert caught.value.place == place
        assert mw.check_json_schema(text).findings[0].place == place
    with pytest.raises(GrammarError, match="structural tag is JSON: the member 'type' comes twice") as caught:
        mw.compile_structural_tag('{"type": "any_text",\n "type": "json_schema"}', BYTES)
    assert caught.value.place == "2:2"
    with pytest.raises(GrammarError, match="structural tag is JSON: malformed") as caught:
        mw.compile_structural_tag('{"type": "any_text",', BYTES)
    assert caught.value.place == "1:21"


def test_limits_of_a_report() -> None:
    report = mw.check_grammar(mw.JsonSchema({"items": {"items": {}}}), limits=mw.Limits(max_schema_values=2))
    assert [finding.code for finding in report.findings] == ["limit"]


def test_any_is_a_type_of_draft_3_only() -> None:
    for given in ("any", ["string", "any"]):
        with pytest.raises(GrammarError, match="type must be one of"):
            mw.compile_json_schema({"items": {"type": given}}, BYTES)
        assert mw.compile_json_schema({"items": {"type": given}}, BYTES, dialect="draft3")
