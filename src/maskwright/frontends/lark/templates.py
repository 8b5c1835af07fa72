"""Rules of templates, one for each list of arguments.

The package would make them while it compiles, and follow a template for ever that uses itself with ever larger
arguments.  Here they are made before, within limits.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from lark.grammar import NonTerminal, Symbol
from lark.tree import SlottedTree, Tree

from maskwright.base.deadline import check_time
from maskwright.errors import LimitError
from maskwright.frontends.lark.places import Places
from maskwright.limits import Limits

Rule: TypeAlias = tuple[str, list[str], Any, Any]
"""As the package has them: name, parameters, body, options."""
_LONGEST_NAME = 200
"""Characters of the name of a rule that a template made; it says the arguments."""

_SYMBOL = 20
"""What a symbol of a rule counts at least, in characters of a pattern: reading it takes the package as long."""


class Applied(NamedTuple):
    """Rules without templates, and the bodies that they were made of, in the order in which the package reads them."""

    rules: list[Rule]
    bodies: list[Any]


def apply_templates(rules: list[Rule], places: Places, limits: Limits) -> Applied:
    """The rules without templates, and those that templates make of what is used.

    Raises ``GrammarError`` for templates without arguments, and ``LimitError`` for too many or too large ones.
    """
    if not any(parameters for _, parameters, _, _ in rules):
        return Applied(rules, [body for _, _, body, _ in rules])
    return _Application(rules, places, limits).rules()


class _Template(NamedTuple):
    parameters: list[str]
    body: Any
    options: Any


class _Use(NamedTuple):
    """A rule to be made."""

    name: str
    template: str
    given: dict[str, Any]


class _Application:
    def __init__(self, rules: list[Rule], places: Places, limits: Limits) -> None:
        self.templates = {
            str(name): _Template(parameters, body, options)
            for name, parameters, body, options in rules
            if parameters
        }
        self.plain = [rule for rule in rules if not rule[1]]
        self.places = places
        self.limits = limits
        self.names: dict[tuple[str, ...], str] = {}
        """Of rules, by template and arguments."""
        self.depths: dict[str, int] = {}
        """How many rules of templates are inside each other in the arguments of one."""
        self.uses: list[_Use] = []
        self.size = 0

    def rules(self) -> Applied:
        bodies = [body for _, _, body, _ in self.plain]
        out: list[Rule] = [
            (name, [], self.copy(body, str(name), {}), options) for name, _, body, options in self.plain
        ]
        for use in self.uses:  # It grows.
            check_time()
            template = self.templates[use.template]
            bodies.append(template.body)
            out.append((use.name, [], self.copy(template.body, use.template, use.given), template.options))
        return Applied(out, bodies)

    def copy(self, body: Any, owner: str, given: dict[str, Any]) -> Any:
        """A body with arguments in place of parameters, and rules in place of templates."""
        copies: dict[int, Any] = {}
        for tree in body.iter_subtrees():
            parts = [copies[id(child)] if isinstance(child, Tree) else child for child in tree.children]
            if tree.data == "value":
                # Of its own, so that trees share nothing.
                part = given.get(parts[0].name, parts[0]) if isinstance(parts[0], Symbol) else parts[0]
                parts = [SlottedTree(part.data, list(part.children)) if isinstance(part, Tree) else part]
                if given:
                    self.size += max(len(_shown(part)), _SYMBOL)
            if tree.data == "template_usage":
                copies[id(tree)] = NonTerminal(self.use(parts, owner, given))
                continue
            for part in parts:
                name = _rule_of(part)
                if name in self.templates:
                    raise self.bare(owner, str(name))
            copies[id(tree)] = SlottedTree(tree.data, parts)
        return copies[id(body)]

    def use(self, parts: list[Any], owner: str, given: dict[str, Any]) -> str:
        """The name of a rule for a template and its arguments."""
        head, arguments = parts[0].name, [part.children[0] for part in parts[1:]]
        name = head
        if head in given:
            name = getattr(given[head], "name", _shown(given[head]))
        template = self.templates.get(name)
        if template is None:
            message = f"the template {owner} uses its parameter {head} as a template, and {name} is none"
            raise self.places.error(message, self.places.of_definition(owner))
        if len(arguments) != len(template.parameters):
            message = (
                f"{owner} gives {len(arguments)} arguments to {name}, which has {len(template.parameters)}"
            )
            raise self.places.error(message, self.places.of_definition(owner))
        key = (name, *map(_shown, arguments))
        made = self.names.get(key)
        if made is None:
            made = f"{name}{{{','.join(key[1:])}}}"
            self.size += len(made)
            if len(made) > _LONGEST_NAME:
                made = f"{name}{{{len(self.names)}}}"
            depth = 1 + max(self.depths.get(_shown(each), 0) for each in arguments)
            if depth > self.limits.max_depth:
                raise LimitError("max_depth", depth, self.limits.max_depth, **self.about(name))
            if self.size > self.limits.max_expansion:
                raise LimitError("max_expansion", self.size, self.limits.max_expansion, **self.about(name))
            self.names[key] = made
            self.depths[made] = depth
            self.uses.append(_Use(made, name, dict(zip(template.parameters, arguments, strict=True))))
        return made

    def about(self, template: str) -> dict[str, str | None]:
        """What an error says of a template that has no end."""
        return {
            "place": self.places.of_definition(template),
            "subject": f"the template {template} makes ever more rules",
        }

    def bare(self, owner: str, name: str) -> Exception:
        message = f"the rule {owner} uses the template {name} without arguments: write {name}{{...}}"
        return self.places.error(message, self.places.of_use(name, r"(?!\s*\{)"))


def _rule_of(part: Any) -> str | None:
    """The rule that a value stands for."""
    if isinstance(part, Tree) and part.data == "value" and isinstance(part.children[0], NonTerminal):
        return str(part.children[0].name)
    return None


def _shown(part: Any) -> str:
    """An argument as it is written."""
    if isinstance(part, Tree):
        return "..".join(map(str, part.children))
    return str(getattr(part, "name", part))
