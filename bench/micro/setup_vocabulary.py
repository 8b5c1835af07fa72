"""How long does it take from a loaded tokenizer to an engine, without and with the cache on disk?

python bench/micro/setup_vocabulary.py
"""

from __future__ import annotations

import os
import tempfile
import time

from _common import show, tekken

import maskwright as mw

tokenizer = tekken()
# Imports what the set-up imports.
mw.compile_json_schema(True, mw.Vocabulary.from_bytes([b"0", None], eos_ids=[1]))


def set_up() -> float:
    begun = time.perf_counter()
    mw.compile_json_schema(True, mw.Vocabulary.from_mistral_common(tokenizer))
    return 1e3 * (time.perf_counter() - begun)


cold, warm = [], []
for _ in range(3):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MASKWRIGHT_CACHE_DIR"] = folder
        cold.append(set_up())
        warm.append(set_up())
show("set-up, cold", min(cold), "ms")
show("set-up, from the disk cache", min(warm), "ms")
