"""The disk cache of engines: equal masks from a fresh and a loaded engine, and bad files ignored."""

from __future__ import annotations

import json
from importlib.machinery import EXTENSION_SUFFIXES

import numpy as np
import pytest

import maskwright as mw
from maskwright._core import automata_bytes
from maskwright.base import disk_cache
from maskwright.compiling import compiler
from maskwright.vocabulary import engine_cache

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "number"}, "s": {"type": "string"}},
    "required": ["n"],
}
TEXTS = ['{"n": -12.5e3, "s": "x\\u00e9y\\n"}', '{\n  "n": 0.001\n}', '{"n":1,"s":"","t":[true,null]}']


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MASKWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def vocabulary() -> mw.Vocabulary:
    pieces = [bytes([i]) for i in range(256)]
    pieces += [
        p.encode() for p in ('": ', '", "', "12", ".5", "é", "\n  ", '{"', "e3", "00", '":', "},", "}")
    ]
    return mw.Vocabulary.from_bytes([*pieces, None], eos_ids=[len(pieces)])


def masks(vocab: mw.Vocabulary) -> list[np.ndarray]:
    found = []
    for text in TEXTS:
        json.loads(text)
        matcher = mw.compile_json_schema(SCHEMA, vocab).matcher()
        for byte in text.encode():
            mask = mw.allocate_token_bitmask(1, vocab.vocab_size)
            matcher.fill_next_token_bitmask(mask)
            found.append(mask)
            assert matcher.accept_token(byte)
    return found


def same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_loaded_masks_equal_computed_ones(cache, monkeypatch):
    computed = masks(vocabulary())
    (file,) = cache.glob("*.bin")
    monkeypatch.setattr(disk_cache, "write", lambda name, *parts: pytest.fail("the cache was not used"))
    assert same(masks(vocabulary()), computed)
    assert file.stat().st_size > 1000


def test_a_damaged_file_is_replaced(cache):
    computed = masks(vocabulary())
    (file,) = cache.glob("*.bin")
    good = file.read_bytes()
    for at in range(0, len(good), len(good) // 20):
        file.write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :])
        assert same(masks(vocabulary()), computed)
        assert file.read_bytes() == good


def test_arrays_of_odd_sizes_are_no_trie():
    tokens = [*(bytes([i]) for i in range(256)), b""]
    nodes, ids = engine_cache.Engine(tokens, (256,)).dump_trie()
    for wrong in ((nodes[:-1], ids), (nodes, ids + b"\0")):
        with pytest.raises(ValueError, match="no arrays"):
            engine_cache.Engine(tokens, (256,), wrong)


def test_another_build_does_not_share_the_file(cache, monkeypatch, tmp_path):
    masks(vocabulary())
    other = tmp_path / "other.so"
    other.write_bytes(b"another engine")
    monkeypatch.setattr(engine_cache._core, "__file__", str(other))
    masks(vocabulary())
    assert len(list(cache.glob("*.bin"))) == 2


def test_a_build_is_known_by_all_its_modules(tmp_path):
    core = tmp_path / "_core.so"
    core.write_bytes(b"classes")
    (tmp_path / "_engine").mkdir()
    digests = set()
    for content in (b"one", b"another"):
        (tmp_path / "_engine" / f"trie{EXTENSION_SUFFIXES[0]}").write_bytes(content)
        digests.add(engine_cache.build_digest.__wrapped__(str(core)))
    assert len(digests) == 2


def test_an_empty_setting_turns_the_cache_off(monkeypatch):
    monkeypatch.setenv("MASKWRIGHT_CACHE_DIR", "")
    assert masks(vocabulary())


def test_a_directory_that_cannot_be_written_is_no_error(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MASKWRIGHT_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert masks(vocabulary())


def test_no_home_directory_is_no_error(monkeypatch):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("MASKWRIGHT_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(engine_cache.Path, "home", nobody)
    assert masks(vocabulary())


def test_tables_whose_automata_became_large_are_let_go(monkeypatch):
    # Automata grow when texts reach their states, long after their tables were put away.
    monkeypatch.setattr(compiler, "_TABLES_BYTES", 1 << 20)
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], eos_ids=[256])
    for i in range(600):
        grammar = mw.compile_regex(f"{i} is a text of some length", vocabulary)
        assert grammar.matcher().shortest_completion()
    assert sum(automata_bytes(tables) for tables, _ in vocabulary._tables._kept.values()) < 3 << 20
    assert len(vocabulary._tables) < 300
