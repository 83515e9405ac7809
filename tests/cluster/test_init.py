"""Init between many hosts takes little of the processors that they share."""

import json
import os
import sys
from pathlib import Path

import pytest
from conftest import ROOT

LIBRARY = Path(os.environ.get("FCCL_TEST_LIBRARY", ROOT / "build/libfccl.so"))
RANK = str(Path(__file__).parent / "init_rank.py")
# Processor milliseconds for each rank; libfabric's look at the kernel's symbols alone would take 80.
MOST_MS = 60

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(), reason=f"{LIBRARY} is not built; FCCL_TEST_LIBRARY names another"
)


@pytest.mark.slow
def test_64_ranks_on_16_hosts_meet_and_take_60_ms_of_a_processor_for_each(run, tmp_path):
    said = run("16x4", "--", sys.executable, RANK, str(LIBRARY), str(tmp_path))
    assert said.returncode == 0, said.stderr
    ranks = [json.loads(line) for line in said.stdout.splitlines()]
    assert sorted(rank["rank"] for rank in ranks) == list(range(64))
    took = sum(rank["processor"] for rank in ranks)
    assert took < 64 * MOST_MS / 1000, took
