"""Every limit is a field of ``Limits``, can be set, and is named by the errors that reach it."""

from __future__ import annotations

import ast
import itertools
import re
import threading
import time
from typing import Any

import pytest
from places import ROOT
from toys import byte_vocabulary

import maskwright as mw
from maskwright.base.deadline import check_time, deadline
from maskwright.limits import LIMIT_NAMES, Limits

BYTES = byte_vocabulary()


def raised_in_python() -> list[tuple[str, ast.Call]]:
    """Where the package makes a ``LimitError``, but in the class itself."""
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        if path.name == "errors.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("LimitError"):
                found.append((f"{path.name}:{node.lineno}", node))
    return found


class TestNames:
    @pytest.mark.slow
    def test_of_errors_in_python(self) -> None:
        sites = raised_in_python()
        assert len(sites) > 15
        for place, call in sites:
            name = call.args[0]
            if any(keyword.arg == "message" for keyword in call.keywords):
                continue  # it promises nothing about Limits
            if isinstance(name, ast.Attribute) and ast.unparse(name) == "error.limit":
                continue  # another error, raised again
            assert isinstance(name, ast.Constant), f"{place}: the limit is no constant"
            assert name.value in LIMIT_NAMES, place
            # What is allowed is that very field, whatever the code calls it.
            assert len(call.args) == 3, place

    def test_of_errors_in_the_engine(self) -> None:
        names = [
            name
            for path in (ROOT / "cext").rglob("*.pyx")
            # One with a message promises nothing about Limits.
            for name in re.findall(
                r"raise LimitError\(\s*(\S+?),(?![^()]*message=)", path.read_text(encoding="utf-8")
            )
        ]
        assert len(names) >= 5
        assert {name.strip('"') for name in names} <= set(LIMIT_NAMES)

    def test_every_limit_is_documented(self) -> None:
        text = (ROOT / "src/maskwright/limits.py").read_text(encoding="utf-8")
        page = "".join(
            (ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("json-schema", "grammars")
        )
        (body,) = [node.body for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
        for field, behind in itertools.pairwise(body):
            if isinstance(field, ast.AnnAssign) and ast.unparse(field.target) in LIMIT_NAMES:
                assert isinstance(behind, ast.Expr) and "(" in ast.unparse(behind), "docstring with a unit"
        for name in LIMIT_NAMES:
            assert f"`{name}`" in page, name

    def test_the_message_is_true(self) -> None:
        error = mw.LimitError("max_rules", 7, 5)
        assert "max_rules is 5, 7 needed" in str(error) and "Limits(max_rules=...)" in str(error)
        assert "over 1e308" in str(mw.LimitError("max_rules", 10**5000, 5))
        assert str(mw.LimitError("x", 7, 5, message="what", place="1:1")) == "1:1: what"
        moved = error.at("/a")
        assert (moved.place, moved.limit, moved.given, moved.allowed) == ("/a", "max_rules", 7, 5)
        assert moved.at("/b") is moved


class TestValues:
    @pytest.mark.parametrize("name", LIMIT_NAMES)
    def test_can_be_set(self, name: str) -> None:
        limits = Limits(**{name: 2})
        assert getattr(limits, name) == 2 and limits != Limits() and hash(limits) != hash(Limits())
        assert limits == Limits(**{name: 2}) and hash(limits) == hash(Limits(**{name: 2}))

    @pytest.mark.parametrize("name", LIMIT_NAMES)
    @pytest.mark.parametrize("value", [-1, True, None, "5", float("nan")])
    def test_are_numbers(self, name: str, value: Any) -> None:
        with pytest.raises(ValueError, match=name):
            Limits(**{name: value})

    @pytest.mark.parametrize("name", [name for name in LIMIT_NAMES if name != "max_seconds"])
    @pytest.mark.parametrize("value", [0, 1.5])
    def test_are_counts(self, name: str, value: Any) -> None:
        with pytest.raises(ValueError, match=name):
            Limits(**{name: value})

    @pytest.mark.parametrize(
        ("name", "most"),
        [
            ("max_object_obligations", 32),
            ("max_key_sorts", 16),
            ("max_count", 2**31 - 1),
            ("max_constant_digits", 4000),
        ],
    )
    def test_end_where_the_engine_does(self, name: str, most: int) -> None:
        assert getattr(Limits(**{name: most}), name) == most
        with pytest.raises(ValueError, match=f"{name}={most + 1} is above {most}: "):
            Limits(**{name: most + 1})

    def test_seconds(self) -> None:
        assert Limits(max_seconds=0).max_seconds == 0
        assert Limits(max_seconds=float("inf")).max_seconds == float("inf")
        with pytest.raises(TypeError):
            Limits(_hash=3)  # type: ignore[call-arg]


def alternatives(count: int) -> dict[str, Any]:
    """An object that must meet so many alternatives at once."""
    return {"allOf": [{"not": {"required": [f"a{i}", f"b{i}"]}} for i in range(count)]}


SORTS = {
    "patternProperties": {f"^{c}": {} for c in "abc"},
    "allOf": [
        {"not": {"patternProperties": {f"^{c}": {"type": "integer"}}}, "type": "object"} for c in "abc"
    ],
}
REACHED: dict[str, tuple[Any, int, int]] = {
    # a schema, the limit that it exceeds, and the one that it does not
    "max_depth": ({"items": {"items": {"items": {}}}}, 1, 2),
    "max_schema_values": ({"enum": list(range(20))}, 20, 22),
    "max_schema_branches": (
        {"allOf": [{"type": "object", "anyOf": [{"required": [f"a{i}{j}"]} for j in range(3)]} for i in range(3)]},
        10, 27,
    ),
    "max_object_obligations": (alternatives(5), 4, 5),
    "max_member_ways": (
        {"allOf": [{"not": {"properties": {"a": {"multipleOf": p}, "b": {"minimum": p}}}} for p in (2, 3, 5)]}, 3, 8,
    ),
    "max_key_sorts": (SORTS, 2, 8),
    "max_constant_digits": ({"maximum": 10**20}, 20, 21),
    "max_count": ({"minItems": 11}, 10, 11),
    "max_indented_depth": ({"const": [[1]]}, 1, 2),
    "max_regex_states": ({"pattern": "^" + "abc" * 20 + "d*$"}, 20, 200),
    "max_nested_looks": ({"pattern": "^(?=(?=a)a)a"}, 1, 2),
    "max_rules": ({"properties": {"a": {"type": "null"}}, "additionalProperties": False}, 2, 500),
}  # fmt: skip


@pytest.mark.parametrize("name", REACHED)
def test_is_reached_and_can_be_raised(name: str) -> None:
    schema, low, high = REACHED[name]
    with pytest.raises(mw.LimitError) as info:
        mw.compile_json_schema(schema, BYTES, whitespace=2, limits=Limits(**{name: low}))
    assert (info.value.limit, info.value.allowed) == (name, low) and info.value.given > low
    assert f"Limits({name}=...)" in str(info.value)
    mw.compile_json_schema(schema, BYTES, whitespace=2, limits=Limits(**{name: high}))


def test_multiples_of_large_divisors_are_the_least() -> None:
    def accepts(limit: int, number: int) -> bool:
        limits = Limits(max_multiple_remainders=limit)
        matcher = mw.compile_json_schema({"multipleOf": 17, "minimum": 0}, BYTES, limits=limits).matcher()
        return matcher.accept_bytes(str(number).encode()) and matcher.is_accepting

    assert accepts(17, 17 * 10**6) and accepts(16, 17 * 1000)
    assert not accepts(16, 17 * 10**6) and not accepts(17, 17 * 10**6 + 1)


class TestDeadline:
    def test_is_over_once_and_for_all(self) -> None:
        with deadline(1e-9):
            for _ in range(3):
                with pytest.raises(mw.LimitError, match="max_seconds") as info:
                    check_time()
                assert info.value.allowed == 1e-9 < info.value.given
        check_time()

    def test_the_outer_one_holds(self) -> None:
        with deadline(1e-9), deadline(60), pytest.raises(mw.LimitError, match="max_seconds is 1e-09"):
            check_time()
        with deadline(60):
            with deadline(1e-9), pytest.raises(mw.LimitError):
                check_time()
            check_time()

    def test_none(self) -> None:
        with deadline(0):
            check_time()

    def test_belongs_to_its_thread(self) -> None:
        errors: list[BaseException] = []

        def work() -> None:
            try:
                check_time()
            except BaseException as error:
                errors.append(error)

        with deadline(1e-9):
            time.sleep(0.001)
            other = threading.Thread(target=work)
            other.start()
            other.join()
        assert not errors

    @pytest.mark.parametrize("schema", [{}, {"type": "integer"}, {"properties": {"a": {"$ref": "#"}}}])
    def test_compiling_and_checking(self, schema: Any) -> None:
        limits = Limits(max_seconds=1e-9)
        with pytest.raises(mw.LimitError, match="max_seconds"):
            mw.compile_json_schema(schema, BYTES, limits=limits)
        (finding,) = mw.check_json_schema(schema, limits=limits).findings
        assert finding.code == "limit" and "max_seconds" in finding.message
        mw.compile_json_schema(schema, BYTES, limits=Limits(max_seconds=0))
