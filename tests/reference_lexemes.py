"""The byte languages that the oracle's grammars are made of: lexemes and quoted keys, naively."""

from __future__ import annotations

import json
from functools import cache
from itertools import product

from spelling import ByteClass, spelled

from maskwright.ir.grammar import Lexeme, Spelling
from maskwright.regular.expressions import Alt, Cat, Lit, Machine, Regular, Repeat

INFINITY = float("inf")


class Language:
    """A terminal: states are hashable, None is the state without completions."""

    start: object = None

    def __init__(self) -> None:
        self.distances: dict = {}

    def step(self, state, byte):
        raise NotImplementedError

    def accepts(self, state) -> bool:
        raise NotImplementedError

    def shortest_from(self, state) -> float:
        """The fewest bytes from a state to an accepting one."""
        if state not in self.distances:
            level, seen, depth = {state} - {None}, set(), 0
            while level and not any(self.accepts(s) for s in level):
                seen |= level
                level = {self.step(s, byte) for s in level for byte in range(256)} - seen - {None}
                depth += 1
            self.distances[state] = depth if level else INFINITY
        return self.distances[state]


class LexemeLanguage(Language):
    """A regular tree as a nondeterministic automaton; a state is a set of automaton states."""

    def __init__(self, regular: Regular) -> None:
        super().__init__()
        self.edges: list[list[tuple[int, int]]] = []  # by source: (byte set, target)
        self.epsilons: list[list[int]] = []
        first, self.final = self.new(), self.new()
        self.place(regular, first, self.final)
        self.live = self.find_live()
        self.known: dict = {}
        self.start = self.close({first})

    def new(self) -> int:
        self.edges.append([])
        self.epsilons.append([])
        return len(self.edges) - 1

    def place(self, node: Regular, source: int, target: int) -> None:
        if isinstance(node, Lit):
            assert not node.text, "spelled trees have no other text"
            self.epsilons[source].append(target)
        elif isinstance(node, ByteClass):
            self.edges[source].append((node.mask, target))
        elif isinstance(node, Alt):
            for part in node.parts:
                self.place(part, source, target)
        elif isinstance(node, Cat):
            for part in node.parts:
                middle = self.new()
                self.place(part, source, middle)
                source = middle
            self.epsilons[source].append(target)
        elif isinstance(node, Repeat):
            self.place_repeat(node, source, target)
        else:
            assert isinstance(node, Machine)
            self.place_machine(node, source, target)

    def place_repeat(self, node: Repeat, source: int, target: int) -> None:
        for count in range(node.min if node.max is None else node.max):
            if count >= node.min:
                self.epsilons[source].append(target)
            middle = self.new()
            self.place(node.body, source, middle)
            source = middle
        if node.max is None:
            loop = self.new()
            self.epsilons[source].append(loop)
            self.place(node.body, loop, loop)
            source = loop
        if node.max is None or node.min <= node.max:
            self.epsilons[source].append(target)

    def place_machine(self, node: Machine, source: int, target: int) -> None:
        low, high = node.length or (0, None)
        at: dict[tuple[int, int], int] = {}
        work = [(node.start, 0)]
        for state, count in work:
            here = at[state, count] = at.get((state, count)) or self.new()
            if (state, count) == (node.start, 0):
                self.epsilons[source].append(here)
            if state in node.accepts and count >= low:
                self.epsilons[here].append(target)
            after = min(count + 1, low) if high is None else count + 1
            if high is not None and after > high:
                continue
            for a, label, b in node.edges:
                if a == state:
                    if (b, after) not in at:
                        at[b, after] = self.new()
                        work.append((b, after))
                    self.place(label, here, at[b, after])

    def find_live(self) -> set[int]:
        live = {self.final}
        while True:
            more = {
                state
                for state in range(len(self.edges))
                if any(target in live for mask, target in self.edges[state] if mask)
                or any(target in live for target in self.epsilons[state])
            }
            if more <= live:
                return live
            live |= more

    def close(self, states: set[int]) -> frozenset[int] | None:
        states = set(states)
        while not all(states.issuperset(self.epsilons[state]) for state in states):
            states |= {target for state in states for target in self.epsilons[state]}
        return frozenset(states & self.live) or None

    def step(self, state, byte):
        if (state, byte) not in self.known:
            targets = {t for s in state for mask, t in self.edges[s] if mask >> byte & 1}
            self.known[state, byte] = self.close(targets)
        return self.known[state, byte]

    def accepts(self, state) -> bool:
        return self.final in state


