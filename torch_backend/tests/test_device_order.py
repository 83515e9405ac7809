"""Asynchronous calls on a device: what they pass through, and their order."""

import torch
import torch.distributed as dist
from device_ranks import DEVICE, hold, let_go, on_device, run_device_ranks, served
from ranks import assert_same, numbers, poisoned

pytestmark = served

COUNT = 1000


def mine(iteration=0):
    return on_device(numbers(dist.get_rank(), COUNT, torch.float32, iteration))


def total(iteration=0):
    return sum(numbers(rank, COUNT, torch.float32, iteration) for rank in range(dist.get_world_size()))


def empty(count):
    return on_device(poisoned(count, torch.float32))


def call_while_the_streams_of_the_pool_are_held():
    dist.all_reduce(mine())  # makes the communicator
    for _ in range(4):
        with torch.Stream(DEVICE):
            hold()
    tensor = mine()
    dist.all_reduce(tensor, async_op=True).wait()
    assert_same(tensor.cpu(), total())
    let_go()


def test_an_asynchronous_call_passes_through_no_stream_of_torchs_pool():
    run_device_ranks(2, call_while_the_streams_of_the_pool_are_held)


def chain_calls_without_waits():
    for iteration in range(10):
        tensor, gathered, last = mine(iteration), empty(2 * COUNT), empty(4 * COUNT)
        dist.all_reduce(tensor, async_op=True)
        dist.all_gather_into_tensor(gathered, tensor, async_op=True)
        dist.all_reduce(gathered.view(2, COUNT).t(), async_op=True)  # is copied
        dist.all_gather_into_tensor(last, gathered, async_op=True).wait()
        assert_same(last.cpu(), (2 * total(iteration)).repeat(4), iteration)


def test_asynchronous_calls_come_one_after_the_other():
    run_device_ranks(2, chain_calls_without_waits)
