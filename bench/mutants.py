"""Mutation testing: would the tests notice?  One small change at a time in a module, and its nearest tests run until one fails.

    python bench/mutants.py                                # every module of the table, 20 changes each
    python bench/mutants.py ir.prune --count 0             # all changes of one
    python bench/mutants.py ir.prune --only 57             # one change again, by its number

A compiled module is loaded as plain Python for this, where that works without those that were compiled against it.  Mutants that survive are either
equal to the original in all that can be observed, or a hole in the tests: each is printed with its line.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
TESTS: dict[str, tuple[str, ...]] = {
    "ir.adjacency": ("lexing", "lexing_lookahead", "check_grammar", "lark"),
    "base.disk_cache": ("disk_cache", "engine_cache", "table_cache"),
    "frontends.characters": ("gbnf", "structural_tag"),
    "frontends.json_schema.numbers.multiples": ("multiples", "numbers", "number_digits"),
    "frontends.json_schema.numbers.texts": ("numbers", "number_digits", "number_range"),
    "frontends.json_schema.algebra.unevaluated": ("json_schema", "dialects", "schema_fuzz", "official_suite"),
    "regular.merging": ("merging", "lexing", "lark"),
    "ir.prune": ("productive_rules", "json_schema", "names_running_out", "structural_tag"),
    "compiling.symbols": ("symbols", "search"),
    "regex.assertions": ("regex", "regex_source"),
    "regular.determinize": ("automata", "regex", "formats"),
    "frontends.json_schema.algebra.clauses": ("json_schema", "names_running_out", "optional_discriminator"),
    "frontends.json_schema.emit.objects": ("json_schema", "names_running_out", "optional_discriminator"),
}  # fmt: skip
"""By module, the tests that are about it."""
SECONDS = 240
KILLED, SURVIVED, LATE = "killed", "SURVIVED", "killed: no end"

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


def changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Callable[[], None]]]:
    """All small changes: where, what, and how.  Annotations and texts stay."""
    for node in _code(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
            other = _COMPARED[type(node.ops[0])]
            yield node, f"{type(node.ops[0]).__name__} -> {other.__name__}", _setting(node.ops, 0, other())
        elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _COMPUTED:
            new = _COMPUTED[type(node.op)]
            yield node, f"{type(node.op).__name__} -> {new.__name__}", _setting(node, "op", new())
        elif isinstance(node, ast.BoolOp):
            opposite = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, f"{type(node.op).__name__} swapped", _setting(node, "op", opposite)
            yield node, "last operand dropped", lambda node=node: node.values.pop()
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield node, "condition negated", _setting(node, "test", ast.UnaryOp(ast.Not(), node.test))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, f"{node.value} -> {not node.value}", _setting(node, "value", not node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield node, f"{node.value} -> {node.value + 1}", _setting(node, "value", node.value + 1)
        elif isinstance(node, ast.Return) and not isinstance(node.value, (ast.Constant, type(None))):
            yield node, "returns None", _setting(node, "value", ast.Constant(None))
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            for i, statement in enumerate(block if isinstance(block, list) else ()):
                if isinstance(statement, (ast.Continue, ast.Break)):
                    other_way = ast.Break() if isinstance(statement, ast.Continue) else ast.Continue()
                    yield statement, "continue and break swapped", _setting(block, i, other_way)
                elif isinstance(statement, (ast.AugAssign, ast.Raise)) or (
                    isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
                ):
                    yield statement, "left out", _setting(block, i, ast.Pass())


def _setting(holder: Any, place: str | int, value: object) -> Callable[[], None]:
    if isinstance(place, str):
        return lambda: setattr(holder, place, value)
    return lambda: holder.__setitem__(place, value)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are run, and not only read by a type checker."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _code(child)


class Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a changed text instead of a module."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self._name, self._path, self._tree = name, path, tree

    def find_spec(
        self, name: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=self)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._tree, str(self._path), "exec"), module.__dict__)


def path_of(module: str) -> Path:
    return ROOT / "src" / "maskwright" / (module.replace(".", "/") + ".py")


def mutant(module: str, number: int | None) -> tuple[ast.Module, str]:
    """The changed module, and what is changed; the module as it is for None."""
    source = path_of(module).read_text(encoding="utf-8")
    tree = ast.parse(source)
    what = "nothing"
    if number is not None:
        node, kind, apply = list(changes(tree))[number]
        line = getattr(node, "lineno", 0)
        what = f"line {line}: {kind}: {source.splitlines()[line - 1].strip()}"
        apply()
    return ast.fix_missing_locations(tree), what


def run(module: str, number: int | None) -> tuple[str, str]:
    """What became of a mutant, and what it is."""
    tree, what = mutant(module, number)
    instead = Instead(f"maskwright.{module}", path_of(module), tree)
    return tested(lambda: sys.meta_path.insert(0, instead), TESTS[module], SECONDS), what


def tested(change: Callable[[], None], names: Iterable[str], seconds: float) -> str:
    """What becomes of a change that is made in a process of its own, before the package is imported, within so many seconds."""
    tests = [str(next((ROOT / "tests").rglob(f"test_{name}.py"))) for name in names]
    child = os.fork()
    if not child:
        os.setpgrp()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        change()
        import pytest

        from maskwright.limits import DEFAULT_LIMITS

        # Plain Python takes longer: nothing is killed for being late.
        object.__setattr__(DEFAULT_LIMITS, "max_seconds", 60.0)
        try:
            ended = int(
                pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow or sanitized", *tests])
            )
        except BaseException:
            ended = 1
        os._exit(ended)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return SURVIVED if os.waitstatus_to_exitcode(status) == 0 else KILLED
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return LATE


def ready(source: Path) -> None:
    """What takes long to import and knows nothing of the package is imported once."""
    os.environ.setdefault("CI", "true")  # the same examples for all mutants
    sys.path[:0] = [str(source), str(ROOT / "tests")]
    for name in ("hypothesis", "numpy", "pytest"):
        importlib.import_module(name)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", help=f"of: {', '.join(TESTS)}")
    parser.add_argument(
        "--count", type=int, default=20, help="changes drawn of each module; 0 is all of them"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the change with this number")
    parser.add_argument("--out", type=Path, help="file for the shares")
    args = parser.parse_args()
    ready(ROOT / "src")
    shares = {}
    for module in args.modules or TESTS:
        if run(module, None)[0] != SURVIVED:
            print(f"{module}: its tests fail without any change; it cannot be loaded as plain Python")
            continue
        every = range(len(list(changes(ast.parse(path_of(module).read_text(encoding="utf-8"))))))
        drawn = sorted(random.Random(args.seed).sample(every, min(args.count or len(every), len(every))))
        found = []
        for number in [args.only] if args.only is not None else drawn:
            outcome, what = run(module, number)
            found.append(outcome)
            if outcome == SURVIVED:
                print(f"{module} {number}: {outcome}: {what}", flush=True)
        shares[module] = {"tried": len(found), "of": len(every), "killed": len(found) - found.count(SURVIVED)}
        print(f"{module}: {shares[module]['killed']} of {len(found)} killed", flush=True)
    if args.out is not None:
        args.out.write_text(json.dumps(shares, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
