"""FSDP2 with both classes of fccl.fsdp: the same bits, and no copies where torch has a door for that."""

import fccl
import pytest
import torch
import torch.distributed as dist
from fccl.fsdp import AllGather, ReduceScatter
from models import STEPS, batches, loss_of, make_model, make_optimizer
from ranks import assert_same, run_ranks
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup
from torch.distributed.tensor import Shard
from torch.profiler import profile

# The line of torch that makes the door, which is private to it.
HAS_DOOR = "_all_gather_output_fn" in FSDPParamGroup.__init__.__code__.co_names
COPY = "fsdp::split_with_sizes_copy"
SHAPES = [(2, 1), *(pytest.param(4, hosts, marks=pytest.mark.slow) for hosts in (1, 2))]
NARROW = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)


def sharded(with_classes, policy=None, placement=None):
    """A model of its own; which of its modules have parameters that are written where they stay."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = make_model() if policy is None else make_model().float()
    options = {"mesh": mesh, "shard_placement_fn": placement} | (
        {} if policy is None else {"mp_policy": policy}
    )
    for block in model.blocks:
        fully_shard(block, **options)
    fully_shard(model, **options)
    written = []
    for module in model.modules() if with_classes else ():
        if isinstance(module, FSDPModule):
            written.append(AllGather(mesh.get_group()).install(module))
            module.set_custom_reduce_scatter(ReduceScatter(mesh.get_group()))
    return model, written


def take_steps(model):
    optimizer = make_optimizer(model)
    for _ in range(STEPS):
        loss_of(model, batches(dist.get_world_size())[dist.get_rank()]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
    return get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))


def train_to_the_same_bits(policy, expected_policy):
    expected = take_steps(sharded(False, expected_policy)[0])
    model, written = sharded(True, policy)
    assert written == [HAS_DOOR] * (len(model.blocks) + 1)
    state = take_steps(model)
    assert state.keys() == expected.keys()
    for name, value in expected.items():
        assert_same(state[name], value, name)


@pytest.mark.parametrize(("size", "hosts"), SHAPES)
def test_training_with_both_classes_has_the_bits_of_training_without(size, hosts, monkeypatch):
    monkeypatch.setenv("FCCL_TEST_HOSTS", str(hosts))
    run_ranks(size, train_to_the_same_bits, None, None)


@pytest.mark.parametrize(("size", "hosts"), SHAPES)
def test_narrow_gradients_with_both_classes_have_the_bits_of_sums_in_float32(size, hosts, monkeypatch):
    monkeypatch.setenv("FCCL_TEST_HOSTS", str(hosts))
    in_float32 = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    run_ranks(size, train_to_the_same_bits, NARROW, in_float32)


def costs_of_a_step(model):
    """Copies out of buffers, and AllGathers."""
    loss_of(model, batches(dist.get_world_size())[dist.get_rank()]).backward()
    before = fccl.counters()["AllGather"]["calls"]
    with profile() as seen:
        loss_of(model, batches(dist.get_world_size())[dist.get_rank()]).backward()
    copies = sum(each.count for each in seen.key_averages() if each.key == COPY)
    return copies, fccl.counters()["AllGather"]["calls"] - before


def gather_without_copies():
    model, _ = sharded(with_classes=False)
    # The root stays whole after its forward, so each block is gathered twice and the root once.
    gathered = [*model.blocks, *model.blocks, model]
    assert costs_of_a_step(model) == (len(gathered), len(gathered))
    model, _ = sharded(with_classes=True)
    gathered = [*model.blocks, *model.blocks, model]
    parameters = sum(len(each._get_fsdp_state()._fsdp_param_groups[0].fsdp_params) for each in gathered)
    assert costs_of_a_step(model) == (0, parameters)


@pytest.mark.skipif(not HAS_DOOR, reason="torch has the door from 2.15 on")
def test_a_step_copies_no_parameter_out_of_a_buffer_and_gathers_each_by_itself():
    run_ranks(2, gather_without_copies)


def train_with_other_dimensions():
    def placement(parameter):
        return Shard(1) if parameter.dim() == 2 and parameter.shape[1] % dist.get_world_size() == 0 else None

    expected = take_steps(sharded(False, placement=placement)[0])
    model, written = sharded(True, placement=placement)
    assert not any(written)
    state = take_steps(model)
    for name, value in expected.items():
        assert_same(state[name], value, name)


def test_parameters_sharded_along_another_dimension_are_left_to_torch():
    run_ranks(2, train_with_other_dimensions)
