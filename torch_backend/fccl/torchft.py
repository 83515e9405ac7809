"""torchft's process group over fccl: `Manager(pg=ProcessGroupFccl(timeout=...), ...)`.

torchft makes it anew for every quorum, so a replica that dies costs one configure.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed import ProcessGroup
from torchft.process_group import ProcessGroupWrapper

import fccl


class ProcessGroupFccl(ProcessGroupWrapper):
    """Owned by torchft's manager, whose threads call it; after a failure configure makes it good again."""

    def _create_pg(self, store: Any, rank: int, world_size: int) -> ProcessGroup:
        group = ProcessGroup(store, rank, world_size)
        group._set_default_backend(ProcessGroup.BackendType.CUSTOM)
        name = f"torchft_quorum_{self._quorum_id}"
        backend = fccl.ProcessGroup(store, rank, world_size, self._timeout, name=name)
        group._register_backend(torch.device("cpu"), ProcessGroup.BackendType.CUSTOM, backend)
        return group

    def getBackendName(self) -> str:  # noqa: N802  # torchft's name
        return "torchft-fccl"
