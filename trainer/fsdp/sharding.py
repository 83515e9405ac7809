"""Splits a model over the ranks: tensors by the model's own plan, blocks by FSDP2 or by the older class."""

import warnings
from collections.abc import Iterator

import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import (
    FSDPModule,
    FullyShardedDataParallel,
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardingStrategy,
    fully_shard,
)
from transformers import PreTrainedModel
from transformers.distributed.tensor_parallel import apply_tensor_parallelism

from trainer.fsdp.arguments import Settings, SettingsError
from trainer.fsdp.blocks import blocks_of, modules_by_group
from trainer.fsdp.experts import split_experts
from trainer.fsdp.folder import copy_tensors, groups_from_seed
from trainer.fsdp.model import empty_model, fill, model_config
from trainer.fsdp.presets import PRESETS

USED = {"bf16": torch.bfloat16, "fp16": torch.float16}
"""The dtype that parameters are gathered and used in, where it is not the one they are kept in."""


def shard_model(model: PreTrainedModel, settings: Settings, device: torch.device) -> nn.Module:
    """The model, which is on meta, with its first weights and sharded: a group per block, and the root's."""
    mesh = make_mesh(settings, device.type)
    maps_buffers = settings.arena and settings.backend == "fccl" and device.type == "cpu"
    if settings.fsdp1:
        if maps_buffers:
            _use_arena()
        return _shard_by_older_class(model, settings, mesh, device)
    if settings.tensor_parallel > 1:
        split_tensors(model, mesh["tensor"])
    if settings.expert_parallel > 1:
        split_experts(model, settings, device.type, _precision(settings))
    if settings.checkpointed_every:
        checkpoint_activations(model, settings.checkpointed_every)
    if settings.compile:
        compile_blocks(model)
    shard_blocks(model, _data_mesh(mesh), settings)
    if maps_buffers:
        _use_arena(model)
    fill(model, settings, device)
    return _offloaded(model, settings)


def _offloaded(model: nn.Module, settings: Settings) -> nn.Module:
    if not settings.offload_activations:
        return model
    from fccl_sagemaker.offloading import offload_wrapper  # which other runs do not need

    return offload_wrapper(model, settings.offload_activations)


def offloading_of_last_pass(settings: Settings) -> dict[str, dict[str, int]]:
    """For a step's line of metrics: what this rank has kept far away, where that was asked for."""
    if not settings.offload_activations:
        return {}
    from fccl_sagemaker.offloading import measured  # which other runs do not need

    return {"offloading": dict(vars(measured))}


def _use_arena(*model: nn.Module) -> None:
    import fccl  # which a run over Gloo does not need

    fccl.use_arena(*model)


