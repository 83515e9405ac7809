"""What FSDP2 may be given in place of its own collectives: sums of bfloat16 gradients that come in float32.

FSDP2 casts gradients to `MixedPrecisionPolicy.reduce_dtype` before it sends them, so sums in float32 cost
twice the bytes. With this class gradients travel as they are, are added in float32, and the sum is not
rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

NARROW = (torch.bfloat16, torch.float16)


class ReduceScatter:
    """For `FSDPModule.set_custom_reduce_scatter`, where `reduce_dtype` is bfloat16 or float16, as gradients.

    `group` is the one of the backend fccl that the module is sharded over. Buffers lie in memory that the
    ranks of a host map. Each module needs an object of its own, which knows the buffer of the sum by its
    size.
    """

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._group = group
        self._summed: int | None = None  # elements of the sum that belongs to the gradients allocated last

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        count = math.prod(int(each) for each in size)
        is_sum = self._summed == count
        self._summed = None if is_sum else count // self._group.size()
        backend = self._group._get_backend(device)
        chosen = torch.float32 if is_sum and dtype in NARROW else dtype
        if backend.supports_tensor_alloc(device):
            return backend.allocate_tensor(count, dtype=chosen, device=device)
        return torch.empty(count, dtype=chosen, device=device)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        op: Any,
        async_op: bool = False,
    ) -> dist.Work | None:
        return dist.reduce_scatter_tensor(output_tensor, input_tensor, op=op, group=group, async_op=async_op)
