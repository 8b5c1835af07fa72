"""Which tests of the official JSON Schema test suite pass, in five drafts?

A schema is compiled once for each draft.  An instance is written in several ways (``spellings``, members in
both orders, ``equal_numbers``): a test passes when a valid instance is accepted in all of them, and
an invalid one in none.  Required
tests and ``optional`` ones treat formats as annotations; those of ``optional/format`` assert them.

    python bench/official_suite.py --show required --draft draft7
    python bench/official_suite.py --write-ratchet
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import maskwright as mw

DEFAULT_DATA = Path(__file__).parents[2] / "shared" / "data" / "json-schema-test-suite"
RATCHET = Path(__file__).parents[1] / "tests/frontends/json_schema/official_suite_passing.txt"
REMOTES = "http://localhost:1234/"
# Folder of the suite: the name of its dialect, for schemas that do not say.
DRAFTS = {
    "draft4": "draft4",
    "draft6": "draft6",
    "draft7": "draft7",
    "draft2019-09": "2019-09",
    "draft2020-12": "2020-12",
}
SECTIONS = ("required", "format", "optional")
OUTCOMES = ("pass", "refused", "error", "valid rejected", "invalid accepted")


@dataclass(frozen=True)
class Result:
    """The outcome of one test; ``file`` is relative to the suite's ``tests``."""

    file: str
    section: str
    description: str
    identity: str
    outcome: str
    detail: str = ""


# --- Writing JSON


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    return '"' + "".join("\\u" + units[i : i + 2].hex() for i in range(0, len(units), 2)) + '"'


