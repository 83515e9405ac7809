"""Replicas that join a quorum of torchft, and how long they wait for one that has died before it joined."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch

pytest.importorskip("torchft")

from fccl.torchft import ProcessGroupFccl

pytestmark = pytest.mark.slow


def join(group: ProcessGroupFccl, store: torch.distributed.TCPStore, quorum: int, rank: int) -> float:
    """The sum of both ranks' numbers, 1 and 2."""
    group.configure(f"localhost:{store.port}/{quorum}", str(rank), rank, 2, quorum)
    mine = torch.tensor([rank + 1.0])
    group.allreduce([mine], torch.distributed.AllreduceOptions()).wait()
    return mine.item()


def seconds_alone(*arguments) -> float:
    began = time.monotonic()
    with pytest.raises(RuntimeError):
        join(*arguments)
    return time.monotonic() - began


def test_a_replica_that_does_not_join_is_waited_for_as_long_as_asked_and_twice_as_long_then():
    store = torch.distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    one = ProcessGroupFccl(timedelta(seconds=60), timedelta(seconds=0.5))
    other = ProcessGroupFccl(timedelta(seconds=60))
    assert 0.5 <= seconds_alone(one, store, 0, 0) < 30
    assert 1 <= seconds_alone(one, store, 1, 1) < 30
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(lambda rank: join((one, other)[rank], store, 2, rank), range(2))) == [3, 3]
    assert 0.5 <= seconds_alone(one, store, 3, 0) < 30
    one.shutdown()
    other.shutdown()
