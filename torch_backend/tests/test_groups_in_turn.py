"""A program that makes one group after the other at the same address, where rank 0 hosts the store."""

import os
import socket
import subprocess
import sys
import time

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


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def run_ranks_by_address(program: str, size: int) -> None:
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, **place, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    said = [rank.communicate(timeout=120)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * size, "\n".join(said)


def test_groups_are_made_in_turn_at_one_address():
    run_ranks_by_address(PROGRAM, 3)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_groups_are_made_in_turn_at_one_address_in_five_runs():
    for _ in range(5):
        run_ranks_by_address(PROGRAM, 3)


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


def test_a_rank_that_does_not_leave_holds_nobody_up():
    began = time.monotonic()
    run_ranks_by_address(LEAVES_EARLY, 2)
    assert time.monotonic() - began > 4
