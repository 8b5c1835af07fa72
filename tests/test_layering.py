"""Who may import whom, what ``import maskwright`` costs, and the sizes of files."""

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

import maskwright
from maskwright import sampling

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "maskwright"
MODULES = {
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}
EXTENSIONS = ("maskwright._core", "maskwright._subsets")
HEAVY = {
    "fastapi", "httpx2", "jedi", "jsonschema", "lark", "llama_cpp", "matplotlib", "mistral_common", "mlx", "prometheus_client", "pydantic",
    "pydantic_core", "ray", "safetensors", "sentencepiece", "sglang", "starlette", "tiktoken", "tokenizers", "torch", "tqdm", "transformers", "triton",
    "uvicorn", "vllm",
}  # fmt: skip
EDGES = (
    "maskwright.hf",
    "maskwright.generation",
    "maskwright.generator",
    "maskwright.demo",
    "maskwright.tokenizers",
    "maskwright.cli",
    "maskwright.trie_torch",
    "maskwright.bitmask_kernel",
    "maskwright.mask_table",
    "maskwright.integrations",
    "maskwright.offline.endpoints",
    "maskwright.serve",
    "maskwright.sampling.huggingface",
    "maskwright.sampling.recorder",
    "maskwright.frontends.python_schemas",
    *(f"maskwright.frontends.lark.{name}" for name in ("loading", "expansion", "templates", "groups")),
)

# A module (with those below it): what of ours it may import (with what is below that).
ALLOWED = {
    "maskwright.errors": (),
    "maskwright.limits": (),
    "maskwright.arguments": ("errors", "limits"),
    "maskwright.deadline": ("errors",),
    "maskwright.regular": ("deadline", "errors"),
    "maskwright.determinize": ("_subsets", "deadline", "errors", "limits", "regular", "thompson"),
    "maskwright.dfa": ("_subsets", "deadline", "determinize", "errors", "limits", "regular", "thompson"),
    "maskwright.grammar": ("deadline", "errors", "regular"),
    "maskwright.report": ("errors",),
    "maskwright.thompson": ("_subsets", "deadline", "errors", "limits", "regular"),
    "maskwright.automata": ("_subsets", "limits", "regular", "thompson"),
    "maskwright.regex": (
        "deadline",
        "determinize",
        "dfa",
        "errors",
        "limits",
        "regex",
        "regular",
        "thompson",
    ),
    "maskwright.passes": ("deadline", "errors", "grammar", "limits", "passes", "regular"),
    "maskwright.vocabulary": ("arguments", "compile_cache", "errors", "tokenizers"),
    "maskwright.collection": (),
    "maskwright.compile_cache": ("_core",),
    "maskwright.tokenizers": ("errors", "tokenizers"),
    "maskwright.adjacency": (),
    "maskwright.columns": ("automata", "determinize", "limits", "regular"),
    "maskwright.lowering": (
        "_core",
        "adjacency",
        "automata",
        "captures",
        "columns",
        "deadline",
        "errors",
        "factoring",
        "grammar",
        "lexeme_automata",
        "limits",
        "merging",
        "passes",
        "regular",
        "token_sets",
    ),
    "maskwright.lexeme_automata": ("_core", "automata", "grammar", "limits"),
    "maskwright.merging": ("_subsets", "automata", "deadline"),
    "maskwright.factoring": ("deadline",),
    "maskwright.default_model": ("disk_cache", "errors"),
    "maskwright.disk_cache": ("sealed",),
    "maskwright.sealed": (),
    "maskwright.sampling": (
        "_core",
        "arguments",
        "bitmask",
        "compiler",
        "errors",
        "hf",
        "model_cache",
        "sampling",
        "symbols",
        "vocabulary",
    ),
    "maskwright.generation": (
        "_core",
        "arguments",
        "bitmask",
        "compiler",
        "errors",
        "frontends",
        "generation",
        "hf",
        "limits",
        "model_cache",
        "partial",
        "passes",
        "sampling",
        "sources",
        "vocabulary",
    ),
    "maskwright.cpus": (),
    "maskwright.offline": ("errors", "frontends", "generation", "offline", "sources", "validation"),
    "maskwright.speculation": ("_core", "arguments", "engine_cache", "errors", "generation", "vocabulary"),
    "maskwright.symbols": ("_core", "compiler", "errors"),
    "maskwright.search": ("arguments", "compiler", "errors", "sampling", "search", "symbols"),
    "maskwright.table_cache": ("_core", "disk_cache", "packed_tables"),
    "maskwright.packed_checks": ("errors", "limits", "regular"),
    "maskwright.packed_tables": (
        "_core",
        "captures",
        "deadline",
        "errors",
        "grammar",
        "limits",
        "lowering",
        "packed_checks",
        "token_sets",
    ),
    "maskwright.compiled": (
        "_core",
        "arguments",
        "collection",
        "deadline",
        "engine_cache",
        "errors",
        "limits",
        "lowering",
        "packed_tables",
        "sealed",
        "vocabulary",
    ),
    "maskwright.shared_cache": ("compiled", "disk_cache", "errors", "vocabulary"),
    "maskwright.bitmask": ("_core", "bitmask_kernel", "errors"),
    "maskwright.bitmask_kernel": (),
    "maskwright.mask_table": ("_core", "bitmask", "errors"),
    "maskwright.token_sets": ("_core", "errors", "grammar"),
    # And the public names, of maskwright itself.
    "maskwright.integrations": ("default_model", "generation.outputs", "generation.results", "integrations"),
    "maskwright.integrations.vllm": ("integrations",),
    "maskwright.integrations.vllm_backend": ("integrations",),
    "maskwright.captures": ("_core", "captures", "deadline", "dfa", "errors", "grammar", "regular"),
}
# The modules of the engine (cext/maskwright/_engine), lowest layer first: each knows only those before it.
ENGINE = {
    "support": ("containers", "sizes", "limits", "edges"),
    "vocab": ("trie", "vocabulary", "char_index", "residuals", "slices"),
    "lexeme": ("lexemes", "lazy_dfa", "lexeme_texts", "keyset", "lexeme_state", "shortest_match", "lexeme_sets", "lexeme_walks", "lexeme_mask"),
    "munch": ("longest_match", "longest_match_walks", "longest_match_mask"),
    "pda": ("program", "rules", "columns", "stacks"),
    "json_values": ("tracked", "values", "item_groups", "tracker"),
    "matcher": ("core", "threads", "costs", "distinct", "alive", "states", "distinct_masks", "masks", "completion", "generations", "tasks", "moves"),
    "state_sets": ("set_states", "set_stacks", "frames", "sets"),
    "api": ("rows", "engine", "compiled", "matcher", "content", "tracing", "state_sets_api", "batch"),
}  # fmt: skip
# Above 600 lines: classes whose methods belong together.
LONG = {"cext/maskwright/_engine/engine.pyx", "cext/maskwright/_engine/matcher.pyx"}
FORBIDDEN = {
    "maskwright.frontends": (
        "_core",
        "compiler",
        "engine_cache",
        "generator",
        "hf",
        "lowering",
        "sampling",
        "validation",
        "vocabulary",
    ),
    "maskwright.validation": ("cli", "cli_check", "cli_sources", "demo", "generator", "hf", "tokenizers"),
    "maskwright.engine_cache": ("compiler", "frontends", "generator", "hf", "regex"),
    "maskwright.compiler": ("demo", "diffusion", "generator", "hf", "sampling", "tokenizers", "validation"),
    "maskwright.diffusion": ("cli", "demo", "frontends", "generator", "hf", "lowering", "tokenizers"),
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
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            work.extend(node.orelse)
        elif not (top_level_only and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))):
            work.extend(ast.iter_child_nodes(node))
    return found


