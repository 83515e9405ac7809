"""Groups that a program makes itself, without init_process_group, and whether fccl runs a group."""

import threading
from datetime import timedelta

import fccl
import pytest
import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from ranks import assert_same, numbers, poisoned, run_ranks


def make(store, rank, size, calls):
    """Both ends in one process, each on a thread, as ranks are in torchft's tests."""
    group = fccl.ProcessGroup(store, rank, size, timedelta(seconds=30), name="replicas")
    calls[rank] = call_each(group)
    group.shutdown()


def call_each(group):
    rank = group.rank()
    mine = numbers(rank, 6, torch.float32)
    total, whole = mine.clone(), poisoned(12, torch.float32)
    group.allreduce([total]).wait()
    group._allgather_base(whole, mine, c10d.AllgatherOptions()).wait()
    root = mine.clone()
    options = c10d.BroadcastOptions()
    options.rootRank = 1
    group.broadcast([root], options).wait()
    group.barrier().wait()
    return total, whole, root, group


def test_a_group_made_from_a_store_calls_collectives_without_init_process_group():
    assert not dist.is_initialized()
    store, made, before = dist.HashStore(), {}, fccl.counters()
    threads = [threading.Thread(target=make, args=(store, rank, 2, made)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    first, second = numbers(0, 6, torch.float32), numbers(1, 6, torch.float32)
    for rank in range(2):
        total, whole, root, group = made[rank]
        assert_same(total, first + second, "sum")
        assert_same(whole, torch.cat([first, second]), "gathered")
        assert_same(root, second, "broadcast")
        assert isinstance(group, fccl.ProcessGroup) and fccl.is_active(group) and group.size() == 2
    now = fccl.counters()
    wanted = {"AllReduce": 2, "AllGather": 2, "Broadcast": 2}
    assert {name: now[name]["calls"] - before[name]["calls"] for name in wanted} == wanted


def test_a_group_of_torch_may_hold_it():
    store = dist.HashStore()
    group = c10d.ProcessGroup(store, 0, 1)
    backend = fccl.ProcessGroup(store, 0, 1)
    group._register_backend(torch.device("cpu"), c10d.ProcessGroup.BackendType.CUSTOM, backend)
    tensor = numbers(3, 4, torch.int64)
    group.allreduce([tensor]).wait()
    assert_same(tensor, numbers(3, 4, torch.int64))
    assert fccl.is_active(group) and not isinstance(group, fccl.ProcessGroup)


def test_what_makes_no_group_is_refused():
    store = dist.HashStore()
    for rank, size in ((2, 2), (-1, 1), (0, 0)):
        with pytest.raises(ValueError, match=f"the rank is {rank} of {size}: give 0 <= rank < size"):
            fccl.ProcessGroup(store, rank, size)
    for timeout in (timedelta(0), 30):
        with pytest.raises(ValueError, match="give a timedelta above 0"):
            fccl.ProcessGroup(store, 0, 1, timeout)


def miss_a_rank():
    store = dist.PrefixStore("second", dist.group.WORLD.get_group_store())
    group = fccl.ProcessGroup(store, dist.get_rank(), 2, timedelta(seconds=1), name="replicas")
    if dist.get_rank() == 0:
        with pytest.raises(dist.DistBackendError, match=r"group 'replicas' on rank 0 of 2.* rank 1 "):
            group.allreduce([torch.ones(3)]).wait()
    dist.barrier()


def test_its_errors_name_it_and_end_at_its_timeout():
    run_ranks(2, miss_a_rank)


def ask_about_groups():
    mine = dist.new_group([dist.get_rank()], use_local_synchronization=True)
    other = dist.new_group([1 - dist.get_rank()])
    assert fccl.is_active() and fccl.is_active(mine) and fccl.is_active(device="cpu")
    assert not fccl.is_active(device="meta")
    with pytest.raises(ValueError, match="this process is not a rank of the group"):
        fccl.is_active(other)


def test_is_active_tells_of_the_default_group_and_of_others():
    with pytest.raises(ValueError, match="not been initialized"):
        fccl.is_active()
    run_ranks(2, ask_about_groups)


def ask_about_gloo():
    gloo = dist.new_group(backend="gloo")
    assert not fccl.is_active() and not fccl.is_active(gloo)
    assert fccl.is_active(device="cuda") and not fccl.is_active(device=torch.device("cpu"))
    assert not isinstance(gloo._get_backend(torch.device("cpu")), fccl.ProcessGroup)


def test_a_group_of_which_another_backend_serves_a_part_is_not_active():
    run_ranks(1, ask_about_gloo, prepare=name_gloo_too)


def name_gloo_too(_rank):
    return {"backend": "cpu:gloo,cuda:fccl"}
