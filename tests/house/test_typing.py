"""Types for those who use the package: mypy and pyright read code as users write it, and mypy's stubtest compares stubs with modules.

``typed_code.py`` says what values are, and has lines that must be errors.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

CODE = Path(__file__).with_name("typed_code.py")
pytestmark = pytest.mark.slow


def run(*command: str, cwd: Path) -> str:
    """What a checker says, which has nothing to complain about."""
    environment = {**os.environ, "MYPYPATH": f"{ROOT / 'src'}:{ROOT / 'cext'}"}
    ended = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of a user's own: checkers look around in the folder that they are started in."""
    shutil.copy(CODE, tmp_path)
    return tmp_path


def test_mypy() -> None:
    """Without the settings of this project, but with what its own check has read."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    pytest.importorskip("pydantic", reason="the code has types of pydantic")
    options = ["--config-file=", "--strict", "--ignore-missing-imports", "--cache-dir", ".mypy_cache"]
    for package in ("lark", "transformers"):
        options += ["--untyped-calls-exclude", package]
    said = run("mypy", *options, str(CODE.relative_to(ROOT)), cwd=ROOT)
    assert "no issues found in 1 source file" in said


def test_pyright(folder: Path) -> None:
    """Its package has all of it but node."""
    if importlib.util.find_spec("pyright") is None or shutil.which("node") is None:
        pytest.skip("pyright is not installed, or node")
    settings = {
        "include": [CODE.name],
        "typeCheckingMode": "strict",
        "reportUnnecessaryTypeIgnoreComment": "error",
        "extraPaths": [str(ROOT / "src")],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    assert "0 errors" in run("pyright", "-p", str(folder), "--pythonpath", sys.executable, cwd=folder)


STUBS = """\
[mypy]
ignore_missing_imports = true
[mypy-torch.*,transformers.*,jsonschema.*,pydantic.*,huggingface_hub.*,tqdm.*,lark.*]
follow_imports = skip
follow_imports_for_stubs = true
"""
"""Large packages stay unread: the modules with stubs have no types of theirs."""


def test_stubs_are_what_the_modules_have(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    # Cython's own list of doctests.
    (tmp_path / "allowed").write_text(r"maskwright\.(_core|_subsets)\.__test__", "utf-8")
    (tmp_path / "mypy.ini").write_text(STUBS, "utf-8")
    said = run(
        "mypy.stubtest",
        "--ignore-disjoint-bases",
        *("--allowlist", str(tmp_path / "allowed")),
        *("--mypy-config-file", str(tmp_path / "mypy.ini")),
        *("maskwright._core", "maskwright._subsets"),
        cwd=ROOT,
    )
    assert "no issues found in 2 modules" in said
