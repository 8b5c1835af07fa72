"""Which subschemas nothing satisfies, and what follows for the rest of the schema.

Every subschema is compiled as if it were a schema of its own, and the one grammar of all of them says
which are empty.  Beyond that, a member or item is dead when every conjunction in which the compiler
met it is empty; a branch when its own schema object excludes it, or when another branch includes it
(``oneOf``); and a value of ``enum`` when its schema object excludes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from maskwright.base.deadline import in_time
from maskwright.check.json_schema.inventory import ENFORCED
from maskwright.check.report import Finding
from maskwright.errors import (
    GrammarError,
    LimitError,
    Refusal,
    UnsupportedSchemaError,
)
from maskwright.frontends.json_schema.algebra.groups import Conjunction, Either, Literal
from maskwright.frontends.json_schema.algebra.normalize import Normalizer
from maskwright.frontends.json_schema.clashes import Clash, Explainer
from maskwright.frontends.json_schema.read.document import Document
from maskwright.frontends.json_schema.read.keywords import held, is_hidden
from maskwright.frontends.json_schema.read.nodes import Node, path_of
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.frontends.json_schema.surveyor import Surveyor
from maskwright.limits import Limits

_MAX_EXPLAINED = 50
_MAX_BRANCHES = 12
_MAX_VALUES = 100
_MAX_EFFECTS = 3


class DeadParts:
    """Finds what is dead in one document."""

    def __init__(self, document: Document, nodes: list[Node], options: SchemaOptions, limits: Limits) -> None:
        self.document = document
        self.nodes = nodes
        self.options = options
        self.limits = limits
        self.refusals: list[Refusal] = []
        """What the compiler refuses."""
        self.limit: LimitError | None = None
        """The first limit that the compiler runs into."""
        self.is_large = False
        """Whether some subschema is beyond a limit, so that its branches are better left alone."""
        self._surveyor = Surveyor(document, options, limits)
        self._explainer = Explainer(self._surveyor)
        self._explanations = _MAX_EXPLAINED
        self._found: dict[object, tuple[Clash, list[str]]] = {}

    def findings(self) -> list[Finding]:
        """What nothing satisfies.  Raises ``GrammarError`` for what only compiling finds malformed."""
        try:
            return list(self._findings())
        finally:
            self._surveyor.release()

    def _findings(self) -> Iterator[Finding]:
        root, surveyor = self.document.root, self._surveyor
        root_is_empty = surveyor.is_empty((root,))
        for error in surveyor.errors:
            if isinstance(error, GrammarError):
                raise error
            if isinstance(error, UnsupportedSchemaError):
                self.refusals += error.refusals
            elif self.limit is None:
                self.limit = error
        self.refusals += surveyor.refusals
        in_use = surveyor.in_use()
        dead = [n for n in in_time(self.nodes) if surveyor.is_empty((n,)) and not _is_plainly_false(n)]
        # Reasons lie at the bottom.
        for node in sorted(dead, key=lambda node: -node.pointer.count("/")):
            if node != root:
                self._explain(node)
        if root_is_empty:
            yield self._of_the_root(root)
        for clash, pointers in self._found.values():
            yield self._warning(clash, pointers)
        self.is_large = any(isinstance(error, LimitError) for error in surveyor.errors)
        if root_is_empty or self.is_large:
            return
        alone = set(dead)
        for pointer, conjunction in self._dead_together(in_use, alone).items():
            if not _is_condition(path_of(root.value, pointer)):
                what = effect(self.document, pointer) or "this is never used"
                yield from self._excluded(conjunction, pointer, what)
        for node in in_time(self.nodes):
            if node not in alone and isinstance(node.value, dict) and not is_hidden(node):
                yield from self._in_context(node, alone)

    def _dead_together(self, in_use: list[Conjunction], alone: set[Node]) -> dict[str, tuple[Node, ...]]:
        """Places that are dead wherever they were met, but not alone; and a conjunction that shows why."""
        empty = {conjunction for conjunction in in_time(in_use) if self._surveyor.is_empty(conjunction)}
        alive = {
            node
            for conjunction in in_time(in_use)
            if conjunction not in empty
            for node in _positive(conjunction)
        }
        found: dict[str, tuple[Node, ...]] = {}
        for conjunction in in_time(in_use):
            if conjunction not in empty or len(conjunction) < 2:
                continue
            nodes = tuple(literal for literal in conjunction if isinstance(literal, Node))
            if len(nodes) < len(conjunction) or any(n.negated or n.is_value or n in alone for n in nodes):
                continue
            dead = next((n for n in nodes if n not in alive and not _is_plainly_false(n)), None)
            # Rather one whose parts are all places of the schema.
            if dead is not None and (dead.pointer not in found or not any(" (" in n.pointer for n in nodes)):
                found[dead.pointer] = nodes
        return found

    def _explain(self, node: Node) -> None:
        if self._explanations == 0:
            return
        self._explanations -= 1
        clash = self._explainer.explain((node,))
        if clash is not None:
            self._found.setdefault(clash.core.identity, (clash.core, []))[1].append(node.pointer)

    def _of_the_root(self, root: Node) -> Finding:
        clash = self._explainer.explain((root,))
        if clash is None:
            return Finding("error", "unsatisfiable", "#", "nothing satisfies this schema")
        self._found.pop(clash.core.identity, None)
        message = f"nothing satisfies this schema: {clash.text(clash.place)}"
        return Finding("error", "unsatisfiable", clash.place, message, clash.core.constraints)

    def _warning(self, clash: Clash, pointers: list[str]) -> Finding:
        outermost = [p for p in pointers if not any(p.startswith(f"{q}/") for q in pointers)]
        effects = [f"{text} ({p})" for p in outermost if (text := effect(self.document, p))]
        shown = effects[:_MAX_EFFECTS]
        if len(effects) > len(shown):
            shown.append(f"{len(effects) - len(shown)} more")
        message = "nothing satisfies this: " + clash.text(clash.place)
        if shown:
            message += f"; so {', '.join(shown)}"
        return Finding("warning", "unsatisfiable", clash.place, message, clash.constraints)

    # --- branches and values that their own schema object excludes

    def _in_context(self, node: Node, alone: set[Node]) -> Iterator[Finding]:
        schema = node.value
        for keyword in ("anyOf", "oneOf"):
            if 1 < len(schema.get(keyword, ())) <= _MAX_BRANCHES:
                branches = held(node, keyword)
                around = _lacking(node, keyword)
                look = _Look(self, around)
                for i, branch in enumerate(branches):
                    if branch in alone or _is_plainly_false(branch):
                        continue
                    if around.value and look.is_empty((around, branch)):
                        yield from self._excluded(
                            (around, branch), branch.pointer, "this branch is never taken"
                        )
                    elif keyword == "oneOf":
                        yield from _included(look, branches, i)
        if "enum" in schema and len(schema) > 1 and 1 < len(schema["enum"]) <= _MAX_VALUES:
            around = _lacking(node, "enum")
            look = _Look(self, around)
            for i in range(len(schema["enum"])):
                value = node.at("enum", i)
                if look.is_empty((around, value)):
                    yield from self._excluded((around, value), value.pointer, "this value is never allowed")

    def _excluded(self, conjunction: tuple[Node, ...], pointer: str, what: str) -> Iterator[Finding]:
        clash = None
        if self._explanations:
            self._explanations -= 1
            clash = self._explainer.explain(conjunction)
        if clash is None:
            yield Finding("warning", "excluded", pointer, what)
        else:
            why = clash.text(pointer)
            if len(clash.constraints) == 1:
                why = f"{clash.constraints[0].pointer}: {clash.constraints[0].text} forbids it"
            yield Finding("warning", "excluded", pointer, f"{what}: {why}", clash.core.constraints)


class _Look:
    """Quick looks at conjunctions in which one schema object lacks a keyword."""

    def __init__(self, dead: DeadParts, around: Node) -> None:
        self.normalizer = Normalizer(dead.document, dead.options, dead.limits)
        self.around = around

    def is_empty(self, conjunction: Conjunction) -> bool:
        """Whether a conjunction is seen to be empty."""
        try:
            return self.normalizer.trivially_empty.conjunction(conjunction)
        except UnsupportedSchemaError:
            return False


def _is_plainly_false(node: Node) -> bool:
    """Whether a schema was written to allow nothing; draft 4 has no booleans."""
    schema = node.value
    if not isinstance(schema, dict):
        return schema is False
    return schema.get("not") in ({}, True) and ENFORCED & schema.keys() == {"not"}


def _is_condition(steps: list[tuple[str, str | int | None]]) -> bool:
    """Whether a place is inside of a condition, which demands nothing."""
    return any(keyword in ("if", "not") for keyword, _ in steps)


def _lacking(node: Node, keyword: str) -> Node:
    # What is unevaluated depends on all other keywords.
    lacking = (keyword, "unevaluatedItems", "unevaluatedProperties")
    value = {k: v for k, v in node.value.items() if k not in lacking}
    return Node(node.pointer, value, node.base, scope=node.scope)


def _included(look: _Look, branches: list[Node], i: int) -> Iterator[Finding]:
    for j, other in enumerate(branches):
        if j != i and look.is_empty((look.around, branches[i], other.negation())):
            message = f"this branch is never taken: whatever satisfies it satisfies {other.pointer} as well, and is refused"
            yield Finding("warning", "excluded", branches[i].pointer, message)
            return


def _positive(literals: tuple[Literal, ...]) -> Iterator[Node]:
    for literal in literals:
        if isinstance(literal, Either):
            for alternative in literal.alternatives:
                yield from _positive(alternative)
        elif isinstance(literal, Node) and not literal.negated:
            yield literal


def effect(document: Document, pointer: str) -> str:
    """What it means for the schema around that nothing satisfies a subschema; "" where nothing is known."""
    steps = path_of(document.root.value, pointer)
    if not steps or _is_condition(steps[:-1]):
        return ""
    keyword, key = steps[-1]
    template = _EFFECTS.get(keyword)
    if template is None:
        return ""
    shown: Any = repr(key) if isinstance(key, str) else key
    return template.format(shown)


_EFFECTS = {
    "additionalItems": "there are no further items",
    "additionalProperties": "no other member can appear",
    "anyOf": "branch {} is never taken",
    "contains": "no item counts",
    "dependencies": "the member {} can never appear",
    "dependentSchemas": "the member {} can never appear",
    "else": "the condition always holds",
    "if": "the condition never holds",
    "items": "there are no such items",
    "not": "it excludes nothing",
    "oneOf": "branch {} is never taken",
    "patternProperties": "no member can have a name like {}",
    "prefixItems": "there is no item {}",
    "properties": "the member {} can never appear",
    "propertyNames": "no member can appear",
    "then": "the condition never holds",
    "unevaluatedItems": "there are no further items",
    "unevaluatedProperties": "no other member can appear",
}
