"""Every perf binary makes one world of the processes that a launcher starts, and nothing in it is wrong."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("FCCL_BUILD", Path(__file__).resolve().parents[2] / "build"))
INTEL = Path(os.environ.get("I_MPI_ROOT", BUILD / "intel-mpi"))
BINARIES = sorted(path.name for path in BUILD.glob("perf_tests/*_perf"))
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "2"],
    "mpich": ["mpirun.mpich", "-np", "2"],
    "intelmpi": [str(INTEL / "bin/mpiexec.hydra"), "-n", "2"],
    "srun_pmix": ["srun", "--mpi=pmix", "-n", "2"],
    "srun": ["srun", "-n", "2"],
}


def run(launcher: str, environment: dict[str, str], *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*LAUNCHERS[launcher], *words], env=environment, capture_output=True, text=True, timeout=120
    )


def environment_for(launcher: str, request: pytest.FixtureRequest) -> dict[str, str]:
    if launcher.startswith("srun"):
        return request.getfixturevalue("slurm")
    if shutil.which(LAUNCHERS[launcher][0]) is None:
        pytest.skip(f"there is no {LAUNCHERS[launcher][0]}")
    return dict(os.environ)


def test_there_are_binaries() -> None:
    assert len(BINARIES) >= 13


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("binary", BINARIES)
def test_a_binary_makes_one_world_with_nothing_wrong(
    binary: str, launcher: str, request: pytest.FixtureRequest
) -> None:
    program = str(BUILD / "perf_tests" / binary)
    ran = run(
        launcher, environment_for(launcher, request), program, "-b", "8", "-e", "64K", "-f", "32", "-n", "2"
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    ranks = re.findall(r"^#  Rank +(\d+) Group +0 Pid +(\d+) ", ran.stdout, re.MULTILINE)
    assert [rank for rank, _ in ranks] == ["0", "1"], ran.stdout
    assert len({pid for _, pid in ranks}) == 2, ran.stdout
    assert ran.stdout.count("# Out of bounds values : 0 OK\n") == 1, ran.stdout


@pytest.mark.parametrize("launcher", ["openmpi", "mpich", "intelmpi"])
def test_an_mpi_is_measured_itself(launcher: str, request: pytest.FixtureRequest) -> None:
    program = str(BUILD / "perf_tests/all_gather_perf")
    ran = run(
        launcher,
        environment_for(launcher, request),
        program,
        "-b",
        "8",
        "-e",
        "8",
        "-n",
        "2",
        "--peer",
        "mpi",
    )
    names = {"openmpi": "Open MPI", "mpich": "MPICH", "intelmpi": r"Intel\(R\) MPI"}
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(f"# Measured: {names[launcher]}.*, not FCCL", ran.stdout), ran.stdout


def test_srun_without_an_mpi_leaves_no_file_to_meet_in(slurm: dict[str, str]) -> None:
    before = set(Path("/dev/shm").glob("fccl_perf-*"))
    ran = run("srun", slurm, str(BUILD / "perf_tests/all_gather_perf"), "-b", "8", "-e", "8", "-n", "2")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert set(Path("/dev/shm").glob("fccl_perf-*")) == before
