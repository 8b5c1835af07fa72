"""The extension modules; everything else is in pyproject.toml."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# Compiled Python mostly calls the interpreter: straight, and without the lines of C for tracebacks, which nobody reads.
SLIM = ["-g0", "-fno-plt", "-DCYTHON_CLINE_IN_TRACEBACK=0"]


def engine(name: str, *headers: str) -> Extension:
    return Extension(
        f"maskwright.{name}",
        [f"cext/{name}.pyx"],
        language="c++",
        extra_compile_args=["-O3", "-std=c++17", "-pthread", *SLIM],
        extra_link_args=["-pthread"],
        include_dirs=["cext"],
        depends=[f"cext/{header}.hpp" for header in headers],
    )


def compiled(types: Path) -> Extension:
    """A Python module, compiled with the types in the .pxd file beside it."""
    source = types.with_suffix(".py")
    name = ".".join(source.with_suffix("").parts[1:])
    return Extension(name, [str(source)], extra_compile_args=["-O2", *SLIM])


def extensions() -> list[Extension]:
    engines = [
        engine("_core", "attempt", "blocks", "cut", "pool", "reaper", "rows", "tables"),
        engine("_subsets", "alphabet", "minimal", "rows", "subsets"),
    ]
    modules = [compiled(types) for types in sorted(Path("src").rglob("*.pxd"))]
    # What is None where a type says otherwise is an error, not a crash.
    safely = {"nonecheck": True}
    return [
        *cythonize(engines, include_path=["cext"]),
        *cythonize(modules, include_path=["src"], build_dir="build/cython", compiler_directives=safely),
    ]


# The Makefile installs first and compiles in place afterwards, where it can tell what has changed.
setup(ext_modules=[] if os.environ.get("MASKWRIGHT_COMPILE") == "later" else extensions())
