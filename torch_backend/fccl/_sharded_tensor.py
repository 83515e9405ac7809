"""Answers where a ShardedTensor lies of which this rank has no row: torch asks CUDA, except for Gloo."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def answer_cpu() -> None:
    """Makes such a tensor's device the CPU; a process that may meet a GPU must not call this."""
    import torch
    from torch.distributed._shard.sharded_tensor import custom_sharded_op_impl

    @custom_sharded_op_impl(torch.Tensor.device.__get__)
    def device(_types: Any, args: Any, _kwargs: Any, _process_group: Any) -> torch.device:
        shards = args[0].local_shards()
        return shards[0].tensor.device if shards else torch.device("cpu")
