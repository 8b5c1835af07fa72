"""The package's loader, made safe for grammars that grow without end: the only module that asks it for a grammar."""

from __future__ import annotations

import os
from collections.abc import Callable, ItemsView, Sequence
from difflib import get_close_matches
from typing import Any

from lark import Tree
from lark.exceptions import GrammarError as LarkGrammarError
from lark.exceptions import LarkError
from lark.load_grammar import EXT, GrammarBuilder, PrepareLiterals, TerminalTreeToPattern, stdlib_loader
from lark.load_grammar import Grammar as LarkGrammar
from lark.load_grammar import _get_mangle as mangler
from lark.tree import SlottedTree

from maskwright.base.deadline import check_time
from maskwright.errors import GrammarError
from maskwright.frontends.lark.expansion import check_expansion
from maskwright.frontends.lark.groups import split_rules
from maskwright.frontends.lark.places import Places
from maskwright.frontends.lark.size import check_size
from maskwright.frontends.lark.templates import Rule, apply_templates
from maskwright.limits import Limits

_NAME = "<grammar>"


def load(text: str, import_paths: Sequence[str], limits: Limits) -> tuple[LarkGrammar, list[str]]:
    """A grammar without templates, in which no rule has many expansions; and the rules that its author wrote.

    Raises the package's ``LarkError``, ``GrammarError``, ``LimitError`` and ``OSError``.
    """
    places = Places(text)
    builder = _Builder(list(import_paths), places, limits)
    builder.load_grammar(text, _NAME)
    grammar = builder.build()
    starts = []
    for name, parameters, tree, _ in grammar.rule_defs:
        if tree is None:
            message = f"the rule {name} is only declared: give it a body (terminals can be declared alone)"
            raise places.error(message, places.of_use(str(name)))
        if not parameters:
            starts.append(str(name))
    written: list[Any] = grammar.rule_defs
    applied = apply_templates(written, places, limits)
    rules: list[Any] = split_rules(applied.rules, places, limits)
    if applied.rules is not written or len(rules) != len(applied.rules):
        rules.insert(0, _in_order(applied.bodies))
    grammar.rule_defs = rules
    return grammar, starts


def read_terminals(grammar: LarkGrammar) -> None:
    """Put the pattern of each terminal in place of its tree.

    The package would do so when it compiles the grammar, but copy the tree of a terminal for each of its uses first, and free all
    copies at once.  Raises what it raises.
    """
    for name, (tree, _) in grammar.term_defs:
        found = [] if tree is None else list(tree.find_data("expansion"))
        if len(found) == 1 and not found[0].children:
            raise LarkGrammarError(f"Terminals cannot be empty ({name})")
    patterns, prepare = _Patterns(), PrepareLiterals()
    grammar.term_defs = [
        (name, (tree and Tree("pattern", [patterns.of(prepare.transform(tree))]), priority))
        for name, (tree, priority) in grammar.term_defs
    ]


class _Patterns(TerminalTreeToPattern):
    """The patterns of trees, each made once."""

    def __init__(self) -> None:
        super().__init__()
        self._made: dict[int, tuple[Any, Any]] = {}
        """By the tree's identity; with the tree, which has to live as long."""

    def of(self, root: Any) -> Any:
        stack: list[tuple[Any, bool]] = [(root, False)]
        while stack:
            tree, below = stack.pop()
            if id(tree) in self._made:
                continue
            if below:
                children = [
                    self._made[id(child)][1] if isinstance(child, Tree) else child for child in tree.children
                ]
                self._made[id(tree)] = tree, self._call_userfunc(tree, children)  # type: ignore[no-untyped-call]
                continue
            stack.append((tree, True))
            stack.extend((child, False) for child in tree.children if isinstance(child, Tree))
        return self._made[id(root)][1]


def _in_order(bodies: list[Any]) -> Rule:
    """A rule that nothing uses, with all literals as the package would come across them.

    It numbers those without a name, and of patterns that are alike in length, the name decides which one counts.
    """
    literals: dict[tuple[str, ...], Any] = {}
    for body in bodies:
        for tree in body.iter_subtrees():
            if tree.data in ("literal", "range"):
                literals.setdefault(tuple(map(str, tree.children)), tree)
    values: list[Any] = [
        SlottedTree("value", [SlottedTree(each.data, each.children)]) for each in literals.values()
    ]
    return "__literals", [], SlottedTree("expansions", [SlottedTree("expansion", values)]), None


