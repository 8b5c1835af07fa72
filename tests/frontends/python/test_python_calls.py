"""Functions: whatever is written is a call that Python makes, with arguments of the annotated types."""

from __future__ import annotations

import asyncio
import datetime
import functools
import inspect
import threading
from typing import Any, Literal

import pytest
from byte_walks import BYTES, accepts, finished_walk

import maskwright as mw
from maskwright.frontends.python.types import parse_output, python_type_to_schema

pydantic = pytest.importorskip("pydantic")


class Place(pydantic.BaseModel):
    city: str
    country: Literal["FR", "DE"] = "DE"


def weather(place: Place, days: int = 3, unit: Literal["C", "F"] = "C") -> tuple[Any, ...]:
    """Forecast the weather.

    More about it.

    Args:
        place: where
        days (int): how many days
    """
    return place, days, unit


def by_place(
    a: int, b: datetime.date | None = None, /, c: str = "c", *rest: float, d: bool, **more: int
) -> Any:
    """Take all kinds.

    :param a: the first
    :param str c: the third
    """
    return a, b, c, rest, d, more


class Shop:
    def order(self, article: str, amount: int = 1) -> tuple[Shop, str, int]:
        return self, article, amount

    def __call__(self, hours: int) -> int:
        """Open it."""
        return hours

    @staticmethod
    def close(at: datetime.time) -> datetime.time:
        return at

    @classmethod
    def found(cls, name: str) -> tuple[type, str]:
        return cls, name


async def later(seconds: float) -> float:
    return seconds


def sentinel(key: str, lock: object = threading.Lock(), fill: list[int] = [1]) -> Any:  # noqa: B006
    return key, lock, fill


def plain(first, second=None):  # type: ignore[no-untyped-def]
    return first, second


