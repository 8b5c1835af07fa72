"""Short forms of ``bench/soak_schemas.py``: ever new schemas, and writers of caches that are killed."""

from __future__ import annotations

import json
import random
import sys

import pytest
import soak_schemas

import maskwright as mw


def test_schemas_differ_and_compile() -> None:
    words = soak_schemas.vocabulary()
    made = [soak_schemas.schema(number) for number in range(60)]
    assert len({json.dumps(each) for each in made}) == len(made)
    assert made == [soak_schemas.schema(number) for number in range(60)]
    for number, each in enumerate(made):
        json.loads(soak_schemas.text(mw.compile_json_schema(each, words), random.Random(number)))


@pytest.mark.slow
def test_rows_and_growth() -> None:
    rows = list(soak_schemas.soak(20, 4))
    assert [row["schemas"] for row in rows] == [5, 10, 15, 20] and all(row["megabytes"] > 1 for row in rows)
    levels = [{"megabytes": level} for level in (10.0, 30.0, 20.0, 35.5)]
    assert soak_schemas.growth(levels) == 5.5


@pytest.mark.slow
def test_memory_stays() -> None:
    """What a vocabulary keeps of schemas is bounded: by then, its caches of tables and lexemes are full."""
    rows = list(soak_schemas.soak(12_000, 12))
    assert max(row["megabytes"] for row in rows[9:]) - max(row["megabytes"] for row in rows[6:9]) < 25


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_killed_writers_leave_no_other_masks() -> None:
    soak_schemas.kills(2)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_many_killed_writers() -> None:
    soak_schemas.kills(8, seed=1)
