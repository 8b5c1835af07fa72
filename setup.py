"""The extension modules; everything else is in pyproject.toml."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# Compiled Python mostly calls the interpreter: straight, and without the lines of C for tracebacks, which nobody reads.
SLIM = ["-g0", "-fno-plt", "-DCYTHON_CLINE_IN_TRACEBACK=0"]

# A build that watches itself (coverage, sanitizers): these flags come last, for compiling and for linking.  What the compiler says
# is then about lines of cext/ and of Python, and everything lies in a directory of its own (see the Makefile).
WATCHED = os.environ.get("MASKWRIGHT_WATCHED", "").split()
GENERATED = "build/cython-watched" if WATCHED else "build/cython"


def engine(name: str, *headers: str) -> Extension:
    return Extension(
        f"maskwright.{name}",
        [f"cext/{name}.pyx"],
        language="c++",
        extra_compile_args=["-O3", "-std=c++17", "-pthread", *SLIM, *WATCHED],
        extra_link_args=["-pthread", *WATCHED],
        include_dirs=["cext"],
        depends=[f"cext/{header}.hpp" for header in headers],
    )


def compiled(types: Path) -> Extension:
    """A Python module, compiled with the types in the .pxd file beside it."""
    source = types.with_suffix(".py")
    name = ".".join(source.with_suffix("").parts[1:])
    return Extension(
        name, [str(source)], extra_compile_args=["-O2", *SLIM, *WATCHED], extra_link_args=WATCHED
    )


def extensions() -> list[Extension]:
    engines = [
        engine(
            "_core",
            "attempt",
            "blocks",
            "cut",
            "digest",
            "pool",
            "reaper",
            "rows",
            "steady",
            "stop",
            "tables",
            "textsets",
        ),
        engine("_subsets", "alphabet", "minimal", "rows", "subsets"),
    ]
    modules = [compiled(types) for types in sorted(Path("src").rglob("*.pxd"))]
    # What is None where a type says otherwise is an error, not a crash.
    safely = {"nonecheck": True}
    return [
        *cythonize(
            engines,
            include_path=["cext"],
            build_dir=GENERATED if WATCHED else None,
            emit_linenums=bool(WATCHED),
        ),
        *cythonize(
            modules,
            include_path=["src"],
            build_dir=GENERATED,
            compiler_directives=safely,
            emit_linenums=bool(WATCHED),
        ),
    ]


# The Makefile installs first and compiles in place afterwards, where it can tell what has changed.
setup(ext_modules=[] if os.environ.get("MASKWRIGHT_COMPILE") == "later" else extensions())
