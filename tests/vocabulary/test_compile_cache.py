"""Grammars are found again by content, and kept for a while."""

from __future__ import annotations

import copy
import gc
import json
import struct
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
import toys
from hypothesis import given
from hypothesis import strategies as st

import maskwright as mw
from maskwright._core import CompiledCore, content_key, content_keys
from maskwright.compiling import compiled
from maskwright.limits import DEFAULT_LIMITS
from maskwright.vocabulary import compile_cache

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 3}, "b": {"enum": [1, "x", None]}},
    "required": ["a", "b"],
}


@pytest.fixture
def vocabulary() -> mw.Vocabulary:
    return toys.byte_vocabulary()


def accepts(compiled: mw.CompiledGrammar, text: bytes) -> bool:
    matcher = compiled.matcher()
    return matcher.accept_tokens(text) == len(text) and matcher.is_accepting


# --- what is the same


def test_equal_content_is_the_same_grammar(vocabulary: mw.Vocabulary) -> None:
    first = mw.compile_json_schema(SCHEMA, vocabulary)
    assert mw.compile_json_schema(SCHEMA, vocabulary) is first
    assert mw.compile_json_schema(copy.deepcopy(SCHEMA), vocabulary) is first
    assert mw.compile_json_schema(json.loads(json.dumps(SCHEMA)), vocabulary) is first
    assert mw.compile(mw.JsonSchema(SCHEMA), vocabulary) is first
    assert mw.compile_json_schema(SCHEMA, vocabulary, limits=copy.copy(DEFAULT_LIMITS)) is first
    assert mw.compile_json_schema(SCHEMA, toys.byte_vocabulary()) is not first


def test_parts_that_are_one_object(vocabulary: mw.Vocabulary) -> None:
    part = {"type": "integer"}
    shared = {"type": "array", "prefixItems": [part, part]}
    assert content_key(shared, 999) == content_key(copy.deepcopy(json.loads(json.dumps(shared))), 999)
    first = mw.compile_json_schema(shared, vocabulary)
    assert mw.compile_json_schema(json.loads(json.dumps(shared)), vocabulary) is first
    name = "".join(["ty", "pe"])  # not interned
    assert content_key({name: "integer"}, 999) == content_key(part, 999)


def test_texts(vocabulary: mw.Vocabulary) -> None:
    text = json.dumps(SCHEMA)
    first = mw.compile_json_schema(text, vocabulary)
    assert mw.compile_json_schema("".join(list(text)), vocabulary) is first
    for source in (SCHEMA, text, text.encode(), text + " "):
        for _ in range(2):
            compiled = mw.compile_json_schema(source, vocabulary)
            assert accepts(compiled, b'{"a": 3, "b": "x"}')
            assert not accepts(compiled, b'{"a": 2, "b": "x"}')


def test_a_schema_that_is_changed_afterwards(vocabulary: mw.Vocabulary) -> None:
    schema = copy.deepcopy(SCHEMA)
    first = mw.compile_json_schema(schema, vocabulary)
    schema["properties"]["a"]["minimum"] = 1
    second = mw.compile_json_schema(schema, vocabulary)
    assert accepts(second, b'{"a": 1, "b": 1}')
    assert not accepts(first, b'{"a": 1, "b": 1}')
    schema["properties"]["a"]["minimum"] = 3
    assert mw.compile_json_schema(schema, vocabulary) is first


# --- what is not


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"const": 1}, {"const": True}),
        ({"const": 0}, {"const": False}),
        ({"const": 1}, {"const": "1"}),
        ({"const": []}, {"const": {}}),
        ({"enum": [[1], 2]}, {"enum": [1, [2]]}),
        ({"minLength": 1, "type": "string"}, {"maxLength": 1, "type": "string"}),
        ({"minimum": 2**80, "type": "integer"}, {"minimum": 2**80 + 1, "type": "integer"}),
        ({"minimum": 0.1, "type": "number"}, {"minimum": 0.1 + 2e-17, "type": "number"}),
    ],
)
def test_other_content_is_another_grammar(one: Any, other: Any, vocabulary: mw.Vocabulary) -> None:
    first, second = (mw.compile_json_schema(schema, vocabulary) for schema in (one, other))
    assert (first is second) == (json.dumps(one) == json.dumps(other))  # 0.1 + 2e-17 is 0.1
    for schema, mine in ((one, first), (other, second)):
        fresh = mw.compile_json_schema(schema, toys.byte_vocabulary()).matcher()
        assert toys.allowed(mine.matcher()) == toys.allowed(fresh)
        assert mine.matcher().shortest_completion_bytes() == fresh.shortest_completion_bytes()


