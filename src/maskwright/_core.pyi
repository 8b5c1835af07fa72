"""Types of the extension module; its docstrings are the manual."""

from collections.abc import Hashable, Iterable
from typing import Any

class AutomatonHandle:
    names: tuple[str, ...]
    @property
    def clashes(self) -> list[tuple[int, int]]: ...

class Engine:
    vocab_size: int
    eos_ids: tuple[int, ...]
    mask_budget: int
    def __init__(
        self,
        tokens: list[bytes],
        eos_ids: tuple[int, ...],
        trie_arrays: tuple[bytes, bytes] | None = None,
        home_least: int = 2048,
    ) -> None: ...
    @property
    def cached_bytes(self) -> int: ...
    def dump_trie(self) -> tuple[bytes, bytes]: ...
    def get_automaton(self, key: Hashable) -> AutomatonHandle | None: ...
    def add_automaton(
        self,
        key: Hashable,
        n_states: int,
        start: int,
        sets: list[tuple[tuple[int, int], ...]],
        edges: list[tuple[int, int, int]],
        epsilons: list[tuple[int, int, int, int]],
        loops: list[tuple[int, int]],
        accepts: list[tuple[int, int]],
        quoted: bool,
    ) -> AutomatonHandle: ...
    def add_lexer(
        self,
        key: Hashable,
        n_states: int,
        starts: list[int],
        sets: list[tuple[tuple[int, int], ...]],
        edges: list[tuple[int, int, int]],
        epsilons: list[tuple[int, int, int, int]],
        loops: list[tuple[int, int]],
        accepts: list[tuple[int, int]],
        ignored: list[int],
        follow: list[list[int]] | None,
        avoided: tuple[tuple[int, int], ...],
        names: tuple[str, ...],
        newline: int,
        line_break: int,
        columns: int,
    ) -> AutomatonHandle: ...
    def add_keyset(
        self,
        names: list[bytes],
        tags: list[int],
        other_tag: int,
        base: AutomatonHandle | None,
        kinds: int = 1,
    ) -> AutomatonHandle: ...
    def add_words(self, key: Hashable, data: bytes, starts: bytes, tags: bytes) -> AutomatonHandle: ...
    def segment(self, data: bytes) -> list[int]: ...

class Tables:
    engine: Engine
    imports: list[Tables]
    def __init__(
        self,
        engine: Engine,
        automata: list[AutomatonHandle],
        lexer: AutomatonHandle | None,
        plain_terms: list[list[tuple[int, int, int]]],
        plain_calls: list[list[tuple[int, int]]],
        plain_final: bytes,
        plain_guard: list[int],
        guards: list[tuple[int, int, bool]],
        rules: list[tuple[int, int, bool]],
        repeated: list[tuple[int, int, int, int]],
        records: list[tuple[Any, ...]],
        indented: list[int],
        start_rule: int,
        imports: list[Tables],
    ) -> None: ...
    @property
    def lexer(self) -> AutomatonHandle | None: ...
    @property
    def nullable(self) -> bool: ...
    @property
    def used_keys(self) -> int: ...
    def all_tables(self) -> list[Tables]: ...

class CompiledCore:
    engine: Engine
    def __init__(
        self, tables: Tables, max_states: int, max_lexer_states: int, max_search: int, max_seconds: float
    ) -> None: ...
    def unfillable_rules(self) -> list[int]: ...
    @property
    def clashes(self) -> list[tuple[int, int]]: ...
    def rule_places(self) -> dict[tuple[int, int], int]: ...
    def waits(self, parser: int) -> list[tuple[int, int, int, bool, list[int]]]: ...
    def callers(self, node: int) -> list[tuple[int, int, int] | None]: ...
    @property
    def statistics(self) -> dict[str, int]: ...

class Matcher:
    compiled: CompiledCore
    def __init__(self, compiled: CompiledCore) -> None: ...
    def fill_next_token_bitmask(self, bitmask: Any, row: int = 0) -> None: ...
    def next_token_bitmask(self) -> memoryview: ...
    def accept_token(self, token: int) -> bool: ...
    def accept_tokens(self, ids: Iterable[int]) -> int: ...
    def validate_tokens(self, ids: Iterable[int]) -> int: ...
    def accept_bytes(self, data: bytes) -> bool: ...
    def longest_prefix(self, data: bytes) -> int: ...
    def rollback(self, count: int) -> None: ...
    def fork(self) -> Matcher: ...
    def reset(self) -> None: ...
    @property
    def is_accepting(self) -> bool: ...
    @property
    def is_terminated(self) -> bool: ...
    @property
    def accepted_tokens(self) -> list[int]: ...
    @property
    def state_id(self) -> int: ...
    def threads(self) -> list[tuple[int, bool]]: ...
    def forced_bytes(self) -> bytes: ...
    def shortest_completion_bytes(self) -> bytes: ...
    def shortest_completion(self) -> list[int]: ...

def set_threads(count: int | None = None) -> None: ...
def fill_rows(matchers: list[Matcher], bitmask: Any) -> None: ...
def cut_rows(
    numbers: int,
    strides: tuple[int, int],
    item_bytes: int,
    width: int,
    masks: int,
    mask_bytes: int,
    words: int,
    lowest: int,
    rows: Iterable[int],
) -> None: ...
