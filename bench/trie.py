"""A million token sequences: how long a trie takes to build, and a batched step beside one of Python dicts.

    python bench/trie.py [--sequences 1000000] [--length 8] [--vocab 2048] [--batch 1024] [--device cpu]

Both tries are built from the same sequences and step through the same batches in one run; every result is compared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from maskwright.masks.trie import TokenTrie


def seconds(task: Callable[[], Any], repeat: int = 7) -> float:
    """The least of several times."""
    best = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        task()
        best = min(best, time.perf_counter() - started)
    return best


def dict_trie(rows: list[list[int]]) -> dict:
    root: dict = {}
    for row in rows:
        node = root
        for token in row:
            node = node.setdefault(token, {})
    return root


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("sequences", 1_000_000), ("length", 8), ("vocab", 2_048), ("batch", 1_024)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rng = np.random.default_rng(1)
    rows = rng.integers(0, args.vocab, (args.sequences, args.length))
    lists = rows.tolist()
    print(f"build from an array: {seconds(lambda: TokenTrie(rows, args.vocab), 2):.2f} s")
    print(f"build from lists: {seconds(lambda: TokenTrie(lists, args.vocab), 1):.2f} s")
    trie = TokenTrie(rows, args.vocab)
    fast = trie.to(args.device)
    slow = dict_trie(lists)
    print(f"{trie.n_states} states, {len(fast.dense_states)} of them dense")
    chosen = rng.integers(0, args.sequences, args.batch)
    total = plain_total = 0.0
    for depth in range(args.length):
        states = torch.zeros(args.batch, dtype=torch.int64, device=args.device)
        nodes = [slow] * args.batch
        for column in range(depth):
            states = fast.step(states, torch.from_numpy(rows[chosen, column]).to(args.device))
            nodes = [node[token] for node, token in zip(nodes, rows[chosen, column].tolist(), strict=True)]
        words = (args.vocab + 31) // 32

        def python_step(nodes: list[dict] = nodes, words: int = words) -> np.ndarray:
            mask = np.zeros((len(nodes), words), dtype=np.uint32)
            for row, node in enumerate(nodes):
                for token in node:
                    mask[row, token >> 5] |= np.uint32(1 << (token & 31))
            return mask

        def python_children(nodes: list[dict] = nodes) -> list[tuple[list[int], list[dict]]]:
            return [(list(node), list(node.values())) for node in nodes]

        def batched(states: torch.Tensor = states) -> Any:
            result = fast.bitmask(states)
            if args.device != "cpu":
                torch.cuda.synchronize()
            return result

        def batched_children(states: torch.Tensor = states) -> Any:
            result = fast.children(states)
            if args.device != "cpu":
                torch.cuda.synchronize()
            return result

        assert np.array_equal(batched().cpu().numpy().view(np.uint32), python_step())
        tokens = torch.from_numpy(rows[chosen, depth]).to(args.device)

        def advance(states: torch.Tensor = states, tokens: torch.Tensor = tokens) -> Any:
            result = fast.step(states, tokens)
            if args.device != "cpu":
                torch.cuda.synchronize()
            return result

        assert (advance() >= 0).all()
        ours = seconds(advance)
        listed = tokens.tolist()
        plain = seconds(lambda n=nodes, t=listed: [a.get(b) for a, b in zip(n, t, strict=True)])
        masks, plain_masks = seconds(batched), seconds(python_step, 1)
        kids, plain_kids = seconds(batched_children), seconds(python_children, 1)
        total += ours + masks
        plain_total += plain + plain_masks
        print(
            f"depth {depth}: advance {ours * 1e6:8.0f} us ({plain / ours:6.1f} x faster than dicts), "
            f"masks {masks * 1e6:8.0f} us ({plain_masks / masks:7.1f} x), "
            f"children {kids * 1e6:8.0f} us ({plain_kids / kids:7.1f} x)"
        )
    print(
        f"masks and advances of all depths: {total * 1e3:.1f} ms, {plain_total / total:.0f} x faster than dicts"
    )


if __name__ == "__main__":
    main()
