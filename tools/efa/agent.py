"""Works for a run on one host: describes the host, starts ranks, tells what became of them, and kills them.

It reads orders from its input and tells events by its output, one JSON object a line.
All that it started ends with its input.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import instance
import starting

PAUSE = 0.02
MOST_TOLD = 100_000  # characters of what a rank says
# The EFA installer puts its libraries there; the folder of a pack comes before.
LIBRARIES = ("/opt/amazon/efa/lib64", "/opt/amazon/efa/lib")


def tell(event: dict) -> None:
    """One line of output."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def library_path(own: Path) -> str:
    """Returns the folders of libraries: ours, those of the EFA installer, then the others."""
    others = [os.environ["LD_LIBRARY_PATH"]] if os.environ.get("LD_LIBRARY_PATH") else []
    return ":".join([str(own), *LIBRARIES, *others])


def free_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as listening:
        listening.bind(("", 0))
        return listening.getsockname()[1]


class Job:
    """The ranks of one program on this host, and their folder."""

    def __init__(self, order: dict, tree: Path, libraries: Path) -> None:
        self._number = order["job"]
        self._folder = Path(tempfile.mkdtemp(prefix="fccl-efa-"))
        self._running: dict[int, subprocess.Popen] = {}
        words = [
            word.replace("TREE", str(tree)).replace("FOLDER", str(self._folder)) for word in order["words"]
        ]
        for rank, variables in enumerate(order["variables"]):
            mine = dict(os.environ) | {"LD_LIBRARY_PATH": library_path(libraries)} | variables
            try:
                self._running[rank] = starting.start(words, mine, self._folder, rank)
            except OSError as error:
                self._tell_end(rank, 127, f"{words[0]} could not be started: {error.strerror}")

    def _file(self, rank: int, kind: str) -> Path:
        return self._folder / f"{rank}.{kind}"

    def _text(self, path: Path) -> str:
        try:
            return path.read_text(errors="replace")[-MOST_TOLD:]
        except OSError:
            return ""

    def look(self) -> bool:
        """Tells of each rank that has ended; true if none is left."""
        for rank, process in list(self._running.items()):
            status = process.poll()
            if status is not None:
                del self._running[rank]
                self._tell_end(rank, status)
        return not self._running

    def _tell_end(self, rank: int, status: int | None, complaint: str = "") -> None:
        tell(
            {
                "event": "ended",
                "job": self._number,
                "rank": rank,
                "status": status,
                "said": self._text(self._file(rank, "out")),
                "complained": complaint or self._text(self._file(rank, "err")),
                "rows": self._text(self._folder / "rows.csv") if rank == 0 else "",
            }
        )

    def tell_output(self) -> None:
        """Tells what the first rank has said so far."""
        tell({"event": "said", "job": self._number, "said": self._text(self._file(0, "out"))})

    def kill(self, rank: int) -> None:
        """Kills one rank by SIGKILL."""
        if rank in self._running:
            self._running[rank].kill()

    def end(self) -> None:
        """Kills what still runs, which is told as without a status."""
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for rank, process in self._running.items():
            process.wait()
            self._tell_end(rank, None)
        self._running.clear()
        shutil.rmtree(self._folder, ignore_errors=True)


class Agent:
    """The orders that it knows, each a method."""

    def __init__(self, tree: Path, libraries: Path) -> None:
        self._tree = tree
        self._libraries = libraries
        self._jobs: dict[int, Job] = {}

    def describe(self, _: dict) -> None:
        """The host itself."""
        told = instance.describe(str(self._tree / "fccl-info"), library_path(self._libraries))
        tell({"event": "host"} | told)

    def port(self, _: dict) -> None:
        """A free port of this host."""
        tell({"event": "port", "port": free_port()})

    def start(self, order: dict) -> None:
        """Ranks of a job."""
        self._jobs[order["job"]] = Job(order, self._tree, self._libraries)

    def said(self, order: dict) -> None:
        """Tells what a job's first rank here has said."""
        self._jobs[order["job"]].tell_output()

    def kill(self, order: dict) -> None:
        """One rank of a job."""
        self._jobs[order["job"]].kill(order["rank"])

    def end(self, order: dict) -> None:
        """A job and its folder."""
        self._jobs.pop(order["job"]).end()

    def look(self) -> None:
        """Tells what has ended since."""
        for job in self._jobs.values():
            job.look()

    def end_all(self) -> None:
        """Nothing is left behind."""
        for job in self._jobs.values():
            job.end()


ORDERS = ("describe", "port", "start", "said", "kill", "end")


def work(tree: Path, libraries: Path) -> int:
    """Takes orders until its input ends."""
    agent = Agent(tree, libraries)
    unread = b""
    try:
        while True:
            if select.select([0], [], [], PAUSE)[0]:
                got = os.read(0, 65536)
                if not got:
                    return 0
                *lines, unread = (unread + got).split(b"\n")
                for line in lines:
                    order = json.loads(line)
                    if order["do"] in ORDERS:
                        getattr(agent, order["do"])(order)
            agent.look()
    finally:
        with contextlib.suppress(OSError):
            agent.end_all()
