"""Files of the disk cache: damage of any kind, and directories of any kind, cost time and nothing else."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from maskwright.base import disk_cache

PARTS = (b"", b"a part", bytes(range(256)) * 8)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MASKWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_was_written_is_read(cache: Path) -> None:
    assert disk_cache.read("x") is None
    disk_cache.write("x", *PARTS)
    disk_cache.write("none")
    assert disk_cache.read("x") == list(PARTS)
    assert disk_cache.read("none") == []
    disk_cache.write("x", b"other")
    assert disk_cache.read("x") == [b"other"]
    assert sorted(path.name for path in cache.iterdir()) == ["none", "x"]


def test_every_flipped_bit_is_found(cache: Path) -> None:
    disk_cache.write("x", b"one", b"two")
    good = (cache / "x").read_bytes()
    for bit in range(8 * len(good)):
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        (cache / "x").write_bytes(damaged)
        assert disk_cache.read("x") is None, bit
    (cache / "x").write_bytes(good)
    assert disk_cache.read("x") == [b"one", b"two"]


def test_cut_and_mixed_files_are_found(cache: Path) -> None:
    disk_cache.write("x", *PARTS)
    good = (cache / "x").read_bytes()
    rng = random.Random(0)
    for size in {0, 1, 25, 26, len(good) - 1, *(rng.randrange(len(good)) for _ in range(50))}:
        (cache / "x").write_bytes(good[:size])
        assert disk_cache.read("x") is None
    for data in (good + b"\0", good + good, bytes(len(good)), rng.randbytes(4096)):
        (cache / "x").write_bytes(data)
        assert disk_cache.read("x") is None


def test_a_file_is_only_what_its_name_says(cache: Path) -> None:
    disk_cache.write("x", *PARTS)
    os.rename(cache / "x", cache / "y")
    assert disk_cache.read("y") is None


def test_another_byte_order_or_version_is_another_file(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_cache.write("x", *PARTS)
    (cache / "x").write_bytes((cache / "x").read_bytes().replace(b"little\n", b"big\n", 1))
    assert disk_cache.read("x") is None
    disk_cache.write("x", *PARTS)
    monkeypatch.setattr(disk_cache, "_MAGIC", b"maskwright cache 0 little\n")
    assert disk_cache.read("x") is None


def test_no_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE_DIR", "")
    disk_cache.write("x", *PARTS)
    disk_cache.keep_latest("x", 1)
    assert disk_cache.read("x") is None


def test_no_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("MASKWRIGHT_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nobody)
    assert disk_cache.cache_directory() is None
    disk_cache.write("x", *PARTS)
    assert disk_cache.read("x") is None


@pytest.mark.parametrize("kind", ["a file", "below a file", "a dead link"])
def test_a_directory_that_is_none(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "a dead link":
        (tmp_path / "file").symlink_to(tmp_path / "nowhere" / "else")
    else:
        (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "below" if kind == "below a file" else tmp_path / "file"
    monkeypatch.setenv("MASKWRIGHT_CACHE_DIR", str(path))
    disk_cache.write("x", *PARTS)
    disk_cache.keep_latest("x", 1)
    assert disk_cache.read("x") is None


def test_a_directory_in_the_place_of_a_file(cache: Path) -> None:
    (cache / "x" / "below").mkdir(parents=True)
    disk_cache.write("x", *PARTS)
    assert disk_cache.read("x") is None
    assert [path.name for path in cache.iterdir()] == ["x"]


def test_a_directory_that_can_only_be_read(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_cache.write("x", *PARTS)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(30, "Read-only file system")

    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(disk_cache.tempfile, "mkstemp", refuse)
    disk_cache.write("y", *PARTS)
    assert disk_cache.read("x") == list(PARTS)
    assert disk_cache.read("y") is None


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files")
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    # A limit on the size of files stands for the disk: writing ends with an error halfway.
    program = """
import resource
from maskwright.base import disk_cache
disk_cache.write("small", b"a")
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
disk_cache.write("large", bytes(100_000))
assert disk_cache.read("large") is None
assert disk_cache.read("small") == [b"a"]
"""
    environment = {
        **os.environ,
        "MASKWRIGHT_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run([sys.executable, "-c", program], env=environment, timeout=60)
    assert done.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


def test_an_interrupted_writer_leaves_nothing_behind(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        disk_cache.write("x", *PARTS)
    assert not list(cache.iterdir())


def test_what_dead_writers_left_is_deleted(cache: Path) -> None:
    cache.mkdir()
    for name, age in ((".unfinished-old", 2 * 3600), (".unfinished-new", 0), ("other", 2 * 3600)):
        (cache / name).write_bytes(b"half")
        os.utime(cache / name, (time.time() - age,) * 2)
    disk_cache.write("x", *PARTS)
    assert sorted(path.name for path in cache.iterdir()) == [".unfinished-new", "other", "x"]


def test_the_files_used_last_are_kept(cache: Path) -> None:
    for i, name in enumerate(("a1", "a2", "a3", "b1")):
        disk_cache.write(name, b"")
        os.utime(cache / name, (i, i))
    assert disk_cache.read("a1") == [b""]
    disk_cache.keep_latest("a", 2)
    assert sorted(path.name for path in cache.iterdir()) == ["a1", "a3", "b1"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_killed_writers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever a writer is killed, readers find a whole file or none."""
    monkeypatch.setenv("MASKWRIGHT_CACHE_DIR", str(tmp_path))
    program = """
import itertools
from maskwright.base import disk_cache
print("ready", flush=True)
for i in itertools.count():
    disk_cache.write("x", bytes([i % 256]) * 1_000_000, bytes([i % 256]))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    rng = random.Random(0)
    for _ in range(6):
        writers = [
            subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE)
            for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
        time.sleep(rng.uniform(0.01, 0.1))
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
        found = disk_cache.read("x")
        assert found is None or found == [found[1] * 1_000_000, found[1]]
    disk_cache.write("x", b"whole")
    assert disk_cache.read("x") == [b"whole"]