SHOP = Shop()
FUNCTIONS = [
    weather, by_place, SHOP.order, SHOP, Shop.close, Shop.found, later, sentinel, plain, functools.partial(weather, unit="F"),
    functools.partial(by_place, 1, d=True), functools.partial(SHOP.order), lambda: None, functools.lru_cache(weather), len,
    [weather, by_place, SHOP.order], (later,),
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_whatever_is_written_is_a_call(function: Any) -> None:
    compiled = mw.compile(function, BYTES)
    texts = {finished_walk(compiled, seed) for seed in range(40)}
    texts.add(BYTES.decode(compiled.matcher().shortest_completion()))
    for text in texts:
        call = parse_output(function, text.decode())
        assert isinstance(call, functools.partial)
        inspect.signature(call.func).bind(*call.args, **call.keywords)


def test_arguments_have_the_annotated_types() -> None:
    call = parse_output(weather, '{"place": {"city": "Paris", "country": "FR"}, "days": 2}')
    assert call() == (Place(city="Paris", country="FR"), 2, "C")
    assert call.keywords.keys() == {"place", "days"}
    with pytest.raises(mw.OutputError):
        parse_output(weather, '{"days": 2}')
    assert asyncio.run(parse_output(later, '{"seconds": 1}')()) == 1.0
    assert parse_output(SHOP.order, '{"article": "tea"}')() == (SHOP, "tea", 1)
    assert parse_output(SHOP, '{"hours": 8}')() == 8
    assert parse_output(Shop.found, '{"name": "x"}')() == (Shop, "x")


def test_kinds_of_parameters() -> None:
    assert parse_output(by_place, '{"a": 1, "d": true}')() == (1, None, "c", (), True, {})
    everything = '{"a": 1, "b": "2024-02-29", "c": "x", "rest": [1.5, 2], "d": false, "more": 7, "p0": 8}'
    day = datetime.date(2024, 2, 29)
    assert parse_output(by_place, everything)() == (1, day, "x", (1.5, 2.0), False, {"more": 7, "p0": 8})
    # What stands in front of further positional arguments is filled in.
    assert parse_output(by_place, '{"a": 1, "rest": [2], "d": true}')() == (1, None, "c", (2.0,), True, {})
    compiled = mw.compile(by_place, BYTES)
    assert accepts(compiled, '{"a":1,"d":true,"other":5}') and not accepts(
        compiled, '{"a":1,"d":true,"other":"x"}'
    )
    assert not accepts(mw.compile(weather, BYTES), '{"place":{"city":"Paris"},"other":5}')


def test_what_a_partial_has_is_not_asked() -> None:
    fixed = functools.partial(weather, unit="F")
    assert "unit" not in python_type_to_schema(fixed)["properties"]
    assert parse_output(fixed, '{"place": {"city": "Rome"}}')() == (Place(city="Rome"), 3, "F")


def test_defaults_stay_pythons() -> None:
    """Those without a JSON text too: a lock, and a list that is the function's own."""
    _, lock, fill = parse_output(sentinel, '{"key": "k"}')()
    assert (
        (lock, fill) == sentinel.__defaults__
        and lock is sentinel.__defaults__[0]
        and fill is sentinel.__defaults__[1]
    )
    shown = python_type_to_schema(sentinel)
    assert shown["required"] == ["key"] and "default" not in shown["properties"]["lock"]
    assert python_type_to_schema(weather)["properties"]["days"]["default"] == 3


def test_unannotated_parameters_take_any_value() -> None:
    assert parse_output(plain, '{"first": {"a": [1, null]}}')() == ({"a": [1, None]}, None)


def test_what_the_docstring_says_is_shown() -> None:
    for narrowed in (True, False):
        schema = python_type_to_schema(weather, narrowed=narrowed)
        assert schema["description"] == "Forecast the weather." and schema["title"] == "weather"
        assert schema["properties"]["days"]["description"] == "how many days"
        assert schema["properties"]["place"]["description"] == "where"
        assert "description" not in schema["properties"]["unit"]
    kinds = python_type_to_schema(by_place)["properties"]
    assert kinds["a"]["description"] == "the first" and kinds["c"]["description"] == "the third"


def test_a_choice_of_functions() -> None:
    tools = [weather, SHOP.order]
    call = parse_output(tools, '{"name": "order", "arguments": {"article": "tea", "amount": 2}}')
    assert call() == (SHOP, "tea", 2)
    compiled = mw.compile(tools, BYTES)
    assert accepts(compiled, '{"name":"weather","arguments":{"place":{"city":"Paris"}}}')
    assert not accepts(compiled, '{"name":"order","arguments":{"place":{"city":"Paris"}}}')
    with pytest.raises(mw.GrammarError, match="'order'"):
        python_type_to_schema([SHOP.order, Shop().order])


class Bare:
    pass


def of_bare(x: int, y: Bare) -> None: ...
def of_file(x: int, *files: pydantic.FilePath) -> None: ...
def of_nothing(x: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037
def of_class(**kinds: type[int]) -> None: ...


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (of_bare, "of_bare: parameter 'y'"),
        (of_file, "of_file: parameter 'files'.*FilePath"),
        (of_class, "of_class: parameter 'kinds'"),
        (of_nothing, "of_nothing: .*Nowhere"),
        ([weather, of_bare], "of_bare: parameter 'y'"),
        (max, "max has no signature"),
        (functools.partial(of_bare, 1), "of_bare: parameter 'y'"),
        (functools.partial(plain, nothing=1), "plain"),
    ],
)
def test_what_cannot_be_written_is_named(function: Any, named: str) -> None:
    with pytest.raises(mw.GrammarError, match=named) as caught:
        mw.compile(function, BYTES)
    assert "\n" not in str(caught.value)


class Query:
    """Named before it is one."""


def test_annotations_with_text_inside() -> None:
    pydantic = pytest.importorskip("pydantic")
    global Query
    Query = pydantic.create_model("Query", x=(int, ...))

    def several(b: list["Query"], c: "dict[str, Query] | None" = None) -> None: ...  # noqa: UP037

    class Callable_:
        def __call__(self, b: list["Query"]) -> None: ...  # noqa: UP037

    for function in (several, functools.partial(several, c=None), Callable_()):
        assert accepts(mw.compile(function, BYTES), '{"b": [{"x": 1}]}')
        assert not accepts(mw.compile(function, BYTES), '{"b": [1]}')
