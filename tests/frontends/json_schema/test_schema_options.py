"""What a caller can choose about JSON output: each option against a plain statement of what it means."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import byte_vocabulary

import maskwright as mw
from maskwright.cli import main
from maskwright.limits import Limits

BYTES = byte_vocabulary()


def accepts(compiled: mw.CompiledGrammar, text: str) -> bool:
    matcher = compiled.matcher()
    data = text.encode()
    if matcher.longest_prefix(data) < len(data):
        return False
    matcher.accept_bytes(data)
    return matcher.is_accepting


def compiled(schema: Any, **options: Any) -> mw.CompiledGrammar:
    return mw.compile_json_schema(schema, BYTES, **options)


class TestOneList:
    def test_everyone_has_the_same(self) -> None:
        expected = {option.name: option.default for option in fields(mw.SchemaOptions)}
        parameters = inspect.signature(mw.compile_json_schema).parameters
        given = {
            name: p.default
            for name, p in parameters.items()
            if name not in ("schema", "vocabulary", "limits")
        }
        assert given == expected
        source = mw.JsonSchema({"type": "null"})
        assert {name: getattr(source, name) for name in expected} == expected
        assert mw.JsonSchema(True, whitespace=2).schema is True

    def test_a_source_means_the_same(self) -> None:
        options: dict[str, Any] = {"whitespace": 3, "additional_properties": False, "max_number_digits": 2}
        schema = {"properties": {"a": {"type": "integer"}}}
        assert mw.compile(mw.JsonSchema(schema, **options), BYTES) is compiled(schema, **options)
        assert compiled(schema, **options) is not compiled(schema)

    @pytest.mark.parametrize(
        "options",
        [
            {"property_order": "random"}, {"property_order": ["any"]}, {"whitespace": "wide"}, {"whitespace": -1},
            {"whitespace": 65}, {"whitespace": True}, {"whitespace": 2.0}, {"whitespace": None}, {"max_whitespace": 0},
            {"max_whitespace": 257}, {"max_whitespace": "8"}, {"max_number_digits": 0}, {"max_number_digits": 1001},
            {"max_number_digits": True}, {"additional_properties": None}, {"additional_properties": 0}, {"additional_properties": "any"}, {"plain_integers": 1},
            {"formats": "check"}, {"dialect": "draft5"},
        ],
    )  # fmt: skip
    def test_values_that_an_option_does_not_have(self, options: dict[str, Any]) -> None:
        ((name, _),) = options.items()
        for call in (lambda: compiled({}, **options), lambda: mw.SchemaOptions(**options)):
            with pytest.raises(mw.GrammarError, match=f"{name}="):
                call()


values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text('ab"\\é\n', max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab{", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
TREES = {"$defs": {"tree": {"type": "object", "properties": {"v": {"type": "integer"}, "t": {
    "type": "array", "items": {"$ref": "#/$defs/tree"}}}, "required": ["v"]}}, "$ref": "#/$defs/tree"}  # fmt: skip
SHAPES: list[Any] = [
    {},
    TREES,
    {"prefixItems": [{"type": "integer"}, {"type": "array"}], "items": {"type": "string"}, "minItems": 1},
    {"type": "array", "contains": {"type": "object"}, "maxContains": 2},
    {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    {"type": "object", "minProperties": 1, "maxProperties": 2},
    {"type": "object", "maxProperties": 0},
    {"type": "array", "maxItems": 0},
    {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
    {"not": {"required": ["a"]}, "type": "object"},
    {"patternProperties": {"^a": {"type": "array"}}, "minProperties": 0},
    {"const": {"a": [1, {"b": [], "c": {}}], "d": None}},
    {"enum": [[], {}, [[]], [{}], {"a": []}]},
]


def test_options_that_equal_checked_ones() -> None:
    """True is no count, though it equals 1; what has no hash is no option either."""
    mw.compile_json_schema({}, BYTES, max_whitespace=1)
    for wrong in (True, 1.0, [1]):
        with pytest.raises(mw.GrammarError, match="max_whitespace"):
            mw.compile_json_schema({}, BYTES, max_whitespace=wrong)  # type: ignore[arg-type]


class TestIndentation:
    @settings(max_examples=200, deadline=None)
    @given(values, st.sampled_from(SHAPES), st.sampled_from([0, 1, 2, 4]), st.booleans())
    def test_is_exactly_that_of_python(self, value: Any, schema: Any, width: int, ascii_only: bool) -> None:
        grammar = compiled(schema, whitespace=width, property_order="any")
        valid = jsonschema.Draft202012Validator(schema).is_valid(value)
        written = json.dumps(value, indent=width, ensure_ascii=ascii_only)
        assert accepts(grammar, written) == valid
        # Nothing else is: any other blank is refused.
        others = [json.dumps(value, indent=n, ensure_ascii=ascii_only) for n in (None, width + 1)]
        for other in (*others, f"{written}\n", f" {written}"):
            assert other == written or not accepts(grammar, other)

    @settings(max_examples=200, deadline=None)
    @given(values, st.data())
    def test_one_blank_more_or_less(self, value: Any, data: st.DataObject) -> None:
        text = json.dumps(value, indent=2)
        at = data.draw(st.integers(0, len(text)))
        changed = text[:at] + data.draw(st.sampled_from([" ", "\n", "\t"])) + text[at:]
        if text[at : at + 1] in (" ", "\n") and data.draw(st.booleans()):
            changed = text[:at] + text[at + 1 :]
        try:
            reread = json.loads(changed)
        except ValueError:
            return
        if json.dumps(reread, indent=2, ensure_ascii=False) != changed and "\\" not in changed:
            assert not accepts(compiled({}, whitespace=2), changed)

    @pytest.mark.parametrize("schema", SHAPES)
    def test_walks_end_in_what_python_writes(self, schema: Any) -> None:
        for depth in (4, 32):
            grammar = compiled(schema, whitespace=2, limits=Limits(max_indented_depth=depth))
            matcher = grammar.matcher()
            for byte in b'{[\n  "tva"0:1,':
                if not matcher.accept_token(byte):
                    continue
                fork = matcher.fork()
                fork.accept_tokens(fork.shortest_completion())
                fork_text = bytes(t for t in fork.accepted_tokens if t < 256).decode()
                value = json.loads(fork_text)
                assert json.dumps(value, indent=2, ensure_ascii=False) == fork_text
                assert jsonschema.Draft202012Validator(schema).is_valid(value)

    def test_ends_at_the_limit_and_nowhere_before(self) -> None:
        def nested(levels: int) -> Any:
            value: Any = 1
            for i in range(levels):
                value = [value] if i % 2 else {"a": value}
            return value

        for most in (1, 2, 5, 32):
            grammar = compiled({}, whitespace=1, limits=Limits(max_indented_depth=most))
            for levels in range(most + 2):
                assert accepts(grammar, json.dumps(nested(levels), indent=1)) == (levels <= most)
            assert not accepts(
                grammar, json.dumps([[]] if most == 1 else nested(most - 1) and [nested(most)], indent=1)
            )
            # No dead end there: what may begin can be finished.
            matcher = grammar.matcher()
            while matcher.accept_token(ord("[")):
                while matcher.accept_token(ord("\n")) or matcher.accept_token(ord(" ")):
                    pass
                assert matcher.shortest_completion_bytes()

    def test_schemas_that_need_more(self) -> None:
        schema: Any = {"type": "integer"}
        for _ in range(33):
            schema = {"type": "array", "items": schema, "minItems": 1}
        with pytest.raises(mw.LimitError, match="max_indented_depth is 32"):
            compiled(schema, whitespace=2)
        (finding,) = mw.check_json_schema(schema, mw.SchemaOptions(whitespace=2)).findings
        assert (finding.code, finding.severity) == ("limit", "error")
        assert compiled(schema, whitespace=2, limits=Limits(max_indented_depth=33))
        assert compiled(schema)
        with pytest.raises(mw.UnsatisfiableError):
            compiled({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, whitespace=2)


class TestWhitespace:
    @pytest.mark.parametrize("most", [1, 5, 64, 200])
    def test_bound(self, most: int) -> None:
        grammar = compiled({"items": {"type": "null"}}, whitespace="flexible", max_whitespace=most)
        for blanks in (0, 1, min(most, 8)):
            assert accepts(grammar, f"[{' ' * blanks}null{' ' * blanks}]")
        assert accepts(grammar, f"[\n{' ' * most}null,\n\n{' ' * most}null]")
        assert not accepts(grammar, f"[\n{' ' * (most + 1)}null]")
        assert not accepts(grammar, f"[{' ' * (min(most, 8) + 1)}null]")

    @pytest.mark.parametrize("most", [1, 5, 64, 200])
    def test_bound_of_an_indentation(self, most: int) -> None:
        grammar = compiled({"items": {"type": "null"}}, max_whitespace=most)
        tabs = max(1, most // 4)
        longest = (most * " ", tabs * "\t")
        for space in ("", " ", *(begin + blanks for begin in ("\n", "\r\n") for blanks in longest)):
            assert accepts(grammar, f"[{space}null,{space}null{space}]")
            assert accepts(grammar, f"[{space}null, null]")
            assert not accepts(grammar, f"[null{space},null]") or not space
        for space in (
            "  ",
            "\t",
            "\n" + (most + 1) * " ",
            "\n" + (tabs + 1) * "\t",
            "\n\n",
            "\r",
            "\n \t",
            "\n\t ",
        ):
            assert not accepts(grammar, f"[{space}null]")
            assert not accepts(grammar, f"[null,{space}null]")
            assert not accepts(grammar, f"[null{space}]")

    def test_others_have_none(self) -> None:
        assert compiled([{}][0], whitespace="compact", max_whitespace=3)
        assert not accepts(compiled({}, whitespace="compact", max_whitespace=3), "[ ]")


class TestEscapes:
    """What "printed" takes is compared with printers in ``test_printers``."""

    @pytest.mark.parametrize("whitespace", ["printed", "flexible", "compact", 2])
    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "object", "properties": {"a/b": {"type": "string"}}},
            {"type": "object", "patternProperties": {"/": {"type": "string", "pattern": "/"}}},
            {"additionalProperties": {"enum": ["x/y"]}},
            {"additionalProperties": {"type": "string", "maxLength": 3}},
            {"const": {"a/b": "x/y"}},
            {},
        ],
    )
    def test_hold_for_keys_and_values_whatever_the_white_space(self, schema: Any, whitespace: Any) -> None:
        text = json.dumps({"a/b": "x/y"}, indent=2) if whitespace == 2 else '{"a/b":"x/y"}'
        printed = compiled(schema, whitespace=whitespace)
        widest = compiled(schema, whitespace=whitespace, escapes="any")
        for spelled in (text, text.replace("a/b", "a\\/b"), text.replace("x/y", "\\u0078/y")):
            assert json.loads(spelled) == {"a/b": "x/y"}
            assert accepts(widest, spelled)
            assert accepts(printed, spelled) == (spelled == text)

    def test_both_in_one_vocabulary(self) -> None:
        # The grammars have their automata and masks from one engine.
        for escapes in ("printed", "any", "printed"):
            matcher = compiled({"type": "string", "pattern": "^ab"}, escapes=escapes).matcher()
            assert matcher.accept_bytes(b'"')
            assert matcher.fork().accept_bytes(b"\\u0061") == (escapes == "any")
            assert matcher.accept_bytes(b"ab")
            assert matcher.fork().accept_bytes(b"\\u0061") == (escapes == "any")
            assert matcher.fork().accept_bytes(b"\\u00e4")

    def test_no_other_value(self) -> None:
        with pytest.raises(mw.GrammarError, match="escapes='all' is not one of 'printed', 'any'"):
            compiled({}, escapes="all")


def test_number_digits() -> None:
    grammar = compiled({"type": "number"}, max_number_digits=3)
    assert accepts(grammar, "123.456e10") and not accepts(grammar, "1234") and not accepts(grammar, "0.1234")
    assert accepts(compiled({"type": "integer"}, max_number_digits=100), "9" * 100)
    assert accepts(compiled({"const": 123456}, max_number_digits=3), "123456")
    assert accepts(compiled({"items": {"minimum": 0}}, max_number_digits=2), "[99]")
    assert not accepts(compiled({"items": {"minimum": 0}}, max_number_digits=2), "[100]")
    plain = compiled({"type": "integer", "minimum": 5}, max_number_digits=2, dialect="draft4")
    assert accepts(plain, "99") and not accepts(plain, "100")


PEOPLE = {"properties": {"name": {"type": "string"}}}


class TestAdditionalProperties:
    @pytest.mark.parametrize(
        ("schema", "closed", "opened"),
        [
            (PEOPLE, [{}, {"name": "a"}], [{"x": 1}, {"name": "a", "x": 1}]),
            ({**PEOPLE, "patternProperties": {"^x": {}}}, [{"name": "a", "x1": 1}], [{"y": 1}]),
            ({**PEOPLE, "required": ["age"]}, [{"name": "a", "age": 1}], [{"age": 1, "x": 1}]),
            ({"items": PEOPLE}, [[{"name": "a"}]], [[{"x": 1}]]),
            ({"$ref": "#/$defs/p", "$defs": {"p": PEOPLE}}, [{"name": "a"}], [{"x": 1}]),
            ({"allOf": [PEOPLE, {"properties": {"age": {}}}]}, [{"name": "a", "age": 1}], [{"x": 1}]),
            ({"allOf": [PEOPLE], "properties": {"age": {}}}, [{"age": 1, "name": "a"}], [{"x": 1}]),
            ({"anyOf": [PEOPLE, {"type": "integer"}]}, [{"name": "a"}, 1], [{"x": 1}]),
            ({"oneOf": [{"properties": {"k": {"const": c}, c: {}}, "required": ["k"]} for c in "ab"]},
             [{"k": "a", "a": 1}, {"k": "b", "b": 1}], [{"k": "a", "b": 1}, {"k": "b", "x": 1}]),
            ({**PEOPLE, "propertyNames": {"maxLength": 4}}, [{"name": "a"}], [{"x": 1}]),
            ({"if": {"required": ["a"]}, "then": {"properties": {"b": {}}}, "properties": {"a": {}}},
             [{"a": 1, "b": 2}, {}], [{"a": 1, "x": 1}]),
        ],
    )  # fmt: skip
    def test_leaves_out_what_is_not_mentioned(
        self, schema: Any, closed: list[Any], opened: list[Any]
    ) -> None:
        for order in ("schema", "any"):
            narrow = compiled(schema, additional_properties=False, property_order=order)
            wide = compiled(schema, property_order=order)
            for value in closed:
                assert accepts(narrow, json.dumps(value)) and accepts(wide, json.dumps(value)), value
            for value in opened:
                assert not accepts(narrow, json.dumps(value)) and accepts(wide, json.dumps(value)), value

    @pytest.mark.parametrize(
        "schema",
        [
            {},
            {"type": "object"},
            {"minProperties": 1},
            {**PEOPLE, "additionalProperties": True},
            {**PEOPLE, "additionalProperties": {}},
            {**PEOPLE, "additionalProperties": {"type": "integer"}},
            {**PEOPLE, "unevaluatedProperties": True},
            {"allOf": [PEOPLE], "unevaluatedProperties": {}},
            {"allOf": [PEOPLE], "unevaluatedProperties": {"type": "integer"}},
            {"allOf": [PEOPLE, {"additionalProperties": True}]},
        ],
    )
    def test_changes_nothing_where_something_is_said(self, schema: Any) -> None:
        assert accepts(compiled(schema, additional_properties=False), '{"x": 1}')
        assert not accepts(
            compiled({**PEOPLE, "additionalProperties": False}, additional_properties=True), '{"x":1}'
        )

    def test_members_that_are_needed(self) -> None:
        two = {**PEOPLE, "type": "object", "minProperties": 2}
        for schema in (
            two,
            {**PEOPLE, "type": "object", "not": {"propertyNames": {"not": {"pattern": "x"}}}},
        ):
            needed = compiled(schema, additional_properties="needed")
            assert accepts(needed, '{"name":"a","x":1}') and not accepts(needed, '{"name":"a"}')
            with pytest.raises(mw.UnsatisfiableError):
                compiled(schema, additional_properties=False)
        assert not accepts(compiled(PEOPLE, additional_properties="needed"), '{"x":1}')
        closed = {**two, "additionalProperties": False}
        with pytest.raises(mw.UnsatisfiableError, match="minProperties 2"):
            compiled(closed, additional_properties="needed")

    def test_contradictions_are_errors(self) -> None:
        with pytest.raises(mw.UnsatisfiableError):
            compiled({**PEOPLE, "type": "object", "minProperties": 2}, additional_properties=False)


class TestCommandLine:
    def check(self, tmp_path: Any, schema: Any, text: str, *options: str) -> int:
        (tmp_path / "s.json").write_text(json.dumps(schema), encoding="utf-8")
        (tmp_path / "i.json").write_text(text, encoding="utf-8")
        return main(["check", str(tmp_path / "s.json"), "--instance", str(tmp_path / "i.json"), *options])

    @pytest.mark.parametrize(
        ("schema", "text", "options", "code"),
        [
            (PEOPLE, '{\n  "name": "a"\n}', ["--whitespace", "2"], 0),
            (PEOPLE, '{\n   "name": "a"\n}', ["--whitespace", "2"], 1),
            (PEOPLE, '{"x": 1}', [], 0),
            (PEOPLE, '{"x": 1}', ["--no-additional-properties"], 1),
            ({"type": "integer"}, "123", ["--max-number-digits", "2"], 1),
            ({}, "[\n   1]", ["--max-whitespace", "2"], 1),
            (
                {"required": ["a"], "properties": {"b": {}, "a": {}}},
                '{"a":1,"b":1}',
                ["--property-order", "any"],
                0,
            ),
            ({"format": "date"}, '"x"', ["--formats", "annotate"], 0),
            ({"items": [{"type": "null"}]}, "[1]", ["--dialect", "draft7"], 1),
        ],
    )
    def test_has_every_option(
        self, tmp_path: Any, schema: Any, text: str, options: list[str], code: int
    ) -> None:
        assert self.check(tmp_path, schema, text, *options) == code

    @pytest.mark.parametrize(
        "options", [["--whitespace", "wide"], ["--max-whitespace", "0"], ["--dialect", "x"]]
    )
    def test_wrong_values_are_usage(self, tmp_path: Any, options: list[str], capsys: Any) -> None:
        assert self.check(tmp_path, {}, "1", *options) == 2
        assert options[1] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"enum": [1, 2]}, ["1", "2"], ["1.0", "2.00"]),
        ({"const": 10}, ["10"], ["10.0"]),
        ({"enum": [0, -1]}, ["0", "-1"], ["0.0", "-1.0"]),
        ({"type": "integer", "enum": [1, 2]}, ["1"], ["1.0"]),
        ({"enum": [1, 1.5, "a"]}, ["1", "1.5", "1.50", '"a"'], ["1.0"]),
        ({"const": {"a": [1]}}, ['{"a":[1]}'], ['{"a":[1.0]}']),
        ({"type": "number", "minimum": 1}, ["1", "1.0", "1e1"], []),
    ],
)
def test_plain_integers_in_lists_of_values(schema: Any, good: list[str], bad: list[str]) -> None:
    plain, any_form = compiled(schema, plain_integers=True), compiled(schema)
    assert all(accepts(plain, text) for text in good)
    for text in bad:
        assert not accepts(plain, text) and (accepts(any_form, text) or schema.get("type") == "integer")
