"""A schema document: reading it, and finding what its references point to."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from decimal import Decimal
from functools import partial
from math import isfinite
from operator import is_
from typing import Any
from urllib.parse import unquote

from maskwright.base.deadline import check_time, let_go
from maskwright.errors import GrammarError, LimitError
from maskwright.frontends.json_schema.read.dialects import DEFAULT, DIALECTS, Dialect, declared_dialect
from maskwright.frontends.json_schema.read.nodes import RECURSIVE, Node, Resource, entered, escape, node_in
from maskwright.frontends.json_schema.read.references import (
    Registry,
    bundled,
    identifiers,
    is_bundled,
    join_uri,
    own_identifier,
    refers_elsewhere,
    registered,
)
from maskwright.frontends.json_text import read_json
from maskwright.frontends.size import check_length
from maskwright.limits import Limits

__all__ = ["Document", "Registry", "check_size", "json_type"]


class Document:
    """A whole schema, with the documents that it refers to.

    ``dialect`` is a name of ``SchemaOptions.dialect``, or a dialect; ``registry`` has the schemas
    that other URIs stand for.  Nothing is ever fetched.
    """

    def __init__(
        self,
        schema: Any,
        limits: Limits,
        dialect: str | Dialect = "auto",
        registry: Registry | None = None,
    ) -> None:
        if isinstance(schema, (str, bytes)):
            check_length(schema, limits)
            schema = read_json(schema)
        if not isinstance(schema, (dict, bool)):
            raise GrammarError(f"a schema is an object or a boolean, not {json_type(schema)}", place="#")
        self.limits = limits
        self._registry = registry
        self.values = 0
        self._resources: dict[str, list[Resource]] = {}
        self._dialects: dict[str, Dialect | None] = {}
        self._indexed: set[str] = set()
        self._may_have_identifiers = False
        self.shares = False
        """Whether places stand for others (``share``)."""
        self._shadow: Document | None = None
        if dialect == "auto":
            spoken = self._declared(schema, "") or DEFAULT
        else:
            spoken = dialect if isinstance(dialect, Dialect) else DIALECTS[dialect]
        self._main = self._add(schema, "", "", spoken)
        self.root = node_in(self._main, "", self._main.value, ())

    def share(self, repeated: dict[int, list[Node]]) -> None:
        """Let what is found out of a subschema hold for all places of equal content (``Node.alike``).

        ``repeated``: an empty list for all of equal content, by the id of each.  Not where an identifier, of whichever dialect, may
        change what the references inside are relative to.
        """
        main = self._main
        if repeated and not (main.special or main.binds):
            if not (
                self._may_have_identifiers and (_has_text(main.value, "$id") or _has_text(main.value, "id"))
            ):
                main.repeated = repeated
                self.shares = True

    def release(self) -> None:
        """Let go of what refers back, so that little waits for the garbage collector: opposites, which hold each other."""
        # A node holds those below it: one by one, they are freed as the list is emptied.
        nodes: list[Node] = [self.root]
        for node in nodes:
            if node.held is not None:
                for below in node.held.values():
                    nodes += below
                node.held = None
        let_go(nodes)
        for resources in self._resources.values():
            for resource in resources:
                resource.release()
        if self._shadow is not None:
            self._shadow.release()

    def resolve(self, node: Node, keyword: str = "$ref") -> Node:
        """What a reference of a subschema points to.

        ``$dynamicRef`` and ``$recursiveRef`` follow the dynamic scope of the node (2020-12 core,
        section 8.2.3.2; 2019-09 core, section 8.2.4.2).  Raises ``GrammarError`` for what cannot be
        resolved.
        """
        base = node.base
        reference: str = node.value[keyword]
        target = base.targets.get(reference) or self._target(node, keyword)
        if keyword != "$ref" and target.base.dynamic:
            name = RECURSIVE if keyword == "$recursiveRef" else unquote(reference.partition("#")[2])
            initial = target.base.dynamic.get(name)
            if initial is not None and initial[0] == target.pointer:
                for bound, resource in node.scope:
                    if bound == name:
                        return node_in(resource, *resource.dynamic[name], node.scope)
        if not node.scope:
            return target
        scope = entered(node.scope, target.base)
        return Node(target.pointer, target.value, target.base, False, False, scope)

    def ignored_keywords(self, node: Node) -> list[str]:
        """Assertions that stand at a place of the document, but mean nothing in its dialect."""
        root, ignored = node.base.root, node.base.ignored
        value = root.value
        for part in node.pointer[len(root.pointer) :].split("/")[1:] if ignored else ():
            value = value[int(part)] if isinstance(value, list) else value[_unescape(part)]
        return [keyword for keyword in value if keyword in ignored] if isinstance(value, dict) else []

    def _target(self, node: Node, keyword: str) -> Node:
        base, reference, place = node.base, node.value[keyword], f"{node.pointer}/{keyword}"
        target = self._find(base, reference, place)
        if target is not None:
            base.targets[reference] = target
            return target
        target = self._find_by_other_identifiers(node, reference, place)
        if target is not None:
            return target
        name, _, fragment = reference.partition("#")
        uri = join_uri(base.uri, name) if name else base.uri
        if fragment and (not name or uri in self._resources):
            missing = f"no subschema of {uri or 'this document'} has the anchor {fragment!r}"
        else:
            missing = f"nothing here has the identifier {uri!r}, and remote schemas are never fetched: "
            missing += "give it in the registry" if self._registry is None else "the registry has no such URI"
            if is_bundled(uri):
                missing += ", or install jsonschema-specifications, which has the metaschemas"
        raise GrammarError(f"{reference!r} cannot be resolved: {missing}", place=place)

    def _find(self, base: Resource, reference: str, place: str) -> Node | None:
        name, _, fragment = reference.partition("#")
        resource: Resource | None = base
        if name:
            resource = self._resource(join_uri(base.uri, name), place)
            if resource is None:
                return None
        assert resource is not None
        fragment = unquote(fragment)
        if not fragment:
            return node_in(resource, resource.pointer, resource.value, ())
        if fragment.startswith("/"):
            try:
                return _by_pointer(resource, fragment, place)
            except GrammarError:
                if name or resource is resource.root:
                    raise
            # Many identifiers were not meant to change what the pointers beside them are relative to.
            return _by_pointer(resource.root, fragment, place)
        self._index(resource.root)
        found = resource.anchors.get(fragment)
        if found is None:
            return None
        if len(found) > 1:
            raise _ambiguous(reference, [pointer for pointer, _ in found], place)
        return node_in(resource, *found[0], ())

    def _find_by_other_identifiers(self, node: Node, reference: str, place: str) -> Node | None:
        # `id` for `$id` or the reverse: often the declared dialect is not the one that was meant.
        if node.base.root is not self._main:
            return None
        if self._shadow is None:
            other = "$id" if self._main.dialect.identifier == "id" else "id"
            dialect = replace(self._main.dialect, identifier=other, references=("$ref",), anchors=False)
            self._shadow = Document(self._main.value, self.limits, dialect)
        base, pointer = self._shadow._main, node.pointer
        while pointer:
            if pointer in base.embedded:
                base = base.embedded[pointer]
                break
            pointer = pointer.rpartition("/")[0]
        try:
            found = self._shadow._find(base, reference, place)
        except GrammarError:
            return None
        if found is None or found.base.root is not self._shadow._main:
            return None
        return _by_pointer(self._main, found.pointer, place)

    # --- resources

    def _resource(self, uri: str, place: str) -> Resource | None:
        found = self._resources.get(uri)
        if found is None:
            schema = registered(self._registry, uri)
            if schema is None:
                schema = bundled(uri)
            if schema is None:
                return None
            self._take_in(schema, uri, place)
            found = self._resources[uri]
        if len(found) > 1:
            raise _ambiguous(uri, [resource.pointer for resource in found], place)
        return found[0]

    def _take_in(self, schema: Any, uri: str, place: str) -> None:
        """Adds a document that is not the main one; without ``$schema`` it speaks the dialect of that, whoever refers to it first."""
        pointer = uri + "#"
        try:
            if isinstance(schema, (str, bytes)):
                check_length(schema, self.limits)
                schema = read_json(schema)
            if not isinstance(schema, (dict, bool)):
                raise GrammarError(f"a schema is an object or a boolean, not {json_type(schema)}")
            # A function may have a document for every URI, each of which refers to the next.
            self.values += _VALUES_OF_A_DOCUMENT
            self._add(schema, uri, pointer, self._declared(schema, pointer) or self._main.dialect)
        except GrammarError as error:
            raise GrammarError(f"what the registry has for {uri!r}: {error}", place=place) from None

    def _add(self, schema: Any, uri: str, pointer: str, dialect: Dialect) -> Resource:
        self.values, names, plain = check_size(schema, self.limits, self.values)
        if not plain:
            schema = plain_copy(schema)
        self._may_have_identifiers = "$id" in names or "id" in names
        root = Resource(uri, pointer, schema, dialect)
        self._resources[uri] = [root]
        if not isinstance(schema, dict):
            return root
        own = own_identifier(schema, dialect)
        if own is not None:
            root.uri = join_uri(uri, own)
            self._resources.setdefault(root.uri, [root])
        # Most documents are one resource, which takes no walk through all places to know.
        telling = "$dynamicAnchor" in schema or "$recursiveAnchor" in schema
        for name in ("$schema", "$dynamicAnchor", dialect.identifier):
            telling = telling or (name in names and _has_text(schema, name))
        if telling:
            self._index(root)
        for resource in (root, *root.embedded.values()):
            ignored = resource.dialect.ignored
            if ignored and not (ignored.isdisjoint(names) and ignored.isdisjoint(schema)):
                resource.ignored = ignored
            resource.special = bool(root.embedded or resource.ignored)
        return root

    def _index(self, root: Resource) -> None:
        """Finds the identifiers inside of a document."""
        if root.pointer in self._indexed:
            return
        self._indexed.add(root.pointer)
        found: dict[str, list[Resource]] = {root.uri: [root]}
        for resource in identifiers(root, self._declared):
            found.setdefault(resource.uri, []).append(resource)
        for uri, resources in found.items():
            if self._resources.setdefault(uri, resources)[0] is root:
                self._resources[uri] = resources
        candidates: dict[str, int] = {}
        for resource in (root, *root.embedded.values()):
            for name in resource.dynamic:
                candidates[name] = candidates.get(name, 0) + 1
        if candidates:
            # A name that only one resource can ever have leads there on every way.
            alone = root.pointer == "" and not refers_elsewhere(root, self._resources)
            for resource in (root, *root.embedded.values()):
                resource.binds = tuple(n for n in resource.dynamic if not alone or candidates[n] > 1)

    def _declared(self, schema: Any, pointer: str) -> Dialect | None:
        """The dialect that a schema declares, if it does."""
        uri = schema.get("$schema") if isinstance(schema, dict) else None
        if not isinstance(uri, str):
            return None
        if uri not in self._dialects:
            self._dialects[uri] = declared_dialect(
                uri, partial(registered, self._registry), f"{pointer}/$schema"
            )
        return self._dialects[uri]


def _by_pointer(resource: Resource, fragment: str, place: str) -> Node:
    # The resource changes where the path leads into another one (2020-12 core, section 9.2.1).
    value, pointer = resource.value, resource.pointer
    for part in fragment.split("/")[1:]:
        key = part
        if "~" in part:
            key = _unescape(part)
            part = escape(key)
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and _is_index(key) and int(key) < len(value):
            value = value[int(key)]
        else:
            raise GrammarError(
                f"nothing at {fragment!r}: {key!r} is missing in {pointer or '#'}", place=place
            )
        pointer = f"{pointer}/{part}"
        if resource.embedded:
            resource = resource.embedded.get(pointer, resource)
    return node_in(resource, pointer, value, ())


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _has_text(schema: Any, name: str) -> bool:
    # Members of such names are strings where they are keywords, schemas where they name properties.
    work = [schema]
    while work:
        value = work.pop()
        kind = type(value)
        if kind is str or kind is bool:
            continue
        if isinstance(value, dict):
            if name in value and type(value[name]) is str and value is not schema:
                return True
            work += value.values()
        elif isinstance(value, list):
            work += value
    return False


_VALUES_OF_A_DOCUMENT = 100
"""A document elsewhere counts as so many values, beside those that it has."""


def _is_index(key: str) -> bool:
    # RFC 6901, section 4
    return key.isascii() and key.isdecimal() and (key == "0" or key[0] != "0") and len(key) < 10


def _ambiguous(name: str, pointers: list[str], place: str) -> GrammarError:
    places = " and ".join(pointer or "#" for pointer in sorted(pointers)[:2])
    return GrammarError(f"{name!r} is ambiguous: it identifies {places}; rename one", place=place)


def _is_counted_only(value: object) -> bool:
    return type(value) is str or type(value) is bool or type(value) is int or value is None


def check_size(schema: Any, limits: Limits, before: int = 0) -> tuple[int, set[str], bool]:
    """The number of values, ``before`` other ones included, all member names below the top, and whether it is all
    made of dict, list and str themselves, not of subclasses.

    Raises ``LimitError`` for too many values or levels, ``GrammarError`` for a value that JSON does
    not have.
    """
    # What is a string, a boolean, an integer or null is only counted, with what holds it.
    level: list[Any] = [schema]
    count = before + 1
    depth = 0
    plain = True
    names: set[str] = set()
    more = True
    looked = 0
    odd = False
    while more:
        # Two JSON levels make one schema level ({"properties": {"a": ...}}).
        if depth > 2 * limits.max_depth:
            raise LimitError("max_depth", (depth + 1) // 2, limits.max_depth)
        if count > limits.max_schema_values:
            raise LimitError("max_schema_values", count, limits.max_schema_values)
        below: list[Any] = []
        more = False
        for value in level:
            looked += 1
            if looked & 31 == 1:
                check_time()
            held: Collection[Any]
            if type(value) is dict:
                members: dict[Any, Any] = value
                count += len(members)
                more = more or len(members) > 0
                for name, part in members.items():
                    looked += 1
                    if looked & 1023 == 1:
                        check_time()
                    if type(name) is not str:
                        odd = True
                    if depth:
                        names.add(name)
                    if not _is_counted_only(part):
                        below.append(part)
                continue
            if isinstance(value, dict):
                plain, odd = False, True
                if depth:
                    names.update(value)
                held = value.values()
            elif isinstance(value, list):
                plain = plain and type(value) is list
                held = value
            elif _is_counted_only(value):
                continue
            elif not _is_scalar(value):
                message = f"{type(value).__name__} {shown(value)} is not a JSON value"
                raise GrammarError(message, place=_place(schema, partial(is_, value)))
            else:
                plain = plain and not isinstance(value, str)
                continue
            count += len(held)
            more = more or len(held) > 0
            for part in held:
                if not _is_counted_only(part):
                    below.append(part)
        level = below
        depth += 1
    for known in ((names, schema) if isinstance(schema, dict) else (names,)) if odd else ():
        for name in known:
            if not isinstance(name, str):
                message = f"a member name must be a string, not {shown(name)}"
                raise GrammarError(message, place=_place(schema, partial(_has_name, name=name)))
            plain = plain and type(name) is str
    return count, names, plain


def plain_copy(value: Any) -> Any:
    """The same value out of dict, list and str themselves: what its subclasses do is their own."""
    if isinstance(value, dict):
        return {str.__str__(name): plain_copy(held) for name, held in value.items()}
    if isinstance(value, list):
        return [plain_copy(held) for held in value]
    return str.__str__(value) if isinstance(value, str) else value


def _is_scalar(value: Any) -> bool:
    if isinstance(value, (float, Decimal)):
        return value.is_finite() if isinstance(value, Decimal) else isfinite(value)
    return isinstance(value, (str, bool, int))


def _has_name(value: Any, name: object) -> bool:
    return isinstance(value, dict) and name in value


def _place(schema: Any, is_wanted: Callable[[Any], bool]) -> str:
    """The pointer of the first such value, level by level; there is one."""
    level = [("", schema)]
    while True:
        below: list[tuple[str, Any]] = []
        for pointer, value in level:
            if is_wanted(value):
                return pointer or "#"
            if isinstance(value, dict):
                # A name may be no string further up as well.
                named = ((n if isinstance(n, str) else shown(n), v) for n, v in value.items())
                below.extend((f"{pointer}/{escape(name)}", v) for name, v in named)
            elif isinstance(value, list):
                below.extend((f"{pointer}/{i}", v) for i, v in enumerate(value))
        level = below


def shown(value: Any) -> str:
    """A value for a message, shortened."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "a number of very many digits" if isinstance(value, int) else f"a long {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def json_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float, Decimal)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, (list, tuple)):
        return "an array"
    return "an object" if isinstance(value, dict) else f"a {type(value).__name__}: make it a dict"
