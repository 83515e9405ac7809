"""torch's estimate of the time of collectives gives the library's price and runs nothing."""

import fccl
import torch
import torch.distributed as dist
from ranks import assert_same, numbers, run_ranks


def price(count):
    tensor = numbers(dist.get_rank(), count, torch.float32)
    output = torch.zeros(count * dist.get_world_size())
    with dist._time_estimator() as estimate:
        dist.all_reduce(tensor)
        dist.all_gather_into_tensor(output, tensor)
    assert_same(tensor, numbers(dist.get_rank(), count, torch.float32), "the tensor of a priced call")
    assert not output.any()
    return estimate.estimated_time


def price_calls():
    dist.barrier()
    before = fccl.counters()
    # Rank 1 issues none, so whatever ran would wait for it.
    if dist.get_rank() == 0:
        small, large = price(1000), price(4_000_000)
        assert 0 < small < large
    assert fccl.counters() == before
    dist.barrier()


def test_calls_inside_an_estimate_are_priced_and_not_run():
    run_ranks(2, price_calls)
