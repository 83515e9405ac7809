"""Averages gradients over replicas whose tensors are split but not sharded, which FSDP cannot."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.tensor import DTensor


def prepare(wrapper: FullyShardedDataParallel, asked: dict[str, Any], group: dist.ProcessGroup) -> None:
    """Keeps the parameters of a module out of FSDP's hands: NO_SHARD of torch cannot hold split ones."""
    module = asked["module"]
    if asked.get("mixed_precision") is not None:
        warnings.warn(
            "FullyShardedDataParallel computes in the type of the parameters, and not in that of "
            "mixed_precision, since "
            "tensor parallelism without shards leaves it nothing to gather; cast the model, or use "
            "torch.autocast",
            stacklevel=3,
        )
    make = asked.get("param_init_fn")
    for each in module.modules():
        if make is not None and any(
            tensor.is_meta for tensor in [*each.parameters(False), *each.buffers(False)]
        ):
            make(each)
    if asked.get("sync_module_states") and group.size() > 1:
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(_local(tensor.detach()), group=group, group_src=0)
    for parameter in module.parameters():
        if group.size() > 1 and parameter.requires_grad and not hasattr(parameter, "_fccl_averaged"):
            parameter._fccl_averaged = True
            parameter.register_post_accumulate_grad_hook(_averaging(wrapper, group))
    asked.update(
        auto_wrap_policy=None,
        ignored_modules=None,
        ignored_states=list(module.parameters()),
        param_init_fn=None,
        sync_module_states=False,
    )


def _local(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _averaging(wrapper: nn.Module, group: dist.ProcessGroup) -> Callable[[torch.Tensor], None]:
    # A gradient that FSDP averaged before is the same on every rank, so this sum averages both kinds right.
    def average(parameter: torch.Tensor) -> None:
        if wrapper._sync_gradients:
            gradient = _local(parameter.grad)
            dist.all_reduce(gradient, group=group)
            gradient.div_(group.size())

    return average
