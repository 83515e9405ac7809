"""Short calls between 16 hosts of one rank each, many more than there are cores, are right."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from conftest import ROOT

PERF = ROOT / "build/perf_tests"
RANK = str(Path(__file__).parent / "counting_rank.py")
SIZES = [8, 64, 512, 4096]
FEW, MANY = 20, 120
DIRECTIONS = 2  # out of place and in place


@pytest.fixture
def switches_of(run):
    """Counts context switches of rank 0 in a sweep of timed calls, none of whose results may be wrong."""

    def sweep(program: str, calls: int) -> int:
        flags = ["-b", str(SIZES[0]), "-e", str(SIZES[-1]), "-f", "8", "-n", str(calls)]
        command = ["mpirun.openmpi", sys.executable, RANK, str(PERF / program), *flags]
        said = run("16x1", "--", *command)
        assert said.returncode == 0, said.stdout + said.stderr
        lines = said.stdout.splitlines()
        rows = [line.split() for line in lines if line[:12].strip().isdigit()]
        assert [int(row[0]) for row in rows] == SIZES, said.stdout
        assert all(row[8] == row[12] == "0" for row in rows), said.stdout
        assert "# Out of bounds values : 0 OK" in lines, said.stdout
        ranks = {each["rank"]: each for each in map(json.loads, filter(is_count, lines))}
        assert sorted(ranks) == list(range(16)), said.stdout
        return ranks[0]["switches"]

    return sweep


def is_count(line: str) -> bool:
    return line.startswith('{"rank"')


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("mpirun.openmpi"), reason="Open MPI is not installed")
@pytest.mark.parametrize("program", ["all_reduce_perf", "broadcast_perf"])
def test_short_calls_between_16_hosts_have_no_wrong_element(switches_of, program):
    if not (PERF / program).exists() or not (PERF / "libfccl_launch_openmpi.so").exists():
        pytest.skip(f"{program} and its launcher for Open MPI are not built")
    # Both sweeps contain the switches of init and of the checks, which the difference takes out.
    few, many = (switches_of(program, calls) for calls in (FEW, MANY))
    per_call = (many - few) / ((MANY - FEW) * DIRECTIONS * len(SIZES))
    print(f"{program}: {per_call:.1f} context switches of rank 0 in a call")
