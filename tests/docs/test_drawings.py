"""The page of ten drawings: what they need to be read by everybody, and that their counts are those of real runs."""

from __future__ import annotations

import json
import random
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from doc_pages import DOCS

import maskwright as mw

PAGE = (DOCS / "how-it-works.md").read_text("utf-8")
ARCHITECTURE = (DOCS.parent / "ARCHITECTURE.md").read_text("utf-8")
DRAWINGS = sorted((DOCS / "drawings").glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


def texts(name: str) -> list[str]:
    """What is written in the one drawing whose name begins so."""
    (path,) = (DOCS / "drawings").glob(f"{name}-*.svg")
    return [each.text or "" for each in ElementTree.parse(path).iter(f"{SVG}text")]


def test_ten_drawings_in_order_with_few_words() -> None:
    _, *parts = re.split(r"^## (?=\d)", PAGE, flags=re.MULTILINE)
    parts[-1] = parts[-1].split("\n## ")[0]
    assert len(parts) == len(DRAWINGS) == 10
    for number, (part, path) in enumerate(zip(parts, DRAWINGS, strict=True), 1):
        assert part.startswith(f"{number}. ") and path.name.startswith(f"{number:02d}-")
        (picture,) = re.findall(r"!\[([^\]]+)\]\(drawings/([\w-]+\.svg)\)", part)
        assert picture[1] == path.name
        # Whoever cannot see a drawing hears what the file itself says of it.
        assert picture[0] == ElementTree.parse(path).getroot().findtext(f"{SVG}desc")
        words = re.sub(r"!\[[^\]]+\]\([^)]*\)|\]\([^)]*\)", "", part.partition("\n")[2]).split()
        assert len(words) <= 60, (number, len(words))


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_a_drawing_is_whole_in_itself(path: Path) -> None:
    root = ElementTree.parse(path).getroot()
    assert root.get("role") == "img" and root.get("aria-labelledby") == "title desc"
    assert root.findtext(f"{SVG}title") and root.findtext(f"{SVG}desc")
    source = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|href|@import|@font-face|<script|url\((?!#)", source)
    assert "prefers-color-scheme: dark" in source
    assert min(int(size) for size in re.findall(r"font(?:-size)?: (\d+)px", source)) >= 13
    _, _, width, height = map(float, (root.get("viewBox") or "").split())
    for each in root.iter(f"{SVG}text"):
        assert 0 < float(each.get("x", "-1")) < width and 0 < float(each.get("y", "-1")) < height, each.text


def load() -> mw.Vocabulary:
    """The vocabulary of the counts, in which nothing has been compiled."""
    mistral_common = pytest.importorskip("mistral_common", reason="the counts are those of its vocabulary")
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    path = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"
    return mw.Vocabulary.from_mistral_common(Tekkenizer.from_file(path))


@pytest.fixture(scope="module")
def tekken() -> mw.Vocabulary:
    return load()


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
TAGS = {
    "type": "object",
    "properties": {"tags": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}},
    "required": ["tags"],
    "additionalProperties": False,
}


def person(vocabulary: mw.Vocabulary) -> mw.CompiledGrammar:
    """The grammar of most drawings."""
    return mw.compile_json_schema(PERSON, vocabulary, plain_integers=True)


def allowed(grammar: mw.CompiledGrammar, text: str) -> set[bytes]:
    """The different tokens that may follow a text; the end is the empty one."""
    vocabulary = grammar.vocabulary
    matcher = grammar.matcher()
    assert matcher.accept_bytes(text.encode()), text
    mask = mw.allocate_token_bitmask(1, vocabulary.vocab_size)
    matcher.fill_next_token_bitmask(mask)
    ids = [i for i in range(vocabulary.vocab_size) if int(mask[0, i >> 5]) >> (i & 31) & 1]
    found = {vocabulary.decode([i]) for i in ids}
    assert len(found) == len(ids)
    return found


def outside(token: bytes) -> int | None:
    """Where a token that begins within a JSON string has the quote that ends it; None: it has none."""
    found = re.match(rb'(?:[^"\\]|\\.)*"', token, re.DOTALL)
    return found and found.end()


@pytest.mark.slow
def test_counts_of_the_question_the_stack_and_sets(tekken: mw.Vocabulary) -> None:
    follow = allowed(person(tekken), '{"name": "Ada", "age": 15')
    assert follow == {b"0", b"}", b" }", b" ", b"\n", b"\r"} and tekken.vocab_size - len(follow) == 131_066
    assert {"6 tokens may follow", "131 066 tokens may not"} <= set(texts("01"))

    follow = allowed(mw.compile_json_schema(TAGS, tekken), '{"tags": [["a"')
    assert {b",", b"]", b"]]", b"],[", b"],\n"} <= follow and not follow & {b"}", b":", b"]}", b'"'}

    colours = {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3}
    assert {b',"', b"]"} <= allowed(mw.compile_json_schema(colours, tekken), '["red", "green"')
    follow = allowed(person(tekken), '{"name": "Ada"')
    assert b',"' in follow and b"}" not in follow
    unique = mw.compile_json_schema({**colours, "uniqueItems": True}, tekken)
    assert allowed(unique, '["red", "green", "') == {b"b", b"bl", b"blue"}


@pytest.mark.slow
def test_counts_of_tokens_in_tree_and_string(tekken: mw.Vocabulary) -> None:
    tokens = [tekken.decode([i]) for i in range(tekken.vocab_size)]
    assert len({token[:end] for token in tokens for end in range(1, len(token) + 1)}) == 266_312
    assert sum(token.startswith(b'"') for token in tokens) == 176
    assert {"266 312 different beginnings", "176 tokens are gone"} <= set(texts("02"))
    blue = {'"', '",', '"]', '","', '",\n', '"],', "a", "ag", "age", "ages"}
    assert {each.encode() for each in blue} <= set(tokens)

    name = allowed(person(tekken), '{"name": "')
    tags = allowed(mw.compile_json_schema(TAGS, tekken), '{"tags": [["')
    inside = [{token for token in each if outside(token) is None} for each in (name, tags)]
    assert inside[0] == inside[1] and len(inside[0]) == 127_719  # whatever surrounds the string
    assert (len(name) - 127_719, len(tags) - 127_719) == (100, 122)
    text = mw.compile_json_schema({"type": "string"}, tekken)
    ends = [token[:end] for token in tokens if (end := outside(token))]
    assert sum(text.matcher().accept_bytes(b'"' + end) for end in ends) == 486
    written = " ".join(texts("05"))
    assert all(each in written for each in ("127 719", "486", "100 fit", "122 fit"))
    assert {"127 719", "486"} <= set(re.findall(r"(\d[\d ]*) tokens", ARCHITECTURE))
    assert {b'"', b'",', b'","'} <= name and not {b'"]', b'"],'} & name
    assert {b'"', b'",', b'","', b'"]', b'"],'} <= tags


def test_threads_and_the_automaton() -> None:
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], eos_ids=256)
    forms = [
        {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"properties": {"a": {"type": "number"}, "b": {"type": "string"}}, "required": ["a", "b"]},
    ]
    either = {"anyOf": [{"type": "object", "additionalProperties": False, **each} for each in forms]}
    grammar = mw.compile_json_schema(either, vocabulary, plain_integers=True)
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b'{"a": 1') and len(matcher.threads()) == 3
    assert matcher.accept_bytes(b".") and len(matcher.threads()) == 1

    age = mw.compile_json_schema(PERSON["properties"]["age"], vocabulary, plain_integers=True)  # type: ignore[index]
    steps = {
        "": "-0123456789",
        "0": "",
        "1": "0123456789",
        "15": "0",
        "16": "",
        "14": "0123456789",
        "2": "0123456789",
    }
    for text, digits in steps.items():
        found = {token.decode() for token in allowed(age, text) if token.strip()}
        assert found == set(digits), text


