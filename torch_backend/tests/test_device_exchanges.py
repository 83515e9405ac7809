"""Sends, receives and parts of unequal sizes on a device, which wait on the thread that issues them."""

import time

import pytest
import torch
import torch.distributed as dist
from device_ranks import DEVICE, on_device, run_device_ranks, served
from ranks import assert_same, numbers, poisoned

pytestmark = served

COUNT = 1000


def mine(count=COUNT, iteration=0):
    return on_device(numbers(dist.get_rank(), count, torch.float32, iteration))


def empty(count=COUNT):
    return on_device(poisoned(count, torch.float32))


def check(tensor, expected):
    assert tensor.device == DEVICE
    assert_same(tensor.cpu(), expected)


def make_the_communicator():
    # Every rank makes the first call on the device.
    dist.all_reduce(mine(1))


def send_between_some_ranks():
    rank = dist.get_rank()
    make_the_communicator()
    if rank == 2:
        dist.barrier()
        return
    for iteration, count in enumerate((COUNT, 0, 1, 100_001)):
        tensor, theirs = mine(count, iteration), empty(count)
        if rank == 0:
            dist.send(tensor, 1, tag=3)
            assert dist.recv(theirs, tag=4) == 1
        else:
            dist.recv(theirs, 0, tag=3)
            dist.isend(tensor, 0, tag=4).wait()
        check(theirs, numbers(1 - rank, count, torch.float32, iteration))
    dist.barrier()


def test_tensors_of_a_device_are_sent_without_the_other_ranks():
    run_device_ranks(3, send_between_some_ranks)


def exchange_in_batches():
    rank, size = dist.get_rank(), dist.get_world_size()
    make_the_communicator()
    for iteration, count in enumerate((COUNT, 0, 200_001)):
        part = mine(count, iteration)
        strided = torch.stack([part, part], dim=1)[:, 0]
        target = empty(2 * count).view(count, 2)[:, 0]
        theirs = empty(count)
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, part, (rank + 1) % size),
                dist.P2POp(dist.isend, strided, (rank + 2) % size),
                dist.P2POp(dist.irecv, theirs, (rank - 1) % size),
                dist.P2POp(dist.irecv, target, (rank - 2) % size),
            ]
        )
        for work in works:
            work.wait()
        check(theirs, numbers((rank - 1) % size, count, torch.float32, iteration))
        check(target.contiguous(), numbers((rank - 2) % size, count, torch.float32, iteration))


def test_a_batch_of_sends_and_receives_of_a_device_is_issued_at_once():
    run_device_ranks(3, exchange_in_batches)


def exchange_unequal_parts(asynchronous):
    rank = dist.get_rank()

    def call(collective, *tensors):
        work = collective(*tensors, async_op=asynchronous)
        if asynchronous:
            work.wait()

    gathered = [empty(1), empty(20_002)]
    call(dist.all_gather, gathered, mine(1 + 20_001 * rank))
    check(torch.cat(gathered), torch.cat([numbers(0, 1, torch.float32), numbers(1, 20_002, torch.float32)]))
    output = empty(1 + rank)
    call(dist.reduce_scatter, output, [mine(1), mine(2)])
    check(output, sum(numbers(peer, 1 + rank, torch.float32) for peer in range(2)))
    output = empty(3 + rank)
    call(dist.all_to_all_single, output, mine(3 + rank), [1 + rank, 2], [1 + rank, 2])
    parts = [numbers(peer, 3 + peer, torch.float32) for peer in range(2)]
    check(
        output,
        torch.cat([part[: 1 + peer] if rank == 0 else part[1 + peer :] for peer, part in enumerate(parts)]),
    )
    source, output = mine(2 * COUNT), empty(2 * COUNT)
    call(dist.all_to_all_single, output, source)
    parts = [numbers(peer, 2 * COUNT, torch.float32).chunk(2)[rank] for peer in range(2)]
    check(output, torch.cat(parts))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_parts_of_unequal_sizes_are_exchanged_on_a_device(asynchronous):
    run_device_ranks(2, exchange_unequal_parts, asynchronous)


def disagree_on_parts():
    rank = dist.get_rank()
    make_the_communicator()
    splits = [2, 2] if rank == 0 else [1, 3]
    began = time.monotonic()
    with pytest.raises(dist.DistBackendError, match="AlltoAllV"):
        dist.all_to_all_single(empty(4), mine(4), splits, splits)
    assert time.monotonic() - began < 10


def test_parts_on_which_ranks_disagree_are_an_error_on_both():
    run_device_ranks(2, disagree_on_parts)
