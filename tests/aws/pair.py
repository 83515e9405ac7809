"""Two ranks, forked from the test's process, which train by FSDP2 and by DistributedDataParallel and
compare with one process.
"""

import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
import torch._dynamo
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
STEPS = 2
ROWS = 6
LIMIT_SECONDS = 60
SENTENCE = "refused: "
"""Begins the line of a rank that got an error in place of a result."""


@dataclass(frozen=True)
class Ended:
    """How a training under one environment ended: a status for each rank, negative for a signal, and what
    both have said.
    """

    statuses: list[int]
    said: str


def train_under(environments: list[dict[str, str]], hosts: int = 1) -> list[Ended]:
    """Trains under one environment after the other, in one pair of processes; one that hangs is killed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        statuses = _wait([_fork(rank, environments, hosts, folder) for rank in range(RANKS)])
        return [_ended(folder, index, statuses) for index in range(len(environments))]


def _ended(folder: Path, index: int, statuses: list[int]) -> Ended:
    left = [folder / f"status-{index}-{rank}" for rank in range(RANKS)]
    said = folder / f"said-{index}"
    return Ended(
        [
            int(file.read_text()) if file.exists() else status
            for file, status in zip(left, statuses, strict=True)
        ],
        said.read_text() if said.exists() else "a setting before this one ended the processes",
    )


def _fork(rank: int, environments: list[dict[str, str]], hosts: int, folder: Path) -> int:
    child = os.fork()
    if child:
        return child
    try:
        if hosts > 1:
            os.environ["FCCL_HOST_ID"] = str(rank)
        for index, environment in enumerate(environments):
            _redirect(folder / f"said-{index}")
            os.environ.update(environment)
            # Read when torch is imported, which was before the fork.
            dist.set_debug_level_from_env()
            status = _train(rank, folder / f"store-{index}")
            for variable in environment:
                del os.environ[variable]
            (folder / f"status-{index}-{rank}").write_text(str(status))
    except BaseException:
        traceback.print_exc()
    finally:
        # Less than success, so that an environment without a status of its own counts as failed.
        os._exit(1)


def _redirect(log: Path) -> None:
    sys.stdout = sys.stderr = log.open("a", buffering=1)
    os.dup2(sys.stdout.fileno(), 1)
    os.dup2(sys.stdout.fileno(), 2)


def _train(rank: int, store: Path) -> int:
    try:
        with _group(rank, store):
            train_both_ways(rank)
    except (RuntimeError, ValueError) as error:
        print(f"{SENTENCE}{error}")
        return 2
    return 0


def train_both_ways(rank: int) -> None:
    """FSDP2, then DistributedDataParallel, in the process group that there is."""
    torch.set_num_threads(1)
    _compare("FSDP2", _sharded(), rank)
    _compare("DistributedDataParallel", DistributedDataParallel(_model()), rank)


@contextmanager
def _group(rank: int, store: Path) -> Iterator[None]:
    meeting = dist.FileStore(str(store), RANKS)
    dist.init_process_group("fccl", store=meeting, rank=rank, world_size=RANKS)
    try:
        yield
    finally:
        dist.destroy_process_group()


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(13, 7), nn.Tanh(), nn.Linear(7, 5)).double()


def _sharded() -> nn.Module:
    model = _model()
    mesh = init_device_mesh("cpu", (RANKS,))
    fully_shard(model[0], mesh=mesh)
    return fully_shard(model, mesh=mesh)


def _batch(step: int, rank: int) -> torch.Tensor:
    return torch.randn(
        ROWS, 13, dtype=torch.float64, generator=torch.Generator().manual_seed(step * RANKS + rank)
    )


def _step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> None:
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def _compare(name: str, model: nn.Module, rank: int) -> None:
    alone = _model()
    ours, theirs = (torch.optim.SGD(each.parameters(), lr=0.1) for each in (model, alone))
    for step in range(STEPS):
        _step(model, ours, _batch(step, rank))
        _step(alone, theirs, torch.cat([_batch(step, each) for each in range(RANKS)]))
    for parameter, expected in zip(model.parameters(), alone.parameters(), strict=True):
        whole = parameter.full_tensor() if isinstance(parameter, DTensor) else parameter
        torch.testing.assert_close(
            whole, expected, rtol=0, atol=1e-12, msg=f"{name} on rank {rank} learnt something else"
        )


def _wait(children: list[int]) -> list[int]:
    statuses: dict[int, int] = {}
    deadline = time.monotonic() + LIMIT_SECONDS
    while len(statuses) < len(children):
        for child in set(children) - set(statuses):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                statuses[child] = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    return [statuses[child] for child in children]
