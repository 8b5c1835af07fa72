"""How long does a node of a draft tree take in one call, next to a fork, an accepted token and a mask for each node?

python bench/micro/draft_tree.py

Trees of 8, 64 and 512 nodes below a state in the middle of a text; each node has a token that its parent allows.  "known": masks and
edges have been computed before; "new": the grammar begins anew each time (what
lexemes say of tokens is the vocabulary's, and is known).
"""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
from _common import SCHEMA, TEXT, show, tekken

import maskwright as mw

QUERY = "select name, count(*) from singer where age > 20 group by name"
ROUNDS = 30
NEW_ROUNDS = 5

Tree = tuple[list[int], list[int]]


def tree(matcher: mw.Matcher, size: int, vocab_size: int) -> Tree:
    """A random tree of legal tokens: half of the nodes go deeper, others branch."""
    rng = random.Random(size)
    nodes = [matcher.fork()]
    tokens: list[int] = []
    parents: list[int] = []
    row = mw.allocate_token_bitmask(1, vocab_size)
    while len(tokens) < size:
        parent = rng.choice((len(tokens) - 1, rng.randrange(-1, len(tokens))))
        nodes[parent + 1].fill_next_token_bitmask(row)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        node = nodes[parent + 1].fork()
        if node.is_terminated or not node.accept_token(int(rng.choice(allowed))):
            continue
        nodes.append(node)
        tokens.append(node.accepted_tokens[-1])
        parents.append(parent)
    return tokens, parents


def by_forks(matcher: mw.Matcher, tokens: list[int], parents: list[int], bitmask: Any) -> None:
    nodes: list[mw.Matcher] = []
    for i, token in enumerate(tokens):
        node = (matcher if parents[i] < 0 else nodes[parents[i]]).fork()
        node.accept_token(token)
        node.fill_next_token_bitmask(bitmask, i)
        nodes.append(node)


def in_one_call(matcher: mw.Matcher, tokens: list[int], parents: list[int], bitmask: Any) -> None:
    matcher.fill_tree_bitmasks(tokens, parents, bitmask)


def micros(make: Any, ways: Any, tree: Tree, bitmask: Any, rounds: int) -> list[float]:
    """Microseconds a node by each way, in turn: the best rounds, in processor time of all threads."""
    lowest = [float("inf")] * len(ways)
    for _ in range(rounds):
        for i, way in enumerate(ways):
            matcher = make()
            begun = time.process_time_ns()
            way(matcher, *tree, bitmask)
            lowest[i] = min(lowest[i], time.process_time_ns() - begun)
    return [ns / 1e3 / len(tree[0]) for ns in lowest]


tokenizer = tekken()
vocabulary = mw.Vocabulary.from_mistral_common(tokenizer)
for name, compiled, text in (
    ("JSON schema", mw.compile_json_schema(SCHEMA, vocabulary), TEXT),
    ("SQL", mw.compile(mw.shipped_grammar("sql"), vocabulary), QUERY),
):
    ids = tokenizer.encode(text, bos=False, eos=False)[: len(text) // 8]
    here = compiled.matcher()
    if here.accept_tokens(ids) != len(ids):
        raise SystemExit(f"{text} is not accepted")

    def anew(compiled: mw.CompiledGrammar = compiled, ids: list[int] = ids) -> mw.Matcher:
        matcher = mw.Matcher(compiled._core.apart())
        matcher.accept_tokens(ids)
        return matcher

    for size in (8, 64, 512):
        drafted = tree(here, size, vocabulary.vocab_size)
        bitmask = mw.allocate_token_bitmask(size, vocabulary.vocab_size)
        other = bitmask.copy()
        in_one_call(here, *drafted, bitmask)
        by_forks(here, *drafted, other)
        if not np.array_equal(bitmask, other):
            raise SystemExit("the ways differ")
        for kind, make, rounds in (("known", here.fork, ROUNDS), ("new", anew, NEW_ROUNDS)):
            one, many = micros(make, (in_one_call, by_forks), drafted, bitmask, rounds)
            show(f"{name}, {size} nodes, {kind}: one call", one, "µs a node")
            show(f"{name}, {size} nodes, {kind}: fork, accept, fill", many, "µs a node")
            show(f"{name}, {size} nodes, {kind}: ratio", many / one, "")
    only = micros(here.fork, (lambda m, t, p, b: m.validate_tree(t, p),), drafted, bitmask, ROUNDS)[0]
    show(f"{name}, {size} nodes, known: validate_tree", only, "µs a node")
