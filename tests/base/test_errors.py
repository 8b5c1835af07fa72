"""Errors travel: between processes, and as copies."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Literal

import pytest
from toys import byte_vocabulary

import maskwright as mw
from maskwright import errors
from maskwright.errors import Constraint, MaskwrightError, Refusal

ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "GrammarError": (("wrong",), {"place": "2:3", "source": "one\ntwo\n"}),
    "UnsupportedSchemaError": (([Refusal("/a", "contains", "too hard"), Refusal("", "x", "unknown")],), {}),
    "UnsatisfiableError": (
        ("empty",),
        {"place": "/a", "constraints": (Constraint("/a", "minimum", "minimum 5"),)},
    ),
    "LimitError": (("max_rules", 10, 5), {"place": "/a", "subject": "the rule x"}),
    "OutputError": (("refused", "{}"), {}),
}


KINDS = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, MaskwrightError)
]


def example(kind: type[MaskwrightError]) -> MaskwrightError:
    args, options = ARGUMENTS.get(kind.__name__, (("a message",), {}))
    error = kind(*args, **options)
    error.add_note("a note")
    return error


def same(a: BaseException, b: BaseException) -> bool:
    return type(a) is type(b) and str(a) == str(b) and a.args == b.args and a.__dict__ == b.__dict__


@pytest.mark.parametrize("kind", KINDS)
def test_errors_survive_copies(kind: type[MaskwrightError]) -> None:
    error = example(kind)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert same(pickle.loads(pickle.dumps(error, protocol)), error)
    assert same(copy.copy(error), error)
    deep = copy.deepcopy(error)
    assert same(deep, error)
    assert deep.__dict__ is not error.__dict__


def test_subclasses_elsewhere_survive_too() -> None:
    error = Own(3, hint="x")
    assert same(pickle.loads(pickle.dumps(error)), error)
    assert same(copy.deepcopy(error), error)


class Own(mw.LimitError):
    def __init__(self, count: int, *, hint: str) -> None:
        super().__init__("own", count, 1)
        self.hint = hint


def _fail(number: int) -> None:
    if number == 0:
        mw.compile_regex("(a{50}){50}", byte_vocabulary(), limits=mw.Limits(max_regex_states=10))
    mw.compile_json_schema({"type": "string", "pattern": "a(?=(b(?=c)))*d\\1"}, byte_vocabulary())


def test_a_pool_of_processes_lives_on() -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        for number in (0, 1, 0):
            with pytest.raises(mw.MaskwrightError) as found:
                pool.submit(_fail, number).result(timeout=120)
            with pytest.raises(mw.MaskwrightError) as expected:
                _fail(number)
            assert found.type is expected.type
            assert str(found.value) == str(expected.value)


NINES = "9" * 5000


@pytest.mark.parametrize(
    "make",
    [
        lambda: mw.Regex("\\N{\ud800}"),
        lambda: mw.Lark(f'start: A\nA.{NINES}: "a"'),
        lambda: mw.Lark(f'start.{NINES}: "a"'),
        lambda: mw.Lark(f"start: <[{NINES}]>"),
        lambda: mw.Lark(f"start: <[1-{NINES}]>"),
        lambda: mw.Lark("start: %json " + '{"not":' * 3000 + "{}" + "}" * 3000),
        lambda: Literal["\ud800", "a"],
    ],
    ids=["name", "priority", "priority of a rule", "token", "range of tokens", "deep schema", "surrogate"],
)
def test_what_libraries_raise_is_an_error_of_the_source(make: Callable[[], Any]) -> None:
    with pytest.raises(mw.GrammarError) as error:
        mw.compile(make(), byte_vocabulary())
    str(error.value).encode()


def test_messages_can_be_printed() -> None:
    for schema in ({"const": "\ud800"}, {"enum": ["\ud800"]}, {"properties": {"\ud800": {"type": 1}}}):
        with pytest.raises(mw.MaskwrightError) as error:
            mw.compile_json_schema(schema, byte_vocabulary())
        str(error.value).encode()
