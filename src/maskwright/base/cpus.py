"""How many CPUs this process may use: a container's quota counts, not only the machine's CPUs and the affinity.

A container with one CPU on a machine of 64 usually has no affinity at all, but a quota of its control group: so much CPU time in each
period.  64 threads use that up in a sixty-fourth of the period, and then all of them stand still until the next.

Sources: cgroup-v2 and cgroup-v1 (``sched-bwc``) of the kernel's documentation; ``proc(5)`` for ``mountinfo``; quotas are rounded
up, as the JVM does (JDK-8146115).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple


def available_cpus(root: str | os.PathLike[str] = "/") -> int:
    """The least of the CPUs of the machine, those that the process is bound to, and the quotas of its control groups; at least 1.

    ``root``: where ``proc`` and the mounted control groups are looked for.  What cannot be read is no limit.
    """
    try:
        count = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        count = os.cpu_count() or 1
    quota = quota_cpus(root)
    return max(1, count if quota is None else min(count, quota))


def quota_cpus(root: str | os.PathLike[str] = "/") -> int | None:
    """The CPUs that the control groups of this process allow, in both versions, rounded up; None where none has a quota."""
    base = Path(root)
    quotas = [quota for folder in _folders(base) if (quota := _quota(folder)) is not None]
    return min(quotas, default=None)


class _Mount(NamedTuple):
    """A mounted hierarchy: which of its folders is seen at which path, and what its ``controllers`` are (version 1)."""

    seen: PurePosixPath
    at: PurePosixPath
    controllers: frozenset[str] | None


def _folders(base: Path) -> Iterator[Path]:
    """Those of the groups of this process, and of the groups around them, as far as they can be seen."""
    mounts = list(_mounts(base))
    for line in _lines(base / "proc/self/cgroup"):
        number, _, rest = line.partition(":")
        names, _, group = rest.partition(":")
        for mount in mounts:
            if mount.controllers is None:
                matches = number == "0" and not names
            else:
                matches = "cpu" in names.split(",") and "cpu" in mount.controllers
            if matches:
                yield from _upwards(base, mount, PurePosixPath(group))


def _mounts(base: Path) -> Iterator[_Mount]:
    for line in _lines(base / "proc/self/mountinfo"):
        fields, _, kind = line.partition(" - ")
        places, kinds = fields.split(), kind.split()
        if len(places) < 5 or len(kinds) < 3 or kinds[0] not in ("cgroup", "cgroup2"):
            continue
        controllers = frozenset(kinds[2].split(",")) if kinds[0] == "cgroup" else None
        yield _Mount(PurePosixPath(_plain(places[3])), PurePosixPath(_plain(places[4])), controllers)


def _upwards(base: Path, mount: _Mount, group: PurePosixPath) -> Iterator[Path]:
    # A container may see its own group at the mount point, or be told of a group that is outside of what it sees.
    within = group.relative_to(mount.seen) if group.is_relative_to(mount.seen) else PurePosixPath()
    top = base / mount.at.relative_to("/")
    parts = () if ".." in within.parts else within.parts
    for length in range(len(parts), -1, -1):
        yield top.joinpath(*parts[:length])


def _quota(folder: Path) -> int | None:
    """The CPUs of one group: ``quota period`` in microseconds, in one file (version 2) or in two (version 1)."""
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        numbers = " ".join(line for name in names for line in _lines(folder / name)).split()
        if len(numbers) == 2 and all(re.fullmatch("[0-9]{1,18}", number) for number in numbers):
            quota, period = map(int, numbers)
            if quota and period:
                return -(-quota // period)
    return None


def _plain(text: str) -> str:
    """A path of ``mountinfo``, which writes blanks and the like in octal."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
