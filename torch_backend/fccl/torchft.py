"""torchft's process group over fccl: `Manager(pg=ProcessGroupFccl(timeout=...), ...)`.

torchft makes it anew for every quorum, so a replica that dies costs one configure.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
from torch.distributed import ProcessGroup
from torchft.process_group import ProcessGroupWrapper

import fccl


class ProcessGroupFccl(ProcessGroupWrapper):
    """Owned by torchft's manager, whose threads call it; after a failure configure makes it good again.

    All replicas of a quorum join in configure. If one of them has died, the others wait for it as long as
    `join_timeout` says (`timeout`), and twice as long after each failure, up to the `timeout` of calls.
    """

    def __init__(
        self, timeout: timedelta = timedelta(seconds=60), join_timeout: timedelta | None = None
    ) -> None:
        # torchft reaches the store of the first replica, which may have died, by the timeout of its class.
        super().__init__(join_timeout or timeout)
        self._first_join, self._call_timeout = self._timeout, timeout

    def configure(self, *arguments: Any, **named: Any) -> None:
        try:
            super().configure(*arguments, **named)
        except Exception:
            self._timeout = min(2 * self._timeout, self._call_timeout)
            raise
        self._timeout = self._first_join

    def set_timeout(self, timeout: timedelta) -> None:
        self._call_timeout = timeout

    def _create_pg(self, store: Any, rank: int, world_size: int) -> ProcessGroup:
        group = ProcessGroup(store, rank, world_size)
        group._set_default_backend(ProcessGroup.BackendType.CUSTOM)
        name = f"torchft_quorum_{self._quorum_id}"
        backend = fccl.ProcessGroup(store, rank, world_size, self._timeout, name=name)
        backend.eager_connect_single_device(torch.device("cpu"))
        backend.set_timeout(self._call_timeout)
        group._register_backend(torch.device("cpu"), ProcessGroup.BackendType.CUSTOM, backend)
        return group

    def getBackendName(self) -> str:  # noqa: N802  # torchft's name
        return "torchft-fccl"