def test_numbers_that_are_equal_in_python() -> None:
    keys = [content_key({"const": value}, 999) for value in (1, 1.0, True, "1", 0, 0.0, -0.0, False, None)]
    assert None not in keys
    assert len(set(keys)) == len(keys)


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text()
    | st.sampled_from(["a", "\u00e9", "\u0141", "\U0001f600", "\ud800", "\x00"])
)
_DATA = st.recursive(
    _SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)


def _told_apart(value: Any) -> object:
    """The same exactly for the same data with the same types, in the same order."""
    if isinstance(value, dict):
        return "dict", [(name, _told_apart(item)) for name, item in value.items()]
    if isinstance(value, list):
        return "list", [_told_apart(item) for item in value]
    return type(value), struct.pack("d", value) if isinstance(value, float) else value


@pytest.mark.slow
@given(_DATA, _DATA)
def test_keys_are_equal_for_equal_data_only(one: Any, other: Any) -> None:
    assert content_key(one, 999) == content_key(copy.deepcopy(one), 999) is not None
    assert (content_key(one, 999) == content_key(other, 999)) == (_told_apart(one) == _told_apart(other))
    # Neighbours do not run into each other.
    pairs = [[one, other], [other, one], [[one], other], [[one, other]], {"a": one, "b": other}]
    keys = [content_key(pair, 999) for pair in pairs]
    for i, a in enumerate(pairs):
        for j, b in enumerate(pairs):
            assert (keys[i] == keys[j]) == (_told_apart(a) == _told_apart(b))


@given(st.dictionaries(st.sampled_from("ab"), _DATA), _DATA)
def test_keys_of_parts_are_those_of_the_parts(inner: dict[str, Any], other: Any) -> None:
    source = [{"a": inner, "c": other}, {"b": {"a": other}}]
    whole, parts = content_keys(source, 999, "a")
    assert whole == content_key(source, 999)
    assert parts[id(inner)] == content_key(inner, 999)
    assert parts[id(other)] == content_key(other, 999)
    assert content_keys([source, object()], 999, "a") == (None, {})


def test_deep_data_has_no_key() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert content_key(deep, 100_000) is None
    assert content_key(json.loads("[" * 200 + "]" * 200), 999) is not None


def test_the_order_of_members(vocabulary: mw.Vocabulary) -> None:
    for names in ("ab", "ba"):
        schema = {"type": "object", "properties": {n: {"const": n} for n in names}, "required": ["a", "b"]}
        compiled = mw.compile_json_schema(schema, vocabulary)
        assert accepts(compiled, b'{"%c":"%c","%c":"%c"}' % tuple(names[i].encode() for i in (0, 0, 1, 1)))
        assert not accepts(
            compiled, b'{"%c":"%c","%c":"%c"}' % tuple(names[i].encode() for i in (1, 1, 0, 0))
        )


def test_options_and_limits(vocabulary: mw.Vocabulary) -> None:
    schema = {"type": "array", "items": {"type": "string", "format": "date"}}
    text = b'[ "today" ]'
    found = {}
    for whitespace in ("flexible", "compact"):
        for formats in ("assert", "annotate"):
            options = {"whitespace": whitespace, "formats": formats}
            compiled = found[whitespace, formats] = mw.compile_json_schema(schema, vocabulary, **options)
            assert accepts(compiled, text) == (whitespace == "flexible" and formats == "annotate")
            assert mw.compile_json_schema(schema, vocabulary, **options) is compiled
            assert mw.compile(mw.JsonSchema(schema, **options), vocabulary) is compiled
    limited = mw.compile_json_schema(schema, vocabulary, limits=mw.Limits(max_seconds=5))
    assert len({id(compiled) for compiled in (*found.values(), limited)}) == 5
    with pytest.raises(mw.LimitError):
        mw.compile_json_schema(schema, vocabulary, limits=mw.Limits(max_schema_values=1))


