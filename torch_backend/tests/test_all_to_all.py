"""AlltoAll gives every rank its part of every rank's input, and gradients their way back."""

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.nn.functional as differentiable
from ranks import assert_same, numbers, poisoned, run_ranks

everywhere = pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "async"])

TYPES = [torch.float32, torch.uint8, torch.bool, torch.bfloat16, torch.int64, torch.complex64]
COUNTS = [0, 1, 7, 1000, 70_001]


def parts_of(rank, count, dtype, iteration=0):
    """A rank's input, by the rank that each part is for."""
    size = dist.get_world_size()
    return list(numbers(rank, size * count, dtype, iteration).view(size, count).unbind())


def parts_for_this_rank(count, dtype, iteration=0):
    mine = dist.get_rank()
    return [parts_of(rank, count, dtype, iteration)[mine] for rank in range(dist.get_world_size())]


def exchange(collective, *arguments, blocking, **options):
    work = collective(*arguments, async_op=not blocking, **options)
    if not blocking:
        work.wait()


def exchange_single(blocking):
    size = dist.get_world_size()
    for iteration, dtype in enumerate(TYPES):
        for count in COUNTS:
            source = numbers(dist.get_rank(), size * count, dtype, iteration)
            expected = torch.cat(parts_for_this_rank(count, dtype, iteration))
            for splits in ({}, {"output_split_sizes": [count] * size, "input_split_sizes": [count] * size}):
                output = poisoned(size * count, dtype)
                exchange(dist.all_to_all_single, output, source, blocking=blocking, **splits)
                assert_same(output, expected, (dtype, count, splits))
                assert_same(source, numbers(dist.get_rank(), size * count, dtype, iteration), "the input")


@everywhere
@pytest.mark.two_hosts
@pytest.mark.parametrize("size", [1, 3])
def test_all_to_all_single_takes_no_splits_and_equal_ones(size, blocking):
    run_ranks(size, exchange_single, blocking)


def exchange_lists(blocking):
    for iteration, dtype in enumerate(TYPES):
        for count in COUNTS:
            outputs = [poisoned(count, dtype) for _ in range(dist.get_world_size())]
            exchange(
                dist.all_to_all,
                outputs,
                parts_of(dist.get_rank(), count, dtype, iteration),
                blocking=blocking,
            )
            for output, expected in zip(outputs, parts_for_this_rank(count, dtype, iteration), strict=True):
                assert_same(output, expected, (dtype, count))


@everywhere
@pytest.mark.two_hosts(every_change=True)
def test_all_to_all_takes_lists_of_equal_tensors(blocking):
    run_ranks(3, exchange_lists, blocking)


def exchange_strided(blocking):
    size, rank = dist.get_world_size(), dist.get_rank()
    rows = [numbers(peer, size * 4 * 500, torch.float32).view(size * 4, 500) for peer in range(size)]
    expected = torch.cat([whole.chunk(size)[rank] for whole in rows])
    output = poisoned(size * 4 * 500, torch.float32).view(500, size * 4).t()
    wide = torch.stack([rows[rank], poisoned(size * 4 * 500, torch.float32).view(size * 4, 500)], dim=-1)
    exchange(dist.all_to_all_single, output, wide[..., 0], blocking=blocking)
    assert_same(output, expected)
    assert output.stride() == (1, size * 4)


@everywhere
@pytest.mark.two_hosts
def test_tensors_of_any_strides_are_exchanged_in_the_order_of_their_indices(blocking):
    run_ranks(2, exchange_strided, blocking)


def exchange_in_place(blocking):
    for count in (3, 50_000):
        tensor = numbers(dist.get_rank(), 2 * count, torch.float32)
        exchange(dist.all_to_all_single, tensor, tensor, blocking=blocking)
        assert_same(tensor, torch.cat(parts_for_this_rank(count, torch.float32)), count)


@everywhere
def test_an_output_that_is_the_input_gets_the_result(blocking):
    run_ranks(2, exchange_in_place, blocking)


def differentiate_a_gather():
    size, rank = dist.get_world_size(), dist.get_rank()
    mine = numbers(rank, 1001, torch.float32).requires_grad_()
    gathered = differentiable.all_gather(mine)
    weights = [numbers(rank + 1, 1001, torch.float32, iteration) for iteration in range(size)]
    sum((part * weight).sum() for part, weight in zip(gathered, weights, strict=True)).backward()
    expected = sum(numbers(peer + 1, 1001, torch.float32, rank) for peer in range(size))
    assert_same(mine.grad, expected, "the gradient")


@pytest.mark.two_hosts
def test_a_gradient_flows_back_through_all_gather():
    run_ranks(3, differentiate_a_gather)


def differentiate_an_exchange():
    size, rank = dist.get_world_size(), dist.get_rank()
    mine = numbers(rank, size * 10, torch.float32).requires_grad_()
    exchanged = functional.all_to_all_single_autograd(mine, None, None, dist.group.WORLD)
    exchanged.backward(numbers(rank + 5, size * 10, torch.float32))
    expected = torch.cat(
        [numbers(peer + 5, size * 10, torch.float32).chunk(size)[rank] for peer in range(size)]
    )
    assert_same(mine.grad, expected, "the gradient")


def test_a_gradient_flows_back_through_a_functional_all_to_all():
    run_ranks(2, differentiate_an_exchange)
