"""Coverage-guided fuzzing with atheris (libFuzzer), one target: ``make fuzz`` runs each of them for a while.

    python tests/fuzz/run.py schema --seconds 60 --found build/fuzz/found

The engine is a build of its own with counters (see the Makefile); with the usual one, only what is written in Python guides the search.
What is new is kept beside the seeds in ``--corpus``, and what failed in ``--found``: ``test_fuzz.py`` reads both folders
under ``tests/fuzz``, so a finding that is copied to ``tests/fuzz/found/TARGET/`` stays a test.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import atheris

HERE = Path(__file__).parent
MOST_MEGABYTES = 2_000


def count_compiled_code(library: Path) -> None:
    """When libFuzzer is there, and before the engine is loaded: its counters become libFuzzer's."""
    counters = ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
    (core,) = Path(atheris.__file__).parent.glob("core_with_libfuzzer*.so")
    fuzzer = ctypes.CDLL(str(core), ctypes.RTLD_GLOBAL)
    for table, register in (("maskwright_counters", "8bit_counters_init"), ("maskwright_blocks", "pcs_init")):
        size = (1 << 16) * (1 if register == "8bit_counters_init" else 2 * ctypes.sizeof(ctypes.c_void_p))
        begin = ctypes.addressof(ctypes.c_char.in_dll(counters, table))
        getattr(fuzzer, f"__sanitizer_cov_{register}")(ctypes.c_void_p(begin), ctypes.c_void_p(begin + size))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument(
        "--most-seconds",
        type=int,
        default=20,
        help="of one input; more on a busy machine: the first one imports everything",
    )
    parser.add_argument("--counters", type=Path, help="the library made of counters.c")
    parser.add_argument("--corpus", type=Path, help="folder that grows; the seeds are read anyway")
    parser.add_argument("--found", type=Path, default=Path("build/fuzz/found"))
    args = parser.parse_args()
    os.environ["MASKWRIGHT_CACHE_DIR"] = tempfile.mkdtemp(prefix="maskwright-fuzz-")
    seeds = HERE / "corpus" / args.target
    corpus = args.corpus or Path(tempfile.mkdtemp(prefix="maskwright-corpus-"))
    found = args.found / args.target
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    words = HERE / f"{args.target}.dict"
    options = [
        f"-max_total_time={args.seconds}",
        f"-rss_limit_mb={MOST_MEGABYTES}",
        f"-timeout={args.most_seconds}",
        f"-artifact_prefix={found}/",
        "-max_len=4096",
        "-print_final_stats=1",
        *([f"-dict={words}"] if words.exists() else []),
    ]

    @cache
    def chosen() -> Callable[[bytes], None]:
        # Asked for by the first input: atheris loads libFuzzer only then, and must not find one that is already known to all.
        if args.counters is not None:
            count_compiled_code(args.counters)
        sys.path.insert(0, str(HERE))
        import targets

        return targets.TARGETS[args.target]

    atheris.Setup([sys.argv[0], *options, str(corpus), str(seeds)], lambda data: chosen()(data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
