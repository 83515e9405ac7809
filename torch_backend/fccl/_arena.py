"""Puts what is sent into memory that the other ranks of the host map, so that it is copied once."""

from __future__ import annotations

from typing import Any

from fccl import _register


def use_arena(model: Any = None) -> int:
    """Gives a model's communication buffers, or all large CPU tensors, memory that peers map.

    With a model of FSDP2 (`fully_shard` was called on it, or on modules of it) its buffers of parameters and
    gradients come from there; what is returned is the number of modules that this was set for. Without a
    model all CPU tensors of 16 KiB or more do that are made from here on, until the process ends, and 0 is
    returned. Call it without a model for FSDP1 and DDP, before the model is wrapped.
    """
    if model is None:
        _register.load().allocate_cpu_tensors_in_arena()
        return 0
    from torch.distributed.fsdp import FSDPModule

    sharded = [module for module in model.modules() if isinstance(module, FSDPModule)]
    if not sharded:
        raise ValueError(
            f"fccl.use_arena: no module of this {type(model).__name__} was given to fully_shard: "
            "call it behind that; for FSDP1 and DDP call use_arena() without a model, before it is wrapped"
        )
    for module in sharded:
        module.set_allocate_memory_from_process_group_for_comm(True)
    return len(sharded)
