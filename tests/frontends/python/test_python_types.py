"""Python types: whatever the engine writes, pydantic reads; and what is no type, or refused, is an error with its name."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import ipaddress
import json
import pathlib
import random
import re
import uuid
import zoneinfo
from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Callable, Generic, Literal, NamedTuple, NotRequired, TypeVar  # noqa: UP035

import jsonschema
import pytest
from byte_walks import BYTES, accepts, finished_walk

import maskwright as mw
from maskwright.frontends.python.types import parse_output

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


class Flags(enum.IntFlag):
    READ = 1
    WRITE = 2


class Mixed(enum.Enum):
    ONE = 1
    TEXT = "b"
    NOTHING = None
    HALF = 0.5


class Partly(TypedDict):
    name: str
    age: NotRequired[int]


class Circle(pydantic.BaseModel):
    kind: Literal["circle"]
    radius: pydantic.PositiveFloat


class Square(pydantic.BaseModel):
    kind: Literal["square"]
    side: pydantic.PositiveFloat


class Cat(pydantic.BaseModel):
    type: Literal["cat"] = "cat"
    meow: int


class Dog(pydantic.BaseModel):
    type: Literal["dog"] = "dog"
    bark: int


T = TypeVar("T")


class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]
    following: pydantic.HttpUrl | None = None


class Aliased(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    inner: int = pydantic.Field(alias="Inner Name")

    @pydantic.computed_field
    def twice(self) -> int:
        return 2 * self.inner


class Names(pydantic.RootModel[list[str]]):
    pass


class Stored(pydantic.BaseModel):
    point: pydantic.Json[Pair]
    shapes: pydantic.Json[list[Circle | Square]]
    times: pydantic.Json[dict[str, datetime.date | None]]


class Config(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(str_strip_whitespace=True, str_min_length=2)
    name: str


Field = pydantic.Field
UTC = datetime.UTC
TYPES = [
    int, list[int], dict[str, int], dict[int, str], set[int], tuple[int, ...], int | str, int | None,
    Decimal, list[Decimal], Annotated[Decimal, Field(max_digits=5, decimal_places=2)],
    Annotated[Decimal, Field(gt=0, le=3)], pydantic.condecimal(max_digits=3), pydantic.condecimal(max_digits=9, ge=2),
    float, pydantic.FiniteFloat, bool, None, Any, object, bytes, complex, Fraction,
    datetime.timedelta, datetime.date, datetime.datetime, datetime.time, zoneinfo.ZoneInfo,
    pydantic.PastDate, pydantic.FutureDate, pydantic.PastDatetime, pydantic.FutureDatetime,
    pydantic.AwareDatetime, pydantic.NaiveDatetime,
    pydantic.condate(ge=datetime.date(2020, 2, 28), lt=datetime.date(2020, 3, 3)),
    Annotated[datetime.datetime, Field(gt=datetime.datetime(2020, 1, 1))],
    Annotated[datetime.datetime, Field(ge=datetime.datetime(2020, 1, 1, tzinfo=UTC), le=datetime.datetime(2020, 1, 3, tzinfo=UTC))],
    Annotated[datetime.time, Field(ge=datetime.time(9, 30), lt=datetime.time(17))],
    Annotated[datetime.timedelta, Field(gt=datetime.timedelta(hours=3))],
    Annotated[datetime.timedelta, Field(ge=datetime.timedelta(days=-2), le=datetime.timedelta(days=10, hours=1))],
    Annotated[pydantic.NaiveDatetime, Field(gt=datetime.datetime(2020, 1, 1, 0, 0, 0, 5, tzinfo=UTC))],
    Annotated[pydantic.PastDatetime, Field(ge=datetime.datetime(2020, 1, 1, tzinfo=UTC))],
    Annotated[pydantic.FutureDate, Field(lt=datetime.date(9000, 1, 1))],
    ipaddress.IPv4Address, ipaddress.IPv4Network, ipaddress.IPv4Interface, ipaddress.IPv6Network, ipaddress.IPv6Interface,
    pydantic.IPvAnyAddress, pydantic.IPvAnyNetwork, pydantic.IPvAnyInterface,
    Literal[1, "a", True, None], Colour, Number, Flags, Mixed, Literal[Number.ONE, "one"],
    Point, Record, Tree, Pair, Partly, Annotated[Circle | Square, Field(discriminator="kind")],
    Annotated[Cat | Dog, Field(discriminator="type")], Page[int], Aliased, Names, Config,
    uuid.UUID, pydantic.UUID1, pydantic.UUID3, pydantic.UUID4, pydantic.UUID5, pydantic.UUID7,
    pydantic.Base64Bytes, pydantic.Base64UrlBytes, pydantic.Base64Str, pydantic.Base64UrlStr,
    pydantic.SecretStr, pydantic.SecretBytes, pydantic.ByteSize, pathlib.Path, pathlib.PurePosixPath, re.Pattern[str],
    pydantic.conbytes(min_length=2, max_length=4), pydantic.constr(strip_whitespace=True, min_length=2),
    pydantic.constr(to_lower=True, pattern="^[a-z]+$"),
    pydantic.StrictInt, pydantic.StrictFloat, pydantic.StrictStr, pydantic.StrictBool, pydantic.JsonValue,
    Annotated[int, Field(multiple_of=3)], pydantic.conint(multiple_of=7, ge=10), pydantic.confloat(multiple_of=0.5),
    pydantic.conlist(int, min_length=1, max_length=3), pydantic.conset(int, min_length=2, max_length=3),
    pydantic.condecimal(max_digits=2, decimal_places=2), pydantic.conset(Literal[1, "a", False], min_length=2),
    frozenset[Literal["a", 1]], set, Hashable, collections.deque[int], collections.Counter[str], collections.OrderedDict[str, int],
    *(Annotated[dict[key, int], Field(min_length=1)] for key in (
        float, bool, Number, uuid.UUID, datetime.date, Annotated[str, Field(pattern="^[a-c]+$")], Decimal, int | uuid.UUID, int | None,
        pydantic.PositiveInt, pydantic.conint(ge=-3, lt=12), pydantic.HttpUrl, Literal["a", "b"], datetime.timedelta,
    )),
    pydantic.AnyUrl, pydantic.AnyHttpUrl, pydantic.HttpUrl, pydantic.FileUrl, pydantic.FtpUrl, pydantic.WebsocketUrl,
    pydantic.AnyWebsocketUrl, pydantic.PostgresDsn, pydantic.CockroachDsn, pydantic.AmqpDsn, pydantic.RedisDsn, pydantic.MongoDsn,
    pydantic.KafkaDsn, pydantic.NatsDsn, pydantic.MySQLDsn, pydantic.MariaDBDsn, pydantic.ClickHouseDsn, pydantic.SnowflakeDsn,
    Annotated[pydantic.AnyUrl, pydantic.UrlConstraints(max_length=40, allowed_schemes=["git", "file"], host_required=True)],
    pydantic.Json, pydantic.Json[int], pydantic.Json[list[float]], pydantic.Json[Colour], pydantic.Json[set[str]], pydantic.Json[bool | None],
    pydantic.Json[Annotated[float, Field(gt=-2.5, le=30)]], pydantic.Json[dict[str, int]], pydantic.Json[Point],
    pydantic.Json[Partly], pydantic.Json[tuple[int, datetime.date]], Stored,
]  # fmt: skip


@pytest.mark.parametrize("tp", TYPES, ids=str)
def test_whatever_is_written_is_read(tp: Any) -> None:
    compiled = mw.compile(tp, BYTES)
    adapter = pydantic.TypeAdapter(tp)
    texts = {finished_walk(compiled, seed) for seed in range(30)}
    texts.add(BYTES.decode(compiled.matcher().shortest_completion()))
    for text in texts:
        adapter.validate_json(text)
    assert len(texts) > 1 or tp is None


@pytest.mark.parametrize("name", ["EmailStr", "NameEmail"])
def test_mail_addresses(name: str) -> None:
    tp = getattr(pydantic, name)
    try:
        import email_validator  # noqa: F401
    except ImportError:
        with pytest.raises(mw.MaskwrightError, match="email-validator is not installed"):
            mw.compile(tp, BYTES)
        return
    test_whatever_is_written_is_read(tp)
    compiled = mw.compile(tp, BYTES)
    assert accepts(compiled, '"ada.lovelace+notes@mail.example.co.uk"')
    assert not accepts(compiled, '"a@b"') and not accepts(compiled, '"a@host.local"')


@pytest.mark.parametrize(
    ("tp", "usual"),
    [
        (pydantic.HttpUrl, "https://user:pw@www.example.com:8080/a/b%20c?q=1&r=2#top"),
        (pydantic.AnyUrl, "mailto:ada@example.com"),
        (pydantic.AnyUrl, "redis://127.0.0.1:6379/0"),
        (pydantic.FileUrl, "file:///etc/hosts"),
        (pydantic.PostgresDsn, "postgresql+asyncpg://user:pw@one:5432,two:5433/db?ssl=on"),
        (complex, "-1.5+2j"),
        (Fraction, "-3/4"),
        (pydantic.ByteSize, "1.5 GiB"),
        (zoneinfo.ZoneInfo, "Europe/Berlin"),
        (pydantic.NaiveDatetime, "2024-02-29T12:00:00.5"),
        (pydantic.PastDate, "1999-12-31"),
        (pydantic.FutureDate, "9000-02-28"),
        (pydantic.PastDatetime, "1999-12-31T23:59:59+05:30"),
        (pydantic.Base64Str, "SGVsbG8="),
        (pydantic.IPvAnyAddress, "::1"),
        (pydantic.Json[Point], '{"x": 1, "path": [1, 2]}'),
        (pydantic.Json, '{"a": [1, "x", {"b": null}]}'.replace('{"b": null}', "null")),
    ],
    ids=str,
)
def test_usual_texts(tp: Any, usual: str) -> None:
    text = json.dumps(usual)
    assert accepts(mw.compile(tp, BYTES), text)
    pydantic.TypeAdapter(tp).validate_json(text)


@pytest.mark.parametrize(
    ("tp", "wrong"),
    [
        (pydantic.HttpUrl, ["http://", "ftp://a", "http://a:65536", "http://a.1", "http://xn--a", "A:", "http://a/" + "b" * 2083]),
        (pydantic.FileUrl, ["file://a:80/b", "http://a"]),
        (pydantic.PostgresDsn, ["postgres:///db", "mysql://a"]),
        (complex, ["", "1+2", "1 + 2j", "x"]),
        (Fraction, ["1/0", "1/-2"]),
        (datetime.datetime, ["2016-12-31T23:59:60Z"]),
        (datetime.time, ["23:59:60Z"]),
        (pydantic.PastDate, ["9000-01-01"]),
        (pydantic.NaiveDatetime, ["2024-01-01T00:00:00Z"]),
        (pydantic.ByteSize, ["1 parsec", "kB"]),
        (pydantic.Json[int], ["", "x", "1.5", "[1]"]),
        (pydantic.Json[Point], ["{}", '{"y": 1}', '{"x": "a"}']),
        (pydantic.Json[tuple[int, datetime.date]], ["[1]", '[1,"x"]', '[1,"2024-01-01",2]']),
    ],
    ids=str,
)  # fmt: skip
def test_what_pydantic_refuses(tp: Any, wrong: list[str]) -> None:
    compiled = mw.compile(tp, BYTES)
    for text in wrong:
        with pytest.raises(pydantic.ValidationError):
            pydantic.TypeAdapter(tp).validate_json(json.dumps(text))
        assert not accepts(compiled, json.dumps(text)), text


def test_bounds_of_times_are_exact() -> None:
    low, high = datetime.datetime(2020, 1, 1, tzinfo=UTC), datetime.datetime(2020, 2, 1, tzinfo=UTC)
    tp = Annotated[datetime.datetime, Field(ge=low, lt=high)]
    compiled, adapter = mw.compile(tp, BYTES), pydantic.TypeAdapter(tp)
    for text in ("2020-01-01T00:00:00Z", "2020-01-31T23:59:59Z", "2020-01-15T10:00:00+14:00"):
        assert accepts(compiled, json.dumps(text)) and adapter.validate_json(json.dumps(text))
    for text in ("2019-12-31T23:59:59Z", "2020-02-01T00:00:00Z", "2020-01-01T00:00:00+01:00"):
        assert not accepts(compiled, json.dumps(text))
        with pytest.raises(pydantic.ValidationError):
            adapter.validate_json(json.dumps(text))
    yesterday = datetime.date.today() - datetime.timedelta(days=1)
    assert accepts(mw.compile(pydantic.PastDate, BYTES), json.dumps(yesterday.isoformat()))
    with pytest.raises(mw.GrammarError, match="no date lies between"):
        mw.compile(pydantic.condate(gt=datetime.date(2020, 1, 1), lt=datetime.date(2020, 1, 2)), BYTES)


class Pairs(enum.Enum):
    ONE = (1, 2)


class Node(pydantic.BaseModel):
    next: Node | None = None


@pytest.mark.parametrize(
    ("tp", "named"),
    [
        (pydantic.FilePath, "FilePath"),
        (list[pydantic.DirectoryPath], "DirectoryPath"),
        (pydantic.NewPath | None, "NewPath"),
        (pydantic.ImportString, "ImportString"),
        (type[int], r"type\[int\]"),
        (re.Pattern[bytes], r"re.Pattern\[bytes\]"),
        (Pairs, r"Pairs: \(1, 2\)"),
        (Literal[b"x", "y"], "Literal: b'x'"),
        (Literal[Colour.RED], "Literal: 1 is not read"),
        (dict[tuple[int, int], int], "keys of a dict"),
        (dict[Literal[1, 2], int], "keys of a dict"),
        (set[list[int]], "a set holds no list"),
        (pydantic.Json[Node], r"Json.*Node nests to any depth"),
        (pydantic.Json[pydantic.constr(pattern="a")], r"Json.*pattern"),
        (pydantic.Json[Annotated[int, Field(multiple_of=3)]], r"Json.*multipleOf"),
        (Annotated[pydantic.PastDatetime, Field(ge=datetime.datetime(2020, 1, 1))], "bounds with an offset"),
        (pydantic.Tag, "Tag"),
    ],
    ids=str,
)
def test_what_cannot_be_honoured_is_refused_by_name(tp: Any, named: str) -> None:
    with pytest.raises(mw.GrammarError, match=named) as caught:
        mw.compile(tp, BYTES)
    assert "\n" not in str(caught.value)


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
    # As in draft 4, which has it anyway.
    for spelled in ({"type": ["integer", "string"]}, {"type": "integer", "format": "int32"}):
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


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "number", "not": {"type": "integer"}}, "1.0"),
        ({"not": {"type": "integer"}}, "6e60"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "1.0"),
        ({"if": {"type": "integer"}, "then": {"maximum": 3}, "else": {"type": "number"}}, "7.0"),
        ({"contains": {"type": "integer"}, "maxContains": 1, "items": {"type": "number"}}, "[1,2.0]"),
        ({"not": {"type": "integer", "minimum": 3, "format": "int32"}}, "7.0"),
    ],
)
def test_what_is_not_written_as_an_integer_is_one_all_the_same(schema: dict[str, object], text: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(text), schema)
    plain = mw.compile_json_schema(schema, BYTES, plain_integers=True)
    assert not accepts(plain, text)
    assert accepts(plain, "[1,2.5]" if text[0] == "[" else "1.5")


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


def configured(**config: Any) -> Any:
    return pydantic.create_model("M", __config__=pydantic.ConfigDict(**config), b=bytes)


@pytest.mark.parametrize(
    ("tp", "text", "wrong"),
    [
        (configured(val_json_bytes="hex"), '{"b":"00Ff"}', '{"b":"zz"}'),
        (configured(val_json_bytes="base64"), '{"b":"AA=="}', '{"b":"!"}'),
        (collections.Counter[int], '{"1":1}', '{"x":1}'),
        (collections.OrderedDict[int, int], '{"1":1}', '{"x":1}'),
    ],
)
def test_what_is_written_is_read(tp: Any, text: str, wrong: str) -> None:
    compiled = mw.compile(tp, BYTES)
    assert accepts(compiled, text) and not accepts(compiled, wrong)
    for seed in range(10):
        parse_output(tp, finished_walk(compiled, seed).decode())


@pytest.mark.parametrize(
    ("tp", "text"),
    [
        (Annotated[float, pydantic.Field(gt=1)], "1." + "0" * 32 + "1"),
        (Annotated[float, pydantic.Field(lt=0.1, gt=0)], "0.0" + "9" * 27),
        (Annotated[Decimal, pydantic.Field(lt=0.1)], "0.0" + "9" * 27),
        (dict[Annotated[int, pydantic.Field(ge=5, gt=0)], int], '{"1":0}'),
        (Annotated[Decimal, pydantic.Field(multiple_of=Decimal("0.005"), decimal_places=2)], "0.005"),
        (Annotated[pydantic.SecretBytes, pydantic.Field(max_length=2)], '"éé"'),
        # To pydantic, 0 is a digit before the point.
        *((Annotated[Decimal, Field(max_digits=2, decimal_places=2)], zero) for zero in ("0", "0.00", "-0")),
        *(
            (Annotated[str, pydantic.Field(pattern=pattern)], text)
            for pattern, text in (
                (r"^\W$", '"é"'),
                (r"^\D+$", '"٣"'),
                (r"^a\b.$", '"aé"'),
                (r"^[^\w]$", '"é"'),
            )
        ),
    ],
)
def test_what_pydantic_would_not_read_is_not_written(tp: Any, text: str) -> None:
    with pytest.raises(mw.OutputError):
        parse_output(tp, text)
    assert not accepts(mw.compile(tp, BYTES), text)


class Inside(pydantic.BaseModel):
    x: int = pydantic.Field(validation_alias=pydantic.AliasPath("a", "b"))


class Chosen(pydantic.BaseModel):
    x: int = pydantic.Field(
        validation_alias=pydantic.AliasChoices(pydantic.AliasPath("a", "b"), "q", pydantic.AliasPath("r"))
    )


def test_aliases_that_are_paths() -> None:
    compiled = mw.compile(Chosen, BYTES)
    assert accepts(compiled, '{"q":1}') and parse_output(Chosen, '{"q":1}').x == 1
    with pytest.raises(mw.GrammarError, match="inside of another member"):
        mw.compile(Inside, BYTES)


@pytest.mark.parametrize(
    "tp",
    [
        Annotated[datetime.timedelta, pydantic.Field(multiple_of=datetime.timedelta(hours=1))],
        Annotated[Decimal, pydantic.Field(max_digits=2, decimal_places=4)],
        Annotated[Decimal, pydantic.Field(max_digits=0)],
        dict[pydantic.Json[int], int],  # type: ignore[type-var]
        # What differs as a text may be one value of a set, or one key.
        *(
            Annotated[set[tp], pydantic.Field(min_length=2)]  # type: ignore[valid-type]
            for tp in (
                Any,
                bool | int,
                float,
                datetime.datetime,
                datetime.timedelta,
                ipaddress.IPv6Address,
                Literal[1, True],
                Literal[0, "a", False],
            )
        ),
        Annotated[
            set[Annotated[str, pydantic.StringConstraints(strip_whitespace=True)]],
            pydantic.Field(min_length=2),
        ],
        Annotated[dict[float, int], pydantic.Field(min_length=2)],
        Annotated[dict[uuid.UUID, int], pydantic.Field(min_length=2)],
        # Rust's regex has sets of classes.
        *(
            Annotated[str, pydantic.Field(pattern=pattern)]
            for pattern in ("^[[:alpha:]]+$", "^[a-z&&[^b]]$", "^[a-z--b]$", r"^[\w~~a]$")
        ),
    ],
)
def test_what_is_not_sure_to_be_read_is_refused(tp: Any) -> None:
    with pytest.raises(mw.GrammarError):
        mw.compile(tp, BYTES)


def test_a_validator_that_raises_anything() -> None:
    with pytest.raises(mw.OutputError):
        parse_output(Annotated[Any, pydantic.Field(gt=3)], "[]")


@pytest.mark.parametrize("value", [["a", "b"], ("a", "b"), {"a"}, 3, 2.5])
def test_values_are_no_types(value: Any) -> None:
    with pytest.raises(mw.GrammarError) as caught:
        mw.compile(value, BYTES)
    assert str(caught.value) == f"{value!r} is no type: mw.Choice([...]) for texts, Literal[...] for values"


def test_advice_for_models_is_left_out() -> None:
    with pytest.raises(mw.GrammarError, match="is no type that pydantic understands: Unable to") as caught:
        mw.compile(object(), BYTES)
    assert "arbitrary_types_allowed" not in str(caught.value)


def test_an_enum_without_members() -> None:
    class Nothing(enum.Enum):
        pass

    for kind in (Nothing, list[Nothing] | int, enum.Flag):
        with pytest.raises(mw.GrammarError, match=r"JSON Schema|validate"):
            mw.compile(kind, BYTES)


def test_keys_of_an_enum_are_those_that_are_read() -> None:
    class WithNone(enum.Enum):
        X, Y = "x", None

    class Mixed(enum.Enum):
        X, Y = "x", 1

    for kind in (WithNone, Mixed):
        compiled = mw.compile(dict[kind, int], BYTES)  # type: ignore[valid-type]
        assert (
            accepts(compiled, '{"x": 1}')
            and not accepts(compiled, '{"1": 1}')
            and not accepts(compiled, '{"None": 1}')
        )
        assert pydantic.TypeAdapter(dict[kind, int]).validate_json('{"x": 1}')  # type: ignore[valid-type]

    class Unreadable(enum.Enum):
        X = None

    with pytest.raises(mw.GrammarError, match="keys of a dict are text"):
        mw.compile(dict[Unreadable, int], BYTES)
