"""Clips gradients of every strategy and of every type of numbers, over fccl."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
from torch.distributed.tensor import DTensor

from fccl_sagemaker.session import state

UNSHARDED = (ShardingStrategy.NO_SHARD,)


def clip_grad_norm_(model: nn.Module, max_norm: float, norm_type: float = 2.0) -> torch.Tensor:
    """Scales all gradients so that their norm over all ranks is at most `max_norm`; gives the norm before."""
    max_norm, norm_type = float(max_norm), float(norm_type)
    roots = [each for each in FullyShardedDataParallel.fsdp_modules(model) if each.check_is_root()]
    if not roots:
        # DTensors know themselves which ranks hold the rest of them.
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm, norm_type)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm
    for each in model.parameters():
        # An embedding's gradient comes whole on every rank, though the rank keeps a part of it.
        if isinstance(each.grad, DTensor) and each.grad.placements != each.placements:
            each.grad = each.grad.redistribute(placements=each.placements)
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    split, whole = _split_and_whole(model)
    accurate = torch.float64 if any(each.dtype == torch.float64 for each in gradients) else torch.float32
    device = gradients[0].device if gradients else torch.device("cpu")
    total = _power(split, norm_type, accurate, device)
    if state.degrees.tensor > 1:
        _sum(total, state.tp_process_group, norm_type)
    total = _join(total, _power(whole, norm_type, accurate, device), norm_type)
    sharded = [each for each in FullyShardedDataParallel.fsdp_modules(model) if each._has_params]
    if any(each.sharding_strategy not in UNSHARDED for each in sharded):
        _sum(total, sharded[0].process_group, norm_type)
    norm = total if norm_type == float("inf") else total.pow(1 / norm_type)
    factor = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    for gradient in gradients:
        local = gradient.to_local() if isinstance(gradient, DTensor) else gradient
        local.mul_(factor.to(device=local.device, dtype=local.dtype))
    return norm


def _split_and_whole(model: nn.Module) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Gradients whose rest lies on tensor-parallel neighbours, and those that every neighbour has."""
    divided = _split_parameters(model) if state.degrees.tensor > 1 else set()
    split, whole = [], []
    for parameter in model.parameters():
        if parameter.grad is not None:
            local = parameter.grad.to_local() if isinstance(parameter.grad, DTensor) else parameter.grad
            (split if id(parameter) in divided else whole).append(local)
    return split, whole


def _split_parameters(model: nn.Module) -> set[int]:
    found = {id(each) for each in model.parameters() if isinstance(each, DTensor) and _is_split(each)}
    for module in FullyShardedDataParallel.fsdp_modules(model):
        if module._handle is None:
            continue
        if not module._handle._use_orig_params:
            raise ValueError(
                "torch.sagemaker.grad_norm.clip_grad_norm_() cannot tell split tensors from whole ones "
                "in flat parameters; "
                "give FullyShardedDataParallel use_orig_params=True"
            )
        flat = module._handle.flat_param
        for parameter, layout in zip(flat._params, flat._param_extensions, strict=True):
            if layout is not None and _is_split(layout):
                found.add(id(parameter))
    return found


def _is_split(layout: Any) -> bool:
    return any(not each.is_replicate() for each in layout.placements)


def _power(
    tensors: list[torch.Tensor], norm_type: float, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    norms = [torch.linalg.vector_norm(each, norm_type, dtype=dtype) for each in tensors]
    if not norms:
        return torch.zeros((), dtype=dtype, device=device)
    together = torch.stack(norms)
    return together.max() if norm_type == float("inf") else together.pow(norm_type).sum()


def _join(one: torch.Tensor, other: torch.Tensor, norm_type: float) -> torch.Tensor:
    return torch.maximum(one, other) if norm_type == float("inf") else one + other


def _sum(total: torch.Tensor, group: dist.ProcessGroup, norm_type: float) -> None:
    dist.all_reduce(
        total, op=dist.ReduceOp.MAX if norm_type == float("inf") else dist.ReduceOp.SUM, group=group
    )
