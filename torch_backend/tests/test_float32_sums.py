"""Sums of bfloat16 and float16 that come in float32, in a call and in FSDP2."""

import fccl
import pytest
import torch
import torch.distributed as dist
from fccl.fsdp import ReduceScatter
from models import STEPS, batches, loss_of, make_model, make_optimizer
from ranks import assert_same, numbers, poisoned, run_ranks
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

COUNT = 10_007


def in_order(parts):
    """As the library adds a host's ranks: a tree, split at the largest power of two below their number."""
    if len(parts) == 1:
        return parts[0]
    left = 1 << (len(parts) - 1).bit_length() - 1
    return in_order(parts[:left]) + in_order(parts[left:])


def sum_into_float32(dtype):
    rank, size = dist.get_rank(), dist.get_world_size()
    inputs = [(numbers(each, COUNT * size, torch.float32) / 7).to(dtype) for each in range(size)]
    result = poisoned(COUNT, torch.float32)
    dist.reduce_scatter_tensor(result, inputs[rank])
    expected = in_order([each.float() for each in inputs])[rank * COUNT : (rank + 1) * COUNT]
    assert not torch.equal(expected, expected.to(dtype).float())
    assert_same(result, expected, str(dtype))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_sum_of_narrow_floats_comes_in_float32_without_being_rounded(dtype):
    run_ranks(3, sum_into_float32, dtype)


def refuse_other_pairs():
    size = dist.get_world_size()
    for result, given in (
        (torch.float64, torch.float32),
        (torch.float32, torch.int32),
        (torch.bfloat16, torch.float32),
    ):
        with pytest.raises(ValueError, match="input and output must have one type"):
            dist.reduce_scatter_tensor(torch.zeros(4, dtype=result), torch.zeros(4 * size, dtype=given))
    dist.barrier()


def test_other_pairs_of_types_are_refused_and_the_group_stays_good():
    run_ranks(2, refuse_other_pairs)


def train(reduce_dtype, in_float32):
    """The state after some steps, and the bytes that ReduceScatters took."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce_dtype)
    model = make_model().float()
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    if in_float32:
        for module in model.modules():
            if isinstance(module, FSDPModule):
                module.set_custom_reduce_scatter(ReduceScatter(mesh.get_group()))
    optimizer = make_optimizer(model)
    before = fccl.counters()["ReduceScatter"]["bytes"]
    for _ in range(STEPS):
        loss_of(model, batches(dist.get_world_size())[dist.get_rank()]).backward()
        assert all(parameter.grad.dtype == torch.float32 for parameter in model.parameters())
        optimizer.step()
        optimizer.zero_grad()
    taken = fccl.counters()["ReduceScatter"]["bytes"] - before
    return get_model_state_dict(model, options=StateDictOptions(full_state_dict=True)), taken


def compare_with_sums_of_float32():
    expected, all_bytes = train(torch.float32, in_float32=False)
    state, half = train(torch.bfloat16, in_float32=True)
    assert 2 * half == all_bytes
    assert state.keys() == expected.keys()
    for name, value in expected.items():
        assert_same(state[name], value, name)
    rounded, _ = train(torch.bfloat16, in_float32=False)
    assert any(not torch.equal(rounded[name], expected[name]) for name in expected)


@pytest.mark.parametrize("size", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_fsdp2_sums_bfloat16_gradients_in_float32_with_half_the_bytes_and_the_same_bits(size):
    run_ranks(size, compare_with_sums_of_float32)
