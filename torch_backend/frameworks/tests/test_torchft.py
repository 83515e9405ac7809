"""torchft's own tests pass over `fccl.torchft.ProcessGroupFccl`, with three ranks in one process."""

from datetime import timedelta

import fccl
import pytest
import torch
from fccl.torchft import ProcessGroupFccl
from torchft import process_group_test as theirs

pytestmark = pytest.mark.slow


class TestTorchft(theirs.MultiPgBaseTest):
    BACKEND = "fccl"
    WORLD_SIZE = 3

    @classmethod
    def _create_pg(cls, backend):
        assert backend == "fccl"
        return ProcessGroupFccl(timeout=timedelta(seconds=30))

    @theirs.parameterized.expand(theirs._ALL_COLLECTIVES)
    def test_collective(self, collective):
        before = calls()
        self._run_parallel(collective)
        # torchft leaves this one out on a CPU.
        assert calls() > before or collective == "reduce_scatter"

    @theirs.parameterized.expand(theirs._ALL_COLLECTIVES)
    def test_collective_after_a_rank_has_gone(self, collective):
        self._run_with_resiliency(collective)


def calls() -> int:
    return sum(each["calls"] for each in fccl.counters().values())


def test_a_group_of_one_does_all_that_torchft_asks():
    store = torch.distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    group = ProcessGroupFccl(timeout=timedelta(seconds=30))
    group.configure(f"localhost:{store.port}/alone", "0", 0, 1)
    theirs._test_pg(group)
    group.shutdown()