# --- what is not kept


class Text(str):
    pass


def test_content_that_is_no_plain_json(vocabulary: mw.Vocabulary) -> None:
    ordered = OrderedDict(SCHEMA)
    for source in (ordered, {"const": Text("a")}):
        first, second = (mw.compile_json_schema(source, vocabulary) for _ in range(2))
        assert toys.allowed(first.matcher()) == toys.allowed(second.matcher())
    assert content_key(ordered, 999) is None
    assert len(vocabulary._compiled._kept) == 0


class Members(dict[str, Any]):
    pass


class Values(list[Any]):
    pass


def _of_subclasses(value: Any) -> Any:
    if isinstance(value, dict):
        return Members({Text(name): _of_subclasses(held) for name, held in value.items()})
    if isinstance(value, list):
        return Values([_of_subclasses(held) for held in value])
    return Text(value) if isinstance(value, str) else value


def test_subclasses_of_plain_data_mean_the_same(vocabulary: mw.Vocabulary) -> None:
    """Also where a registry has them: compiled functions take no subclasses."""
    schema = {
        "$defs": {"x": {"type": ["string", "null"], "pattern": "^a", "format": "date"}},
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"enum": ["c", {"d": [1]}]}, "e": {"$ref": "urn:e"}},
        "patternProperties": {"^f": {"not": {"const": "g"}}},
        "required": ["b"],
        "oneOf": [
            {"required": ["a"]},
            {"properties": {"b": {"const": "c"}}, "dependentRequired": {"e": ["a"]}},
        ],
        "propertyNames": {"maxLength": 3},
    }
    registry = {"urn:e": {"prefixItems": [{"$anchor": "x", "type": "integer"}], "items": False}}
    plain, other = (
        mw.compile_json_schema(made(schema), vocabulary, registry=made(registry))
        for made in (lambda value: value, _of_subclasses)
    )
    for text in (b'{"b": "c"}', b'{"b": {"d": [1]}, "e": [7]}', b'{"a": null, "b": {"d": [1]}}', b'{"b": 1}'):
        a, b = plain.matcher(), other.matcher()
        for byte in text:
            assert toys.allowed(a) == toys.allowed(b)
            assert a.accept_token(byte) == b.accept_token(byte)


@pytest.mark.parametrize(
    "schema",
    [
        {"const": object()},
        {"enum": [1, {1, 2}]},
        {"const": 1j},
        {"const": b"ab"},
        {1: 2},
        {"type": "integr"},
        "{",
        5,
        None,
    ],
)
def test_errors_are_raised_every_time(schema: Any, vocabulary: mw.Vocabulary) -> None:
    messages = set()
    for _ in range(3):
        with pytest.raises(mw.MaskwrightError) as info:
            mw.compile_json_schema(schema, vocabulary)
        messages.add((type(info.value), str(info.value)))
    assert len(messages) == 1
    assert len(vocabulary._compiled._kept) == 0


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        # What is no JSON is never taken for what is, though its bytes in memory are alike.
        (b'{"const": 1}', bytearray(b'{"const": 1}')),
        ({"const": np.str_("ab")}, {"const": "ab".encode("utf-32-le")}),
        ({"const": np.str_("ab")}, {"const": np.frombuffer("ab".encode("utf-32-le"), dtype=np.int64)[0]}),
    ],
    ids=["text and bytearray", "text and bytes", "text and number"],
)
def test_the_answer_does_not_depend_on_what_was_compiled_before(
    good: Any, bad: Any, vocabulary: mw.Vocabulary
) -> None:
    with pytest.raises(mw.GrammarError):
        mw.compile_json_schema(bad, vocabulary)
    mw.compile_json_schema(good, vocabulary)
    with pytest.raises(mw.GrammarError):
        mw.compile_json_schema(bad, vocabulary)


