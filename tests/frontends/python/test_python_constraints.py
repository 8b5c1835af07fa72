"""Constraints of unions, ``Any`` and other types that have none of their own: kept, or refused by name."""

from __future__ import annotations

import collections
import datetime
import enum
import ipaddress
import json
import pathlib
import random
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal

import pytest
from byte_walks import BYTES, accepts, finished_walk

import maskwright as mw

pydantic = pytest.importorskip("pydantic")
TypedDict = pytest.importorskip("typing_extensions").TypedDict
Named = pytest.importorskip("typing_extensions").TypeAliasType
Field = pydantic.Field
Stripped = Annotated[str, pydantic.StringConstraints(strip_whitespace=True)]


class Size(enum.IntEnum):
    SMALL, LARGE = 1, 5


class Name(enum.StrEnum):
    SHORT, LONG = "a", "abc"


class Plain(enum.Enum):
    ONE = 1


class Item(pydantic.BaseModel):
    size: int = 0


class Items(pydantic.RootModel[list[int]]):
    pass


class Record(TypedDict):
    a: int


class Typed(pydantic.BaseModel):
    score: int | float = Field(ge=0, le=1)


class Upper(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(str_to_upper=True)
    text: str | list[int] = Field(max_length=2)


class Hexadecimal(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(val_json_bytes="hex")
    data: bytes | str = Field(max_length=2)


def same(value: Any) -> Any:
    return value


def named(value: Any) -> str:
    """A name for a case: without addresses, which differ from process to process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


def constrained(tp: Any, **constraints: Any) -> Any:
    return Annotated[tp, Field(**constraints)]


TEXTS = [
    *("0", "-0", "-0.0", "1", "2", "3", "5", "7", "-1", "-3", "0.1", "0.5", "0.3", "0.30000000000000004", "1.0", "3.0", "1e400"),
    *("2.9999999999999999999999", "3.0000000000000000000001", "9007199254740992", "9007199254740993", "9007199254740994"),
    *("100000000000000000000000", "99999999999999991611392", "1e23", "true", "false", "null"),
    *map(json.dumps, ("", "a", "ab", "abc", "abcd", "ba", "5", "7", "é", "éé", " a ", " ", "ŉ", "ß", "2020-01-01", "1GB", "1.2.3.4")),
    *map(json.dumps, ("Zdd8", "QQ==", "QUI=", "QUJD", "QUJDRA==", "QUJDREU=", "AAAA")),
    *("[]", "[1]", "[1,2]", "[1,2,3]", "{}", '{"a":1}', '{"a":1,"b":2}', '{"a":1,"a":2}', '{"1":1,"2":2}', '{"a":1,"b":2,"c":3}'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tp", "written", "refused"),
    [
        (constrained(int | float, ge=0, le=1), "0.5", "7"),
        (constrained(int | str, ge=3), "5", '"5"'),
        (constrained(int | str, ge=3, description="d"), "5", "2"),
        (constrained(int | str | None, gt=3), "null", "3"),
        (constrained(int | float, gt=0.1, lt=0.3), "0.2", "0.3"),
        (constrained(int | float, ge=2**53 + 1), "9007199254740994", "9007199254740992"),
        (constrained(int | float, le=2**53 + 1), "9007199254740992", "9007199254740993"),
        (constrained(float | int, ge=1e23), "1e23", "99999999999999991611391"),
        (constrained(int | float, multiple_of=3), "3", "5"),
        (constrained(int | float, multiple_of=0.5), "0.5", "0.3"),
        (constrained(int | float, allow_inf_nan=False), "5", "1e400"),
        (constrained(Size, gt=1), "5", "1"),
        (constrained(Literal[1, 5, "a"], gt=3), "5", "1"),
        (constrained(Any, gt=3), "5", "3"),
        (constrained(Any, ge=1), "true", "false"),
        (constrained(bool, ge=1), "true", "false"),
        (constrained(int | Item, ge=3), "3", '{"size":4}'),
        (constrained(Decimal | int, ge=3), "3", '"7"'),
        (constrained(Fraction | int, lt=3), "-1", "3"),
        (constrained(pydantic.ByteSize, gt=5), "7", '"1GB"'),
        (constrained(str | list[int], min_length=2), "[1,2]", "[]"),
        (constrained(int | str, max_length=2), '"ab"', "5"),
        (constrained(str | dict[str, int], min_length=2), '{"a":1,"b":2}', '{"a":1}'),
        (constrained(str | tuple[int, ...] | None, min_length=2, max_length=2), "null", "[1]"),
        (constrained(Any, min_length=2, max_length=3), '"ab"', "5"),
        (constrained(pydantic.JsonValue, min_length=2), '"ab"', "[1]"),
        (constrained(str | bytes, max_length=1), '"a"', '"ab"'),
        (constrained(Literal["a", "abc", 5], min_length=2), '"abc"', '"a"'),
        (constrained(Name, min_length=2), '"abc"', '"a"'),
        (constrained(Sequence[int], max_length=2), "[1]", "[1,2,3]"),
        (constrained(collections.defaultdict[str, int], min_length=2), '{"a":1,"b":2}', '{"a":1}'),
        (constrained(pydantic.SecretStr, max_length=2), '"ab"', '"abc"'),
        (constrained(pydantic.SecretBytes | None, max_length=2), '"ab"', '"éé"'),
        (constrained(pydantic.Base64Str, max_length=4), '"QUJD"', '"Zdd8"'),
        (constrained(pydantic.Base64Str, min_length=1), '"QQ=="', '""'),
        (constrained(pydantic.Base64Str, min_length=1), '"QQ=="', '"Zdd8"'),
        (constrained(pydantic.Base64Bytes, min_length=2, max_length=4), '"AAAA"', '"QUJDREU="'),
        (Annotated[str, pydantic.AfterValidator(same), Field(min_length=2, pattern="^a")], '"ab"', '"ba"'),
        (Annotated[int, pydantic.AfterValidator(same), Field(gt=2)], "3", "2"),
        (dict[constrained(Annotated[str, pydantic.AfterValidator(same)], min_length=2), int], '{"ab":1}', '{"a":1}'),
        (Typed, '{"score":1}', '{"score":7}'),
    ],
    ids=named,
)  # fmt: skip
def test_constraints_are_kept(tp: Any, written: str, refused: str) -> None:
    compiled, adapter = mw.compile(tp, BYTES), pydantic.TypeAdapter(tp)
    assert accepts(compiled, written)
    assert not accepts(compiled, refused)
    rng = random.Random(str(tp))
    numbers = (rng.choice((1, 4, 2**54)) * rng.uniform(-1, 1) for _ in range(40))
    more = [json.dumps(rng.choice((number, round(number), round(number, 1)))) for number in numbers]
    for text in [text for text in TEXTS + more if accepts(compiled, text)]:
        adapter.validate_json(text)
    for seed in range(10):
        adapter.validate_json(finished_walk(compiled, seed))


@pytest.mark.parametrize(
    ("tp", "named"),
    [
        (constrained(datetime.date | datetime.datetime, ge=datetime.date(2020, 1, 1)), "ge=.* on date | datetime"),
        (constrained(int | str, ge=Decimal(3)), "no finite number"),
        (constrained(int | str, le=float("inf")), "no finite number"),
        (constrained(int | str, ge=10**400), "no float is as great"),
        (constrained(int | datetime.date, ge=3), "ge=3 on int | date"),
        (constrained(int | float, multiple_of=0.1), "multiple_of=0.1 on int"),
        (constrained(Decimal | int, ge=0.5), "0.5 is no integer"),
        (constrained(Decimal | int, max_digits=3), "max_digits=3"),
        (constrained(Decimal | int, decimal_places=3, max_digits=4), "decimal_places=3"),
        (constrained(ipaddress.IPv4Address, gt=ipaddress.IPv4Address("1.0.0.0")), "gt=IPv4Address"),
        (constrained(pydantic.Json[list[int]], min_length=1), "min_length=1 on json"),
        (constrained(pydantic.Secret[int], gt=3), "gt=3 on Secret"),
        (constrained(pydantic.HttpUrl, max_length=30), "max_length=30 on URL"),
        (constrained(pathlib.Path, max_length=3), "max_length=3 on Path"),
        (constrained(Plain, ge=0), "ge=0 on enum"),
        (constrained(Record, min_length=1), "min_length=1 on typed-dict"),
        (constrained(Items, min_length=1), "min_length=1 on model"),
        (constrained(Items | int, ge=1), "ge=1 on model with a root"),
        (constrained(Decimal | str, max_length=1), "max_length=1 on decimal"),
        (constrained(set[int] | str, min_length=1), "min_length=1 on set"),
        (constrained(dict[int, int] | str, min_length=2), "min_length=2 on dict"),
        (constrained(Stripped | list[int], min_length=2), "min_length=2 on str"),
        (constrained(Name, pattern="a"), "pattern='a' on enum"),
        (constrained(int | str, pattern="a"), "pattern='a' on int | str"),
        (Annotated[str | bytes, pydantic.StringConstraints(to_lower=True)], "to_lower=True on str | bytes"),
        (Annotated[int | str, Field(union_mode="left_to_right"), Field(ge=3)], "ge=3 on union"),
        (Annotated[int | str, Field(ge=3), Field(union_mode="left_to_right")], "union_mode"),
        (Upper, "max_length=2 on str"),
        (Hexadecimal, "max_length=2 on bytes"),
    ],
    ids=named,
)  # fmt: skip
def test_what_no_text_says_is_refused(tp: Any, named: str) -> None:
    with pytest.raises(mw.GrammarError, match=named.replace("|", r"\|")) as caught:
        mw.compile(tp, BYTES)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tp", "written", "refused"),
    [
        (constrained(int | str, ge=3), "5", "2"),
        (constrained(str | list[int], min_length=2), "[1,2]", "[1]"),
        (constrained(pydantic.Base64Str, min_length=4), '"QUJDRA=="', '"QUJD"'),
        (Annotated[str, pydantic.AfterValidator(same), Field(pattern="^a")], '"ab"', '"ba"'),
        (pydantic.Base64Str, '"QUJD"', '"Zdd8"'),
        (ipaddress.IPv4Network, '"1.0.0.0/8"', '"1.0.0.1/8"'),
    ],
    ids=named,
)
def test_named_types_that_are_used_twice(tp: Any, written: str, refused: str) -> None:
    named = Named("named", tp)
    for part, pattern in ((named, "{0}"), (list[named], "[{0}]"), (tuple[named, named], "[{0},{0}]")):  # type: ignore[valid-type]
        compiled = mw.compile(part, BYTES)
        assert accepts(compiled, pattern.format(written)) and not accepts(compiled, pattern.format(refused))
        for seed in range(5):
            pydantic.TypeAdapter(part).validate_json(finished_walk(compiled, seed))


def test_constraints_of_named_types() -> None:
    either = Named("either", int | str)
    for part in (either, Size, pydantic.JsonValue):
        tp = tuple[constrained(part, ge=3), constrained(part, ge=2)]  # type: ignore[misc]
        compiled = mw.compile(tp, BYTES)
        assert accepts(compiled, "[5,5]") and not accepts(compiled, "[1,5]")
