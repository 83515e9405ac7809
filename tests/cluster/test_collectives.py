"""Collectives between hosts whose links have a rate: what they make of it, and that nobody stalls them."""

import json
import os
import statistics
import sys
from pathlib import Path

import pytest
from both_lanes_rank import REPETITIONS
from conftest import ROOT

BUILD = ROOT / "build"
LIBRARY = Path(os.environ.get("FCCL_TEST_LIBRARY", BUILD / "libfccl.so"))
DIFFERENTIAL = BUILD / "tests/processes/differential_mpi"
FOLDER = Path(__file__).parent
# The payload rate of a 1 gbit/s link in each direction, without the headers of Ethernet and TCP.
BYTES_PER_SECOND = 1e9 / 8 * 1448 / 1514
HOSTS = 2
ATTEMPTS = 6


@pytest.fixture
def need_library() -> None:
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built; FCCL_TEST_LIBRARY names another")


@pytest.mark.usefixtures("need_library")
@pytest.mark.parametrize("way", ["blocking", "stream"])
@pytest.mark.parametrize("ranks", ["2,2", "3,1"])
def test_a_rank_that_computes_after_its_part_stalls_nobody(run, tmp_path, ranks, way):
    words = [sys.executable, str(FOLDER / "computing_rank.py"), str(LIBRARY), str(tmp_path), way]
    said = run("2x1", "--ranks", ranks, "--rate", "200mbit", "--", *words)
    assert said.returncode == 0, said.stderr
    heard = [json.loads(line) for line in said.stdout.splitlines()]
    assert [each for each in heard if each["waited"]] == []
    assert len(heard) == 14


@pytest.mark.usefixtures("need_library")
def test_a_gather_and_a_reduction_at_once_share_the_link(run, tmp_path):
    size = 16 << 20
    # A host brings half of what is gathered, and a partial sum of the half that is reduced on the other one.
    limit = 2 * size / HOSTS / BYTES_PER_SECOND
    parts = []
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        words = [sys.executable, str(FOLDER / "both_lanes_rank.py"), str(LIBRARY), str(folder), str(size)]
        said = run("2x2", "--rate", "1gbit", "--", *words)
        assert said.returncode == 0, said.stderr
        heard = [json.loads(line) for line in said.stdout.splitlines()]
        assert len(heard) == 4 * REPETITIONS
        times = [
            max(each["end"] for each in ranks) - min(each["begin"] for each in ranks)
            for ranks in by_repetition(heard).values()
        ]
        # A busy machine is slower than its links most of the time; some of the time it must not be.
        parts.append(statistics.quantiles(times, n=4)[0] / limit)
        assert parts[-1] > 0.97, "the links are faster than they may be"
        if parts[-1] <= 1.15:
            break
    else:
        pytest.fail(f"took more than 1.15 of the bytes over the rate: {parts}")


def by_repetition(heard: list[dict]) -> dict[int, list[dict]]:
    repetitions: dict[int, list[dict]] = {}
    for each in heard:
        repetitions.setdefault(each["repetition"], []).append(each)
    return repetitions


@pytest.mark.skipif(not DIFFERENTIAL.exists(), reason=f"{DIFFERENTIAL} is not built")
@pytest.mark.parametrize("ranks", ["2,2", "3,1"])
def test_random_calls_agree_with_mpi(run, ranks):
    said = run("2x1", "--ranks", ranks, "--", "mpirun.openmpi", str(DIFFERENTIAL), "--seconds", "4")
    assert said.returncode == 0, said.stdout + said.stderr
    assert "4 ranks on 2 hosts" in said.stdout
