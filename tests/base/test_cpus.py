"""How many CPUs a process may use, over trees of files as kernels and containers show them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from maskwright.base.cpus import available_cpus, quota_cpus

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "33 32 0:28 {root} /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct"
OTHER = "34 32 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
BOUND = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def tree(root: Path, groups: str, mounts: str, files: dict[str, str]) -> Path:
    """``/proc`` of this process and its control groups, below ``root``."""
    for name, text in {"proc/self/cgroup": groups, "proc/self/mountinfo": mounts, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("maximum", "cpus"),
    [
        ("max 100000", None),
        ("100000 100000", 1),
        ("150000 100000", 2),
        ("5000 100000", 1),
        ("400000 50000", 8),
        ("nonsense", None),
        ("", None),
        ("0 100000", None),
        ("100000", None),
        ("9" * 400 + " 1", None),
    ],
)
def test_version_2(tmp_path: Path, maximum: str, cpus: int | None) -> None:
    root = tree(tmp_path, "0::/", V2, {"sys/fs/cgroup/cpu.max": maximum})
    assert quota_cpus(root) == cpus
    assert available_cpus(root) == (BOUND if cpus is None else min(BOUND, cpus))


def test_the_groups_around_count_as_well(tmp_path: Path) -> None:
    files = {
        "sys/fs/cgroup/a.slice/cpu.max": "300000 100000",
        "sys/fs/cgroup/a.slice/b.scope/cpu.max": "max 100000",
        "sys/fs/cgroup/other/cpu.max": "100000 100000",
    }
    assert quota_cpus(tree(tmp_path, "0::/a.slice/b.scope", V2, files)) == 3
    (tmp_path / "sys/fs/cgroup/a.slice/b.scope/cpu.max").write_text("200000 100000\n")
    assert quota_cpus(tmp_path) == 2


@pytest.mark.parametrize(("quota", "cpus"), [("-1", None), ("250000", 3), ("100000", 1)])
@pytest.mark.parametrize("seen", ["/", "/docker/abc"])
def test_version_1(tmp_path: Path, quota: str, cpus: int | None, seen: str) -> None:
    """The group is named from the machine's root; a container sees it at the mount point itself."""
    folder = "sys/fs/cgroup/cpu,cpuacct" + ("/docker/abc" if seen == "/" else "")
    files = {f"{folder}/cpu.cfs_quota_us": quota, f"{folder}/cpu.cfs_period_us": "100000"}
    groups = "11:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc"
    assert quota_cpus(tree(tmp_path, groups, f"{OTHER}\n{V1.format(root=seen)}", files)) == cpus


def test_a_group_that_cannot_be_seen_is_that_of_the_mount(tmp_path: Path) -> None:
    root = tree(tmp_path, "0::/../../elsewhere", V2, {"sys/fs/cgroup/cpu.max": "100000 100000"})
    assert quota_cpus(root) == 1


def test_both_versions_at_once(tmp_path: Path) -> None:
    mounts = f"{V1.format(root='/')}\n{V2.replace('/sys/fs/cgroup rw', '/sys/fs/cgroup/unified rw')}"
    files = {
        "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "400000",
        "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/unified/y/cpu.max": "600000 100000",
    }
    assert quota_cpus(tree(tmp_path, "4:cpu,cpuacct:/x\n0::/y", mounts, files)) == 4


def test_a_mount_point_with_a_blank(tmp_path: Path) -> None:
    mounts = V2.replace("/sys/fs/cgroup", r"/sys/my\040groups")
    assert quota_cpus(tree(tmp_path, "0::/", mounts, {"sys/my groups/cpu.max": "200000 100000"})) == 2


@pytest.mark.parametrize("mounts", ["", "short", f"{V2} and more", "1 2 3 - cgroup2"])
def test_what_cannot_be_read_is_no_limit(tmp_path: Path, mounts: str) -> None:
    assert available_cpus(tmp_path) == BOUND
    assert quota_cpus(tree(tmp_path, "0::/x", mounts, {})) is None
    assert available_cpus(tmp_path) == BOUND


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_affinity_counts() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from maskwright.base.cpus import available_cpus; print(available_cpus())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "1\n"


def _own_group() -> Path | None:
    """A new control group with a quota of one CPU, where this user may make one."""
    for parent, files in (
        (Path("/sys/fs/cgroup/cpu"), {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "100000"}),
        (Path("/sys/fs/cgroup"), {"cpu.max": "100000 100000"}),
    ):
        folder = parent / f"maskwright-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            for name, text in files.items():
                (folder / name).write_text(text)
            return folder
        except OSError:
            folder.rmdir()
    return None


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are Linux's")
def test_a_real_group() -> None:
    """A process of a group with a quota of one CPU, by the kernel's own files."""
    folder = _own_group()
    if folder is None:
        pytest.skip("no control group with a quota can be made here")
    try:
        code = "from maskwright.base.cpus import available_cpus, quota_cpus; print(quota_cpus(), available_cpus())"
        shell = shutil.which("sh") or "sh"
        run = subprocess.run(
            [shell, "-c", f'echo $$ > {folder}/cgroup.procs && exec "$0" -c "$1"', sys.executable, code],
            capture_output=True,
            text=True,
        )
        if run.returncode:
            pytest.skip(f"no process may join a new control group here: {run.stderr.strip()[:200]}")
        assert run.stdout == "1 1\n"
    finally:
        folder.rmdir()
