"""Every call with no element and with four, of complex and other types, blocking and not."""

import itertools

import pytest
import torch
import torch.distributed as dist
from ranks import assert_same, numbers, poisoned, run_ranks

COMPLEX = [torch.complex32, torch.complex64, torch.complex128]
WIDE = [torch.float64, torch.int64, torch.bool, torch.float8_e5m2]
COUNTS = [0, 4]


def cases():
    return itertools.product([*COMPLEX, *WIDE], COUNTS)


def of_all(count, dtype):
    return [numbers(peer, count, dtype) for peer in range(dist.get_world_size())]


def wait_for(work):
    if work is not None:
        work.wait()


def gather(asynchronous):
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, count in cases():
        parts = of_all(count, dtype)
        lists, whole = [poisoned(count, dtype) for _ in parts], poisoned(count * size, dtype)
        root = [poisoned(count, dtype) for _ in parts] if rank == 1 else None
        wait_for(dist.all_gather(lists, parts[rank], async_op=asynchronous))
        wait_for(dist.all_gather_into_tensor(whole, parts[rank], async_op=asynchronous))
        wait_for(dist.gather(parts[rank], root, dst=1, async_op=asynchronous))
        for got in [torch.cat(lists), whole, *([torch.cat(root)] if root else [])]:
            assert_same(got, torch.cat(parts), (dtype, count))


def spread(asynchronous):
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, count in cases():
        parts = of_all(count, dtype)
        told = parts[2].clone() if rank == 2 else poisoned(count, dtype)
        given, exchanged = poisoned(count, dtype), poisoned(count * size, dtype)
        listed = [poisoned(count, dtype) for _ in parts]
        wait_for(dist.broadcast(told, src=2, async_op=asynchronous))
        wait_for(dist.scatter(given, parts if rank == 0 else None, src=0, async_op=asynchronous))
        # To rank p goes this rank's numbers of iteration p.
        sent = [numbers(rank, count, dtype, peer) for peer in range(size)]
        wait_for(dist.all_to_all_single(exchanged, torch.cat(sent), async_op=asynchronous))
        wait_for(dist.all_to_all(listed, sent, async_op=asynchronous))
        received = torch.cat([numbers(peer, count, dtype, rank) for peer in range(size)])
        for got, expected in (told, parts[2]), (given, parts[rank]):
            assert_same(got, expected, (dtype, count))
        for got in exchanged, torch.cat(listed):
            assert_same(got, received, (dtype, count))


def pass_round(asynchronous):
    rank, size = dist.get_rank(), dist.get_world_size()
    after, before = (rank + 1) % size, (rank - 1) % size
    for dtype, count in cases():
        mine, theirs, batched = numbers(rank, count, dtype), poisoned(count, dtype), poisoned(count, dtype)
        sending = dist.isend(mine, after)
        if asynchronous:
            dist.irecv(theirs, before).wait()
        else:
            assert dist.recv(theirs, before) == before
        sending.wait()
        pair = [dist.P2POp(dist.isend, mine, after), dist.P2POp(dist.irecv, batched, before)]
        for work in dist.batch_isend_irecv(pair):
            work.wait()
        for got in theirs, batched:
            assert_same(got, numbers(before, count, dtype), (dtype, count))


def add_complex(asynchronous):
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, count in itertools.product(COMPLEX, COUNTS):
        whole = of_all(count * size, dtype)
        # By the parts' type: sums of complex32 are not known to every version of torch.
        total = sum(torch.view_as_real(each.to(torch.complex128)) for each in whole)
        total = torch.view_as_complex(total).to(dtype)
        summed, part, listed = whole[rank].clone(), poisoned(count, dtype), poisoned(count, dtype)
        wait_for(dist.all_reduce(summed, async_op=asynchronous))
        wait_for(dist.reduce_scatter_tensor(part, whole[rank], async_op=asynchronous))
        pieces = [whole[rank][peer * count : (peer + 1) * count].clone() for peer in range(size)]
        wait_for(dist.reduce_scatter(listed, pieces, async_op=asynchronous))
        assert_same(summed, total, (dtype, count))
        for got in part, listed:
            assert_same(got, total[rank * count : (rank + 1) * count], (dtype, count))


def call_everything(asynchronous):
    for call in (gather, spread, pass_round, add_complex):
        call(asynchronous)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_every_call_takes_complex_types_and_no_elements(asynchronous):
    run_ranks(3, call_everything, asynchronous)
