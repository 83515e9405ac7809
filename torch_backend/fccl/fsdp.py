"""Collectives that FSDP2 may use in place of its own.

`ReduceScatter`: sums of bfloat16 gradients that come in float32. FSDP2 casts gradients to
`MixedPrecisionPolicy.reduce_dtype` before it sends them, so sums in float32 cost twice the bytes. With this
class gradients travel as they are, are added in float32, and the sum is not rounded.

`AllGather`: parameters that are written where they stay. FSDP2 gathers all parameters of a module into one
buffer, and copies each out of it. With this class the ranks write them into their own memory at once, where
torch lets it (2.15), and the buffer lies in memory that the ranks of a host map.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import AllgatherOptions

NARROW = (torch.bfloat16, torch.float16)


def _buffer(group: dist.ProcessGroup, count: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """In memory that the ranks of a host map, where there is such."""
    backend = group._get_backend(device)
    if backend.supports_tensor_alloc(device):
        return backend.allocate_tensor(count, dtype=dtype, device=device)
    return torch.empty(count, dtype=dtype, device=device)


class AllGather:
    """For `FSDPModule.set_custom_all_gather`, which `install` calls, to write parameters where they stay.

    Each parameter is then gathered by a call of its own (docs/decisions/0023 says why, and what that costs).
    `group` is the one of the backend fccl that the module is sharded over. Each module needs an object of its
    own, which holds back a call until torch asks for the parameters.
    """

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._group = group
        # Torch's own way from the buffer to the parameters, where this has taken its place.
        self._copy_out: Any = None
        # Buffer and input of a call that is still to be made.
        self._held_back: tuple[torch.Tensor, torch.Tensor] | None = None

    def install(self, module: Any) -> bool:
        """Sets itself for a module that `fully_shard` has sharded.

        True if parameters are written where they stay. False where this torch has no door for that, which is
        private to it, or where parameters are sharded along another dimension than the first: then torch
        copies them out of the buffer.
        """
        module.set_custom_all_gather(self)
        groups = getattr(module._get_fsdp_state(), "_fsdp_param_groups", ())
        if len(groups) != 1 or not hasattr(groups[0], "_all_gather_output_fn"):
            return False
        parameters = groups[0].fsdp_params
        if groups[0].device.type != "cpu" or any(each.fsdp_placement.dim != 0 for each in parameters):
            return False
        self._copy_out = groups[0]._all_gather_output_fn
        groups[0]._all_gather_output_fn = self._write
        return True

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return _buffer(self._group, math.prod(int(each) for each in size), dtype, device)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        async_op: bool = False,
    ) -> dist.Work | None:
        if self._copy_out is None or async_op:
            return dist.all_gather_into_tensor(output_tensor, input_tensor, group=group, async_op=async_op)
        self._held_back = output_tensor, input_tensor
        return None

    def _write(self, parameters: list[Any], result: Any, size: int) -> None:
        """In the place of torch's `_default_all_gather_output_fn`."""
        held_back, self._held_back = self._held_back, None
        if held_back is None or held_back[0] is not result.all_gather_output:
            self._copy_out(parameters, result, size)
            return
        buffer, mine = held_back
        outputs: list[torch.Tensor] = []
        for parameter, counts, types in zip(
            parameters,
            result.param_all_gather_input_numels,
            result.param_all_gather_input_dtypes,
            strict=True,
        ):
            parameter.init_all_gather_outputs(counts, types, size, buffer.device)
            parameter.alloc_all_gather_outputs()
            outputs += parameter.all_gather_outputs
        if buffer.dtype == torch.uint8:
            outputs = [each.view(torch.uint8) for each in outputs]
        inputs = list(mine.split(result.all_gather_input_split_sizes))
        options = AllgatherOptions()
        options.asyncOp = False
        work = self._group.allgather_into_tensor_coalesced(outputs, inputs, options)
        if work is not None:
            work.wait()


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
        return _buffer(self._group, count, torch.float32 if is_sum and dtype in NARROW else dtype, device)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        op: Any,
        async_op: bool = False,
    ) -> dist.Work | None:
        return dist.reduce_scatter_tensor(output_tensor, input_tensor, op=op, group=group, async_op=async_op)
