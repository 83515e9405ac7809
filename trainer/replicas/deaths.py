"""Notices deaths of ranks, and says how long it took until the others, and the replica itself, went on."""

import json
import os
import select
import time
from pathlib import Path
from typing import Any

from trainer.replicas.replica import FINISHED, METRICS, STARTS


class DeathWatch:
    """Used by the supervisor's main thread; knows the ranks by the lines that they write when they start."""

    def __init__(self, folder: Path, replicas: int) -> None:
        self._folders = [folder / f"replica-{index}" for index in range(replicas)]
        self._seen: set[int] = set()
        self._finished = folder / FINISHED
        self._alive: dict[int, int] = {}
        self.deaths: list[tuple[int, float]] = []

    def look(self) -> None:
        """Takes new ranks in, and notes the first death of each replica since its ranks started."""
        for index, folder in enumerate(self._folders):
            for line in lines_of(folder / STARTS):
                if line["pid"] not in self._seen:
                    self._seen.add(line["pid"])
                    self._watch(index, line["pid"])
        poll = select.poll()
        for descriptor in self._alive:
            poll.register(descriptor, select.POLLIN)
        dead = {self._alive[descriptor] for descriptor, _ in poll.poll(0)}
        if self._finished.exists():
            return
        for index in sorted(dead):
            self.deaths.append((index, time.time()))
            # The others of a replica are ended by torchrun.
            for descriptor in [each for each, owner in self._alive.items() if owner == index]:
                os.close(descriptor)
                del self._alive[descriptor]

    def _watch(self, index: int, pid: int) -> None:
        try:
            self._alive[os.pidfd_open(pid)] = index
        except ProcessLookupError:
            self.deaths.append((index, time.time()))


def recoveries_of(folder: Path, replicas: int, deaths: list[tuple[int, float]]) -> list[dict[str, Any]]:
    """A line for each death; None for what did not come any more."""
    steps = [lines_of(folder / f"replica-{index}" / METRICS) for index in range(replicas)]
    return [_recovery(steps, replica, died) for replica, died in deaths]


def _recovery(steps: list[list[dict[str, Any]]], replica: int, died: float) -> dict[str, Any]:
    others = [line for index, lines in enumerate(steps) if index != replica for line in lines]
    before = max(
        (line for line in others if line["time"] < died), key=lambda line: line["time"], default=None
    )
    # A step that all had committed when the replica died may be written a moment later.
    good = [
        line["time"]
        for line in others
        if line["time"] > died and before and line["participants"] < before["participants"]
    ]
    good = good or [line["time"] for line in others if line["time"] > died]
    back = [line["time"] for line in steps[replica] if line["time"] > died]
    return {
        "replica": replica,
        "died": died,
        "next_good_step_seconds": min(good) - died if good else None,
        "back_seconds": min(back) - died if back else None,
    }


def lines_of(file: Path) -> list[dict[str, Any]]:
    """The whole lines of a file that may still grow."""
    if not file.exists():
        return []
    whole = file.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]