def _raw(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _as_given(number: int | Decimal) -> str:
    return str(number)


def _with_fraction(number: int | Decimal) -> str:
    text = str(number)
    return text if "E" in text else f"{text}0" if "." in text else f"{text}.0"


def _with_exponent(number: int | Decimal) -> str:
    text = str(number)
    return text if "E" in text else f"{text}e0"


def _in_tenths(number: int | Decimal) -> str:
    text = str(number)
    return text if "E" in text or "." in text else f"{text}0e-1"


def write(
    value: Any,
    string: Callable[[str], str] = _raw,
    comma: str = ",",
    colon: str = ":",
    indent: int = 0,
    depth: int = 1,
    number: Callable[[int | Decimal], str] = _as_given,
) -> str:
    """JSON text.  Numbers are integers and ``Decimal``: ``1e400`` and ``1.0`` are kept as written."""
    if not isinstance(value, (dict, list)):
        if isinstance(value, str):
            return string(value)
        return json.dumps(value) if value is None or isinstance(value, bool) else number(value)

    def inside(child: Any) -> str:
        return write(child, string, comma, colon, indent, depth + 1, number)

    if isinstance(value, dict):
        marks = "{}"
        parts = [f"{string(key)}{colon}{inside(child)}" for key, child in value.items()]
    else:
        marks, parts = "[]", [inside(child) for child in value]
    if not indent or not parts:
        return marks[0] + comma.join(parts) + marks[1]
    line = "\n" + " " * indent * depth
    return f"{marks[0]}{line}{(',' + line).join(parts)}{line[:-indent]}{marks[1]}"


def reversed_members(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_members(value[key]) for key in reversed(value)}
    return [reversed_members(child) for child in value] if isinstance(value, list) else value


def spellings(value: Any) -> list[bytes]:
    """Compact; as ``json.dumps`` writes; indented; in ASCII; with every character escaped.

    A lone surrogate leaves the escaped ones.
    """
    return _encoded(
        write(value),
        write(value, json.dumps, ", ", ": "),
        write(value, _raw, ",", ": ", indent=2),
        write(value, json.dumps),
        write(value, _escaped),
    )


def equal_numbers(value: Any, valid: bool) -> list[bytes]:
    """With ``.0`` behind integers.  Exponents are no obligation: only what is invalid must stay so with them."""
    forms = (_with_fraction,) if valid else (_with_fraction, _with_exponent, _in_tenths)
    return _encoded(*(write(value, number=form) for form in forms))


def _encoded(*texts: str) -> list[bytes]:
    encoded = []
    for text in dict.fromkeys(texts):
        try:
            encoded.append(text.encode())
        except UnicodeEncodeError:
            continue
    return encoded


# --- Running


def read_exactly(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)


def accepts(compiled: mw.CompiledGrammar, text: bytes) -> bool:
    matcher = compiled.matcher()
    return matcher.accept_bytes(text) and matcher.is_accepting


class Suite:
    """The suite on disk, a vocabulary of single bytes, and what the compiler has options for."""

    def __init__(self, data: Path) -> None:
        self.tests = data / "tests"
        self.vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
        remotes = data / "remotes"
        self.remotes = {
            REMOTES + path.relative_to(remotes).as_posix(): json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(remotes.rglob("*.json"))
        }

    def files(self, draft: str) -> Iterator[tuple[str, Path]]:
        """(section, file) of a draft."""
        for path in sorted((self.tests / draft).rglob("*.json")):
            inside = path.relative_to(self.tests / draft).parts
            section = "required" if len(inside) == 1 else "format" if inside[1] == "format" else "optional"
            yield section, path

    def compile(self, schema: Any, draft: str, section: str) -> mw.CompiledGrammar:
        options: dict[str, Any] = {"formats": "assert" if section == "format" else "annotate"}
        if not (isinstance(schema, dict) and "$schema" in schema):
            options["dialect"] = DRAFTS[draft]
        # Instances are written in every way that JSON has.
        return mw.compile_json_schema(
            write(schema),
            self.vocabulary,
            property_order="any",
            whitespace="flexible",
            escapes="any",
            registry=self.remotes,
            **options,
        )

    def judge(
        self, compiled: mw.CompiledGrammar, data: Any, valid: bool, draft: str = "draft2020-12"
    ) -> tuple[str, str]:
        """The outcome for one instance, and a text that shows it."""
        written = [*spellings(data), *spellings(reversed_members(data))]
        if draft != "draft4":
            # In draft 4, what is written with a fraction is no integer.
            written += equal_numbers(data, valid)
        wrong = next((text for text in dict.fromkeys(written) if accepts(compiled, text) != valid), None)
        if wrong is None:
            return "pass", ""
        shown = wrong.decode()[:200]
        if not valid:
            return "invalid accepted", shown
        return "valid rejected", shown

    def run_file(self, draft: str, section: str, path: Path) -> Iterator[Result]:
        name = path.relative_to(self.tests).as_posix()
        for group in read_exactly(path):
            compiled, outcome, detail = None, "", ""
            try:
                compiled = self.compile(group["schema"], draft, section)
            except mw.UnsatisfiableError as error:
                outcome, detail = "nothing", str(error)
            except mw.UnsupportedSchemaError as error:
                outcome = "refused"
                detail = " ".join(sorted({refusal.keyword for refusal in error.refusals}))
            except (ValueError, RecursionError) as error:
                outcome, detail = "error", f"{type(error).__name__}: {error}"
            for test in group["tests"]:
                result, why = outcome, detail
                if compiled is not None:
                    try:
                        result, why = self.judge(compiled, test["data"], test["valid"], draft)
                    except mw.MaskwrightError as error:
                        result, why = "error", f"{type(error).__name__}: {error}"
                elif outcome == "nothing":
                    result = "valid rejected" if test["valid"] else "pass"
                yield Result(
                    name,
                    section,
                    f"{group['description']}: {test['description']}",
                    identity(group["schema"], test["data"]),
                    result,
                    why,
                )

    def run(self, drafts: Iterable[str] = DRAFTS) -> Iterator[Result]:
        for draft in drafts:
            for section, path in self.files(draft):
                yield from self.run_file(draft, section, path)


# --- The list of passing tests


def identity(schema: Any, data: Any) -> str:
    """A test by its content, so that a newer suite may move and rename tests."""
    return hashlib.sha256(write([schema, data], json.dumps).encode()).hexdigest()[:6]


def write_ratchet(results: Iterable[Result], path: Path = RATCHET) -> None:
    """Lists the tests that pass: a line for each file, the identities below."""
    passing: dict[str, list[str]] = defaultdict(list)
    for result in results:
        if result.outcome == "pass":
            passing[result.file].append(result.identity)
    lines = []
    for file, identities in passing.items():
        kept = list(dict.fromkeys(identities))
        lines.append(file)
        lines += ["  " + " ".join(kept[i : i + 14]) for i in range(0, len(kept), 14)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_ratchet(path: Path = RATCHET) -> set[tuple[str, str]]:
    """(file, identity) of the tests that must pass."""
    listed: set[tuple[str, str]] = set()
    file = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if re.match(r"\S", line):
            file = line
        else:
            listed.update((file, found) for found in line.split())
    return listed


# --- Printing


def print_table(results: list[Result]) -> None:
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for result in results:
        counts[result.section, result.file.split("/")[0]][result.outcome] += 1
    print(f"{'':22}{'tests':>7}{'pass %':>8}" + "".join(f"{name:>18}" for name in OUTCOMES[1:]))
    for section in SECTIONS:
        for draft in DRAFTS:
            row = counts.get((section, draft))
            if row:
                total = row.total()
                cells = "".join(f"{row[name]:>18}" for name in OUTCOMES[1:])
                print(f"{section:9} {draft:12}{total:>7}{100 * row['pass'] / total:>8.2f}{cells}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="the suite's folder")
    parser.add_argument("--draft", choices=DRAFTS, action="append", help="only this one (repeatable)")
    parser.add_argument("--show", choices=SECTIONS, action="append", help="list what fails in a section")
    parser.add_argument("--by-file", action="store_true", help="passes of every file")
    parser.add_argument("--json", type=Path, help="write all outcomes to this file")
    parser.add_argument("--write-ratchet", action="store_true", help=f"update {RATCHET.name}: all drafts")
    args = parser.parse_args(arguments)
    if args.write_ratchet and args.draft:
        parser.error("--write-ratchet needs all drafts")
    started = time.perf_counter()
    suite = Suite(args.data)
    results = list(suite.run(args.draft or DRAFTS))
    if not results:
        parser.error(f"no tests in {args.data}")
    for result in results:
        if result.section in (args.show or ()) and result.outcome != "pass":
            print(f"{result.outcome}: {result.file}: {result.description}: {result.detail[:200]}")
    if args.by_file:
        by_file: dict[str, Counter[str]] = defaultdict(Counter)
        for result in results:
            by_file[result.file][result.outcome] += 1
        for file, row in by_file.items():
            failing = ", ".join(f"{row[name]} {name}" for name in OUTCOMES[1:] if row[name])
            print(f"{file:60}{row['pass']:>5} of {row.total():<5}{failing}")
    print_table(results)
    refused = Counter(result.detail for result in results if result.outcome == "refused")
    print("refused:", ", ".join(f"{keywords} {count}" for keywords, count in refused.most_common(12)))
    print(f"{len(results)} tests in {time.perf_counter() - started:.1f} s")
    if args.json:
        args.json.write_text(json.dumps([vars(result) for result in results], indent=1, ensure_ascii=False))
    if args.write_ratchet:
        write_ratchet(results)
    wrong = any(r.outcome == "invalid accepted" for r in results if r.section != "optional")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
