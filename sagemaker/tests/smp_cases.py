"""Degrees, offloading and refusals, as a rank of smp_ranks.py sees them."""

from __future__ import annotations

import functools
import os
from typing import Any
from unittest import mock

import fccl
import torch
import torch.distributed as dist
import torch.sagemaker as tsm
from small_llama import make, noting, shard, train
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullStateDictConfig, ShardingStrategy, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817  every script names it so
from torch.sagemaker.grad_norm import clip_grad_norm_
from torch.sagemaker.utils.process_group_utils import get_global_ranks
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

STEPS = 20
TENSOR_2 = {"tensor_parallel_degree": 2, "tensor_parallel_seed": 0}
FOUR: dict[str, tuple[str, dict[str, Any]]] = {
    "native": ("llama", {}),
    "degree 1": ("llama", {"hybrid_shard_degree": 1}),
    "degree 2": ("llama", {"hybrid_shard_degree": 2}),
    "degree 4": ("llama", {"hybrid_shard_degree": 4}),
    "tensor 2": ("llama", TENSOR_2),
    "tensor 2, replicas 2": ("llama", {"tensor_parallel_degree": 2, "hybrid_shard_degree": 1}),
    "tensor 4": ("llama", {"tensor_parallel_degree": 4}),
    "tensor 2 of Mistral": ("mistral", TENSOR_2),
    "tensor 2 of GPT-NeoX": ("gpt_neox", TENSOR_2),
    "tensor 2 of a tied head": ("tied", TENSOR_2),
}
EIGHT: dict[str, tuple[str, dict[str, Any]]] = {
    "tensor 2, shard 2, replicas 2": ("llama", {"tensor_parallel_degree": 2, "hybrid_shard_degree": 2})
}
WRONG = [
    {"hybrid_shard_degre": 2},
    {"hybrid_shard_degree": 3},
    {"hybrid_shard_degree": -1},
    {"tensor_parallel_degree": 3},
    {"tensor_parallel_degree": 0},
    {"sm_activation_offloading": 1},
    {"activation_loading_horizon": 0},
    {"context_parallel_degree": 2},
    {"expert_parallel_degree": 2},
    {"random_seed": "x"},
]


def full_state(model: nn.Module) -> dict[str, torch.Tensor]:
    """On rank 0 alone; every rank calls it."""
    settings = FullStateDictConfig(rank0_only=True, offload_to_cpu=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, settings):
        return model.state_dict()


