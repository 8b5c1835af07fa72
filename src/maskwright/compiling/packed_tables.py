"""Tables of a grammar as bytes, from which equal ones are made in another process, and for any vocabulary.

The first part is JSON: all tables, each behind those that it imports.  One part for each automaton follows: a line of JSON with the
arguments that the engine takes (``_core.automaton_content``), of those that are bytes the length, and these bytes behind it.  Tokens that stand for
themselves are what the source calls them, and are looked up in the vocabulary at hand.

What comes back is known to the engine by its content, so equal automata are shared by whatever has them, and nothing that
is in the bytes can pass for something else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable
from typing import Any

from maskwright._core import AutomatonHandle, Engine, Tables, automaton_content, tables_content
from maskwright.base.deadline import check_time, in_time
from maskwright.compiling.captures.plain import from_plain, plain_tokens, to_plain, tokens_of
from maskwright.compiling.lexer_automaton import add_lexer
from maskwright.compiling.lowering import capture_reader
from maskwright.compiling.packed_checks import check_automaton, check_tables, need, wrong
from maskwright.compiling.token_sets import token_ids
from maskwright.errors import MaskwrightError, no_recursion
from maskwright.ir.grammar import Tokens
from maskwright.limits import Limits

_MANY = 256

_DIGEST_BYTES = 16


def pack(tables: Tables) -> list[bytes]:
    """Tables, with all that they import."""
    packer = _Packer()
    with no_recursion():
        for each in _imports_first(tables):
            packer.add(each)
        return [_json(packer.tables), *packer.automata]


def unpack(parts: list[bytes], engine: Engine, limits: Limits) -> Tables:
    """The tables that were packed, on an engine.

    Raises ``GrammarError`` for what is not packed so, and for tokens that the vocabulary does not have; ``LimitError``.
    """
    try:
        return _unpacked(parts, engine, limits)
    except MaskwrightError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        wrong(f"{type(error).__name__}: {error}")


def _unpacked(parts: list[bytes], engine: Engine, limits: Limits) -> Tables:
    unpacker = _Unpacker(engine, limits)
    for part in parts[1:]:
        check_time()
        unpacker.add_automaton(part)
    for plain in json.loads(parts[0]):
        check_time()
        unpacker.add_tables(plain)
    return unpacker.tables[-1]


def _imports_first(tables: Tables) -> list[Tables]:
    """All tables, each behind those that it imports; also those that only captures are read with."""
    order: list[Tables] = []
    seen: set[int] = set()
    work = [(tables, False)]
    while work:
        each, done = work.pop()
        if done:
            order.append(each)
        elif id(each) not in seen:
            seen.add(id(each))
            work.append((each, True))
            # Taken from the end: the first one first, so that what is read again is packed in the same order.
            work += [(imported, False) for imported in reversed(_needed(each))]
    return order


def _needed(tables: Tables) -> list[Tables]:
    return [*tables.imports, *(tables.reader.imports.values() if tables.reader is not None else ())]


class _Packer:
    def __init__(self) -> None:
        self.automata: list[bytes] = []
        self.tables: list[list[Any]] = []
        self.numbers: dict[object, int] = {}
        self.alive: list[object] = []

    def add(self, tables: Tables) -> None:
        check_time()
        handles, lexer, terms, calls, final, guard, guards, rules, repeated, records, *rest = tables_content(
            tables
        )
        indented, start, imports, names = rest
        reader = tables.reader
        self.tables.append(
            [
                [self.automaton(handle, tables.tokens.get(i)) for i, handle in enumerate(handles)],
                -1 if lexer is None else self.automaton(lexer),
                terms,
                calls,
                list(final),
                guard,
                guards,
                rules,
                repeated,
                records,
                indented,
                start,
                [self.numbers[id(imported)] for imported in imports],
                [str(name) for name in names],
                None
                if reader is None
                else to_plain(reader.productions.grammar, self.number_of(reader.imports)),
            ]
        )
        self.numbers[id(tables)] = len(self.tables) - 1

    def number_of(self, imports: dict[Hashable, Tables]) -> Callable[[Hashable], int]:
        return lambda key: self.numbers[id(imports[key])]

    def automaton(self, handle: AutomatonHandle, tokens: Tokens | None = None) -> int:
        key = id(handle) if tokens is None else (tokens, tokens.place)
        found = self.numbers.get(("automaton", key))
        if found is None:
            # It must be alive for as long as its id stands for it.
            self.alive.append(handle)
            content = self.content(handle, tokens)
            found = self.numbers[("automaton", key)] = len(self.automata)
            self.automata.append(content)
        return found

    def content(self, handle: AutomatonHandle, tokens: Tokens | None) -> bytes:
        if tokens is not None:
            return _json(["tokens", *plain_tokens(tokens)]) + b"\n"
        kind, content = automaton_content(handle)
        if kind == "keyset":
            names, tags, other, base, kinds, spelling = content
            number = -1 if base is None else self.automaton(base)
            plain = [[name.decode("latin-1") for name in names], tags, other, number, kinds, spelling]
            return _json([kind, *plain]) + b"\n"
        if kind == "words":
            return _json([kind, *map(len, content)]) + b"\n" + b"".join(content)
        plain = [len(each) if isinstance(each, bytes) else each for each in content]
        data = b"".join([each for each in content if isinstance(each, bytes)])
        return _json([kind, *plain]) + b"\n" + data


def _json(value: list[Any]) -> bytes:
    # A long part piece by piece: others have their turns meanwhile.
    parts = [
        f"[{','.join([_text(piece) for piece in in_time(part)])}]"
        if isinstance(part, list) and len(part) > _MANY
        else _text(part)
        for part in value
    ]
    return f"[{','.join(parts)}]".encode()


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


class _Unpacker:
    def __init__(self, engine: Engine, limits: Limits) -> None:
        self.engine = engine
        self.limits = limits
        self.automata: list[AutomatonHandle] = []
        self.kinds: list[str] = []
        self.terminals: dict[int, int] = {}
        """By number of a lexer, how many it has."""
        self.tokens: dict[int, Tokens] = {}
        self.tables: list[Tables] = []

    def add_automaton(self, part: bytes) -> None:
        line, _, data = part.partition(b"\n")
        kind, *content = json.loads(line)
        if kind == "tokens":
            need(not data, "tokens")
            tokens = self.tokens[len(self.automata)] = tokens_of(content)
            handle = self.engine.add_tokens(token_ids(tokens, self.engine))
        elif kind == "boundary":
            need(content in ([False], [True]) and not data, "boundaries")
            handle = self.engine.add_boundary(content[0])
        else:
            check_automaton(kind, content, data, self.kinds)
            if kind == "lexer":
                self.terminals[len(self.automata)] = len(content[1])
            handle = self.automaton(kind, content, part, data)
        self.automata.append(handle)
        self.kinds.append(kind)

    def automaton(self, kind: str, content: list[Any], part: bytes, data: bytes) -> AutomatonHandle:
        engine = self.engine
        if kind == "keyset":
            names, tags, other, base, kinds, spelling = content
            encoded = [name.encode("latin-1") for name in names]
            below = None if base < 0 else self.automata[base]
            return engine.add_keyset(encoded, tags, other, below, kinds, spelling)
        key = ("packed", hashlib.blake2b(part, digest_size=_DIGEST_BYTES).digest())
        known = engine.get_automaton(key)
        if known is not None:
            return known
        if kind == "words":
            texts, starts, _ = content
            return engine.add_words(key, data[:texts], data[texts : texts + starts], data[texts + starts :])
        states, first, sets, size, epsilons, loops, accepts, *rest = content
        edges, behind = data[:size], data[size:]
        ranges = [tuple((low, high) for low, high in each) for each in sets]
        if kind == "text":
            return engine.add_automaton(key, states, first, ranges, edges, epsilons, loops, accepts, *rest)
        ignored, follow, avoided, *others = rest
        pairs = tuple((one, other) for one, other in avoided)
        follow = None if follow is None else behind
        arguments = states, first, ranges, edges, epsilons, loops, accepts, ignored, follow, pairs, *others
        return add_lexer(engine, key, arguments, self.limits)

    def add_tables(self, plain: list[Any]) -> None:
        check_tables(plain, self.kinds, len(self.tables), self.terminals.get(plain[1], 0))
        numbers, lexer, terms, calls, final, *content = plain
        guard, guards, rules, repeated, records, indented, start, imports, names, reader = content
        tables = Tables(
            self.engine,
            [self.automata[at] for at in numbers],
            None if lexer < 0 else self.automata[lexer],
            terms,
            calls,
            bytes(final),
            guard,
            guards,
            rules,
            repeated,
            records,
            indented,
            start,
            [self.tables[at] for at in imports],
            names,
        )
        tables.tokens = {i: self.tokens[at] for i, at in enumerate(numbers) if at in self.tokens}
        if reader is not None:
            imported: dict[Hashable, Tables] = dict(enumerate(self.tables))
            tables.reader = capture_reader(from_plain(reader), self.engine, self.limits, imported)
        self.tables.append(tables)