def written(draw: random.Random) -> Iterator[bytes]:
    """Outputs of the schema."""
    while True:
        letters = "abcdefghijklmnopqrstuvwxyz "
        name = "".join(draw.choice(letters) for _ in range(draw.randint(3, 20)))
        yield json.dumps({"name": name, "age": draw.randint(0, 150)}).encode()


@pytest.mark.slow
def test_counts_of_states() -> None:
    tekken = load()
    grammar = person(tekken)
    ids = {tekken.decode([i]): i for i in range(tekken.vocab_size)}
    tokens, found = 0, []
    for number, text in enumerate(written(random.Random(0)), 1):
        matcher = grammar.matcher()
        while text:
            longest = next(text[:end] for end in range(20, 0, -1) if text[:end] in ids)
            matcher.next_token_bitmask()
            assert matcher.accept_token(ids[longest])
            text = text[len(longest) :]
            tokens += 1
        assert matcher.is_accepting
        if number in (1, 10, 100, 1000):
            found += [
                f"{tokens:,} tokens".replace(",", " "),
                f"{grammar.statistics['matcher_states']} states",
            ]
        if number == 1000:
            break
    there = [each for each in texts("08") if re.search(r"\d tokens|\d states", each)]
    assert there[2:] == found, "the engine makes other states than drawing 08 says"

    one, two = grammar.matcher(), grammar.matcher()
    assert one.accept_bytes(b'{"name": "Ada", "age": 2') and two.accept_bytes(b'{"name": "Bo", "age": 7')
    assert one.state_id == two.state_id and one.state_id & 0xFFFFFFFF == 10
    counts = [len(allowed(grammar, f'{{"name": "Ada", "age": {age}')) for age in (2, 20)]
    assert there[:2] == [f"{count} tokens" for count in counts]
    assert one.accept_bytes(b"0") and one.state_id & 0xFFFFFFFF == 11
    assert one.accept_bytes(b"}") and one.state_id & 0xFFFFFFFF == 12
