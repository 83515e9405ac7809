"""Sharded training over fccl matches one process; no rank may use Gloo."""

import fccl
import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from models import STEPS, Block, assert_matches, batches, loss_of, make_model, make_optimizer
from ranks import run_ranks
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    ShardingStrategy,
    StateDictType,
    fully_shard,
)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy


def train(model, optimizer, clip):
    tokens = batches(dist.get_world_size())[dist.get_rank()]
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, tokens).backward()
        clip(0.5)
        optimizer.step()


def clipper(model):
    return lambda limit: nn.utils.clip_grad_norm_(model.parameters(), limit)


def shard(model, mesh, **options):
    for block in model.blocks:
        fully_shard(block, mesh=mesh, **options)
    fully_shard(model, mesh=mesh, **options)
    return model


def full_state(model):
    return get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))


def calls_since(before):
    now = fccl.counters()
    return {name: now[name]["calls"] - before[name]["calls"] for name in now}


def use_gloo():
    with pytest.raises((AssertionError, RuntimeError), match="Gloo was used"):
        dist.new_group(backend="gloo")


def test_gloo_is_out_of_reach_in_these_tests():
    run_ranks(1, use_gloo)


def train_ddp():
    model = nn.parallel.DistributedDataParallel(make_model())
    train(model, make_optimizer(model), clipper(model))
    assert_matches(model.module.state_dict(), dist.get_world_size())


def test_ddp_matches_one_process():
    run_ranks(2, train_ddp)


def train_fsdp2(reshard, one_scale):
    size = dist.get_world_size()
    model = shard(make_model(), init_device_mesh("cpu", (size,)), reshard_after_forward=reshard)
    if one_scale:
        for module in [*model.blocks, model]:
            module.set_gradient_divide_factor(float(size) / 2)
            module.set_requires_gradient_sync(True)
    optimizer = make_optimizer(model)
    scale = clipper(model)

    def clip(limit):
        if one_scale:
            for parameter in model.parameters():
                parameter.grad.div_(2)
        scale(limit)

    train(model, optimizer, clip)
    assert_matches(full_state(model), size)


@pytest.mark.two_hosts
@pytest.mark.parametrize("reshard", [True, False])
def test_fsdp2_matches_one_process(reshard):
    run_ranks(3, train_fsdp2, reshard, False)


def test_fsdp2_with_its_own_divisor_matches_one_process():
    run_ranks(2, train_fsdp2, True, True)


def count_fsdp2():
    model = shard(make_model(), init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = make_optimizer(model)
    train(model, optimizer, clipper(model))
    before = fccl.counters()
    train(model, optimizer, clipper(model))
    blocks = len(model.blocks)
    counted = {name: calls for name, calls in calls_since(before).items() if calls}
    expected = {
        "AllGather": (2 * blocks + 1) * STEPS,
        "ReduceScatter": (blocks + 1) * STEPS,
        "AllReduce": STEPS,
    }
    assert counted == expected


def test_fsdp2_makes_the_calls_that_the_strategy_implies():
    run_ranks(2, count_fsdp2)


def train_hsdp():
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "shards"))
    model = shard(make_model(), mesh)
    train(model, make_optimizer(model), clipper(model))
    assert_matches(full_state(model), dist.get_world_size())


@pytest.mark.two_hosts(every_change=True)
def test_hybrid_fsdp2_matches_one_process():
    run_ranks(4, train_hsdp)


def train_in_bfloat16():
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
    model = shard(make_model(), init_device_mesh("cpu", (dist.get_world_size(),)), mp_policy=policy)
    tokens = batches(dist.get_world_size())[dist.get_rank()]
    first = loss_of(model, tokens).item()
    train(model, make_optimizer(model), clipper(model))
    assert loss_of(model, tokens).item() < first - 0.5


def test_fsdp2_trains_in_bfloat16():
    run_ranks(2, train_in_bfloat16)


