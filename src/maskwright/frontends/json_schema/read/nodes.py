"""Places in schema documents: resources, and the subschemas in them."""

from __future__ import annotations

from typing import Any, TypeAlias

from maskwright.frontends.json_schema.read.dialects import DEFAULT, HOLDERS, MAPS, Dialect

RECURSIVE = "/"
"""What ``$recursiveAnchor: true`` stands under among dynamic anchors: a name that none can have."""


class Resource:
    """A schema resource: a document, or a subschema with an identifier of its own (2020-12 core, 4.3.5)."""

    def __init__(
        self, uri: str, pointer: str, value: Any, dialect: Dialect, root: Resource | None = None
    ) -> None:
        self.uri = uri
        """The absolute URI, without fragment; "" for a document that is not identified."""
        self.pointer = pointer
        self.value = value
        self.dialect = dialect
        self.root = root or self
        """The document."""
        self.embedded: dict[str, Resource] = root.embedded if root is not None else {}
        """All resources that begin inside of the document, by pointer."""
        self.ignored: frozenset[str] = frozenset()
        """Keywords of the document that mean nothing in this dialect."""
        self.special = False
        """Whether ``embedded`` or ``ignored`` has any."""
        self.anchors: dict[str, list[tuple[str, Any]]] = {}
        """Plain names of places; more than one when a name is ambiguous."""
        self.dynamic: dict[str, tuple[str, Any]] = {}
        """Those given by ``$dynamicAnchor``; ``RECURSIVE`` is ``$recursiveAnchor: true``."""
        self.binds: tuple[str, ...] = ()
        """The names in ``dynamic`` that a dynamic scope takes notice of."""
        self.targets: dict[str, Node] = {}
        """Where the references of this resource lead to, by their text."""
        self.repeated: dict[int, list[Node]] | None = None
        """What stands at several places, by id: a list for all of equal content, with the one that was asked for first."""

    def release(self) -> None:
        """Let go of what refers back."""
        self.targets.clear()
        self.repeated = None
        self.embedded.clear()
        self.root = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Resource({self.uri!r}, {self.pointer!r})"


Scope: TypeAlias = tuple[tuple[str, Resource], ...]
"""Dynamic anchors with the outermost resource on the way that has them, sorted by name."""

_NOWHERE = Resource("", "", True, DEFAULT)


class Node:
    """A subschema (or, with ``is_value``, a JSON value that must be matched exactly).

    ``negated`` asks for what does *not* satisfy it.  Two nodes are equal when they are the same place,
    asked for in the same way, and dynamic references below lead from both to the same places (``scope``).
    ``base`` is the schema resource around it; ``value`` lacks keywords that its dialect does not have.
    Immutable; a plain class, because compiling makes one for every place.
    """

    def __init__(
        self,
        pointer: str,
        value: Any,
        base: Resource = _NOWHERE,
        is_value: bool = False,
        negated: bool = False,
        scope: Scope = (),
    ) -> None:
        self.pointer = pointer
        self.value = value
        self.base = base
        self.is_value = is_value
        self.negated = negated
        self.scope = scope
        self.held: dict[str, list[Node]] | None = None
        """The subschemas that were asked for, by keyword (``keywords.held``)."""
        self._opposite: Node | None = None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Node)
            and self.pointer == other.pointer
            and self.is_value == other.is_value
            and self.negated == other.negated
            and self.scope == other.scope
        )

    def __hash__(self) -> int:
        if self.scope:
            return hash((self.pointer, self.negated, self.scope))
        return hash(self.pointer) ^ self.negated

    def __repr__(self) -> str:
        return f"Node({self.pointer!r}{', negated' if self.negated else ''})"

    def at(self, *path: str | int) -> Node:
        """The subschema at a path below this one, or the value: all below ``const`` and ``enum``."""
        value, pointer = self.value, self.pointer
        for key in path:
            value = value[key]
            pointer = f"{pointer}/{escape(key) if isinstance(key, str) else key}"
        first = path[0]
        if self.is_value or first == "const" or first == "enum":
            return Node(pointer, value, self.base, True)
        return self.subschema(pointer, value)

    def subschema(self, pointer: str, value: Any) -> Node:
        """The subschema ``value``, which is below this one."""
        if self.base.special:
            resource = self.base.embedded.get(pointer, self.base)
            return node_in(resource, pointer, value, self.scope)
        return Node(pointer, value, self.base, False, False, self.scope)

    def negation(self) -> Node:
        """The same place, asked for the other way: the same object each time."""
        opposite = self._opposite
        if opposite is None:
            opposite = Node(self.pointer, self.value, self.base, self.is_value, not self.negated, self.scope)
            self._opposite = opposite
            opposite._opposite = self
        return opposite

    def alike(self) -> Node:
        """The place of equal content that was asked for first, asked for in the same way; mostly the same object."""
        repeated = self.base.repeated
        if repeated is None or self.is_value or self.scope:
            return self
        places: list[Node] | None = repeated.get(id(self.value))
        if places is None:
            return self
        if not places:
            places.append(self.negation() if self.negated else self)
        return places[0].negation() if self.negated else places[0]


def node_in(resource: Resource, pointer: str, value: Any, scope: Scope) -> Node:
    """The subschema at a place of a resource, when it is come to through a dynamic scope."""
    if resource.ignored and isinstance(value, dict) and says_any(value, resource.ignored):
        value = {keyword: held for keyword, held in value.items() if keyword not in resource.ignored}
    if resource.binds:
        scope = entered(scope, resource)
    return Node(pointer, value, resource, False, False, scope)


def says_any(schema: dict[str, Any], keywords: frozenset) -> bool:  # type: ignore[type-arg]
    """Whether a schema object has one of these keywords."""
    for keyword in schema:  # noqa: SIM110
        if keyword in keywords:
            return True
    return False


def entered(scope: Scope, resource: Resource) -> Scope:
    """The dynamic scope inside a resource: what was bound further out stays."""
    bound = dict(scope)
    for name in resource.binds:
        bound.setdefault(name, resource)
    return scope if len(bound) == len(scope) else tuple(sorted(bound.items(), key=lambda item: item[0]))


def escape(key: str) -> str:
    """A reference token of a JSON pointer (RFC 6901, section 3)."""
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key


def path_of(schema: Any, pointer: str) -> list[tuple[str, str | int | None]]:
    """The keywords by which a place of the main document is reached, each with its key or index; []
    when the pointer leads elsewhere, or through what is no keyword."""
    if not pointer.startswith("/"):
        return []
    steps: list[tuple[str, str | int | None]] = []
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    i, value = 0, schema
    key: str | int | None
    while i < len(parts):
        keyword = parts[i]
        if not isinstance(value, dict) or keyword not in HOLDERS or keyword not in value:
            return []
        value, key = value[keyword], None
        i += 1
        if i < len(parts) and (isinstance(value, list) or keyword in MAPS):
            # Places that were made on the way have more behind their pointer than keys.
            part = parts[i]
            if isinstance(value, list):
                if not (part.isascii() and part.isdigit() and int(part) < len(value)):
                    return []
                key = int(part)
            elif part in value:
                key = part
            else:
                return []
            value = value[key]
            i += 1
        steps.append((keyword, key))
    return steps
