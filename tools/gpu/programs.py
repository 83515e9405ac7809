"""The programs that the steps run: where they lie, how ranks are started, and how every run ends in time."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import starting

PATHS = ("blocking", "bounce", "host", "peer")  # of a call on CUDA memory, by FCCL_CUDA_PATH
LAST_WORDS = 300  # characters of what a program complained
MOMENT = 5.0  # seconds in which what was killed is gone
# All ranks share the first of several GPUs, as the rows say.
ONE_GPU = {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]}


@dataclass(frozen=True)
class Programs:
    """A tree of built programs: `build` of the sources, or the folder of a pack."""

    tree: Path

    def perf(self, collective: str) -> str:
        """The perf binary of one collective."""
        return str(self.tree / "perf_tests" / f"{collective}_perf")

    @property
    def info(self) -> str:
        """fccl-info."""
        return str(self.tree / "fccl-info")

    @property
    def conformance(self) -> str:
        """The program that asks a GPU for all that the library takes for granted."""
        return str(self.tree / "tests" / "devices" / "cuda_conformance_test")


@dataclass(frozen=True)
class Ranks:
    """How many ranks there are on one GPU, and what they are."""

    count: int
    are: str  # "threads" or "processes"

    def __str__(self) -> str:
        return f"{self.count} {self.are}"


@dataclass
class Process:
    """One started program, its place among the others, and what became of it."""

    running: subprocess.Popen
    folder: Path
    place: int
    status: int | None = None  # none: it had to be killed
    seconds: float = 0.0  # from the moment that the wait for it began

    def said(self, stream: str = "out") -> str:
        """All that it wrote to `out` or `err` so far."""
        return (self.folder / f"{self.place}.{stream}").read_text(errors="replace")

    @property
    def last_words(self) -> str:
        """The end of what it complained, else of what it said."""
        words = self.said("err").split() or self.said().split()
        return " ".join(words)[-LAST_WORDS:]


@dataclass
class Run:
    """Programs that were started together, in a folder of their own. Ends them all when it is left."""

    folder: Path
    processes: list[Process] = field(default_factory=list)

    def wait(self, seconds: float) -> None:
        """Until all have ended, or to the limit, at which they are killed."""
        begin = time.monotonic()
        while any(process.status is None for process in self.processes):
            for process in self.processes:
                if process.status is None and (status := process.running.poll()) is not None:
                    process.status, process.seconds = status, time.monotonic() - begin
            if time.monotonic() - begin > seconds:
                break
            time.sleep(0.02)
        self.kill()

    def kill(self) -> None:
        """Nothing that was started here is left behind."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.running.pid, signal.SIGKILL)
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.running.wait(MOMENT)


@contextlib.contextmanager
def started(
    words: list[str], processes: int = 1, hosts: int = 1, variables: dict | None = None
) -> Iterator[Run]:
    """So many processes of the program, each told its place and host. FOLDER in a word is the run's."""
    with tempfile.TemporaryDirectory(prefix="fccl-gpu-") as name:
        run = Run(Path(name))
        meeting = run.folder / "meeting"
        meeting.touch()
        command = [word.replace("FOLDER", name) for word in words]
        try:
            for place in range(processes):
                mine = dict(os.environ) | ONE_GPU | (variables or {})
                if processes > 1:
                    mine["FCCL_TESTS_LOCAL"] = f"{place}/{processes}:{meeting}"
                if hosts > 1:
                    mine["FCCL_HOST_ID"] = f"host{place * hosts // processes}"
                running = starting.start(command, mine, run.folder, place)
                run.processes.append(Process(running, run.folder, place))
            yield run
        finally:
            run.kill()
