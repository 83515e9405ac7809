"""Runs the C++ trainer under mpirun, and reads what it leaves."""

import csv
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[3]
PROGRAMS = REPOSITORY / "build/cpp-trainer/program"
TEXT = Path(os.__file__).parent / "email"
SHORT = f"--data {TEXT} --hidden 64 --seq-len 32 --global-batch 8".split()
LIMIT_SECONDS = 120
# Unless told otherwise Open MPI refuses root and more ranks than cores, and binds a rank to one core.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMP_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Run:
    """The output of one run and the folder that it left."""

    folder: Path
    printed: str

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads(self.printed.splitlines()[-1])

    @property
    def losses(self) -> dict[int, float]:
        with (self.folder / "losses.csv").open() as file:
            return {int(row["step"]): float(row["loss"]) for row in csv.DictReader(file)}


def mpirun(*words: str) -> subprocess.CompletedProcess:
    """Runs mpirun with these words, in which "trainer" is the program, and takes what it prints."""
    program = str(PROGRAMS / "fccl_trainer")
    assert Path(program).exists(), f"{program} is not built: ./dev train --cpp --help builds it"
    return subprocess.run(
        ["mpirun", *(program if word == "trainer" else word for word in words)],
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )


class Runs:
    """Makes runs of a small model and remembers them by their arguments; one per test session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._done: dict[tuple[int, str], Run] = {}

    def of(self, ranks: int, arguments: str) -> Run:
        """The run with these arguments; fails with what the ranks printed unless it succeeds."""
        if (ranks, arguments) not in self._done:
            name = f"run-{len(self._done)}"
            place = ["--runs", str(self.folder), "--name", name]
            ended = mpirun("-np", str(ranks), "trainer", *SHORT, *place, *arguments.split())
            assert ended.returncode == 0, ended.stdout + ended.stderr
            self._done[ranks, arguments] = Run(self.folder / name, ended.stdout)
        return self._done[ranks, arguments]
