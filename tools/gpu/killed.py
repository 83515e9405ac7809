"""The step that kills a process in a call: the others must end soon, and say who is gone."""

import os
import re
import signal
import time
from collections.abc import Iterator

from measured import row
from programs import PATHS, Programs, Ranks, Run, started

CASE = "kill -9 in a call"
RANKS = 3
SOON = 15.0  # seconds in which the others must have ended: a deadline is 20
UNTIL_CALLS = 60.0
ROW_OF_TABLE = re.compile(r"^ *\d", re.MULTILINE)


def rows(programs: Programs, seconds: float) -> Iterator[dict]:
    """On each path, whether the survivors noticed, and how long it took them."""
    for path in PATHS:
        # Without end, in calls nearly all the time. The path host has no reductions.
        collective = "all_gather" if path == "host" else "all_reduce"
        flags = ["--device", "cuda", "-b", "4M", "-e", "4M", "-n", "20", "-c", "0", "-N", "0", "-T", "20"]
        with started([programs.perf(collective), *flags], RANKS, 1, {"FCCL_CUDA_PATH": path}) as run:
            yield kill_one(run, f"{collective} end, path {path}", min(UNTIL_CALLS, seconds / len(PATHS)))


def kill_one(run: Run, ending: str, seconds: float) -> dict:
    """Waits until calls are made, then kills the last process."""
    about = {"ranks": Ranks(RANKS, "processes"), "case": CASE}
    what = f"the other ranks of {ending}"
    end = time.monotonic() + seconds
    first, *_, last = run.processes
    while not ROW_OF_TABLE.search(first.said()):
        if time.monotonic() > end or first.running.poll() is not None:
            return row(what, "failed", f"no call was made: {first.last_words}", **about)
        time.sleep(0.1)
    time.sleep(0.3)
    os.kill(last.running.pid, signal.SIGKILL)
    run.wait(SOON)
    others = run.processes[:-1]
    stuck = [process.place for process in others if process.status is None]
    if stuck:
        return row(what, "failed", f"ranks {stuck} had not ended {SOON:.0f} s after the kill", **about)
    told = [process.last_words for process in others]
    note = next((words for words in told if f"rank {last.place}" in words), told[0])
    if any(process.status == 0 for process in others):
        return row(what, "wrong", f"a survivor ended well: {note}", **about)
    took = max(process.seconds for process in others)
    return row(what, "measured", note, value=took * 1e3, unit="ms", **about)
