"""What is fuzzed: each target takes bytes and ends, or raises what is a finding.

A typed error of the package is an answer.  Anything else that is raised, a text that a mask leads to and that cannot be
completed, a difference between two ways to the same place, a crash, a hang, or too much memory is a finding.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import maskwright as mw
from maskwright.base import disk_cache
from maskwright.base.sealed import seal, unseal
from maskwright.compiling import compiled

PIECES = (
    b'{"',
    b'": ',
    b'", "',
    b'"}',
    b"\\u00",
    b"null",
    b"true",
    b"12",
    b"ab",
    b"  ",
    b"\xc3\xa9",
    b"\xe2\x82",
    b"<t>",
    b"</t>",
)
VOCABULARY = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), *PIECES, None], eos_ids=[256 + len(PIECES)])  # fmt: skip
LIMITS = mw.Limits(
    max_seconds=1,
    max_regex_states=20_000,
    max_rules=20_000,
    max_lexer_states=20_000,
    max_parser_states=100_000,
    max_search=20_000,
)
STEPS = 12


# --- sources: they compile, and then a walk ends in a text, or there is a typed error


def schema(data: bytes) -> None:
    text = _walked(lambda: mw.compile_json_schema(data, VOCABULARY, limits=LIMITS), data)
    if text is not None:
        json.loads(text)


def lark(data: bytes) -> None:
    _walked(lambda: mw.compile_lark(data.decode(errors="replace"), VOCABULARY, limits=LIMITS), data)


def gbnf(data: bytes) -> None:
    _walked(lambda: mw.compile_gbnf(data.decode(errors="replace"), VOCABULARY, limits=LIMITS), data)


def regex(data: bytes) -> None:
    _walked(lambda: mw.compile_regex(data.decode(errors="replace"), VOCABULARY, limits=LIMITS), data)


def structural_tag(data: bytes) -> None:
    try:
        tag = json.loads(data)
    except (ValueError, RecursionError):
        return
    _walked(lambda: mw.compile(mw.StructuralTag(tag), VOCABULARY, limits=LIMITS), data)


def _walked(compile: Callable[[], Any], data: bytes) -> bytes | None:
    """A text of what is compiled, by a walk that depends on the data only."""
    rng = random.Random(zlib.crc32(data))
    try:
        matcher = compile().matcher()
        for _ in range(rng.randrange(STEPS)):
            ids = _allowed(matcher)
            assert ids, f"stuck behind {matcher.accepted_tokens}"
            assert matcher.accept_token(rng.choice(ids))
            if matcher.is_terminated:
                break
        if not matcher.is_terminated:
            completion = matcher.shortest_completion()
            assert matcher.accept_tokens(completion) == len(completion)
            assert matcher.is_accepting
    except mw.MaskwrightError:
        return None
    return VOCABULARY.decode(matcher.accepted_tokens)


def _allowed(matcher: Any) -> list[int]:
    row = np.empty((1, (VOCABULARY.vocab_size + 31) // 32), dtype=np.int32)
    matcher.fill_next_token_bitmask(row)
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


# --- a matcher that goes forward and back


@cache
def _grammars() -> list[Any]:
    schemas: list[Any] = [
        {},
        {"type": "array", "uniqueItems": True, "items": {"type": ["integer", "string", "array"]}},
        {"type": "object", "additionalProperties": {"type": "number"}, "minProperties": 2},
        {"oneOf": [{"required": ["a"]}, {"required": ["ab"]}], "type": "object"},
        {"type": "string", "pattern": "^(a|b)*a.{3,9}$"},
        {"type": "array", "contains": {"const": 1}, "minItems": 3, "maxItems": 5},
    ]
    # However busy the machine is: these are no inputs.
    limits = mw.Limits(max_seconds=600)
    return [
        *(mw.compile_json_schema(each, VOCABULARY, limits=limits) for each in schemas),
        mw.compile_lark(
            'start: (NAME | "ab" | "12")+\nNAME: /[a-z]+/\n%ignore / +/', VOCABULARY, limits=limits
        ),
        mw.compile_gbnf('root ::= "(" root ")" root | "a"*', VOCABULARY, limits=limits),
        mw.compile_choice(["ab", "abc", "b12"], VOCABULARY, limits=limits),
    ]


def tokens(data: bytes) -> None:
    """Matchers go forward, back and apart; then each is as one that has read its tokens only."""
    grammars = _grammars()
    grammar = grammars[data[0] % len(grammars)] if data else grammars[0]
    matcher = grammar.matcher()
    forks = [matcher]
    for code, argument in zip(data[1::2], data[2::2], strict=False):
        try:
            _step(forks, code % 10, argument)
        except (mw.MaskwrightError, ValueError):
            continue
    for each in forks:
        plain = grammar.matcher()
        ids = each.accepted_tokens
        assert plain.accept_tokens(ids) == len(ids)
        assert _allowed(plain) == _allowed(each)
        assert (plain.is_accepting, plain.is_terminated) == (each.is_accepting, each.is_terminated)


def _step(forks: list[Any], code: int, argument: int) -> None:
    matcher = forks[-1]
    if code < 4:
        ids = _allowed(matcher)
        assert ids
        if not matcher.is_terminated:
            assert matcher.accept_token(ids[argument * 7 % len(ids)])
    elif code == 4:
        matcher.accept_token(argument * 3 - 9)
    elif code == 5:
        matcher.rollback(argument % 8)
    elif code == 6:
        if len(forks) < 4:
            forks.append(matcher.fork())
    elif code == 7:
        forks.insert(0, forks.pop())
    elif code == 8:
        fitting = matcher.longest_prefix(bytes([argument, 97, argument ^ 3]))
        assert 0 <= fitting <= 3
        matcher.validate_tokens([argument, argument ^ 3])
    else:
        matcher.fork().accept_tokens(matcher.shortest_completion())


# --- arrays that masks are written to


def bitmask(data: bytes) -> None:
    """Any shape, type, layout and row: the mask is written where it belongs, and nowhere else, or nothing is."""
    take = iter(data)

    def number(most: int) -> int:
        return next(take, 0) % most

    words = (VOCABULARY.vocab_size + 31) // 32
    kinds = (np.int32, np.int32, np.uint32, np.int64, np.float32, np.int16, bool, np.dtype(">i4"))
    kind = kinds[number(len(kinds))]
    shape = tuple((number(3), words, words + 1, 1, words - 1, 5)[number(6)] for _ in range(number(4)))
    whole = np.zeros(tuple(2 * each + 2 for each in shape), dtype=kind)
    whole.fill(1)
    steps = tuple(slice(1, 1 + each * step, step) for each, step in ((each, 1 + number(2)) for each in shape))
    view = whole[steps] if shape else whole
    if number(4) == 0:
        view = view.T
    if number(5) == 0:
        view.flags.writeable = False
    before = whole.copy()
    matchers = [_grammars()[0].matcher() for _ in range(number(3))]
    try:
        if number(2):
            mw.fill_next_token_bitmasks(matchers, view)
            rows = list(range(len(matchers)))
        else:
            rows = [number(6) - 2]
            _grammars()[0].matcher().fill_next_token_bitmask(view, rows[0])
    except (mw.MaskwrightError, ValueError, TypeError, IndexError, OverflowError):
        assert (whole == before).all()
        return
    expected = np.zeros((1, words), dtype=np.int32)
    _grammars()[0].matcher().fill_next_token_bitmask(expected)
    target = view if view.ndim == 2 else view.reshape(1, -1)
    for row in rows:
        assert (target[row].view(np.int32) == expected[0]).all()
        target[row] = 1
    assert (whole == before).all()


# --- files


def cache_file(data: bytes) -> None:
    """Any content of a cache file, whole or not, is taken as what it is or as nothing."""
    directory = disk_cache.cache_directory()
    assert directory is not None
    directory.mkdir(parents=True, exist_ok=True)
    path, whole, rest = directory / "fuzz.bin", bool(data[:1] > b"\x7f"), data[1:]
    if not whole:
        path.write_bytes(rest)
        assert disk_cache.read(path.name) is None
        return
    parts = rest.split(b"|")
    disk_cache.write(path.name, *parts)
    assert disk_cache.read(path.name) == parts
    damaged = bytearray(path.read_bytes())
    for at in rest[:3]:
        damaged[at * len(damaged) // 256] ^= 1 + at % 255
    path.write_bytes(damaged)
    assert disk_cache.read(path.name) in (None, parts)


# --- compiled grammars that were sent


@cache
def _sent() -> list[list[bytes]]:
    return [unseal(compiled._LINE, "", each.to_bytes()) or [] for each in (*_grammars(), _captured())]


def _captured() -> Any:
    return mw.compile_lark('start: name "=" /[0-9]+/\nname[capture]: /[a-z]+/\n%ignore " "', VOCABULARY)


def compiled_grammar(data: bytes) -> None:
    """Any bytes are a compiled grammar or an error: as they are, those of a grammar with some changed, and any parts under a right
    digest."""
    way, rest = data[:1] or b"\0", data[1:]
    parts = list(_sent()[way[0] % len(_sent())])
    if way < b"\x40":
        given = rest
    elif way < b"\x80":
        # Any damage of sealed bytes is found.
        damaged = bytearray(seal(compiled._LINE, "", parts))
        for at, value in zip(rest[::3], rest[1::3], strict=False):
            damaged[(at * 257 + value) % len(damaged)] ^= 1 + value % 255
        given = bytes(damaged)
    else:
        given = seal(compiled._LINE, "", [parts[0], *rest.split(b"|")])
    try:
        matcher = mw.CompiledGrammar.from_bytes(given, VOCABULARY).matcher()
    except (mw.GrammarError, mw.LimitError, mw.UnsatisfiableError):
        return
    _allowed(matcher)
    assert not way < b"\x40" or rest.startswith(compiled._LINE)


TARGETS: dict[str, Callable[[bytes], None]] = {
    each.__name__: each
    for each in (
        schema,
        lark,
        gbnf,
        regex,
        structural_tag,
        tokens,
        bitmask,
        cache_file,
        compiled_grammar,
    )
}
