"""Shards a model over the ranks, by FSDP2 or by the older class."""

import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper, checkpoint_wrapper
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import (
    FSDPModule,
    FullyShardedDataParallel,
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardingStrategy,
    fully_shard,
)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.tensor import DTensor
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from trainer.fsdp.arguments import Settings


def shard_model(model: nn.Module, settings: Settings, device: torch.device) -> nn.Module:
    """The model with every block, and what is left of it, as one sharded group of parameters each."""
    if settings.activation_checkpointing:
        checkpoint_activations(model)
    mesh = _mesh(settings, device.type)
    maps_buffers = settings.arena and settings.backend == "fccl" and device.type == "cpu"
    if settings.fsdp1:
        if maps_buffers:
            _use_arena()
        return _shard_by_older_class(model, settings, mesh, device)
    sharded = _shard(model, settings, mesh)
    if maps_buffers:
        _use_arena(sharded)
    return sharded


def _use_arena(*model: nn.Module) -> None:
    import fccl  # which a run over Gloo does not need

    fccl.use_arena(*model)


def checkpoint_activations(model: nn.Module) -> None:
    """Makes every block keep its input only, and compute the rest again when the gradient needs it."""
    blocks = model.model.layers
    for index, block in enumerate(blocks):
        blocks[index] = checkpoint_wrapper(block)


def clip_gradients(model: nn.Module, highest_norm: float) -> float:
    """Scales the gradients to at most this norm over all ranks; returns the norm they had."""
    if isinstance(model, FullyShardedDataParallel):
        return model.clip_grad_norm_(highest_norm).item()
    norm = nn.utils.clip_grad_norm_(model.parameters(), highest_norm)
    return (norm.full_tensor() if isinstance(norm, DTensor) else norm).item()


def reshard(model: nn.Module) -> None:
    """Gives back parameters that a forward pass without a backward pass has left gathered."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


def _mesh(settings: Settings, device_type: str) -> DeviceMesh:
    if settings.strategy in ("full_shard", "shard_grad_op"):
        return init_device_mesh(device_type, (settings.ranks,), mesh_dim_names=("shard",))
    # A mesh of one shard and many replicas averages gradients by AllReduce and keeps mixed precision,
    # clipping and checkpoints the same as for the other strategies, which DistributedDataParallel does not.
    replicas = settings.ranks // settings.shards
    shape = (replicas, settings.shards)
    return init_device_mesh(device_type, shape, mesh_dim_names=("replica", "shard"))


def _shard(model: nn.Module, settings: Settings, mesh: DeviceMesh) -> nn.Module:
    precision = MixedPrecisionPolicy()
    if settings.precision == "bf16":
        precision = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    reshard_after_forward = settings.strategy != "shard_grad_op"
    for block in model.model.layers:
        fully_shard(block, mesh=mesh, mp_policy=precision, reshard_after_forward=reshard_after_forward)
    # The backward pass begins with what the root holds, so giving it back in between would be for nothing.
    return fully_shard(model, mesh=mesh, mp_policy=precision, reshard_after_forward=False)


def _shard_by_older_class(
    model: nn.Module, settings: Settings, mesh: DeviceMesh, device: torch.device
) -> nn.Module:
    precision = None
    if settings.precision == "bf16":
        precision = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    block = CheckpointWrapper if settings.activation_checkpointing else LlamaDecoderLayer
    return FullyShardedDataParallel(
        model,
        device_mesh=mesh["replica"] if settings.strategy == "no_shard" else mesh,
        sharding_strategy=ShardingStrategy[settings.strategy.upper()],
        auto_wrap_policy=ModuleWrapPolicy({block}),
        mixed_precision=precision,
        device_id=device,
        use_orig_params=True,
    )
