"""A schema document: reading it, and finding what a ``$ref`` points to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from maskwright.errors import GrammarError, LimitError
from maskwright.limits import Limits

_OLD_DIALECTS = ("draft-03", "draft-04", "draft-05", "draft-06", "draft-07")


class Node:
    """A subschema (or, with ``is_value``, a JSON value that must be matched exactly).

    Two nodes are equal when they are the same place of the document.  ``base`` is the pointer of the
    enclosing schema resource (the nearest ``$id``).  Immutable; a plain class, because compiling makes
    one for every place.
    """

    __slots__ = ("base", "is_value", "pointer", "value")

    def __init__(self, pointer: str, value: Any, base: str = "", is_value: bool = False) -> None:
        self.pointer = pointer
        self.value = value
        self.base = base
        self.is_value = is_value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.pointer == other.pointer and self.is_value == other.is_value

    def __hash__(self) -> int:
        return hash(self.pointer)

    def __repr__(self) -> str:
        return f"Node({self.pointer!r})"

    def at(self, *path: str | int) -> Node:
        """The subschema at a path below this one."""
        value, pointer = self.value, self.pointer
        for key in path:
            value = value[key]
            if isinstance(key, str) and ("~" in key or "/" in key):
                key = key.replace("~", "~0").replace("/", "~1")
            pointer = f"{pointer}/{key}"
        if type(value) is dict and "$id" in value and _resource_id(value) is not None:
            return Node(pointer, value, pointer)
        return Node(pointer, value, self.base)


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
    level = [schema]
    count = depth = 0
    while level:
        # Two JSON levels make one schema level ({"properties": {"a": ...}}).
        if depth > 2 * limits.max_depth:
            raise LimitError("max_depth", depth // 2, limits.max_depth)
        below: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is str or kind is bool or kind is int or value is None:
                pass
            elif isinstance(value, dict):
                for key in value:
                    if not isinstance(key, str):
                        raise GrammarError(f"a member name must be a string, not {key!r}")
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
            elif not isinstance(value, (str, bool, int, float, Decimal)):
                raise GrammarError(f"{type(value).__name__} {value!r} is not a JSON value")
            elif isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
                raise GrammarError(f"{value!r} is not a JSON value")
        count += len(level)
        if count > limits.max_schema_values:
            raise LimitError("max_schema_values", count, limits.max_schema_values)
        level = below
        depth += 1


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
