"""Settings of all tests."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import toys
from hypothesis import settings
from places import TESTS

from maskwright.limits import DEFAULT_LIMITS
from maskwright.vocabulary.vocabulary import Vocabulary

# The models here are tiny: waiting for a second thread takes longer than its help saves.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples on every run of continuous integration; elsewhere new ones are tried.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# A busy machine is no failure: where a test gives no limits, it is not about time.
object.__setattr__(DEFAULT_LIMITS, "max_seconds", 60.0)


def pytest_collection_finish() -> None:
    """Modules and thousands of tests are here to stay: the collector, which is called behind each file, need not go through them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _forget_grammars() -> Iterator[None]:
    """No file needs what another one compiled: vocabularies at the top of files would keep all of it until the process ends."""
    yield
    toys.forget_engines()
    tests = [module for module in list(sys.modules.values()) if _is_here(vars(module).get("__file__"))]
    for value in [value for module in tests for value in vars(module).values()]:
        if isinstance(value, Vocabulary):
            value._forget()
        elif hasattr(value, "cache_clear"):
            value.cache_clear()
    gc.collect()
    gc.freeze()  # what is left is here to stay: the next file need not go through it
    if sys.platform == "linux":
        # The allocator would hold on to it: files need large and small objects in turn.
        getattr(ctypes.CDLL(None), "malloc_trim", int)(0)


def _is_here(file: str | None) -> bool:
    return file is not None and Path(file).is_relative_to(TESTS)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], str]:
    """Writes a file, bytes as given, and tells its path."""

    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return str(path)

    return write