def clipper_of_shards(model, sharded):
    """Clips as the older class's own clip_grad_norm_ does, which refuses float64."""

    def clip(limit):
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        squares = sum(
            (gradient.square().sum() for gradient in gradients), torch.zeros((), dtype=torch.float64)
        )
        if sharded:
            dist.all_reduce(squares, group=model.process_group)
        for gradient in gradients:
            gradient.mul_((limit / (squares.sqrt() + 1e-6)).clamp(max=1))

    return clip


def train_fsdp1(strategy):
    options = {}
    if strategy.startswith("HYBRID"):
        options["device_mesh"] = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "shards"))
    model = FullyShardedDataParallel(
        make_model(),
        sharding_strategy=ShardingStrategy[strategy],
        device_id=torch.device("cpu"),
        auto_wrap_policy=ModuleWrapPolicy({Block}),
        use_orig_params=True,
        **options,
    )
    train(model, make_optimizer(model), clipper_of_shards(model, strategy != "NO_SHARD"))
    with FullyShardedDataParallel.summon_full_params(model):
        state = {
            name.replace("_fsdp_wrapped_module.", ""): parameter.detach().clone()
            for name, parameter in model.named_parameters()
        }
    assert_matches(state, dist.get_world_size())


@pytest.mark.parametrize(
    ("strategy", "ranks"),
    [("FULL_SHARD", 2), ("SHARD_GRAD_OP", 2), ("NO_SHARD", 2), ("HYBRID_SHARD", 4)],
)
def test_fsdp1_matches_one_process(strategy, ranks):
    run_ranks(ranks, train_fsdp1, strategy)


def move_states():
    model = shard(make_model(), init_device_mesh("cpu", (dist.get_world_size(),)))
    expected = make_model().state_dict()
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True, cpu_offload=True)
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    assert bool(state) == (dist.get_rank() == 0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    set_model_state_dict(model, state, options=options)
    torch.testing.assert_close(full_state(model), expected, atol=0, rtol=0)


def test_full_state_dicts_are_gathered_and_sent_from_rank_0():
    run_ranks(2, move_states)


def save_checkpoint(folder):
    model = shard(make_model(), init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = make_optimizer(model)
    train(model, optimizer, clipper(model))
    state, optimizer_state = get_state_dict(model, optimizer)
    checkpoint.save({"model": state, "optimizer": optimizer_state}, checkpoint_id=folder)


def load_checkpoint(folder, saved_by):
    model = shard(make_model(), init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = make_optimizer(model)
    state, optimizer_state = get_state_dict(model, optimizer)
    loaded = {"model": state, "optimizer": optimizer_state}
    checkpoint.load(loaded, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=loaded["model"], optim_state_dict=loaded["optimizer"])
    assert_matches(full_state(model), saved_by)


@pytest.mark.two_hosts
def test_a_checkpoint_of_four_ranks_is_loaded_by_two(tmp_path):
    run_ranks(4, save_checkpoint, str(tmp_path / "checkpoint"))
    run_ranks(2, load_checkpoint, str(tmp_path / "checkpoint"), 4)


def load_a_matrix_of_one_row(folder):
    torch.manual_seed(4)
    model = FullyShardedDataParallel(
        nn.Linear(3, 1, bias=False), device_id=torch.device("cpu"), use_orig_params=True
    )
    saved = {"model": sharded_state(model)}
    checkpoint.save(saved, checkpoint_id=folder)
    with FullyShardedDataParallel.summon_full_params(model):
        expected = model.weight.detach().clone()
        model.weight.data.fill_(7)
    loaded = {"model": sharded_state(model)}
    assert loaded["model"]["weight"].device == torch.device("cpu")
    assert len(loaded["model"]["weight"].local_shards()) == (dist.get_rank() == 0)
    checkpoint.load(loaded, checkpoint_id=folder)
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        model.load_state_dict(loaded["model"])
    with FullyShardedDataParallel.summon_full_params(model):
        assert torch.equal(model.weight, expected)


def sharded_state(model):
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        return model.state_dict()


def test_fsdp1_loads_a_sharded_state_on_a_rank_without_a_row(tmp_path):
    run_ranks(2, load_a_matrix_of_one_row, str(tmp_path / "checkpoint"))
