"""torch.ops.fccl.all_reduce_ reduces as torch.distributed.all_reduce does, and fails as it does."""

import pytest
import torch
import torch.distributed as dist
from ranks import assert_same, numbers, run_ranks
from torch.testing._internal.distributed import fake_pg  # noqa: F401  (which registers the name)

OPERATORS = {"sum": "SUM", "avg": "AVG", "product": "PRODUCT", "min": "MIN", "max": "MAX"}


def reduce_both_ways():
    group = dist.group.WORLD.group_name
    for iteration, (name, op) in enumerate(OPERATORS.items()):
        for count in (0, 1, 17, 5000):
            direct = numbers(dist.get_rank() + 10 * iteration, count, torch.float32)
            through_torch = direct.clone()
            torch.ops.fccl.all_reduce_(direct, name, group)
            dist.all_reduce(through_torch, op=getattr(dist.ReduceOp, op))
            assert_same(direct, through_torch, f"{name} of {count}")
    bits = torch.tensor([1 << dist.get_rank()])
    torch.ops.fccl.all_reduce_(bits, "bor", group)
    assert bits.item() == (1 << dist.get_world_size()) - 1


def reduce_strided():
    whole = numbers(dist.get_rank(), 40, torch.float32).reshape(4, 10)
    ranks = range(dist.get_world_size())
    wanted = sum(numbers(rank, 40, torch.float32).reshape(4, 10)[:, 1] for rank in ranks)
    torch.ops.fccl.all_reduce_(whole[:, 1], "sum", dist.group.WORLD.group_name)
    assert_same(whole[:, 1], wanted, "a column")


def refuse():
    group = dist.group.WORLD.group_name
    with pytest.raises(ValueError, match="op is 'total'; give sum"):
        torch.ops.fccl.all_reduce_(torch.ones(3), "total", group)
    with pytest.raises(RuntimeError, match="BXOR of Float has no meaning"):
        torch.ops.fccl.all_reduce_(torch.ones(3), "bxor", group)
    with pytest.raises(RuntimeError, match="nobody"):
        torch.ops.fccl.all_reduce_(torch.ones(3), "sum", "nobody")
    other = dist.new_group(backend="fake")
    with pytest.raises(ValueError, match="is not fccl but fake"):
        torch.ops.fccl.all_reduce_(torch.ones(3), "sum", other.group_name)
    dist.barrier()


def test_the_operator_reduces_as_torch_does():
    run_ranks(3, reduce_both_ways)


def test_the_operator_takes_strided_tensors():
    run_ranks(2, reduce_strided)


def test_what_the_operator_cannot_do_is_refused_by_name():
    run_ranks(2, refuse)
