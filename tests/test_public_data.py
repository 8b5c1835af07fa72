"""Public test data, when it lies beside the checkout: the official JSON Schema suite and MaskBench.

The data is not part of this project; without it these tests are skipped.  ``MASKWRIGHT_DATA`` names
its directory (default: ``shared/data`` beside the checkout).
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import sys
from pathlib import Path

import pytest

import maskwright as mw

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("MASKWRIGHT_DATA", ROOT.parent / "shared" / "data"))
SUITE = DATA / "json-schema-test-suite" / "tests"
MASKBENCH = DATA / "maskbench-dev.jsonl.gz"

sys.path.insert(0, str(ROOT / "bench"))
import conformance  # noqa: E402
import walks  # noqa: E402

needs_suite = pytest.mark.skipif(not SUITE.is_dir(), reason="the official JSON Schema suite is not here")
needs_maskbench = pytest.mark.skipif(not MASKBENCH.is_file(), reason="the MaskBench data is not here")

# Valid instances that we reject, by file and description of the group: members in another order than
# the schema's, an integer written 1.0, and metaschemas that switch off validation.
REJECTED = {
    ("allOf.json", "allOf"),
    ("allOf.json", "allOf with base schema"),
    ("const.json", "const with object"),
    ("ref.json", "refs with relative uris and defs"),
    ("ref.json", "relative refs with absolute uris and defs"),
    ("type.json", "integer type matches integers"),
    ("vocabulary.json", "schema that uses custom metaschema with with no validation vocabulary"),
}


@pytest.fixture(scope="module")
def byte_vocabulary() -> mw.Vocabulary:
    return conformance.byte_vocabulary()


@needs_suite
@pytest.mark.parametrize("file", sorted(SUITE.glob("draft2020-12/*.json")), ids=lambda file: file.name)
def test_official_suite(file, byte_vocabulary):
    """What compiles is right: no invalid instance passes, and valid ones do but for a known few."""
    wrong = []
    for group in json.loads(file.read_text(encoding="utf-8")):
        try:
            compiled = mw.compile_json_schema(group["schema"], byte_vocabulary, formats="annotate")
        except mw.UnsatisfiableError:
            compiled = None
        except mw.UnsupportedSchemaError:
            continue
        except mw.GrammarError as error:
            # References to other documents; there is nothing else in the suite that is malformed.
            assert "cannot be resolved" in str(error) or file.name == "dynamicRef.json"
            continue
        for test in group["tests"]:
            text = json.dumps(test["data"], ensure_ascii=False).encode("utf-8", "surrogatepass")
            matcher = compiled.matcher() if compiled is not None else None
            accepted = matcher is not None and matcher.accept_bytes(text) and matcher.is_accepting
            if accepted and not test["valid"]:
                wrong.append(f"accepted: {group['description']}: {test['description']}")
            if not accepted and test["valid"] and (file.name, group["description"]) not in REJECTED:
                wrong.append(f"rejected: {group['description']}: {test['description']}")
    assert not wrong


@needs_maskbench
def test_maskbench_instances(byte_vocabulary):
    """On every 9th case: no invalid instance is accepted, and under 1 % reject a valid one (member order)."""
    outcomes: dict[str, list[str]] = {}
    with gzip.open(MASKBENCH, "rt", encoding="utf-8") as lines:
        for line in itertools.islice(lines, 0, None, 9):
            case = json.loads(line)
            outcome, detail = conformance.judge(case, byte_vocabulary)
            outcomes.setdefault(outcome, []).append(f"{case['id']}: {detail}")
    assert "invalid accepted" not in outcomes, outcomes["invalid accepted"]
    assert len(outcomes["pass"]) > 450
    assert len(outcomes.get("valid rejected", ())) <= 0.01 * sum(map(len, outcomes.values()))


@needs_maskbench
def test_random_walks_over_maskbench():
    vocabulary = walks.tekken_vocabulary()
    args = argparse.Namespace(walks=1, steps=60, seed=1)
    totals = walks.Totals()
    for name, schema in itertools.islice(walks.schemas(MASKBENCH), 0, None, 40):
        walks.check_schema(schema, vocabulary, name, args, totals)
    assert not totals.problems
    assert totals.schemas > 80
