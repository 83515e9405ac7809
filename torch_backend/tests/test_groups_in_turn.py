"""A program that makes one group after the other at the same address, where rank 0 hosts the store."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

GROUPS = 20
PROGRAM = f"""
import torch, torch.distributed as dist
from datetime import timedelta
for each in range({GROUPS}):
    dist.init_process_group("fccl", timeout=timedelta(seconds=20))
    tensor = torch.full((3,), 1.0 + dist.get_rank() + each)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [6.0 + 3 * each] * 3, tensor
    dist.barrier()
    dist.destroy_process_group()
"""


def run_ranks_by_address(program: Path, text: str, size: int) -> None:
    program.write_text(text)
    ran = subprocess.run(
        [sys.executable, Path(__file__).with_name("forked_ranks.py"), str(size), program],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr


def test_groups_are_made_in_turn_at_one_address(tmp_path):
    run_ranks_by_address(tmp_path / "turns.py", PROGRAM, 3)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_groups_are_made_in_turn_at_one_address_in_five_runs(tmp_path):
    for _ in range(5):
        run_ranks_by_address(tmp_path / "turns.py", PROGRAM, 3)


LEAVES_EARLY = """
import time, torch, torch.distributed as dist
dist.init_process_group("fccl")
dist.all_reduce(torch.ones(3))
rank = dist.get_rank()
if rank == 0:
    time.sleep(4)
began = time.monotonic()
dist.destroy_process_group()
assert rank == 0 or time.monotonic() - began < 3, "held up by a rank that does not leave"
"""


def test_a_rank_that_does_not_leave_holds_nobody_up(tmp_path):
    began = time.monotonic()
    run_ranks_by_address(tmp_path / "early.py", LEAVES_EARLY, 2)
    assert time.monotonic() - began > 4