class _Definitions(dict[str, Any]):
    """Definitions by name, measured when the builder asks for all of them.

    It does so at the end of a text, to put terminals in place of their names; that takes as long as the result is
    large, and there is no other point at which it can be stopped.
    """

    def __init__(self, places: Places, limits: Limits) -> None:
        super().__init__()
        self.places = places
        self.limits = limits

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        items = super().items()
        check_expansion(dict(items), self.places, self.limits)
        return items


class _Builder(GrammarBuilder):
    def __init__(
        self, import_paths: list[Any], places: Places, limits: Limits, files: tuple[Any, ...] = ()
    ) -> None:
        super().__init__(False, import_paths)
        self.places = places
        self.limits = limits
        self.files = files
        """The files that are being imported, each by the one before it."""
        self._definitions = _Definitions(places, limits)

    def do_import(
        self, dotted_path: Any, base_path: Any, aliases: Any, base_mangle: Callable[[str], str] | None = None
    ) -> None:
        # The package's own method begins the next file with a builder of its own, and follows cycles.
        check_time()
        mangle = mangler("__".join(dotted_path), aliases, base_mangle)
        path, shown = os.path.join(*dotted_path) + EXT, ".".join(dotted_path)
        try:
            file, text = self.find(path, base_path)
        except FileNotFoundError:
            message = f"an imported grammar was not found: {path}; give its folder in import_paths"
            raise self.at_import(message, shown) from None
        if file in self.files:
            raise self.at_import(f"the imported grammar {shown} imports itself", shown)
        check_size(text, self.limits)
        builder = _Builder(self.import_paths, self.places, self.limits, (*self.files, file))
        try:
            builder.load_grammar(text, file, mangle)
        except LarkError as error:
            if " at line " not in str(error):
                raise
            # The place is one in that file.
            raise self.at_import(
                f"in the imported grammar {shown}: {' '.join(str(error).split())}", shown
            ) from None
        self._check_names(builder._definitions, shown, list(map(str, aliases)), mangle)
        builder._remove_unused(map(mangle, aliases))  # type: ignore[no-untyped-call]
        for name in builder._definitions:
            if name in self._definitions:
                message = f"{name} is imported from {shown}, and defined already"
                raise self.places.error(message, self.places.of_definition(str(name)))
        self.places.imported.update(map(str, builder._definitions))
        self._definitions.update(builder._definitions)

    def find(self, path: str, base: Any) -> tuple[Any, str]:
        """The file of an import and its text: in the caller's paths, beside the importing file, or the package's."""
        for source in [*self.import_paths, *([base] if isinstance(base, str) else []), stdlib_loader]:
            try:
                if callable(source):
                    file, text = source(base, path)
                    return file, str(text)
                file = os.path.join(source, path)
                with open(file, encoding="utf8") as opened:
                    return file, opened.read()
            except UnicodeDecodeError:
                raise GrammarError(f"the imported grammar {path} is not in UTF-8") from None
            except OSError:
                continue
        raise FileNotFoundError(2, "no such grammar", path)

    def _check_names(
        self, definitions: dict[str, Any], path: str, names: list[str], mangle: Callable[[str], str]
    ) -> None:
        """Refuse a name that the imported grammar does not define: the package takes it, and misses it where it is used."""
        start = mangle(" ")[:-1]  # of all other names
        for name in names:
            if mangle(name) in definitions:
                continue
            own = [each.removeprefix(start) for each in definitions if each.startswith(start)]
            own += [each for each in names if mangle(each) in definitions]
            close = get_close_matches(name, [each for each in own if each.isupper() == name.isupper()], 1)
            kind = "terminal" if name.isupper() else "rule"
            hint = f": did you mean {close[0]}?" if close else ""
            raise self.places.error(
                f"{path}{EXT} has no {kind} {name}{hint}", self.places.of_imported(path, name)
            )

    def at_import(self, message: str, path: str) -> GrammarError:
        return self.places.error(message, self.places.of_import(path))