@pytest.mark.parametrize("option", ["property_order", "whitespace", "formats"])
@pytest.mark.parametrize("value", ["no such", None, ["flexible"]])
def test_wrong_options(option: str, value: Any, vocabulary: mw.Vocabulary) -> None:
    mw.compile_json_schema(SCHEMA, vocabulary)
    for _ in range(2):
        with pytest.raises(mw.GrammarError):
            mw.compile_json_schema(SCHEMA, vocabulary, **{option: value})


# --- how long


def test_the_oldest_is_forgotten(vocabulary: mw.Vocabulary) -> None:
    kept = compile_cache._KEPT
    assert kept == 64
    seen = []
    for number in range(3 * kept):
        seen.append(weakref.ref(mw.compile_json_schema({"const": number}, vocabulary)))
        # The first one is asked for again and again.
        mw.compile_json_schema({"const": 0}, vocabulary)
        assert len(vocabulary._compiled._kept) == min(number + 1, kept)
    alive = [number for number, ref in enumerate(seen) if ref() is not None]
    assert alive == [0, *range(3 * kept - (kept - 1), 3 * kept)]


def test_a_matcher_outlives_the_cache(vocabulary: mw.Vocabulary) -> None:
    matcher = mw.compile_json_schema({"const": "first"}, vocabulary).matcher()
    for number in range(compile_cache._KEPT + 1):
        mw.compile_json_schema({"const": number}, vocabulary)
    assert matcher.accept_bytes(b'"fi')
    assert toys.allowed(matcher) == {ord("r")}


def test_a_vocabulary_goes_with_its_grammars() -> None:
    vocabulary = toys.byte_vocabulary()
    refs = [weakref.ref(vocabulary), weakref.ref(mw.compile_json_schema(SCHEMA, vocabulary))]
    del vocabulary
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


class Holder:
    pass


def test_the_collector_frees_a_grammar_before_its_vocabulary() -> None:
    engines = []

    def note(_: object) -> None:
        engines.extend(core.engine for core in gc.get_objects() if type(core) is CompiledCore)

    def use() -> weakref.ref[Any]:
        vocabulary = toys.byte_vocabulary()
        matcher = mw.compile_json_schema(SCHEMA, vocabulary).matcher()
        # The collector comes to the grammar first, through the matcher, and to the vocabulary last.
        holder = Holder()
        holder.itself = holder
        holder.vocabulary = vocabulary
        # An array is none of the collector's objects: it goes when the vocabulary is taken apart,
        # just before the vocabulary lets go of the tables and of the grammar, in this order.
        vocabulary._special_tokens = np.zeros(1)
        ref = weakref.ref(vocabulary._special_tokens, note)
        del vocabulary
        gc.collect()
        assert matcher.accept_bytes(b"{")
        return ref

    ref = use()
    gc.collect()
    assert ref() is None
    # A grammar without its engine uses freed tables when it is freed.
    assert None not in engines


# --- growth


def test_a_grammar_that_has_grown_begins_anew() -> None:
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    unique = {"type": "array", "uniqueItems": True, "items": {"type": ["array", "string"]}}
    for schema, item in (({"type": "object"}, '"key {}":{}'), (unique, '[["a {}"], {}]')):
        vocabulary.state_budget = 64 << 20
        grammar = mw.compile_json_schema(schema, vocabulary)
        first = grammar.matcher()
        for i in range(40):
            bracket = "{" if schema is not unique else "["
            assert first.accept_bytes(f"{',' if i else bracket}{item.format(i, i)}".encode())
        grown = grammar.statistics
        assert grown["generation"] == 1
        grammar.matcher()
        assert grammar.statistics == grown
        vocabulary.state_budget = 1 << 16
        assert first.longest_prefix(b" ") == 1
        fork = first.fork()
        second = grammar.matcher()
        now = grammar.statistics
        assert now["generation"] == 2 and now["state_bytes"] < grown["state_bytes"] / 2
        assert all(
            now[name] < grown[name] / 2 for name in now if name.endswith("_states") and grown[name] > 50
        )
        assert second.accept_bytes(b"{}" if schema is not unique else b"[]") and second.is_accepting
        # Those that there were go on.
        assert fork.accept_bytes(b"}" if schema is not unique else b"]") and fork.is_accepting