def ours(path: Path) -> set[str]:
    """The modules of this package that a file imports anywhere."""
    return {name for name in imported(path) if name in MODULES or name in EXTENSIONS} - {"maskwright"}


def test_the_walk_sees_imports() -> None:
    assert "maskwright._core" in ours(SOURCE / "lowering.py")
    assert "maskwright.tokenizers.huggingface" in ours(SOURCE / "vocabulary.py")
    assert "maskwright.tokenizers.huggingface" not in imported(SOURCE / "vocabulary.py", top_level_only=True)


@pytest.mark.parametrize("module", MODULES)
def test_import_direction(module: str) -> None:
    found = ours(MODULES[module])
    for package, targets in ALLOWED.items():
        if is_within(module, package):
            wrong = {name for name in found if not any(is_within(name, f"maskwright.{t}") for t in targets)}
            assert not wrong, f"{module} may import only {targets}"
    for package, targets in FORBIDDEN.items():
        if is_within(module, package):
            wrong = {name for name in found if any(is_within(name, f"maskwright.{t}") for t in targets)}
            assert not wrong, f"{module} must not import {wrong}"


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
        "import sys, json; import maskwright._core, maskwright.lowering, maskwright.vocabulary, maskwright.engine_cache;"
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


def test_files_are_short() -> None:
    files = [
        path
        for folder in ("src", "cext", "tests", "bench")
        for suffix in ("py", "pyi", "pyx", "pxd")
        for path in (ROOT / folder).rglob(f"*.{suffix}")
    ]
    assert len(files) > 30
    long = {str(path.relative_to(ROOT)): n for path in files if (n := path.read_bytes().count(b"\n")) > 600}
    assert set(long) == LONG, long
