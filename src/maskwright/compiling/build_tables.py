"""Makes the files of ``shipped_tables``: ``python -m maskwright.compiling.build_tables``, a step of building the package."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

from maskwright.compiling.compiler import compile_job, job_of
from maskwright.compiling.packed_tables import pack
from maskwright.compiling.shipped import shipped_grammar, shipped_grammars
from maskwright.compiling.shipped_tables import FOLDER, file_name, sealed
from maskwright.limits import DEFAULT_LIMITS
from maskwright.vocabulary.vocabulary import Vocabulary

_SECONDS = 600.0


def make(grammar: str) -> str:
    """Make the file of a shipped grammar; its name."""
    job = job_of(shipped_grammar(grammar), replace(DEFAULT_LIMITS, max_seconds=_SECONDS))
    key = job.part.key
    name = file_name(key)
    assert name is not None and job.part.stored, grammar
    any_vocabulary = Vocabulary.from_bytes([*(bytes([byte]) for byte in range(256)), None], eos_ids=[256])
    compile_job(job, any_vocabulary)
    (FOLDER / name).write_bytes(sealed(name, pack(any_vocabulary._tables.get(key))))
    return name


def main() -> None:
    """Make all of them, and drop other files."""
    # None is made out of a file.  The name of one says nothing of the engine that made it.
    os.environ["MASKWRIGHT_CACHE_DIR"] = ""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        path.unlink()
    with ProcessPoolExecutor(2) as pool:
        # What a process raised is raised here.
        list(pool.map(make, shipped_grammars()))


if __name__ == "__main__":
    main()
