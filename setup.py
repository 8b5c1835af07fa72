"""The extension modules, and what they make of the shipped grammars; everything else is in pyproject.toml."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

# A build that watches itself (coverage, sanitizers): these flags come last, for compiling and for linking.  What the compiler says
# is then about lines of cext/ and of Python, and everything lies in a directory of its own (see the Makefile).
WATCHED = os.environ.get("MASKWRIGHT_WATCHED", "").split()
GENERATED = "build/cython-watched" if WATCHED else "build/cython"

# By language.  Compiled Python mostly calls the interpreter, and most of a first mask is code that is cold: -O2 without what takes the
# compiler long, and without what makes code larger, saves 4 to 8 % of a first mask against -O1, and is as fast as -O2 alone or faster.
# No file has the folder in it in which it was made.
# The engine goes without the alignment as well, which saves a fiftieth of its size.
# In C, nothing is unwound: without tables for it, an extension is smaller by a twentieth.
UNIX = ["-g0", "-fno-plt", "-fno-ident", "-pthread", f"-ffile-prefix-map={os.getcwd()}=."]
SLOW_TO_COMPILE = [
    "-fno-tree-pre",
    "-fno-gcse",
    "-fno-tree-vectorize",
    "-fno-tree-vrp",
    "-fno-schedule-insns2",
]
LARGER = [f"-fno-align-{what}" for what in ("functions", "loops", "jumps", "labels")]
FLAGS = {
    "unix": {
        "c": [
            "-O2",
            *SLOW_TO_COMPILE,
            *LARGER,
            *([] if WATCHED else ["-fno-asynchronous-unwind-tables"]),
            *UNIX,
        ],
        "c++": ["-O3", *LARGER, "-std=c++20", *UNIX],
    },
    "msvc": {"c": ["/O2"], "c++": ["/O2", "/std:c++20", "/Zc:__cplusplus", "/EHsc", "/utf-8"]},
}
# Nothing but its init function is seen of an extension: the names of templates of C++ would take more room than calls between them.
# Nor has it a number of its own, which is noise that does not compress: wheels say their versions.
LINKED = ["-Wl,--version-script=cext/exports.map", "-Wl,--build-id=none"] if sys.platform == "linux" else []
SBOM = "maskwright.cdx.json"
# Without the lines of C for tracebacks, which nobody reads.
MACROS = [("CYTHON_CLINE_IN_TRACEBACK", "0")]

# How the engine's sources are read: C in all of them, and signatures for whoever asks.
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "embedsignature": True,
    "freethreading_compatible": False,
    # What can be pickled says so itself; the code that Cython writes for it is a tenth of all.
    "auto_pickle": False,
}


# What most modules include.  GCC reads it once for all of them: with the order of modules (see below), a cold build takes 0.86 to 0.95 of its time.
PRELUDES = {
    "c": "Python.h math.h stdint.h stdlib.h string.h",
    "c++": "Python.h algorithm atomic cmath condition_variable cstdlib cstring deque ios memory mutex queue shared_mutex stdexcept "
    "string thread typeinfo unordered_map vector",
}


def engine(source: Path) -> Extension:
    """A module of the engine; its place below cext/ is its name."""
    top = Path("cext")
    name = ".".join(source.relative_to(top).with_suffix("").parts)
    return Extension(
        name,
        [str(source)],
        language="c++",
        define_macros=MACROS,
        include_dirs=[str(top)],
        depends=[str(header) for header in sorted(top.glob("*.hpp"))],
    )


def compiled(types: Path) -> Extension:
    """A Python module, compiled with the types in the .pxd file beside it."""
    source = types.with_suffix(".py")
    name = ".".join(source.with_suffix("").parts[1:])
    return Extension(name, [str(source)], define_macros=MACROS)


def extensions() -> list[Extension]:
    engines = [engine(source) for source in sorted(Path("cext").rglob("*.pyx"))]
    modules = [compiled(types) for types in sorted(Path("src").rglob("*.pxd"))]
    # What is None where a type says otherwise is an error, not a crash.
    safely = {"nonecheck": True, "auto_pickle": False}
    made = [
        *cythonize(
            engines,
            include_path=["cext"],
            build_dir=GENERATED,
            compiler_directives=DIRECTIVES,
            nthreads=2,
            emit_linenums=bool(WATCHED),
        ),
        *cythonize(
            modules,
            include_path=["src"],
            build_dir=GENERATED,
            compiler_directives=safely,
            nthreads=2,
            emit_linenums=bool(WATCHED),
        ),
    ]
    # The longest first: none is left for one processor at the end.
    return sorted(made, key=lambda module: -os.path.getsize(module.sources[0]))


class Build(build_ext):
    """The compiler is known when building begins.  With what it made, the tables of the shipped grammars are made."""

    def run(self) -> None:
        super().run()
        if not WATCHED and self.extensions:
            # Behind it, where an isolated environment has what building needs.
            path = [
                os.path.abspath("src" if self.inplace else self.build_lib),
                os.environ.get("PYTHONPATH", ""),
            ]
            # Bytecode beside what it imports would go into the wheel.
            step = [sys.executable, "-B", "-m", "maskwright.compiling.build_tables"]
            subprocess.run(step, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(path)})

    def build_extensions(self) -> None:
        self.kind = "msvc" if self.compiler.compiler_type == "msvc" else "unix"
        self.includes = {language: self.prelude(language) for language in PRELUDES}
        super().build_extensions()

    def prelude(self, language: str) -> list[str]:
        """The arguments with which GCC finds what it has read already; none for other compilers."""
        compiler = self.compiler
        if self.kind == "msvc":
            return []
        command = compiler.compiler_so_cxx if language == "c++" else compiler.compiler_so
        told = subprocess.run([command[0], "--version"], capture_output=True, text=True).stdout
        if "Free Software Foundation" not in told:
            return []
        folders = [f"-I{folder}" for folder in compiler.include_dirs]
        macros = [f"-D{name}={value}" for name, value in MACROS]
        command = [*command, *folders, *macros, *FLAGS[self.kind][language], *WATCHED]
        text = "".join(
            ["#define PY_SSIZE_T_CLEAN\n", *(f"#include <{name}>\n" for name in PRELUDES[language].split())]
        )
        key = hashlib.blake2b(repr([told, command, text]).encode(), digest_size=8).hexdigest()
        header = Path(GENERATED, f"prelude-{key}.h")
        if not Path(f"{header}.gch").exists():
            header.parent.mkdir(parents=True, exist_ok=True)
            header.write_text(text)
            subprocess.run(
                [*command, "-x", f"{language}-header", str(header), "-o", f"{header}.gch"], check=True
            )
        return ["-include", str(header)]

    def build_extension(self, ext: Extension) -> None:
        language = ext.language or "c"
        ext.extra_compile_args = [*FLAGS[self.kind][language], *WATCHED, *self.includes[language]]
        ext.extra_link_args = [*(["-pthread"] if self.kind == "unix" else []), *LINKED, *WATCHED]
        super().build_extension(ext)


class Wheel(bdist_wheel):
    """What the wheel is made of goes with it (PEP 770), where `make sbom` has written it."""

    def egg2dist(self, egginfo_path: str, distinfo_path: str) -> None:
        super().egg2dist(egginfo_path, distinfo_path)
        if Path(SBOM).exists():
            folder = Path(distinfo_path) / "sboms"
            folder.mkdir()
            shutil.copy(SBOM, folder)


# The Makefile installs first and compiles in place afterwards, where it can tell what has changed.
setup(
    ext_modules=[] if os.environ.get("MASKWRIGHT_COMPILE") == "later" else extensions(),
    cmdclass={"build_ext": Build, "bdist_wheel": Wheel},
)
