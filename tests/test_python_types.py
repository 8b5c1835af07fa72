"""Python types: whatever the engine writes, pydantic reads; and what is no type, or refused, is an error with its name."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import ipaddress
import json
import random
import uuid
from decimal import Decimal
from typing import Annotated, Any, Callable, Literal, NamedTuple  # noqa: UP035

import pytest
from byte_walks import BYTES, accepts, finished_walk

import maskwright as mw
from maskwright.frontends.python_types import parse_output

pydantic = pytest.importorskip("pydantic")
TypedDict = pytest.importorskip("typing_extensions").TypedDict


class Colour(enum.Enum):
    RED = 1
    BLUE = "blue"


class Number(enum.IntEnum):
    ONE = 1
    TWO = 20


@dataclasses.dataclass
class Point:
    x: int
    y: float = 1.0
    path: list[int] | None = None


class Record(TypedDict, total=False):
    count: int
    price: Decimal


class Tree(pydantic.BaseModel):
    value: int
    byte: Annotated[int, pydantic.Field(ge=0, le=255)] = 0
    names: dict[int, float] = pydantic.Field(default_factory=dict)
    below: list[Tree] = pydantic.Field(default_factory=list)


class Pair(NamedTuple):
    left: int
    right: str


TYPES = [
    int, list[int], dict[str, int], dict[int, str], set[int], tuple[int, ...], int | str, int | None,
    Decimal, list[Decimal], Annotated[Decimal, pydantic.Field(max_digits=5, decimal_places=2)],
    Annotated[Decimal, pydantic.Field(gt=0, le=3)], float, pydantic.FiniteFloat, bool, None,
    datetime.timedelta, datetime.date, datetime.datetime, datetime.time,
    ipaddress.IPv4Address, ipaddress.IPv4Network, ipaddress.IPv4Interface, ipaddress.IPv6Network, ipaddress.IPv6Interface,
    Literal[1, "a", True, None], Colour, Number, Point, Record, Tree, Pair,
    uuid.UUID, pydantic.UUID4, pydantic.UUID7, pydantic.Base64Bytes, pydantic.Base64UrlBytes,
    dict[float, int], dict[bool, int], dict[Number, int], dict[uuid.UUID, int], dict[datetime.date, int],
    dict[Annotated[str, pydantic.Field(pattern="^[a-c]+$")], int], collections.Counter[str],
    pydantic.StrictInt, Annotated[int, pydantic.Field(multiple_of=3)], pydantic.ByteSize,
]  # fmt: skip


@pytest.mark.parametrize("tp", TYPES, ids=str)
def test_whatever_is_written_is_read(tp: Any) -> None:
    compiled = mw.compile(tp, BYTES)
    adapter = pydantic.TypeAdapter(tp)
    seen = set()
    for seed in range(25):
        text = finished_walk(compiled, seed)
        adapter.validate_json(text)
        seen.add(text)
    assert len(seen) > 1 or tp is None


def test_integers_are_plain() -> None:
    for tp, text in [(int, "{}"), (list[int], "[{}]"), (int | str, "{}"), (Tree, '{{"value": {}}}')]:
        compiled = mw.compile(tp, BYTES)
        assert all(accepts(compiled, text.format(number)) for number in ("0", "-12", "9" * 40))
        assert not any(accepts(compiled, text.format(number)) for number in ("1.0", "9e89", "1E0", "-0.0"))
    assert accepts(mw.compile(float, BYTES), "1.5e3")
    assert accepts(mw.compile(int | float, BYTES), "1.0")


@pytest.mark.parametrize("tp", [ipaddress.IPv4Network, ipaddress.IPv6Network])
def test_networks(tp: Any) -> None:
    """Those with nothing behind the prefix, and no others."""
    compiled = mw.compile(tp, BYTES)
    rng = random.Random(3)
    bits = 32 if tp is ipaddress.IPv4Network else 128
    for _ in range(200):
        length = rng.randint(0, bits)
        address = rng.getrandbits(bits) >> (bits - length) << (bits - length)
        # Runs of zeros inside an address are written out.
        shown = str(tp((address, length))) if bits == 32 else written(address, length)
        assert accepts(compiled, json.dumps(shown)), shown
        assert tp(shown) == tp((address, length))
        if length < bits:
            other = shown.replace(f"/{length}", f"/{length - 1}") if address >> (bits - length) & 1 else shown
            assert accepts(compiled, json.dumps(other)) == (other == shown)


def written(address: int, length: int) -> str:
    groups = [f"{address >> shift & 0xFFFF:04x}" for shift in range(112, -1, -16)][: -(-length // 16)]
    return ":".join(groups) + ("" if len(groups) == 8 else "::") + f"/{length}"


def test_decimals() -> None:
    compiled = mw.compile(Decimal, BYTES)
    assert accepts(compiled, '"0.1000000000000000000000000001"') and accepts(compiled, "12.34")
    assert not accepts(compiled, '"x"') and not accepts(compiled, "1e400")
    assert parse_output(Decimal, '"0.1000000000000000000000000001"') == Decimal(
        "0.1000000000000000000000000001"
    )
    money = mw.compile(Annotated[Decimal, pydantic.Field(max_digits=5, decimal_places=2)], BYTES)
    assert accepts(money, "999.99") and not accepts(money, "1000") and not accepts(money, "0.001")


def test_keys() -> None:
    assert accepts(mw.compile(dict[int, str], BYTES), '{"12":"a","-3":"b"}')
    for text in ('{"a":"b"}', '{"01":"b"}', '{"1.0":"b"}', '{"":"b"}'):
        assert not accepts(mw.compile(dict[int, str], BYTES), text)
    assert accepts(mw.compile(dict[Number, int], BYTES), '{"20":1}')
    assert not accepts(mw.compile(dict[Number, int], BYTES), '{"2":1}')
    patterned = mw.compile(dict[Annotated[str, pydantic.Field(pattern="^[a-c]+$")], int], BYTES)
    assert accepts(patterned, '{"ab":1}') and not accepts(patterned, '{"x":1}')


def test_the_option_is_one_of_schemas() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    plain = mw.compile_json_schema(schema, BYTES, plain_integers=True)
    assert accepts(plain, "[1,-2]") and not accepts(plain, "[1.0]") and not accepts(plain, "[1e2]")
    assert accepts(mw.compile_json_schema(schema, BYTES), "[1.0]")
    assert mw.compile(mw.JsonSchema(schema, plain_integers=True), BYTES) is plain
    # As in draft 4, which has it anyway; what is no plain integer is no integer at all.
    for spelled in (
        {"not": {"type": "integer"}},
        {"type": ["integer", "string"]},
        {"type": "integer", "format": "int32"},
    ):
        old = mw.compile_json_schema(spelled, BYTES, dialect="draft4", formats="annotate")
        new = mw.compile_json_schema(spelled, BYTES, plain_integers=True, formats="annotate")
        for text in ("1", "1.0", "1.5", "2e9", '"a"'):
            assert accepts(old, text) == accepts(new, text), (spelled, text)
    bounded = mw.compile_json_schema({"type": "integer", "format": "int32"}, BYTES, plain_integers=True)
    assert accepts(bounded, "1") and not accepts(bounded, "1.0")
    with pytest.raises(mw.GrammarError, match="plain_integers='yes'"):
        mw.SchemaOptions(plain_integers="yes")  # type: ignore[arg-type]
    assert mw.check_json_schema(
        {"type": "integer", "const": 1.5}, mw.SchemaOptions(plain_integers=True)
    ).findings


class Bare:
    pass


@pytest.mark.parametrize("tp", [Callable, Callable[[int], int], type, Bare, list[Bare], 3, ...], ids=repr)
def test_what_is_no_type(tp: Any) -> None:
    with pytest.raises(mw.GrammarError) as caught:
        mw.compile(tp, BYTES)
    assert repr(tp) in str(caught.value) and "\n" not in str(caught.value)


class Even(pydantic.BaseModel):
    number: int

    @pydantic.field_validator("number")
    @classmethod
    def is_even(cls, number: int) -> int:
        if number % 2:
            raise ValueError("odd numbers are odd")
        return number


def test_what_a_type_refuses() -> None:
    assert parse_output(Even, '{"number": 2}') == Even(number=2)
    with pytest.raises(mw.OutputError, match="odd numbers are odd") as caught:
        parse_output(Even, '{"number": 3}')
    assert isinstance(caught.value, mw.MaskwrightError)
    assert caught.value.text == '{"number": 3}'
    assert isinstance(caught.value.__cause__, pydantic.ValidationError)
