"""The names that torch 2.15 gives collectives of one tensor each run as the older ones do."""

import fccl
import pytest
import torch
import torch.distributed as dist
from ranks import assert_same, numbers, poisoned, run_ranks

pytestmark = pytest.mark.skipif(not hasattr(dist, "gather_single"), reason="torch has them from 2.15 on")


def gather_into_one_tensor():
    rank, size = dist.get_rank(), dist.get_world_size()
    expected = torch.cat([numbers(each, 7, torch.int16) for each in range(size)])
    for root in range(size):
        for asynchronous in (False, True):
            whole = poisoned(7 * size, torch.int16) if rank == root else None
            mine = numbers(rank, 7, torch.int16)
            work = dist.gather_single(mine, whole, dst=root, async_op=asynchronous)
            if asynchronous:
                work.wait()
            if rank == root:
                assert_same(whole, expected, f"at {root}, asynchronous: {asynchronous}")
    # Rows of a larger tensor, in which the root's own part is the input.
    whole = poisoned(7 * size, torch.int16).view(size, 7)
    whole[rank] = numbers(rank, 7, torch.int16)
    dist.gather_into_tensor(whole[rank], whole if rank == 1 else None, dst=1)
    if rank == 1:
        assert_same(whole.flatten(), expected, "in place")
    assert fccl.counters()["Gather"]["calls"] == 2 * size + 1


def test_gather_single_fills_the_one_tensor_of_the_root():
    run_ranks(3, gather_into_one_tensor)


def call_the_others():
    rank, size = dist.get_rank(), dist.get_world_size()
    mine, whole = numbers(rank, 4, torch.float32), poisoned(4 * size, torch.float32)
    dist.all_gather_single(whole, mine)
    assert_same(whole, torch.cat([numbers(each, 4, torch.float32) for each in range(size)]))
    part = poisoned(2, torch.float32)
    dist.reduce_scatter_single(part, mine)
    total = sum(numbers(each, 4, torch.float32) for each in range(size))
    assert_same(part, total[2 * rank : 2 * rank + 2])


def test_all_gather_single_and_reduce_scatter_single_are_served():
    run_ranks(2, call_the_others)


def gather_what_does_not_fit():
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    options = dist.GatherOptions()
    options.rootRank = dist.get_rank()
    with pytest.raises(ValueError, match="fccl:gather_single: the gathered tensor must have 2 times"):
        backend.gather_single(torch.empty(7), torch.ones(4), options)
    dist.barrier()


def test_a_gathered_tensor_of_another_size_is_refused():
    run_ranks(2, gather_what_does_not_fit)