def make_mesh(settings: Settings, device_type: str) -> DeviceMesh:
    """All ranks: tensor-parallel ones are neighbours, then come the shards of a copy, then the copies."""
    shape, names = [settings.shards], ["shard"]
    if settings.strategy not in ("full_shard", "shard_grad_op"):
        # A mesh of one shard and many replicas averages gradients by AllReduce and keeps mixed precision,
        # clipping and checkpoints as they are for the other strategies; DistributedDataParallel does not.
        shape, names = [settings.data_ranks // settings.shards, *shape], ["replica", *names]
    if settings.tensor_parallel > 1:
        shape, names = [*shape, settings.tensor_parallel], [*names, "tensor"]
    mesh = init_device_mesh(device_type, tuple(shape), mesh_dim_names=tuple(names))
    if settings.tensor_parallel > 1:
        # The norm of all gradients then takes one sum over both, not two.
        mesh["shard", "tensor"]._flatten()
    return mesh


def split_tensors(model: PreTrainedModel, mesh: DeviceMesh) -> None:
    """Splits the tensors of every block by the plan that Transformers has for this model."""
    plan = model._expand_parallel_plan(model.tp_plan)
    if not plan:
        raise SettingsError(
            f"--tensor-parallel {mesh.size()}: Transformers has no plan for a {type(model).__name__}; "
            f"leave it out"
        )
    heads = model.config.num_attention_heads
    groups = getattr(model.config, "num_key_value_heads", None) or heads
    if heads % mesh.size() or groups % mesh.size():
        raise SettingsError(
            f"--tensor-parallel {mesh.size()} does not divide the model's {heads} heads of attention and "
            f"{groups} of keys and values: choose a divisor of both"
        )
    # Nobody writes to the logits in place, which are such a view.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    tied = model.all_tied_weights_keys
    apply_tensor_parallelism(model, mesh, {name: style for name, style in plan.items() if name not in tied})
    model.tie_weights()


def checkpoint_activations(model: nn.Module, every: int = 1) -> None:
    """Makes one block in so many keep its input only, and compute the rest again for the gradient."""
    blocks = blocks_of(model)
    for index, block in enumerate(blocks):
        if index % every == 0:
            blocks[index] = checkpoint_wrapper(block)


def compile_blocks(model: nn.Module) -> None:
    """Compiles every block by itself, since FSDP gathers parameters between them."""
    for block in blocks_of(model):
        block.compile()


def shard_blocks(model: nn.Module, mesh: DeviceMesh, settings: Settings) -> None:
    """Shards every block, and what is left of the model, as one group of parameters each."""
    precision = _precision(settings)
    reshard_after_forward = settings.strategy != "shard_grad_op"
    for block in blocks_of(model):
        fully_shard(block, mesh=mesh, mp_policy=precision, reshard_after_forward=reshard_after_forward)
    # The backward pass begins with what the root holds, so giving it back in between would be for nothing.
    fully_shard(model, mesh=mesh, mp_policy=precision, reshard_after_forward=False)


def _precision(settings: Settings) -> MixedPrecisionPolicy:
    if settings.precision in USED:
        return MixedPrecisionPolicy(param_dtype=USED[settings.precision], reduce_dtype=torch.float32)
    return MixedPrecisionPolicy()


def reshard(model: nn.Module) -> None:
    """Gives back parameters that a forward pass without a backward pass has left gathered."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


def _data_mesh(mesh: DeviceMesh) -> DeviceMesh:
    names = tuple(name for name in mesh.mesh_dim_names if name != "tensor")
    return mesh if names == mesh.mesh_dim_names else mesh[names]


def _shard_by_older_class(
    model: PreTrainedModel, settings: Settings, mesh: DeviceMesh, device: torch.device
) -> nn.Module:
    precision = None
    if settings.precision in USED:
        precision = MixedPrecision(param_dtype=USED[settings.precision], reduce_dtype=torch.float32)

    def wrapped(module: nn.Module) -> FullyShardedDataParallel:
        return FullyShardedDataParallel(
            module,
            device_mesh=mesh["replica"] if settings.strategy == "no_shard" else mesh,
            sharding_strategy=ShardingStrategy[settings.strategy.upper()],
            mixed_precision=precision,
            device_id=device,
            use_orig_params=True,
        )

    blocks = blocks_of(model)
    every = settings.checkpointed_every
    if settings.compile:
        compile_blocks(model)
    for group, own in zip(_weights_of(settings, mesh, device), modules_by_group(model), strict=True):
        for name, module in own.items():
            module.to_empty(device=device, recurse=False)
            copy_tensors(group[name], module)
        for index, block in enumerate(blocks):
            if block in own.values():
                blocks[index] = wrapped(checkpoint_wrapper(block) if every and index % every == 0 else block)
    model.tie_weights()
    return _offloaded(wrapped(model), settings)


def _weights_of(settings: Settings, mesh: DeviceMesh, device: torch.device) -> Iterator[dict[str, nn.Module]]:
    """Modules with the first weights, group by group: drawn, or in shards that were read from the folder."""
    if settings.model in PRESETS:
        return groups_from_seed(model_config(settings), settings.seed)
    source = empty_model(settings)
    shard_blocks(source, mesh, settings)
    fill(source, settings, device)
    return iter(modules_by_group(source))
