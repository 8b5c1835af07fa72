"""Schemas that packages of npm and PyPI bring along: all compile whose references lead somewhere, with the default limits.

``python bench/package_schemas.py`` fetches them into the cache directory; they are not part of this project, and without them
these tests are skipped.
"""

from __future__ import annotations

import package_schemas
import pytest

import maskwright as mw

ROOT = package_schemas.corpus()
PACKAGES = [] if ROOT is None or not ROOT.is_dir() else list(package_schemas.packages(ROOT))
VOCABULARY = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


MISSING = pytest.mark.skip(
    reason="no schemas of packages are here: python bench/package_schemas.py fetches them"
)
CASES = [pytest.param(name, schemas, id=name) for name, schemas in PACKAGES] or [
    pytest.param("", {}, marks=MISSING)
]


@pytest.mark.parametrize(("package", "schemas"), CASES)
def test_schemas_compile(package: str, schemas: dict[str, object]) -> None:
    registry = package_schemas.identified(schemas)
    for name, schema in schemas.items():
        found = package_schemas.outcome(schema, registry, VOCABULARY)
        # Some packages leave out documents that they refer to.
        assert found == package_schemas.COMPILES or "cannot be resolved" in found, (
            f"{package}: {name}: {found}"
        )


def test_schemas_that_refer_to_each_other() -> None:
    assert package_schemas.identified({"a": {"$id": "x:/a#"}, "b": {"id": "x:/b"}, "c": {}}) == {
        "x:/a": {"$id": "x:/a#"},
        "x:/b": {"id": "x:/b"},
    }
