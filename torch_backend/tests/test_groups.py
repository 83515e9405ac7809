"""Groups: making, splitting and leaving them."""

import os
import subprocess
import sys
import time
from datetime import timedelta

import fccl
import pytest
import torch
import torch.distributed as dist
from ranks import assert_same, hosts, numbers, run_ranks

CPU = torch.device("cpu")


def sum_over(ranks, count=5):
    return sum(numbers(rank, count, torch.float32) for rank in ranks)


def use_subgroups():
    rank = dist.get_rank()
    for ranks in ([0, 2], [1, 3], [3], [0, 1, 2, 3]):
        group = dist.new_group(ranks)
        if rank not in ranks:
            assert group == dist.GroupMember.NON_GROUP_MEMBER
            continue
        assert dist.get_backend(group) == "fccl"
        tensor = numbers(rank, 5, torch.float32)
        dist.all_reduce(tensor, group=group)
        assert_same(tensor, sum_over(ranks), ranks)


@pytest.mark.two_hosts
def test_new_groups_of_any_ranks_work():
    run_ranks(4, use_subgroups)


def split_the_world():
    rank = dist.get_rank()
    world = dist.group.WORLD
    ranks = next((part for part in ([0, 2], [1]) if rank in part), [0, 2])
    part = world.split_group(ranks, timeout=timedelta(seconds=20), group_name=f"part{ranks}")
    if rank == 3:
        assert part is None
        return
    assert part._get_backend(CPU).name() == "fccl"
    assert part.size() == len(ranks) and part.rank() == ranks.index(rank)
    tensor = numbers(rank, 5, torch.float32)
    part.allreduce([tensor]).wait()
    assert_same(tensor, sum_over(ranks))


@pytest.mark.two_hosts
def test_splitting_gives_members_a_group_and_others_none():
    run_ranks(4, split_the_world)


def come_back(folder):
    rank, size = dist.get_rank(), dist.get_world_size()
    dist.destroy_process_group()
    store = dist.FileStore(f"{folder}/store", size)
    for _ in range(3):
        dist.init_process_group("fccl", store=store, rank=rank, world_size=size)
        tensor = numbers(rank, 5, torch.float32)
        dist.all_reduce(tensor)
        assert_same(tensor, sum_over(range(size)))
        dist.destroy_process_group()


@pytest.mark.two_hosts
def test_a_group_may_be_made_again_with_the_same_store(tmp_path):
    run_ranks(2, come_back, str(tmp_path))


def work_alone():
    tensor = numbers(0, 5, torch.float32)
    dist.all_reduce(tensor)
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG, async_op=True).wait()
    output = torch.empty(5)
    dist.all_gather_into_tensor(output, tensor)
    dist.barrier()
    assert_same(output, numbers(0, 5, torch.float32))


def test_a_group_of_one_rank_works():
    run_ranks(1, work_alone)


def leave_at_different_times():
    dist.all_reduce(torch.ones(3))
    if dist.get_rank() == 0:
        time.sleep(1.5)


def test_a_rank_may_leave_long_before_the_others():
    run_ranks(3, leave_at_different_times)


def call_after_leaving():
    backend = dist.group.WORLD._get_backend(CPU)
    backend.shutdown()
    backend.shutdown()
    with pytest.raises(dist.DistBackendError, match="shut down"):
        dist.all_reduce(torch.ones(3))


def test_a_call_after_shutdown_says_so():
    run_ranks(2, call_after_leaving)


def use_the_default():
    fccl.set_default()
    assert dist.Backend.default_device_backend_map["cpu"] == "fccl"
    group = dist.new_group(backend="cpu:fccl")
    tensor = torch.ones(2)
    dist.all_reduce(tensor, group=group)
    assert_same(tensor, torch.full((2,), 2.0))


def test_the_backend_may_be_the_default_of_cpu_tensors():
    run_ranks(2, use_the_default)


def name_no_backend():
    dist.destroy_process_group()
    fccl.set_default()
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    before = fccl.counters()["AllReduce"]["calls"]
    dist.all_reduce(torch.ones(2))
    assert fccl.counters()["AllReduce"]["calls"] == before + 1
    # Not Gloo's, which torch 2.13 takes for that of a group without a name, and misses at its end.
    assert dist.group.WORLD._get_backend_name() == "custom"
    assert dist.get_backend() == "undefined" and fccl.is_active()


def test_the_default_serves_a_group_without_a_name():
    run_ranks(1, name_no_backend)


def count_calls():
    before = fccl.counters()
    for _ in range(3):
        dist.all_gather_into_tensor(torch.empty(200_000), torch.ones(100_000))
    dist.all_reduce(torch.ones(10))
    after = fccl.counters()
    grown = {name: after[name]["calls"] - before[name]["calls"] for name in after}
    assert {name: calls for name, calls in grown.items() if calls} == {"AllGather": 3, "AllReduce": 1}
    assert after["AllGather"]["bytes"] - before["AllGather"]["bytes"] == 3 * 200_000 * 4
    assert before["AllGather"]["seconds"] is None and after["AllGather"]["seconds"] > 0
    # On one host it fits the mailbox.
    assert (after["AllReduce"]["seconds"] is None) == (hosts() == 1)


def test_counters_count_what_was_called():
    run_ranks(2, count_calls)


UNDER_TORCHRUN = """
import torch, torch.distributed as dist
dist.init_process_group("fccl")
assert dist.get_backend() == "fccl"
tensor = torch.full((3,), float(dist.get_rank()))
dist.all_reduce(tensor)
assert tensor.tolist() == [1.0, 1.0, 1.0], tensor
dist.destroy_process_group()
"""


def test_torchrun_starts_a_program_that_imports_torch_only(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(UNDER_TORCHRUN)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        str(program),
    ]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=90, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert ran.returncode == 0, ran.stderr
