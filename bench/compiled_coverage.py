"""Which lines of compiled code ran: of ``cext/`` and of the Python modules that are compiled, by file.

    make coverage                                  # runs the tests in a build that counts, then this
    python bench/compiled_coverage.py build/coverage --missed masks.pyx

gcov tells it for the generated C++, whose lines are marked with the lines that they were made of.  A line counts as run when any
C++ made of it was.  Lines of which no C++ is made (declarations, comments) do not count.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]


def lines_run(build: Path) -> dict[str, dict[int, bool]]:
    """By source file and line: whether it ran."""
    found: dict[str, dict[int, bool]] = defaultdict(dict)
    for counts in sorted(build.rglob("*.gcda")):
        command = ["gcov", "--json-format", "--stdout", str(counts.resolve())]
        output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
        for document in output.splitlines():
            for file in json.loads(document)["files"]:
                name = _name(Path(file["file"]))
                if not name.startswith(("cext/", "src/")) or name.endswith((".cpp", ".c")):
                    continue
                lines = found[name]
                for line in file["lines"]:
                    number = line["line_number"]
                    lines[number] = lines.get(number, False) or line["count"] > 0
    return {name: lines for name, lines in found.items() if lines}


def _name(path: Path) -> str:
    """From the root; Cython names sources from the folder of their package on."""
    if path.is_absolute():
        return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
    for folder in ("cext", "src"):
        if path.parts[0] == "maskwright" and (ROOT / folder / path).exists():
            return str(folder / path)
    return str(path)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=Path)
    parser.add_argument("--missed", help="list the lines of this file that did not run")
    args = parser.parse_args()
    found = lines_run(args.build)
    if not found:
        print(f"no counts below {args.build}: nothing ran there")
        return 1
    if args.missed is not None:
        for name, lines in found.items():
            if Path(name).name == args.missed:
                source = (ROOT / name).read_text(encoding="utf-8").splitlines()
                for number in sorted(number for number, run in lines.items() if not run):
                    print(f"{name}:{number}: {source[number - 1]}")
        return 0
    groups: dict[str, list[bool]] = defaultdict(list)
    for name, lines in sorted(found.items()):
        print(f"{sum(lines.values()) / len(lines):7.1%} of {len(lines):5}  {name}")
        groups[name.split("/")[0]] += lines.values()
    for group, runs in groups.items():
        print(f"{sum(runs) / len(runs):7.1%} of {len(runs):5}  all of {group}/ that is compiled")
    return 0


if __name__ == "__main__":
    sys.exit(main())
