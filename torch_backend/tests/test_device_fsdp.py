"""FSDP2 on a device with fccl.fsdp.ReduceScatter: gradients travel narrow and are added in float32."""

import time

import pytest
import torch
import torch.distributed as dist
from device_ranks import DEVICE, hold, let_go, on_device, run_device_ranks, served
from fccl.fsdp import ReduceScatter
from models import STEPS, batches, loss_of, make_model, make_optimizer
from ranks import assert_same, numbers
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

pytestmark = served

COUNT = 1000
NARROW = torch.bfloat16


def narrow(iteration):
    """The inputs of all ranks: their sums do not fit into the type."""
    size = dist.get_world_size()
    return [(numbers(rank, size * COUNT, torch.float32, iteration) / 7).to(NARROW) for rank in range(size)]


def sum_while_the_stream_is_held(asynchronous):
    rank, size = dist.get_rank(), dist.get_world_size()
    for iteration in range(3):
        reduce = ReduceScatter(dist.group.WORLD)
        source = reduce.allocate((size * COUNT,), dtype=NARROW, device=DEVICE)
        result = reduce.allocate((COUNT,), dtype=NARROW, device=DEVICE)
        assert (source.dtype, result.dtype) == (NARROW, torch.float32)
        assert (source.device, result.device) == (DEVICE, DEVICE)
        mine = on_device(narrow(iteration)[rank])
        if iteration > 0:  # the first call makes the communicator
            hold()
        source.copy_(mine)
        began = time.monotonic()
        work = reduce(result, source, dist.group.WORLD, dist.ReduceOp.SUM, asynchronous)
        assert time.monotonic() - began < 10 or iteration == 0, "the call has waited for its stream"
        if iteration > 0:
            assert work is None or not work.is_completed()
            let_go()
        if work is not None:
            work.wait()
        expected = sum(each.float() for each in narrow(iteration))[rank * COUNT : (rank + 1) * COUNT]
        assert not torch.equal(expected, expected.to(NARROW).float()), "a rounded sum would pass"
        assert_same(result.cpu(), expected, f"call {iteration}")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_sum_of_narrow_gradients_comes_in_float32_behind_a_stream_that_is_held(asynchronous):
    run_device_ranks(2, sum_while_the_stream_is_held, asynchronous)


def train(reduce_dtype, with_class):
    mesh = init_device_mesh(DEVICE.type, (dist.get_world_size(),))
    policy = MixedPrecisionPolicy(param_dtype=NARROW, reduce_dtype=reduce_dtype)
    model = make_model().float().to(DEVICE)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    for module in model.modules() if with_class else ():
        if isinstance(module, FSDPModule):
            module.set_custom_reduce_scatter(ReduceScatter(mesh.get_group()))
    optimizer = make_optimizer(model)
    tokens = batches(dist.get_world_size())[dist.get_rank()].to(DEVICE)
    for _ in range(STEPS):
        loss_of(model, tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    return {name: value.cpu() for name, value in state.items()}


def train_to_the_same_bits():
    expected = train(torch.float32, with_class=False)
    state = train(NARROW, with_class=True)
    assert state.keys() == expected.keys()
    for name, value in expected.items():
        assert_same(state[name], value, name)


def test_training_on_a_device_with_the_class_has_the_bits_of_sums_in_float32():
    run_device_ranks(2, train_to_the_same_bits, settings={"delay_us": 0})
