"""The control groups of one run: a group of its name in each hierarchy, below which those of pods lie."""

import os
import time
from pathlib import Path

# The kernel wants a new group to be told what it has, before a process may join.
_TOLD = ("cpuset.cpus", "cpuset.mems")
_PAUSE = 0.1


def hierarchies() -> dict[Path, str]:
    """The places of hierarchies, each with its version: cgroup or cgroup2."""
    found = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if (kind := after.split()[0]) in ("cgroup", "cgroup2"):
            found[Path(before.split()[4])] = kind
    return found


def make(name: str) -> None:
    """Makes the groups: in the hierarchies of version 1, or where there are none in that of version 2."""
    found = hierarchies()
    version = "cgroup" if "cgroup" in found.values() else "cgroup2"
    for place in [place for place, kind in found.items() if kind == version]:
        (place / name).mkdir()
        for told in _TOLD:
            if version == "cgroup" and (place / name / told).exists():
                (place / name / told).write_text((place / told).read_text())


def remove(name: str, seconds: float) -> list[Path]:
    """Removes the groups with those below them, when their processes have ended; gives those that stay."""
    deadline = time.monotonic() + seconds
    while True:
        left = [each for place in hierarchies() if (place / name).exists() for each in _remove(place / name)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(_PAUSE)


def _remove(top: Path) -> list[Path]:
    left = []
    for folder, _, _ in os.walk(top, topdown=False):
        try:
            os.rmdir(folder)
        except OSError:
            left.append(Path(folder))
    return left
