"""Finding what identifies parts of a document, and documents elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, TypeAlias

from maskwright.frontends.json_schema.read.dialects import HOLDERS, MAPS, Dialect
from maskwright.frontends.json_schema.read.nodes import RECURSIVE, Resource, escape

Registry: TypeAlias = Mapping[str, Any] | Callable[[str], Any]
"""Schemas by URI.  A function returns None, or raises ``KeyError``, for what it does not have."""

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_URI = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL)


def join_uri(base: str, reference: str) -> str:
    """A URI reference against a base, without fragment (RFC 3986, section 5.2)."""
    if not base and "/." not in reference:
        return reference.partition("#")[0]
    scheme, authority, path, query = _parts(reference)
    if scheme is None:
        scheme, base_authority, base_path, base_query = _parts(base)
        if authority is None:
            authority = base_authority
            if not path:
                path = base_path
                query = base_query if query is None else query
            elif not path.startswith("/"):
                if authority is not None and not base_path:
                    path = _without_dots("/" + path)
                else:
                    path = _without_dots(base_path[: base_path.rfind("/") + 1] + path)
            else:
                path = _without_dots(path)
        else:
            path = _without_dots(path)
    else:
        path = _without_dots(path)
    return "".join(
        (
            "" if scheme is None else scheme + ":",
            "" if authority is None else "//" + authority,
            path,
            "" if query is None else "?" + query,
        )
    )


def _parts(uri: str) -> tuple[str | None, str | None, str, str | None]:
    # RFC 3986, appendix B; everything matches.
    match = _URI.match(uri)
    assert match is not None
    scheme, authority, path, query = match.groups()
    return scheme, authority, path, query


def _without_dots(path: str) -> str:
    if "." not in path:
        return path
    kept: list[str] = []
    parts = path.split("/")
    for part in parts:
        if part == "..":
            if kept and (kept[0] or len(kept) > 1):
                kept.pop()
        elif part != ".":
            kept.append(part)
    if parts[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept)


# --- identifiers ----------------------------------------------------------------------------

_IDENTIFYING = frozenset(["$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"])
"""What a schema has, of any dialect, that is identified."""


def identifiers(root: Resource, declared: Callable[[Any, str], Dialect | None]) -> Iterator[Resource]:
    """Fills in the anchors and embedded resources of a document; yields every embedded resource.

    Only places where a dialect has subschemas count: what looks like an identifier in a value or
    below an unknown keyword is none (2020-12 core, section 9.4.2).  ``declared`` gives the
    dialect that a schema at a place declares.
    """
    work: list[tuple[str, Any, Resource]] = [(root.pointer, root.value, root)]
    while work:
        pointer, schema, resource = work.pop()
        if not isinstance(schema, dict):
            continue
        if not _IDENTIFYING.isdisjoint(schema):
            if pointer != root.pointer:
                inner = _inner_resource(pointer, schema, resource, declared)
                if inner is not None:
                    resource = inner
                    resource.embedded[pointer] = resource
                    yield resource
            _add_anchors(pointer, schema, resource)
        for keyword, held in schema.items():
            if keyword not in HOLDERS:
                continue
            if isinstance(held, list):
                work.extend((f"{pointer}/{keyword}/{i}", item, resource) for i, item in enumerate(held))
            elif keyword in MAPS and isinstance(held, dict):
                start = f"{pointer}/{keyword}/"
                work.extend((start + escape(name), member, resource) for name, member in held.items())
            else:
                work.append((f"{pointer}/{keyword}", held, resource))


def own_identifier(schema: Any, dialect: Dialect) -> str | None:
    """The value of the identifier keyword, where it is one."""
    if dialect.identifier is None or not isinstance(schema, dict):
        return None
    identifier = schema.get(dialect.identifier)
    return identifier if isinstance(identifier, str) else None


def _inner_resource(
    pointer: str,
    schema: dict[str, Any],
    outer: Resource,
    declared: Callable[[Any, str], Dialect | None],
) -> Resource | None:
    dialect = outer.dialect
    if "$schema" in schema:
        dialect = declared(schema, pointer) or dialect
    identifier = own_identifier(schema, dialect)
    if identifier is None or (dialect.ref_hides_siblings and "$ref" in schema):
        return None
    name, _, fragment = identifier.partition("#")
    # Generators have written the pointer of the place as its identifier: that changes no base.
    if not name or fragment.startswith("/"):
        return None
    uri = join_uri(outer.uri, name)
    if fragment and uri == outer.uri:
        return None
    return Resource(uri, pointer, schema, dialect, outer.root)


def _add_anchors(pointer: str, schema: dict[str, Any], resource: Resource) -> None:
    dialect = resource.dialect
    names: dict[str, None] = {}
    if dialect.anchors and isinstance(schema.get("$anchor"), str):
        names[schema["$anchor"]] = None
    dynamic = schema.get("$dynamicAnchor") if dialect.dynamic else None
    if isinstance(dynamic, str) and dynamic != RECURSIVE:
        names[dynamic] = None
        resource.dynamic.setdefault(dynamic, (pointer, schema))
    if dialect.recursive and pointer == resource.pointer and schema.get("$recursiveAnchor") is True:
        resource.dynamic[RECURSIVE] = (pointer, schema)
    # Up to draft 7, a plain name is the fragment of an identifier (draft-07 core, section 8.2.3).
    if not (dialect.ref_hides_siblings and "$ref" in schema):
        fragment = (own_identifier(schema, dialect) or "").partition("#")[2]
        if fragment and not fragment.startswith("/"):
            names[fragment] = None
    for name in names:
        resource.anchors.setdefault(name, []).append((pointer, schema))


def refers_elsewhere(root: Resource, uris: Container[str]) -> bool:
    """Whether any reference in a document, wherever it stands, leads to no resource of it."""
    work: list[tuple[str, Any, Resource]] = [(root.pointer, root.value, root)]
    while work:
        pointer, value, resource = work.pop()
        if isinstance(value, dict):
            resource = resource.embedded.get(pointer, resource)
            for keyword in _REFERENCES:
                reference = value.get(keyword)
                if isinstance(reference, str) and not reference.startswith("#"):
                    if join_uri(resource.uri, reference) not in uris:
                        return True
            work.extend((f"{pointer}/{escape(name)}", member, resource) for name, member in value.items())
        elif isinstance(value, list):
            work.extend((f"{pointer}/{i}", item, resource) for i, item in enumerate(value))
    return False


# --- documents elsewhere --------------------------------------------------------------------


def registered(registry: Registry | None, uri: str) -> Any:
    """What the caller's registry has at a URI, or None."""
    if registry is None:
        return None
    try:
        if isinstance(registry, Mapping):
            found = registry.get(uri)
            return registry.get(uri + "#") if found is None else found
        return registry(uri)
    except KeyError:
        return None


def is_bundled(uri: str) -> bool:
    """Whether a URI belongs to json-schema.org, whose metaschemas a package has."""
    return uri.startswith(("http://json-schema.org/", "https://json-schema.org/"))


def bundled(uri: str) -> Any:
    """A metaschema of json-schema.org, or None.

    They come with the package jsonschema-specifications; without it there are none.
    """
    if not is_bundled(uri):
        return None
    try:
        from jsonschema_specifications import REGISTRY
    except ImportError:
        return None
    for spelling in (uri, uri.replace("https:", "http:", 1)):
        try:
            return REGISTRY.contents(spelling)
        except KeyError:
            continue
    return None
