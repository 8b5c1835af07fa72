"""Regular expressions as data: the terminals of the intermediate representation.

Trees describe texts of Unicode scalar values: leaves are ``Chars`` (a set of code points) and ``Lit``
(a text).  Surrogates are in no text: in a set they count for nothing, and a ``Lit`` with one matches nothing.  How texts are spelled as bytes is a property of the lexeme that uses the tree.

The constructors ``cat``, ``alt`` and ``repeat`` simplify; use them instead of the classes.
Trees may be deep and may share nodes, so nothing here recurses: see ``postorder``.
This module knows no syntax (see ``maskwright.regex``) and imports only ``errors`` and ``deadline``.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Any, TypeAlias

from maskwright.base.deadline import check_time, in_time
from maskwright.limits import Limits

MAX_CODE_POINT = 0x10FFFF
_MANY = 64
_SURROGATE = re.compile("[\ud800-\udfff]")
Text: TypeAlias = str
"""Or a subclass, as the tokens of lark are."""
Ranges: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Chars:
    """One code point out of ``ranges``: sorted, disjoint, not adjacent, both ends included."""

    ranges: Ranges


@dataclass(frozen=True)
class Lit:
    """Exactly this text."""

    text: Text


class _Inner:
    """Equality and a cached hash by structure, without recursion."""

    _hash: int | None
    _weight: int
    """As ``weight`` counts; 0: nobody asked."""

    def __hash__(self) -> int:
        known = self._hash
        if known is not None:
            return known
        stack: list[_Inner] = [self]
        while stack:
            check_time()
            node: _Inner = stack[-1]
            below = children(node)  # type: ignore[arg-type]
            missing = []
            for child in below:
                if isinstance(child, _Inner):
                    inner: _Inner = child
                    if inner._hash is None:
                        missing.append(child)
            if missing:
                stack.extend(missing)
            else:
                # The hashes of the children are cached by now, so this does not recurse.  Those of sets of characters take long.
                parts: object = (
                    below if len(below) < _MANY else tuple([hash(child) for child in in_time(below)])
                )
                node._hash = known = hash((type(node), _shape(node), parts))
                stack.pop()
        assert known is not None
        return known

    def __eq__(self, other: object) -> bool:
        pairs: list[tuple[object, object]] = [(self, other)]
        compared: set[tuple[int, int]] = set()
        while pairs:
            check_time()
            a, b = pairs.pop()
            if a is b or (id(a), id(b)) in compared:
                continue
            if type(a) is not type(b):
                return False
            if not isinstance(a, _Inner):
                if a != b:
                    return False
                continue
            if _shape(a) != _shape(b) or hash(a) != hash(b):
                return False
            compared.add((id(a), id(b)))
            pairs.extend(zip(children(a), children(b), strict=True))  # type: ignore[arg-type]
        return True


@dataclass(frozen=True, eq=False)
class Cat(_Inner):
    parts: tuple[Regular, ...]


@dataclass(frozen=True, eq=False)
class Alt(_Inner):
    """One of ``parts``; with no parts, nothing at all matches."""

    parts: tuple[Regular, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat(_Inner):
    """``body`` at least ``min`` and at most ``max`` times (None: unbounded)."""

    body: Regular
    min: int
    max: int | None


@dataclass(frozen=True, eq=False)
class Machine(_Inner):
    """A finite automaton whose edges (source, label, target) are labelled with regular trees.

    States are 0 to ``n_states - 1``; labels never match the empty string.  ``moves`` are the edges, or a minimal
    automaton that has them (``determinize.Dfa``).  ``length`` bounds the
    number of edges walked from the start to an accepting state (low, high; high None:
    unbounded); None leaves it free.  Where ``length`` has a low bound, every state must be able
    to finish after any number of edges from its least one on (``with_length`` sees to it).
    """

    n_states: int
    start: int
    moves: Any
    accepts: tuple[int, ...]
    length: tuple[int, int | None] | None = None

    @property
    def edges(self) -> tuple[tuple[int, Regular, int], ...]:
        """All of them, made when somebody asks for those of a minimal automaton."""
        moves = self.moves
        return moves if isinstance(moves, tuple) else moves.edges()


Regular: TypeAlias = Chars | Lit | Cat | Alt | Repeat | Machine


def is_minimal(machine: Machine) -> bool:
    """Whether its edges are those of a minimal automaton (``determinize.Dfa``), labelled with sets."""
    return not isinstance(machine.moves, tuple)


def made_of(node: Regular) -> Any:
    """The minimal automaton that a ``Machine`` without bounds was made of (``determinize.Dfa``); else None."""
    if not isinstance(node, Machine):
        return None
    machine: Machine = node
    return machine.moves if is_minimal(machine) and machine.length is None else None


def children(node: Regular) -> tuple[Regular, ...]:
    """The direct children, from left to right."""
    if isinstance(node, Cat):
        sequence: Cat = node
        return sequence.parts
    if isinstance(node, Alt):
        alternatives: Alt = node
        return alternatives.parts
    if isinstance(node, Repeat):
        return (node.body,)
    if isinstance(node, Machine):
        machine: Machine = node
        if isinstance(machine.moves, tuple):
            return tuple([label for _, label, _ in machine.moves])
        return tuple(machine.moves.labels())
    return ()


OBJECT_BYTES = 100
"""Of a small object, roughly."""
_TEXT = 64
"""Characters that take as much as a small object: roughly."""
_STATES = 4
"""Small objects that take as much as a state of an automaton."""
_fields: dict[type, tuple[str, ...]] = {Limits: ()}
"""What objects of other classes are made of: groups of keywords, terms of the grammar and their lexemes.  Limits are shared."""


def weight(value: Any, most: int) -> int:
    """How many small objects a tree, or something that holds trees, is made of: roughly, and few above ``most`` are counted.

    A tree that is asked about, alone or in a tuple, keeps its number.
    """
    several: bool = isinstance(value, tuple)
    total: int = 1 if several else 0
    for each in value if several else (value,):
        if isinstance(each, _Inner):
            root: _Inner = each
            if root._weight == 0:
                root._weight = _weight(root, most)
            total += root._weight
        elif isinstance(each, str):
            total += 1 + len(each) // _TEXT
        else:
            total += _weight(each, most)
        if total > most:
            break
    return total


def _weight(value: Any, most: int) -> int:
    total: int = 0
    stack = [value]
    while stack and total <= most:
        each = stack.pop()
        total += 1
        if isinstance(each, _Inner):
            inner: _Inner = each
            if inner._weight > 0:
                total += inner._weight - 1
            elif isinstance(each, Repeat):
                stack.append(each.body)
            elif isinstance(each, Machine):
                total += len(each.accepts)
                if isinstance(each.moves, tuple):
                    total += _STATES * len(each.moves)
                    # Sets of characters may have hundreds of ranges; edges share some.
                    stack.extend({id(move[1]): move[1] for move in each.moves}.values())
                else:
                    stack.append(each.moves)
            elif isinstance(each, (Cat, Alt)):
                stack.append(each.parts)
        elif isinstance(each, (str, bytes)):
            total += len(each) // _TEXT
        elif isinstance(each, tuple):
            if len(each) > most:
                return total + len(each)
            stack.extend(each)
        elif isinstance(each, Chars):
            total += 2 * len(each.ranges)
        elif isinstance(each, Lit):
            total += len(each.text) // _TEXT
        elif hasattr(each, "weight"):
            total += each.weight()
        elif each is not None and not isinstance(each, (bool, int, type)):
            names = _fields.get(type(each))
            if names is None:
                names = ("key", "regular") if hasattr(each, "regular") else ()
                names = tuple(getattr(each, "__dataclass_fields__", names))
                _fields[type(each)] = names
            for name in names:
                stack.append(getattr(each, name))
    return total


def postorder(root: Regular, into_automata: bool = True, known: Container[int] = ()) -> list[Regular]:
    """Every node object of the tree once, children before parents.

    Not ``into_automata``: without the sets below a machine that was ``made_of`` an automaton.  Without nodes whose ids
    are ``known``, and what is below these alone.
    """
    order: list[Regular] = []
    seen: set[int] = set()
    stack: list[tuple[Regular, bool]] = [(root, False)]
    steps: int = 0
    while stack:
        steps += 1
        if steps & 63 == 0:
            check_time()
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen and id(node) not in known:
            seen.add(id(node))
            if not isinstance(node, _Inner) or (not into_automata and made_of(node) is not None):
                order.append(node)
                continue
            stack.append((node, True))
            for child in children(node):
                steps += 1
                if steps & 255 == 0:
                    check_time()
                if isinstance(child, _Inner):
                    stack.append((child, False))
                elif id(child) not in seen:
                    seen.add(id(child))
                    order.append(child)
    return order


def _shape(node: object) -> object:
    """What a node holds besides its children."""
    if isinstance(node, Repeat):
        return node.min, node.max
    if isinstance(node, Machine):
        moves = node.moves
        steps = (
            tuple([(source, target) for source, _, target in moves]) if isinstance(moves, tuple) else moves
        )
        return node.n_states, node.start, steps, node.accepts, node.length
    return len(node.parts) if isinstance(node, (Cat, Alt)) else None


EPSILON = Lit("")
NOTHING = Alt(())


def is_nothing(node: Regular) -> bool:
    """Whether a tree is ``NOTHING``; other trees may be empty as well (``maskwright.regular.dfa.is_empty``)."""
    return isinstance(node, Alt) and not node.parts


def cat(*parts: Regular) -> Regular:
    """Concatenation."""
    flat: list[Regular] = []
    seen: int = 0
    for part in parts:
        seen += 1
        if seen & 63 == 0:
            check_time()
        for p in part.parts if isinstance(part, Cat) else (part,):
            if isinstance(p, Alt) and not p.parts:
                return NOTHING
            if isinstance(p, Lit):
                if not p.text:
                    continue
                if flat and isinstance(flat[-1], Lit):
                    flat[-1] = Lit(flat[-1].text + p.text)
                else:
                    flat.append(p)
            else:
                flat.append(p)
    if not flat:
        return EPSILON
    return flat[0] if len(flat) == 1 else Cat(tuple(flat))


def alt(*parts: Regular) -> Regular:
    """Alternatives; equal ones are kept once."""
    flat: dict[Regular, None] = {}
    seen: int = 0
    for part in parts:
        for p in part.parts if isinstance(part, Alt) else (part,):
            flat[p] = None
            seen += 1
            if seen & 63 == 0:
                check_time()
    return next(iter(flat)) if len(flat) == 1 else Alt(tuple(flat))


def repeat(body: Regular, low: int, high: int | None) -> Regular:
    """``body`` repeated ``low`` to ``high`` times."""
    if high == 0 or body == EPSILON:
        return EPSILON
    if body == NOTHING:
        return EPSILON if low == 0 else NOTHING
    if low == high == 1:
        return body
    return Repeat(body, low, high)


def chars(*ranges: tuple[int, int]) -> Regular:
    """A set of code points given as any ranges; NOTHING when empty."""
    merged = normalize_ranges(ranges)
    return Chars(merged) if merged else NOTHING


def char(c: Text) -> Regular:
    return Chars(((ord(c), ord(c)),))


def one_of(characters: Text) -> Regular:
    """One of these characters."""
    return chars(*((ord(c), ord(c)) for c in characters))


def normalize_ranges(ranges: tuple[tuple[int, int], ...] | list[tuple[int, int]]) -> Ranges:
    out: list[tuple[int, int]] = []
    for lo, hi in sorted(r for r in ranges if r[0] <= r[1]):
        if out and lo <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], hi))
        else:
            out.append((lo, hi))
    return tuple(out)


ROOM = 5_000
"""So many ranges are put in order at once; more of them take longer than other threads should wait."""


def put_in_order(ranges: list[tuple[int, int]]) -> int:
    """The same characters, in order and in as few ranges as can be; to be called again when the list has so many."""
    ranges[:] = normalize_ranges(ranges)
    return 2 * len(ranges) + ROOM


def complement_ranges(ranges: Ranges) -> Ranges:
    """All code points (0 to 0x10FFFF) outside ``ranges``."""
    out, at = [], 0
    for lo, hi in ranges:
        if at < lo:
            out.append((at, lo - 1))
        at = hi + 1
    if at <= MAX_CODE_POINT:
        out.append((at, MAX_CODE_POINT))
    return tuple(out)


def intersect_ranges(a: Ranges, b: Ranges) -> Ranges:
    out, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        lo, hi = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if lo <= hi:
            out.append((lo, hi))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(out)


def has_surrogate(text: Text) -> bool:
    """Whether a text cannot be written in UTF-8."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def has_scalar(ranges: Ranges) -> bool:
    """Whether a set holds a Unicode scalar value: anything but surrogates."""
    return any(low < 0xD800 or high > 0xDFFF for low, high in ranges)


ANY_CHAR = Chars(((0, 0xD7FF), (0xE000, MAX_CODE_POINT)))
"""Every Unicode scalar value: surrogates cannot be written in UTF-8."""

EVERY_TEXT = repeat(ANY_CHAR, 0, None)