def farthest(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    return max(((one[name] - other[name]).abs().max().item() for name in one), default=0.0)


def differs(found: list[float], wanted: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(found, wanted, strict=True))


def degrees(
    kind: str,
    keys: dict[str, Any],
    losses: list[float],
    norms: list[float],
    states: dict[str, torch.Tensor],
) -> dict[str, Any]:
    tsm.init(keys)
    tsm.init(keys)
    degrees = tsm.state.degrees
    model = shard(tsm.transform(make(kind)))
    before = fccl.counters()
    part, parts = dist.get_rank() // degrees.tensor, degrees.shard * degrees.replicas
    noted: list[float] = []
    found = train(model, part, parts, noting(noted, clip_grad_norm_), STEPS)
    after = fccl.counters()
    calls = {name: after[name]["calls"] - before.get(name, {"calls": 0})["calls"] for name in after}
    moved = {name: after[name]["bytes"] - before.get(name, {"bytes": 0})["bytes"] for name in after}
    return {
        "losses": differs(found, losses),
        "norms": differs(noted, norms),
        "largest norm": max(noted),
        "states": farthest(full_state(model), states),
        "parameters": sum(each.numel() for each in states.values()),
        "calls": calls,
        "bytes": moved,
        "strategy": model.sharding_strategy.name,
        "state": state_of_rank(),
    }


def state_of_rank() -> dict[str, Any]:
    """Gives what torch.sagemaker.state says, with groups as lists of their ranks."""
    state = tsm.state
    groups = {"tp": state.tp_process_group, "rep": state.rep_rank_process_group}
    return {
        "numbers": [state.rank, state.world_size, state.tp_rank, state.ep_rank],
        "degrees": [state.hybrid_shard_degree, state.tensor_parallel_degree, state.tp_size],
        "others": [state.expert_parallel_degree, state.context_parallel_degree],
        "rep rank": state.ranker.get_rep_rank(state.rank),
        "world": get_global_ranks(state.world_process_group),
        **{name: None if group is None else get_global_ranks(group) for name, group in groups.items()},
    }


def offloading(keys: dict[str, Any], wrapped: bool = True) -> dict[str, Any]:
    tsm.init(keys)
    model = shard(make())
    wrapper = functools.partial(checkpoint_wrapper, checkpoint_impl=CheckpointImpl.NO_REENTRANT)
    apply_activation_checkpointing(
        model, checkpoint_wrapper_fn=wrapper, check_fn=lambda module: isinstance(module, LlamaDecoderLayer)
    )
    if wrapped:
        model = offload_wrapper(model)
    losses = train(model, dist.get_rank(), dist.get_world_size(), clip_grad_norm_, STEPS)
    return {"losses": losses, **vars(tsm.state.offloading)}


def own_mesh() -> list[Any]:
    """A script's own mesh or group decides, whatever the degree is."""
    tsm.init({"hybrid_shard_degree": 2})
    pairs = init_device_mesh("cpu", (2, 2))
    by_mesh = shard(make(), device_mesh=init_device_mesh("cpu", (4,)))
    strategy = ShardingStrategy.SHARD_GRAD_OP
    by_group = shard(make(), process_group=pairs.get_group(1), sharding_strategy=strategy)
    return [
        [each.sharding_strategy.name, get_global_ranks(each.process_group)] for each in (by_mesh, by_group)
    ]


def hosts(wanted: list[float]) -> list[Any]:
    """HYBRID_SHARD of a script without degrees shards within a host, of which there are two here."""
    tsm.init()
    with mock.patch.dict(os.environ, {"LOCAL_WORLD_SIZE": "2"}):
        model = shard(make(), sharding_strategy=ShardingStrategy.HYBRID_SHARD)
    found = train(model, dist.get_rank(), dist.get_world_size(), clip_grad_norm_, STEPS)
    return [differs(found, wanted), model.sharding_strategy.name, get_global_ranks(model.process_group)]


def weights_of_rank_0(degree: int) -> float:
    """How far the weights are from those that rank 0 alone had; the other ranks begin on meta."""
    tsm.init({"tensor_parallel_degree": degree, "hybrid_shard_degree": 1})
    if dist.get_rank() == 0:
        model = make()
    else:
        with torch.device("meta"):
            model = make()
    model = shard(tsm.transform(model, load_state_dict_from_rank0=True))
    # A script that offloads activations asks the wrapper for the state, and the wrapper asks FSDP's class.
    return farthest(full_state(offload_wrapper(model)), make().state_dict())


def wrong() -> list[Any]:
    sentences = []
    for keys in WRONG:
        try:
            tsm.init(keys)
        except ValueError as refusal:
            sentences.append(str(refusal))
    tsm.init({"tensor_parallel_degree": 4})
    few = LlamaConfig(
        hidden_size=6, num_attention_heads=2, num_key_value_heads=2, intermediate_size=8, vocab_size=9
    )
    for refused in (
        lambda: tsm.transform(AutoModelForCausalLM.from_config(few)),
        lambda: tsm.transform(nn.Linear(4, 4)),
        lambda: tsm.transform(make(), cp_comm_type="ring"),
        lambda: tsm.transform(make(), config={"moe": True}),
        lambda: tsm.init({"random_seed": 5}),
    ):
        try:
            refused()
        except ValueError as refusal:
            sentences.append(str(refusal))
    total = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(total)
    return [*sentences, total.item()]
