"""Groups and works as torch 2.15's test_c10d_process_group asks them, by tests of its contents."""

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from cases import failures_of
from ranks import assert_same, numbers
from torch._C._distributed_c10d import Work, _get_work_registry_size


def total(count, iteration=0):
    return sum(numbers(rank, count, torch.float32, iteration) for rank in range(dist.get_world_size()))


def calls_are_numbered_from_one_in_each_group():
    # First of all cases, since nobody may have called the group before.
    world = dist.group.WORLD
    assert world._get_sequence_number_for_group() == 0
    for expected in (1, 2, 3):
        dist.all_reduce(torch.ones(1))
        assert world._get_sequence_number_for_group() == expected
    other = dist.new_group()
    assert other._get_sequence_number_for_group() == 0
    dist.all_reduce(torch.ones(1), group=other)
    assert other._get_sequence_number_for_group() == 1
    assert world._get_sequence_number_for_group() == 3


def works_tell_their_numbers():
    group = dist.new_group()
    for expected in (1, 2, 3):
        work = dist.all_reduce(torch.ones(1), group=group, async_op=True)
        assert work._get_sequence_number() == expected == group._get_sequence_number_for_group()
        work.wait()


def groups_take_ranks_from_a_tensor_and_refuse_what_are_no_ranks():
    size = dist.get_world_size()
    group = dist.new_group(ranks=torch.arange(size))
    assert dist.get_process_group_ranks(group) == list(range(size))
    tensor = numbers(dist.get_rank(), 3, torch.int64)
    dist.broadcast(tensor, src=0, group=group)
    assert_same(tensor, numbers(0, 3, torch.int64))
    with pytest.raises(TypeError, match="integers"):
        dist.new_group(ranks=torch.arange(size, dtype=torch.float))
    with pytest.raises(ValueError, match="duplicate"):
        dist.new_group(ranks=[0, torch.tensor(0)])


def groups_may_be_used_in_another_order_than_they_were_made():
    whole, alone = dist.new_group(), dist.new_group([0])
    if dist.get_rank() == 0:
        tensor = numbers(0, 5, torch.float32)
        dist.all_reduce(tensor, group=alone)
        assert_same(tensor, numbers(0, 5, torch.float32))
    dist.barrier(group=whole)


def a_wait_takes_the_work_out_of_the_register_of_graphs():
    with functional.allow_inflight_collective_as_graph_input_ctx():
        before = _get_work_registry_size()
        work = dist.all_reduce(torch.ones(1), async_op=True)
        assert _get_work_registry_size() == before + 1
        work.wait()
        assert _get_work_registry_size() == before


def a_barrier_ends_calls_whose_works_and_tensors_are_dropped():
    tensor = numbers(dist.get_rank(), 4, torch.float32)
    dist.all_reduce(tensor, async_op=True)
    dist.barrier()
    assert_same(tensor, total(4))
    dist.all_reduce(numbers(dist.get_rank(), 4, torch.float32), async_op=True)
    del tensor
    dist.barrier()


def a_future_is_done_when_the_call_is():
    tensor = numbers(dist.get_rank(), 4, torch.float32, 1)
    dist.all_reduce(tensor, async_op=True).get_future().wait()
    assert_same(tensor, total(4, 1))


CASES = [
    groups_may_be_used_in_another_order_than_they_were_made,
    a_wait_takes_the_work_out_of_the_register_of_graphs,
    a_barrier_ends_calls_whose_works_and_tensors_are_dropped,
    a_future_is_done_when_the_call_is,
]
# From torch 2.15 on; before, it asks no backend but its own for numbers.
if hasattr(Work, "_get_sequence_number"):
    CASES = [
        calls_are_numbered_from_one_in_each_group,
        works_tell_their_numbers,
        groups_take_ranks_from_a_tensor_and_refuse_what_are_no_ranks,
        *CASES,
    ]


@pytest.fixture(scope="module")
def failures():
    return failures_of(2, CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_as_torch_asks_of_every_backend(case, failures):
    assert not failures[case.__name__], failures[case.__name__]
