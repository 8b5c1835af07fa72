"""Writes docs/json-schema-keywords.md: what becomes of every keyword in every draft, as the compiler itself says.

    python bench/keyword_table.py --write

Keywords are those of the metaschemas.  Each is asked about with ``check_json_schema``, in a schema of the conformance cases that has it, or
in one of ``SAMPLES``, declared for the draft at hand.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema_specifications

import maskwright as mw
from maskwright.conformance import load_cases

PAGE = Path(__file__).parents[1] / "docs" / "json-schema-keywords.md"
DRAFTS = {
    "3": "http://json-schema.org/draft-03/schema#",
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
SAMPLES: dict[str, Any] = {
    "$recursiveAnchor": {"$recursiveAnchor": True, "type": "object"},
    "$recursiveRef": {"properties": {"a": {"$recursiveRef": "#"}}},
    "$vocabulary": {"$vocabulary": {}},
    "additionalItems": {"type": "array", "items": [{"type": "integer"}], "additionalItems": False},
    "contentSchema": {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"type": "integer"},
    },
    "disallow": {"disallow": ["string"]},
    "divisibleBy": {"type": "integer", "divisibleBy": 3},
    "extends": {"extends": {"type": "integer"}},
    "id": {"id": "http://example.com/a", "type": "integer"},
}


def keywords() -> dict[str, set[str]]:
    """The keywords of each draft's metaschema."""
    registry = jsonschema_specifications.REGISTRY
    found: dict[str, set[str]] = {}
    for draft, uri in DRAFTS.items():
        pages = [
            uri,
            *(each for each in registry if "/meta/" in each and each.startswith(uri.removesuffix("schema"))),
        ]
        if len(pages) == 1 and draft.startswith("20"):
            raise SystemExit(f"no vocabularies of {draft}")
        found[draft] = {name for page in pages for name in registry.contents(page).get("properties", ())}
    found["4"].add("$ref")  # its metaschema does not say so
    return found


def schemas_with(keyword: str) -> list[Any]:
    """Schemas that have a keyword at their top, or anywhere."""
    if keyword in SAMPLES:
        return [SAMPLES[keyword]]
    all_of_them = [json.loads(case.source) for case in load_cases() if case.kind == "json_schema"]
    return [each for each in all_of_them if isinstance(each, dict) and f'"{keyword}":' in json.dumps(each)]


def status(keyword: str, uri: str) -> str:
    """What the compiler says of a keyword in a draft."""
    found = set()
    for schema in schemas_with(keyword):
        report = mw.check_json_schema({**schema, "$schema": uri})
        found |= {use.status for use in report.keywords if use.keyword == keyword}
    for name in ("refused", "enforced", "annotation"):
        if name in found:
            return name
    raise SystemExit(f"no schema shows what becomes of {keyword}: add one to SAMPLES")


def page() -> str:
    """The whole page."""
    known = keywords()
    names = sorted(set().union(*known.values()), key=lambda name: (name.lstrip("$").lower(), name))
    lines = [
        "# JSON Schema keywords, draft by draft",
        "",
        "`python bench/keyword_table.py --write` makes this page by asking the compiler: **enforced** keywords restrict what is written, an **annotation** restricts",
        "nothing by itself (as its specification says, or since it only says where things are), what is **refused** stops compiling and is named. A dash: the",
        "draft does not have the keyword. Which valid spellings are never written is in [json-schema.md](json-schema.md#what-is-narrower-than-the-specification).",
        "",
        "| keyword | "
        + " | ".join(f"draft {draft}" if len(draft) == 1 else draft for draft in DRAFTS)
        + " |",
        "|---" * (len(DRAFTS) + 1) + "|",
    ]
    for name in names:
        cells = [status(name, uri) if name in known[draft] else "–" for draft, uri in DRAFTS.items()]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name} instead of printing it")
    args = parser.parse_args()
    if args.write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
