"""The order of packages, who may import whom, what ``import maskwright`` costs, and the sizes of files."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
from importlib import machinery
from pathlib import Path

import pytest
from places import ROOT

import maskwright
from maskwright import sampling

SOURCE = ROOT / "src" / "maskwright"
MODULES = {
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}
EXTENSIONS = ("maskwright._core", "maskwright._subsets")
HEAVY = {
    "fastapi", "httpx2", "jedi", "jsonschema", "lark", "llama_cpp", "lsprotocol", "matplotlib", "mistral_common", "mlx", "optuna", "parso", "prometheus_client", "pydantic",
    "pydantic_core", "pygls", "ray", "safetensors", "sentencepiece", "sglang", "starlette", "tiktoken", "tokenizers", "torch", "tqdm", "transformers", "triton",
    "uvicorn", "vllm",
}  # fmt: skip
EDGES = (
    "maskwright.hf",
    "maskwright.generation",
    "maskwright.demo",
    "maskwright.vocabulary.tokenizers",
    "maskwright.cli",
    "maskwright.masks.trie_torch",
    "maskwright.masks.bitmask_kernel",
    "maskwright.masks.mask_table",
    "maskwright.integrations",
    "maskwright.offline.endpoints",
    "maskwright.serve",
    "maskwright.sampling.huggingface",
    "maskwright.sampling.recorder",
    "maskwright.search.tuning",
    "maskwright.frontends.python.schemas",
    *(f"maskwright.frontends.lark.{name}" for name in ("loading", "expansion", "templates", "groups")),
)

# What lies in a package, in the order of the way of data: each may import those before it.
ORDERS = {
    "maskwright": (
        "errors",
        "limits",
        "base",
        "_engine",
        "_subsets",
        "regular",
        "regex",
        "ir",
        "algebra",
        "frontends",
        "sources",
        "_core",
        "vocabulary",
        "masks",
        "compiling",
        "check",
        "pages",
        "generation",
        "hf",
        "sampling",
        "search",
        "diffusion",
        "demo",
        "offline",
        "serve",
        "integrations",
        "conformance",
        "playground",
        "cli",
        "__main__",
    ),
    "maskwright.frontends": (
        "size",
        "json_text",
        "lexical",
        "free_text",
        "characters",
        "gbnf",
        "regex",
        "lark",
        "json_schema",
        "python",
        "structural_fields",
        "structural_tokens",
        "tools",
        "parts",
        "structural_tag",
    ),
    "maskwright.frontends.json_schema": (
        "numbers",
        "read",
        "texts",
        "algebra",
        "emit",
        "surveyor",
        "clashes",
    ),
}
# The modules of the engine (cext/maskwright/_engine), lowest layer first: each knows only those before it.
ENGINE = {
    "support": ("containers", "sizes", "limits", "edges"),
    "vocab": ("trie", "vocabulary", "turns", "char_index", "residuals", "slices", "token_index"),
    "lexeme": ("lexemes", "lazy_dfa", "lexeme_texts", "keyset", "lexeme_state", "shortest_match", "lexeme_sets", "lexeme_walks", "lexeme_ends", "lexeme_mask"),
    "munch": ("longest_match", "longest_match_samples", "longest_match_walks", "longest_match_mask"),
    "pda": ("program", "rules", "columns", "stacks"),
    "json_values": ("tracked", "values", "item_groups", "tracker"),
    "matcher": ("core", "threads", "costs", "rest_facts", "distinct", "clash_free", "alive", "states", "boundaries", "distinct_masks", "frame_masks", "lexed_masks", "masks", "completion", "generations", "tasks", "moves"),
    "state_sets": ("set_states", "set_stacks", "frames", "lexed_sets", "sets"),
    "api": ("rows", "engine", "tables", "compiled", "position", "matcher", "content", "tracing", "state_sets_api", "batch"),
}  # fmt: skip
# Modules that import something behind them.
EXCEPTIONS = {
    # Content has one key, whoever asks.
    ("maskwright.frontends.parts", "_core"),
    ("maskwright.frontends.json_schema", "_core"),
    # Files of strategies are read where strategies are, once somebody searches.
    ("maskwright.generation.searched", "search"),
}
# Those that do with less than what is before them.
ONLY = {
    "limits": (),
    "base": ("errors", "limits"),
    "vocabulary": ("errors", "base", "_core"),
    "masks": ("errors", "base", "_core", "vocabulary"),
    "sampling": ("errors", "base", "_core", "vocabulary", "masks", "compiling", "pages", "generation"),
    "search": ("errors", "base", "compiling", "sampling"),
    "diffusion": ("errors", "limits", "base", "_core", "vocabulary", "compiling", "pages", "sampling"),
    # And the public names, of maskwright itself.
    "integrations": ("generation",),
    "conformance": ("errors",),
}


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def imported(path: Path, *, top_level_only: bool = False) -> set[str]:
    """Absolute names of imported modules (and of names imported from them, which may be modules)."""
    found: set[str] = set()
    work: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while work:
        node = work.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module is not None
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            # Of a package of ours, modules may be imported without anything of its own.
            found |= names if names <= {*MODULES, *EXTENSIONS} else {node.module, *names}
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            work.extend(node.orelse)
        elif not (top_level_only and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))):
            work.extend(ast.iter_child_nodes(node))
    return found


def types_of(path: Path) -> set[str]:
    """The modules of this package that a file of Cython names."""
    lines = re.findall(r"^from (maskwright[\w.]*) c?import", path.read_text(encoding="utf-8"), re.MULTILINE)
    return set(lines) - {"maskwright"}


def ours(path: Path) -> set[str]:
    """The modules of this package that a file imports anywhere."""
    return {name for name in imported(path) if name in MODULES or name in EXTENSIONS} - {"maskwright"}


def below(name: str, package: str) -> str:
    """What of a package a module lies in."""
    return name.removeprefix(package + ".").partition(".")[0]


def test_the_walk_sees_imports() -> None:
    assert "maskwright._core" in ours(SOURCE / "compiling" / "lowering.py")
    vocabulary = SOURCE / "vocabulary" / "vocabulary.py"
    assert "maskwright.vocabulary.tokenizers.huggingface" in ours(vocabulary)
    assert "maskwright.vocabulary.tokenizers.huggingface" not in imported(vocabulary, top_level_only=True)
    assert "maskwright.ir.grammar" in types_of(SOURCE / "compiling" / "lowering.pxd")


@pytest.mark.parametrize("package", ORDERS)
def test_everything_has_its_place(package: str) -> None:
    there = {below(name, package) for name in (*MODULES, *EXTENSIONS) if name.startswith(package + ".")}
    assert there == set(ORDERS[package])


@pytest.mark.parametrize("module", MODULES)
def test_import_direction(module: str) -> None:
    types = MODULES[module].with_suffix(".pxd")
    found = ours(MODULES[module]) | (types_of(types) if types.exists() else set())
    for package, order in ORDERS.items():
        if not module.startswith(package + "."):
            continue
        own = below(module, package)
        before = order[: order.index(own) + 1]
        used = {below(name, package) for name in found if is_within(name, package)}
        wrong = {name for name in used if name not in before and (module, name) not in EXCEPTIONS}
        assert not wrong, f"{module} must not import {wrong}, which come behind it"
        if package == "maskwright" and own in ONLY:
            assert used <= {own, *ONLY[own]}


@pytest.mark.slow
def test_no_module_imports_itself_by_way_of_others() -> None:
    """As far as what is imported when a module is; types that only the compiler of modules looks at may refer to each other."""
    edges = {
        module: {name for name in imported(path, top_level_only=True) if name in MODULES and name != module}
        for module, path in MODULES.items()
    }
    left = dict(edges)
    while free := [module for module, names in left.items() if not names & left.keys()]:
        for module in free:
            del left[module]
    assert not left


@pytest.mark.parametrize("name", ["_core", "_subsets"])
def test_extensions_import_what_is_before_them(name: str) -> None:
    order = ORDERS["maskwright"]
    used = types_of(ROOT / "cext" / "maskwright" / f"{name}.pyx")
    assert used and {below(other, "maskwright") for other in used} <= set(order[: order.index(name)])


@pytest.mark.parametrize("module", MODULES)
def test_heavy_packages_stay_at_the_edges(module: str) -> None:
    roots = {name.partition(".")[0] for name in imported(MODULES[module], top_level_only=True)}
    if not any(is_within(module, edge) for edge in EDGES):
        assert not roots & HEAVY
    # Cython's own module means something to the compiler only, and is never imported.
    compiled = {"cython"} if MODULES[module].with_suffix(".pxd").exists() else set()
    allowed = {*sys.stdlib_module_names, "maskwright", "numpy", *HEAVY, *compiled}
    assert roots <= allowed, "a package that is no declared dependency"


def fresh(code: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "src"
    )
    return run.stdout


def test_import_is_light() -> None:
    code = "import sys, json; import maskwright; print(json.dumps(sorted(sys.modules)))"
    loaded = {name.partition(".")[0] for name in json.loads(fresh(code))}
    assert "maskwright" in loaded
    assert not loaded & {"numpy", *HEAVY}


def test_compiling_needs_no_heavy_package() -> None:
    code = (
        "import sys, json; import maskwright._core, maskwright.compiling.lowering, maskwright.vocabulary.engine_cache;"
        "print(json.dumps(sorted(sys.modules)))"
    )
    loaded = {name.partition(".")[0] for name in json.loads(fresh(code))}
    assert not loaded & HEAVY


def test_sampling_needs_numpy_only() -> None:
    code = (
        "import sys, json; import maskwright.sampling as s; [getattr(s, n) for n in s.__all__ if n not in "
        "('HuggingFaceModel', 'WeightRecorder')]; print(json.dumps(sorted(sys.modules)))"
    )
    loaded = {name.partition(".")[0] for name in json.loads(fresh(code))}
    assert "numpy" in loaded and not loaded & HEAVY


@pytest.mark.parametrize("name", sampling.__all__)
def test_public_names_of_sampling_resolve(name: str) -> None:
    pytest.importorskip("torch")
    value = getattr(sampling, name)
    home = importlib.import_module(f"maskwright.sampling.{sampling._HOME_OF[name]}")
    assert value is getattr(home, name) and value.__doc__
    assert not inspect.ismodule(value), "a function and a module of one name hide each other"


@pytest.mark.parametrize(
    ("module", "name"), [(m, n) for m, names in maskwright._HOMES.items() for n in names]
)
def test_public_names_resolve(module: str, name: str) -> None:
    value = getattr(maskwright, name)
    assert value is getattr(importlib.import_module(f"maskwright.{module}"), name)
    assert value.__doc__
    assert name in maskwright.__all__
    assert name in dir(maskwright)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        maskwright.no_such_name  # noqa: B018


def test_every_public_name_is_known_to_type_checkers() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        (node.module, alias.asname)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes = {(f"maskwright.{module}", name) for module, names in maskwright._HOMES.items() for name in names}
    assert typed == homes


@pytest.mark.parametrize("types", sorted(SOURCE.rglob("*.pxd")), ids=lambda path: path.stem)
def test_modules_with_types_are_compiled(types: Path) -> None:
    name = ".".join(types.relative_to(SOURCE.parent).with_suffix("").parts)
    loaded = inspect.getattr_static(importlib.import_module(name), "__file__")
    assert loaded.endswith(tuple(machinery.EXTENSION_SUFFIXES)), f"{loaded}: run make build"


SOURCES = sorted(path for suffix in ("pyx", "pxd") for path in (ROOT / "cext").rglob(f"*.{suffix}"))
MODULES_OF_ENGINE = [name for names in ENGINE.values() for name in names]


def test_the_engine_knows_no_source_language() -> None:
    assert len(SOURCES) > 30
    for path in SOURCES:
        assert "json" not in path.read_text(encoding="utf-8").lower(), path.name


def test_the_table_of_the_engine_is_complete() -> None:
    found = {path.stem for path in SOURCES if path.parent.name == "_engine"} - {"__init__"}
    assert found == set(MODULES_OF_ENGINE)
    assert len(MODULES_OF_ENGINE) == len(found)


@pytest.mark.parametrize("name", MODULES_OF_ENGINE)
def test_modules_of_the_engine_know_lower_ones(name: str) -> None:
    below = set(MODULES_OF_ENGINE[: MODULES_OF_ENGINE.index(name)])
    for path in SOURCES:
        if path.stem == name and path.parent.name == "_engine":
            text = path.read_text(encoding="utf-8")
            known = set(
                re.findall(r"^(?:from|cimport|import) maskwright\._engine\.(\w+)", text, re.MULTILINE)
            )
            assert known <= below, f"{path.name} knows {sorted(known - below)}"
            assert not re.search(r"^include |^from \.|import \*", text, re.MULTILINE), (
                f"{path.name}: names are told one by one"
            )


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if path.suffix == ".pxd"], ids=lambda path: path.stem
)
def test_what_modules_show(path: Path) -> None:
    # Types, constants, small bodies, and prototypes that say what becomes of errors.
    text = path.read_text(encoding="utf-8")
    heads = re.findall(
        r"^cdef (?!extern|class|struct|cppclass|enum)([^=\n]*\([^)]*\)[^\n]*)$", text, re.MULTILINE
    )
    for head in heads:
        inline = head.startswith("inline ")
        assert inline == head.endswith(":"), (
            f"{path.name}: {head}: a body is inline, and what is inline has one"
        )
        assert re.search(r"\) (noexcept|except) ?|^(list|tuple|object|bytes|str) ", head), (
            f"{path.name}: {head}"
        )
    for body in re.findall(r"^cdef inline [^\n]*:\n((?:    [^\n]*\n?)+)", text, re.MULTILINE):
        lines = [line for line in body.splitlines() if not line.lstrip().startswith("#")]
        assert len(lines) <= 8 and not any(line.lstrip().startswith(("for ", "while ")) for line in lines), (
            body
        )


def test_the_files_that_the_pages_of_the_house_name_are_there() -> None:
    there = {path.name for path in ROOT.glob("*")}
    there |= {
        path.name for folder in ("src", "cext", "tests", "bench") for path in (ROOT / folder).rglob("*")
    }
    pages = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs" / "internals").glob("*.md")]
    named = [
        (page.name, name)
        for page in pages
        for name in re.findall(r"\b[\w/]+\.(?:py|pyx|pxd|hpp)\b", page.read_text("utf-8"))
    ]
    assert len(named) > 100
    assert not [each for each in named if each[1].split("/")[-1] not in there and "NAME" not in each[1]]


def test_files_are_short() -> None:
    files = [
        path
        for folder in ("src", "cext", "tests", "bench")
        for suffix in ("py", "pyi", "pyx", "pxd")
        for path in (ROOT / folder).rglob(f"*.{suffix}")
    ]
    assert len(files) > 30
    long = {str(path.relative_to(ROOT)): n for path in files if (n := path.read_bytes().count(b"\n")) > 600}
    assert not long
