"""Gathers full state dicts of split tensors and of CPU memory, where torch ends the process."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import (
    FullStateDictConfig,
    FullyShardedDataParallel,
    ShardedStateDictConfig,
    StateDictType,
)
from torch.distributed.tensor import DTensor


def state_dict(self: FullyShardedDataParallel, *others: Any, **named: Any) -> dict[str, Any]:
    """nn.Module.state_dict, but a full one of split tensors is put together from the sharded one."""
    settings = FullyShardedDataParallel.get_state_dict_type(self)
    wanted = settings.state_dict_config
    if settings.state_dict_type != StateDictType.FULL_STATE_DICT:
        return nn.Module.state_dict(self, *others, **named)
    if not _has_split_tensors(self):
        if not wanted.offload_to_cpu or self.compute_device.type != "cpu":
            return nn.Module.state_dict(self, *others, **named)
        # torch frees the gathered parameters that it takes for copies on a GPU, and then reads them.
        here = FullStateDictConfig(rank0_only=wanted.rank0_only, offload_to_cpu=False)
        with FullyShardedDataParallel.state_dict_type(self, StateDictType.FULL_STATE_DICT, here):
            return nn.Module.state_dict(self, *others, **named)
    # A module around this one collects all states in a dictionary of its own, which it reads afterwards.
    others_keys = frozenset(named.get("destination") or ())
    with FullyShardedDataParallel.state_dict_type(
        self, StateDictType.SHARDED_STATE_DICT, ShardedStateDictConfig()
    ):
        states = nn.Module.state_dict(self, *others, **named)
    keeps = not wanted.rank0_only or dist.get_rank() == 0
    for name in [each for each in states if each not in others_keys]:
        # Every rank takes part, one tensor at a time, those that keep nothing too.
        tensor = states.pop(name)
        whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        if keeps:
            to_cpu = wanted.offload_to_cpu and isinstance(whole, torch.Tensor)
            states[name] = whole.cpu() if to_cpu else whole
    return states


def _has_split_tensors(module: FullyShardedDataParallel) -> bool:
    return any(each._fsdp_extension is not None for each in FullyShardedDataParallel.fsdp_modules(module))
