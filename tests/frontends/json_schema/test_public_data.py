"""Public test data, when it lies beside the checkout: the official JSON Schema suite and MaskBench.

The data is not part of this project; without it these tests are skipped.  ``MASKWRIGHT_DATA`` names
its directory (default: ``shared/data`` beside the checkout).
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json

import pytest
from places import DATA

import maskwright as mw

SUITE = DATA / "json-schema-test-suite" / "tests"
REMOTES = DATA / "json-schema-test-suite" / "remotes"
MASKBENCH = DATA / "maskbench-dev.jsonl.gz"

import conformance  # noqa: E402
import walks  # noqa: E402
from schema_evaluator import document, is_valid  # noqa: E402

needs_suite = pytest.mark.skipif(not SUITE.is_dir(), reason="the official JSON Schema suite is not here")
needs_maskbench = pytest.mark.skipif(not MASKBENCH.is_file(), reason="the MaskBench data is not here")

# Valid instances that we reject, by file and description of the group: members in another order than
# the schema's, and an integer written 1.0.
REJECTED = {
    ("allOf.json", "allOf"),
    ("allOf.json", "allOf with base schema"),
    ("const.json", "const with object"),
    ("ref.json", "refs with relative uris and defs"),
    ("ref.json", "relative refs with absolute uris and defs"),
    ("type.json", "integer type matches integers"),
    (
        "dynamicRef.json",
        "A $dynamicRef that initially resolves to a schema with a matching $dynamicAnchor resolves to the "
        "first $dynamicAnchor in the dynamic scope",
    ),
    (
        "dynamicRef.json",
        "A $dynamicRef that initially resolves to a schema without a matching $dynamicAnchor behaves like "
        "a normal $ref to $anchor",
    ),
}

REFERENCES = {
    "anchor", "cross-draft", "definitions", "defs", "dependencies-compatibility", "dynamicRef", "id",
    "infinite-loop-detection", "no-schema", "recursiveRef", "ref", "refOfUnknownKeyword", "refRemote",
    "unknownKeyword", "vocabulary",
}  # fmt: skip
# Schemas of the suite declare their dialect from 2019-09 on.
DRAFTS = {
    "draft4": "draft4",
    "draft6": "draft6",
    "draft7": "draft7",
    "draft2019-09": "auto",
    "draft2020-12": "auto",
}


@pytest.fixture(scope="module")
def byte_vocabulary() -> mw.Vocabulary:
    return conformance.byte_vocabulary()


@pytest.fixture(scope="module")
def remotes() -> dict[str, object]:
    """The documents of the suite that are elsewhere."""
    return {
        f"http://localhost:1234/{file.relative_to(REMOTES).as_posix()}": json.loads(file.read_bytes())
        for file in REMOTES.rglob("*.json")
    }


@needs_suite
@pytest.mark.parametrize(
    "file",
    [
        file
        for draft in DRAFTS
        for file in sorted(SUITE.glob(f"{draft}/**/*.json"))
        if file.stem in REFERENCES and file.parent.name != "format"
    ],
    ids=lambda file: file.relative_to(SUITE).as_posix(),
)
def test_references_of_the_official_suite(file, remotes):
    """Every instance is judged right by following references, also where keywords cannot be enforced."""
    pytest.importorskip("jsonschema_specifications")
    dialect = DRAFTS[file.relative_to(SUITE).parts[0]]
    wrong = []
    for group in json.loads(file.read_text(encoding="utf-8")):
        for test in group["tests"]:
            read = document(group["schema"], dialect=dialect, registry=remotes)
            if is_valid(read, test["data"]) != test["valid"]:
                wrong.append(f"{group['description']}: {test['description']}")
    assert not wrong


@needs_maskbench
def test_maskbench_instances(byte_vocabulary):
    """On every 9th case: no invalid instance is accepted, and valid ones are, with their members in any order."""
    outcomes: dict[str, list[str]] = {}
    with gzip.open(MASKBENCH, "rt", encoding="utf-8") as lines:
        for line in itertools.islice(lines, 0, None, 9):
            case = json.loads(line)
            outcome, detail = conformance.judge(case, byte_vocabulary, property_order="any")
            outcomes.setdefault(outcome, []).append(f"{case['id']}: {detail}")
    assert "invalid accepted" not in outcomes, outcomes["invalid accepted"]
    assert "valid rejected" not in outcomes, outcomes["valid rejected"]
    assert len(outcomes["pass"]) >= 0.98 * sum(map(len, outcomes.values()))


@pytest.mark.slow
@needs_maskbench
def test_random_walks_over_maskbench():
    vocabulary = walks.tekken_vocabulary()
    args = argparse.Namespace(walks=1, steps=60, seed=1)
    totals = walks.Totals()
    for name, schema in itertools.islice(walks.schemas(MASKBENCH), 0, None, 40):
        walks.check_schema(schema, vocabulary, name, args, totals)
    assert not totals.problems
    assert totals.schemas > 80