@cache
def spellings(character: str, spelling: Spelling) -> frozenset[bytes]:
    """All ways to write a character inside a JSON string, or ("printed") those of JSON printers."""
    units = character.encode("utf-16-be")
    codes = [units[i : i + 2].hex() for i in range(0, len(units), 2)]
    digits = [set(f"{d}{d.upper()}") for d in "".join(codes)]
    candidates = [character, *("\\" + letter for letter in '"\\/bfnrt')]
    for cased in product(*digits):
        candidates.append("".join("\\u" + "".join(cased[i : i + 4]) for i in range(0, len(cased), 4)))
    if spelling == "printed":
        candidates = [c for c in candidates if is_printed(c, character)]
    return frozenset(c.encode() for c in candidates if decodes_to(c, character))


def is_printed(spelled: str, character: str) -> bool:
    """Whether some JSON printer writes a character in this way, which decodes to it."""
    if spelled.startswith("\\u"):
        # Python has the short forms; Go escapes three more.
        return json.dumps(character)[1:-1].startswith("\\u") or character in "<>&"
    return spelled != "\\/"


def decodes_to(inside: str, text: str) -> bool:
    try:
        return bool(json.loads(f'"{inside}"') == text)
    except ValueError:
        return False


class NameLanguage(Language):
    """The spellings of one key; a state is (characters read, bytes of the next one)."""

    def __init__(self, name: str, spelling: Spelling) -> None:
        super().__init__()
        quote = frozenset([b'"'])
        self.parts = [quote, *(spellings(c, spelling) for c in name), quote]
        self.start = (0, b"")

    def step(self, state, byte):
        index, partial = state
        if index == len(self.parts):
            return None
        partial += bytes([byte])
        if partial in self.parts[index]:
            return index + 1, b""
        if any(spelling.startswith(partial) for spelling in self.parts[index]):
            return index, partial
        return None

    def accepts(self, state) -> bool:
        return bool(state[0] == len(self.parts))


class WordLanguage(Language):
    """One text; a state is how much of it has been read."""

    def __init__(self, word: bytes) -> None:
        super().__init__()
        self.word = word
        self.start = 0

    def step(self, state, byte):
        return state + 1 if self.word[state : state + 1] == bytes([byte]) else None

    def accepts(self, state) -> bool:
        return bool(state == len(self.word))


class OtherLanguage(Language):
    """Quoted strings of a lexeme whose decoded text is none of the names."""

    def __init__(self, base: LexemeLanguage, names: tuple[str, ...], spelling: Spelling) -> None:
        super().__init__()
        self.base = base
        self.names = [name_language(name, spelling) for name in names]
        self.is_alive = cache(self.is_alive)
        start = self.base.start, frozenset((i, name.start) for i, name in enumerate(self.names))
        self.start = start if start[0] is not None and self.is_alive(start) else None

    def move(self, state, byte):
        base, tracked = state
        after = {(i, self.names[i].step(at, byte)) for i, at in tracked}
        return self.base.step(base, byte), frozenset((i, at) for i, at in after if at is not None)

    def is_alive(self, state) -> bool:
        base, tracked = state
        if base is None:
            return False
        if not tracked or self.accepts(state):
            return True
        return any(self.is_alive(self.move(state, byte)) for byte in range(256))

    def step(self, state, byte):
        after = self.move(state, byte)
        return after if self.is_alive(after) else None

    def accepts(self, state) -> bool:
        base, tracked = state
        return self.base.accepts(base) and not any(self.names[i].accepts(at) for i, at in tracked)


_by_key: dict = {}


def lexeme_language(lexeme: Lexeme) -> LexemeLanguage:
    """One language a key, across grammars, so that it is worked out once."""
    if lexeme.key not in _by_key:
        _by_key[lexeme.key] = LexemeLanguage(spelled(lexeme))
    return _by_key[lexeme.key]


name_language = cache(NameLanguage)
word_language = cache(WordLanguage)


def other_language(lexeme: Lexeme, names: tuple[str, ...]) -> OtherLanguage:
    key = "other", lexeme.key, names
    if key not in _by_key:
        _by_key[key] = OtherLanguage(lexeme_language(lexeme), names, lexeme.spelling)
    return _by_key[key]
