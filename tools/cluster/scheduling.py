"""One group of the scheduler for all processes of a cluster, where the kernel makes one of each session."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import settings
from control import name_of

# A rank that waits yields its processor, but (Linux 6.18) never to a process of another group: ranks of two
# hosts that meet on a processor then wait for one another for seconds. Sessions are groups where this setting
# is on and nothing else makes groups, which on most machines systemd does.
_SESSIONS_ARE_GROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")


def _root() -> Path | None:
    """The folder of the group that this process is in, if that is the one which sessions divide."""
    try:
        if _SESSIONS_ARE_GROUPS.read_text().strip() != "1":
            return None
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return None
    # Version 2 has no name for its groups, version 1 those of its controllers.
    undivided = {each for _, controllers, path in groups if path == "/" for each in controllers.split(",")}
    for _, place, kind, options, *_ in mounts:
        folder = Path(place)
        with contextlib.suppress(OSError):
            if kind == "cgroup" and "cpu" in options.split(",") and "cpu" in undivided:
                return folder
            offered = folder / "cgroup.subtree_control"
            if kind == "cgroup2" and "" in undivided and "cpu" in offered.read_text().split():
                return folder
    return None


def _remove_those_of_the_dead(root: Path) -> None:
    for group in root.glob(name_of("*")):
        if not Path("/proc", group.name.removeprefix(name_of(""))).exists():
            with contextlib.suppress(OSError):
                group.rmdir()


@contextlib.contextmanager
def group() -> Iterator[Path | None]:
    """Makes the group of this process's cluster and removes it; None where it is not needed or permitted."""
    root = _root()
    made = root / name_of(os.getpid()) if root else None
    try:
        if made:
            _remove_those_of_the_dead(root)
            made.mkdir()
    except OSError:
        made = None
    try:
        yield made
    finally:
        if made:
            with contextlib.suppress(OSError):
                made.rmdir()


def join(made: Path | None) -> None:
    """Moves the calling process into a group, and with it what it will start."""
    if made:
        settings.give(made / "cgroup.procs", "0", "join the cluster's group of the scheduler")
