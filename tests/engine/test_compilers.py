"""The engine's C++ for every compiler at hand: each header by itself, and what Cython makes of the module that knows all layers."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from places import ROOT

CEXT = ROOT / "cext"
HEADERS = sorted(CEXT.glob("*.hpp"))
MODULE = ROOT / "build" / "cython" / "cext" / "maskwright" / "_engine" / "matcher.cpp"
NAMES = ("g++", "clang++", *(f"clang++-{version}" for version in range(30, 13, -1)))
COMPILERS = [name for name in NAMES if shutil.which(name)]
FLAGS = ["-std=c++20", "-fsyntax-only", "-Icext"]
# What is in a header need not be used.
WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-function"]


def read(compiler: str, *arguments: str) -> str:
    """What a compiler has to say."""
    done = subprocess.run([compiler, *FLAGS, *arguments], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not COMPILERS, reason=f"no compiler here, of {', '.join(NAMES)}")
@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_a_header_needs_no_other_before_it(header: Path) -> None:
    for compiler in COMPILERS:
        assert not read(compiler, *WARNINGS, "-x", "c++", "-include", str(header), "/dev/null")


@pytest.mark.slow
@pytest.mark.skipif(not any("clang" in name for name in COMPILERS), reason="no clang here")
def test_clang_takes_the_engine() -> None:
    """GCC takes it in every build."""
    if not MODULE.exists():
        pytest.skip("nothing was generated here: make build")
    headers = f"-I{sysconfig.get_path('include')}"
    for compiler in COMPILERS:
        if "clang" in compiler:
            read(compiler, headers, str(MODULE))
