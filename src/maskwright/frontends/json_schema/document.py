"""A schema document: reading it, and finding what a ``$ref`` points to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from maskwright.errors import GrammarError, LimitError
from maskwright.limits import Limits

_OLD_DIALECTS = ("draft-03", "draft-04", "draft-05", "draft-06", "draft-07")


@dataclass(frozen=True, slots=True)
class Node:
    """A subschema (or, with ``is_value``, a JSON value that must be matched exactly).

    Two nodes are equal when they are the same place of the document.
    """

    pointer: str
    value: Any = field(compare=False, hash=False)
    base: str = field(default="", compare=False, hash=False)
    """Pointer of the enclosing schema resource (the nearest ``$id``)."""
    is_value: bool = False

    def at(self, *path: str | int) -> Node:
        """The subschema at a path below this one."""
        value, pointer = self.value, self.pointer
        for key in path:
            value = value[key]
            pointer += "/" + str(key).replace("~", "~0").replace("/", "~1")
        base = pointer if isinstance(value, dict) and _resource_id(value) is not None else self.base
        return Node(pointer, value, base)


class Document:
    """A whole schema, with its dialect and its identifiers."""

    def __init__(self, schema: Any, limits: Limits) -> None:
        if isinstance(schema, (str, bytes)):
            schema = read_json(schema)
        if not isinstance(schema, (dict, bool)):
            raise GrammarError(f"a schema is an object or a boolean, not {json_type(schema)}", place="#")
        check_size(schema, limits)
        self.root = Node("", schema)
        dialect = schema.get("$schema") if isinstance(schema, dict) else None
        self.ref_hides_siblings = isinstance(dialect, str) and any(d in dialect for d in _OLD_DIALECTS)
        """Up to draft 7, keywords beside ``$ref`` are ignored (draft-07 core, section 8.3)."""
        self._identifiers: dict[str, Node] | None = None
        self._uris: dict[str, str] = {}

    def resolve(self, node: Node) -> Node:
        """What ``node``'s ``$ref`` points to.  Raises ``GrammarError`` when that is not in here."""
        ref: str = node.value["$ref"]
        place = f"{node.pointer}/$ref"
        base = self._by_pointer(node.base, self.root, place)
        if ref == "#":
            return base
        if ref.startswith("#/"):
            return self._by_pointer(unquote(ref[1:]), base, place)
        return self._by_identifier(ref, base, place)

    def _by_pointer(self, pointer: str, start: Node, place: str) -> Node:
        node = start
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            value = node.value
            if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                node = node.at(int(key))
            elif isinstance(value, dict) and key in value:
                node = node.at(key)
            else:
                raise GrammarError(
                    f"nothing at {pointer!r}: {key!r} is missing in {node.pointer or '#'}", place=place
                )
        return node

    def _by_identifier(self, ref: str, base: Node, place: str) -> Node:
        if self._identifiers is None:
            self._identifiers = dict(_identified(self.root))
            # The longest one is absolute; a resource may also be known by "".
            for uri in sorted(self._identifiers, key=len):
                self._uris[self._identifiers[uri].pointer] = urldefrag(uri)[0]
        uri, fragment = urldefrag(urljoin(self._uris.get(base.pointer, ""), ref))
        found = self._identifiers.get(f"{uri}#{fragment}" if fragment and "/" not in fragment else uri)
        if found is None:
            raise GrammarError(
                f"{ref!r} cannot be resolved: no subschema here has this $id or $anchor, "
                "and remote schemas are never fetched",
                place=place,
            )
        return self._by_pointer(unquote(fragment), found, place) if "/" in fragment else found


def _resource_id(schema: dict[str, Any]) -> str | None:
    identifier = schema.get("$id")
    return identifier if isinstance(identifier, str) and not identifier.startswith("#") else None


def _identified(root: Node) -> Iterator[tuple[str, Node]]:
    # Every object that carries an identifier, wherever it stands.
    work: list[tuple[Node, str]] = [(root, "")]
    yield "", root
    while work:
        node, uri = work.pop()
        if isinstance(node.value, dict):
            for keyword in ("$id", "id"):
                identifier = node.value.get(keyword)
                if isinstance(identifier, str):
                    if identifier.startswith("#"):
                        yield f"{uri}{identifier}", node
                    else:
                        uri = urldefrag(urljoin(uri, identifier))[0]
                        yield uri, node
            anchor = node.value.get("$anchor")
            if isinstance(anchor, str):
                yield f"{uri}#{anchor}", node
            work.extend((node.at(key), uri) for key in node.value)
        elif isinstance(node.value, list):
            work.extend((node.at(i), uri) for i in range(len(node.value)))


def read_json(text: str | bytes) -> Any:
    """JSON text with exact decimals; ``GrammarError`` with line and column when it is malformed."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise GrammarError(f"malformed JSON: {error.msg}", place=f"{error.lineno}:{error.colno}") from None
    except UnicodeDecodeError as error:
        raise GrammarError(f"the schema is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise GrammarError("the JSON text is nested too deeply to be read") from None


def _refuse_constant(name: str) -> Any:
    raise GrammarError(f"malformed JSON: {name} is not a JSON value")


def check_size(schema: Any, limits: Limits) -> None:
    """Raises ``LimitError`` for a schema with too many values or levels, ``GrammarError`` for a
    value that JSON does not have."""
    work: list[tuple[Any, int]] = [(schema, 0)]
    count = 0
    while work:
        value, depth = work.pop()
        count += 1
        if count > limits.max_schema_values:
            raise LimitError("max_schema_values", count, limits.max_schema_values)
        # Two JSON levels make one schema level ({"properties": {"a": ...}}).
        if depth > 2 * limits.max_depth:
            raise LimitError("max_depth", depth // 2, limits.max_depth)
        if isinstance(value, dict):
            for key, child in value.items():
                if not isinstance(key, str):
                    raise GrammarError(f"a member name must be a string, not {key!r}")
                work.append((child, depth + 1))
        elif isinstance(value, list):
            work.extend((child, depth + 1) for child in value)
        elif not (value is None or isinstance(value, (str, bool, int, float, Decimal))):
            raise GrammarError(f"{type(value).__name__} {value!r} is not a JSON value")
        elif isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            raise GrammarError(f"{value!r} is not a JSON value")


def json_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float, Decimal)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, (list, tuple)) else "an object"