def test_grammars_that_have_grown_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    first = mw.compile_json_schema({"type": "string"}, vocabulary)
    second = mw.compile_json_schema({"type": "object"}, vocabulary)
    assert first.matcher().accept_bytes(b'"some text"')
    assert mw.compile_json_schema({"type": "string"}, vocabulary) is first
    most = 2 * first._core.state_count
    monkeypatch.setattr(compiled, "_STATES_KEPT", most)
    for i in range(60):
        last = mw.compile_json_schema({"type": "string", "minLength": i + 1}, vocabulary)
        assert last.matcher().accept_bytes(b'"some text"') == (i < 9)
        assert mw.compile_json_schema({"type": "string", "minLength": i + 1}, vocabulary) is last
    kept = [grammar for grammar, _ in vocabulary._compiled._kept.values()]
    assert first not in kept and second not in kept and last in kept
    assert sum(grammar._core.state_count for grammar in kept) < 3 * most


def test_what_has_grown_is_looked_at_before_it_can_be_much_too_much() -> None:
    cache = compile_cache.CompileCache(1_000_000)
    taken: dict[int, int] = {}
    looked: list[int] = []

    def size(key: int) -> int:
        looked.append(key)
        return taken[key]

    for key in range(5_000):
        taken[key] = 10
        cache.put(key, key)
        cache.shed(size, 10_000)
        assert sum(taken[kept] for kept in cache._kept) <= 2 * 10_000
    # About one for each that was added.
    assert len(looked) <= 2 * 5_000 and len(cache) >= 1_000
    assert cache.get(4_999) == 4_999 and cache.get(3_000) is None
    # The last one stays, whatever it takes.
    taken[4_999] = 20_000
    assert cache.shed(size, 10_000, 1) is None
    while cache.shed(size, 10_000, 1) is None:
        pass
    assert len(cache) == 1 and cache.get(4_999) == 4_999


def test_what_has_grown_much_is_looked_at_at_once() -> None:
    cache = compile_cache.CompileCache(1_000_000)
    megabytes = 1 << 20
    taken: dict[int, int] = {}
    for key in range(200):
        # Small ones, so that a look seems to have time; then each grows behind its use.
        taken[key] = 10
        cache.put(key, key)
        cache.shed(taken.__getitem__, 64 * megabytes)
    for key in range(200):
        taken[key] = 4 * megabytes
        cache.put(1_000 + key, key)
        cache.shed(taken.__getitem__, 64 * megabytes, grown=4 * megabytes * (key + 1))
        assert sum(taken[kept] for kept, _ in cache._kept.values()) <= (64 + 16 + 8) * megabytes


def test_tables_are_kept_by_their_weight() -> None:
    cache = compile_cache.CompileCache(10)
    cache.put("a", 1, 4)
    cache.put("b", 2, 4)
    cache.put("a", 3, 4)
    assert cache.get("a") == 3
    cache.put("c", 4, 5)
    assert (cache.get("b"), cache.get("a"), cache.get("c")) == (None, 3, 4)
    cache.put("d", 5, 100)
    assert (cache.get("a"), cache.get("c"), cache.get("d")) == (None, None, 5)


def test_few_objects_that_are_very_many_values_have_no_key() -> None:
    doubled: list[Any] = []
    for _ in range(60):
        doubled = [doubled, doubled]
    endless: dict[str, Any] = {}
    endless["a"] = [endless, endless]
    for source in (doubled, {"const": doubled}, endless):
        assert content_key(source, 100_000) is None
    assert content_key([1, [2, 3]], 3) is None
    assert content_key([1, [2, 3]], 4) is not None
