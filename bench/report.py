"""Results of the programs in this folder as one page: ``python bench/report.py --out report.html [FILE ...]``.

Without files, all of ``bench/results``.  Each is JSON; the page has its tables and curves, and needs no network.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from maskwright.pages.bench import report

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="*", type=Path, help="default: all of bench/results")
    parser.add_argument("--out", type=Path, required=True, help="the page")
    args = parser.parse_args()
    files = args.file or sorted(RESULTS.glob("*.json"))
    args.out.write_text(report({path.stem: json.loads(path.read_text("utf-8")) for path in files}), "utf-8")
    print(f"{args.out}: {len(files)} results")


if __name__ == "__main__":
    main()
