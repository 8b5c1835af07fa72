"""How large terminals are once they stand in place of their names, measured without writing them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lark.grammar import NonTerminal, Terminal
from lark.tree import Tree

from maskwright.errors import LimitError
from maskwright.frontends.lark.places import Places
from maskwright.limits import Limits


class Size(NamedTuple):
    """Of a part of a terminal, in characters."""

    pattern: int
    """The pattern that the package writes for it."""
    written: int
    """That, and the patterns of all of its parts: the package writes each, and measures it with the module re."""


def check_expansion(definitions: Mapping[str, Any], places: Places, limits: Limits) -> None:
    """Raises ``LimitError`` where terminals are too large without names, and ``GrammarError`` where they have no end.

    ``definitions`` are those of the package's ``GrammarBuilder``: terminals are trees that name each other, or hold
    the very trees of terminals that another file has put together already.
    """
    sizes = measured(definitions, places)
    total = sum(size.written for size in sizes.values())
    if total > limits.max_expansion:
        name = max(sizes, key=lambda name: sizes[name].written)
        raise LimitError(
            "max_expansion",
            total,
            limits.max_expansion,
            place=places.of_definition(name),
            subject=f"terminal {name}, with what it uses",
        )


def measured(definitions: Mapping[str, Any], places: Places) -> dict[str, Size]:
    """The sizes of all terminals.  Raises ``GrammarError``."""
    sizes: dict[str | int, Size] = {}
    terminals = [name for name, definition in definitions.items() if definition.is_term]
    for name in terminals:
        _measure(name, definitions, sizes, places)
    return {name: sizes[name] for name in terminals}


def _measure(root: str, definitions: Mapping[str, Any], sizes: dict[str | int, Size], places: Places) -> None:
    # By names and identities, each once; a stack, as names may form long chains.
    begun: set[str | int] = set()
    stack: list[Any] = [root]
    while stack:
        node = stack[-1]
        key = _key(node)
        if key in sizes:
            stack.pop()
            continue
        begun.add(key)
        parts = _parts(node, definitions)
        for part in parts:
            reason = None
            if isinstance(part, str) and definitions[part].tree is None:
                reason = f"{part}, which is declared without a pattern"
            elif isinstance(part, Tree) and part.data == "template_usage":
                reason = "a template, which only rules may"
            if reason is not None:
                owner = next(name for name in reversed(stack) if isinstance(name, str) and name in begun)
                raise places.error(f"the terminal {owner} uses {reason}", places.of_definition(owner))
        missing = [part for part in parts if _key(part) not in sizes]
        if not missing:
            sizes[key] = _size(node, [sizes[_key(part)] for part in parts])
            stack.pop()
        for part in missing:
            if _key(part) in begun:
                message = f"the terminal {part} contains itself, which only rules may"
                raise places.error(message, places.of_definition(part))
        stack += missing


def _key(node: Any) -> str | int:
    return node if isinstance(node, str) else id(node)


def _parts(node: Any, definitions: Mapping[str, Any]) -> list[Any]:
    """Trees and names.  What has no definition, and rules, are left to the package."""
    if isinstance(node, str):
        tree = definitions[node].tree
        return [] if tree is None else [tree]
    parts: list[Any] = []
    for child in node.children:
        if isinstance(child, Tree):
            parts.append(child)
        elif isinstance(child, Terminal) and child.name in definitions and definitions[child.name].is_term:
            parts.append(child.name)
    return parts


def _size(node: Any, parts: list[Size]) -> Size:
    if isinstance(node, str):
        return parts[0] if parts else Size(1, 1)
    tokens = sum(
        len(child) for child in node.children if not isinstance(child, (Tree, Terminal, NonTerminal))
    )
    pattern = sum(part.pattern for part in parts) + tokens
    below = sum(part.written for part in parts)
    if node.data == "expr" or node.data == "maybe" or (node.data == "expansions" and len(parts) > 1):
        pattern += len("(?:)?")
    elif len(parts) == 1:
        return Size(pattern, below + 1)  # Nothing new is written.
    return Size(pattern, below + pattern)
