"""Collectives of parts of unequal sizes: all_to_all with splits, and lists of unequal tensors."""

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from ranks import assert_same, numbers, poisoned, run_ranks

everywhere = pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "async"])

TYPES = [torch.float32, torch.uint8, torch.bfloat16, torch.int64, torch.complex64]
# Multiples of the rows that rank `giver` has for rank `taker`: few, and so many that they fit no box.
SCALES = [0, 1, 9, 9_001]


def rows(giver, taker, scale=1):
    """Different in both directions, and zero for some."""
    return (giver * 2 + taker * 3) % 5 * scale


def rows_from(giver, scale=1):
    return [rows(giver, taker, scale) for taker in range(dist.get_world_size())]


def rows_for(taker, scale=1):
    return [rows(giver, taker, scale) for giver in range(dist.get_world_size())]


def part(giver, taker, dtype, scale, iteration=0):
    splits = rows_from(giver, scale)
    return numbers(giver, sum(splits), dtype, iteration).split(splits)[taker]


def call(collective, *arguments, blocking, **options):
    work = collective(*arguments, async_op=not blocking, **options)
    if not blocking:
        work.wait()


def exchange(blocking):
    rank, size = dist.get_rank(), dist.get_world_size()
    for iteration, dtype in enumerate(TYPES):
        for scale in SCALES:
            sends, receives = rows_from(rank, scale), rows_for(rank, scale)
            source = numbers(rank, sum(sends), dtype, iteration)
            expected = [part(giver, rank, dtype, scale, iteration) for giver in range(size)]
            output = poisoned(sum(receives), dtype)
            call(dist.all_to_all_single, output, source, receives, sends, blocking=blocking)
            assert_same(output, torch.cat(expected), (dtype, scale))
            outputs = [poisoned(count, dtype) for count in receives]
            call(dist.all_to_all, outputs, list(source.split(sends)), blocking=blocking)
            for giver, (got, wanted) in enumerate(zip(outputs, expected, strict=True)):
                assert_same(got, wanted, (dtype, scale, giver))


@pytest.mark.two_hosts(every_change=True)
@everywhere
@pytest.mark.parametrize("size", [1, 3])
def test_all_to_all_takes_parts_of_any_sizes(size, blocking):
    run_ranks(size, exchange, blocking)


def exchange_rows():
    rank, size = dist.get_rank(), dist.get_world_size()
    wide = [numbers(giver, sum(rows_from(giver)) * 6, torch.float32).view(-1, 2, 3) for giver in range(size)]
    output = poisoned(sum(rows_for(rank)) * 6, torch.float32).view(2, -1, 3).transpose(0, 1)
    dist.all_to_all_single(output, wide[rank], rows_for(rank), rows_from(rank))
    expected = [wide[giver].split(rows_from(giver))[rank] for giver in range(size)]
    assert_same(output, torch.cat(expected))


def test_splits_count_rows_of_tensors_of_any_strides():
    run_ranks(3, exchange_rows)


def exchange_where_one_rank_has_equal_parts():
    rank = dist.get_rank()
    # All parts of rank 0 are equal, and it may say so or not.
    sends = [[2, 2, 2], [2, 1, 4], [2, 5, 0]][rank]
    receives = [[2, 2, 2], [2, 1, 5], [2, 4, 0]][rank]
    source = numbers(rank, sum(sends), torch.float32)
    for splits in ((receives, sends), (None, None) if rank == 0 else (receives, sends)):
        output = poisoned(sum(receives), torch.float32)
        dist.all_to_all_single(output, source, *splits)
        given = [[2, 2, 2], [2, 1, 4], [2, 5, 0]]
        parts = [numbers(peer, sum(given[peer]), torch.float32).split(given[peer])[rank] for peer in range(3)]
        assert_same(output, torch.cat(parts))


def test_a_rank_whose_own_parts_are_equal_takes_part():
    run_ranks(3, exchange_where_one_rank_has_equal_parts)


def differentiate():
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = numbers(rank, sum(rows_from(rank)), torch.float32).requires_grad_()
    given = functional.all_to_all_single_autograd(mine, rows_for(rank), rows_from(rank), dist.group.WORLD)
    weights = [numbers(peer + 7, sum(rows_for(peer)), torch.float32) for peer in range(size)]
    given.backward(weights[rank])
    assert_same(mine.grad, torch.cat([weights[peer].split(rows_for(peer))[rank] for peer in range(size)]))


def test_a_gradient_flows_back_through_parts_of_unequal_sizes():
    run_ranks(3, differentiate)


def gather_unequal(blocking):
    rank, size = dist.get_rank(), dist.get_world_size()
    for iteration, dtype in enumerate(TYPES):
        for scale in SCALES[1:]:
            counts = [(peer + 2) % 3 * scale for peer in range(size)]
            outputs = [poisoned(count, dtype) for count in counts]
            call(dist.all_gather, outputs, numbers(rank, counts[rank], dtype, iteration), blocking=blocking)
            for peer, output in enumerate(outputs):
                assert_same(output, numbers(peer, counts[peer], dtype, iteration), (dtype, scale, peer))
    # One behind the other, this rank's in its place.
    whole = poisoned(sum(counts), torch.float32)
    places = list(whole.split(counts))
    places[rank].copy_(numbers(rank, counts[rank], torch.float32))
    call(dist.all_gather, places, places[rank], blocking=blocking)
    assert_same(whole, torch.cat([numbers(peer, counts[peer], torch.float32) for peer in range(size)]))


@pytest.mark.two_hosts
@everywhere
@pytest.mark.parametrize("size", [1, 4])
def test_all_gather_takes_a_list_of_unequal_tensors(size, blocking):
    run_ranks(size, gather_unequal, blocking)


def scatter_unequal(blocking):
    rank, size = dist.get_rank(), dist.get_world_size()
    for iteration, dtype in enumerate([torch.float32, torch.int64, torch.complex64]):
        for scale in SCALES[1:]:
            counts = [(peer + 2) % 3 * scale for peer in range(size)]
            given = [numbers(peer, sum(counts), dtype, iteration) for peer in range(size)]
            output = poisoned(counts[rank], dtype)
            call(dist.reduce_scatter, output, list(given[rank].split(counts)), blocking=blocking)
            assert_same(output, sum(given).split(counts)[rank], (dtype, scale))
    half = dist._make_nccl_premul_sum(0.5)
    tensors = [each.float() for each in given[rank].real.split(counts)]
    output = poisoned(counts[rank], torch.float32)
    call(dist.reduce_scatter, output, tensors, op=half, blocking=blocking)
    assert_same(output, 0.5 * sum(each.real for each in given).split(counts)[rank])


@pytest.mark.two_hosts
@everywhere
@pytest.mark.parametrize("size", [1, 4])
def test_reduce_scatter_takes_a_list_of_unequal_tensors(size, blocking):
    run_ranks(size, scatter_unequal, blocking)


def disagree():
    rank = dist.get_rank()
    sends, receives = [[1, 2], [3, 1]][rank], [[1, 4], [2, 1]][rank]
    with pytest.raises(dist.DistBackendError, match="rank 0") as failure:
        dist.all_to_all_single(torch.empty(sum(receives)), torch.ones(sum(sends)), receives, sends)
    assert "rank 1" in str(failure.value)


@pytest.mark.two_hosts
def test_splits_that_do_not_fit_together_are_an_error_on_both_ranks():
    run_ranks(2, disagree)
