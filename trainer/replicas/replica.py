"""One rank's end of the replicas: torchft's manager, and the lines of the steps that are committed."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist
from fccl.torchft import ProcessGroupFccl
from torchft import Manager

PATIENCE = timedelta(seconds=60)
"""For one call among replicas; a death is known long before."""
MEETING_PATIENCE = timedelta(minutes=10)
"""For the others to end their step: a replica that comes back waits for it, and would die of a longer one."""
JOIN_PATIENCE = timedelta(seconds=3)
"""For replicas that join each other, where nobody can tell a death from a rank that has not come yet."""
FINISHED = "finished"
STARTS, METRICS = "starts.jsonl", "metrics.jsonl"


class Trained(Protocol):
    """A rank trains this; torchft's thread reads its state while the main thread waits."""

    def state_dict(self) -> dict[str, Any]:
        """Copies of all that the same rank of another replica needs to stand at the same step."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Stands where the state was taken."""

    def digest(self) -> str:
        """Sums up this rank's parameters, bit by bit."""


@dataclass(frozen=True)
class Berth:
    """Which replica this rank belongs to, among so many, and the run's folder."""

    folder: Path
    index: int
    replicas: int


class Replica:
    """Made and used by a rank's main thread, after init_process_group for the ranks of its replica."""

    def __init__(self, berth: Berth, trained: Trained) -> None:
        self._trained, self._replicas = trained, berth.replicas
        self._finished = berth.folder / FINISHED
        self._folder = berth.folder / f"replica-{berth.index}"
        self._who = {"rank": dist.get_rank(), "pid": os.getpid()}
        _append(self._folder / STARTS, self._who | {"time": time.time()})
        self._begin = 0.0
        self._committed = 0
        self._last: dict[str, Any] = {}
        self._taken: dict[str, Any] = {}
        self._unwritten: dict[str, Any] = {}
        self._manager = Manager(
            pg=ProcessGroupFccl(timeout=PATIENCE, join_timeout=JOIN_PATIENCE),
            load_state_dict=self._load_state_dict,
            state_dict=lambda: {"trained": trained.state_dict(), "last": self._last},
            min_replica_size=1,
            use_async_quorum=False,
            init_sync=False,  # the seed gives all replicas the same first weights
            timeout=PATIENCE,
            quorum_timeout=MEETING_PATIENCE,
            replica_id=f"replica-{berth.index}",
        )

    @property
    def step(self) -> int:
        """How many steps are committed."""
        return self._manager.current_step()

    @property
    def participants(self) -> int:
        """How many replicas divide the step's batch."""
        return self._manager.num_participants()

    @property
    def part(self) -> int:
        """Which part of the step's batch this replica takes."""
        part = self._manager.participating_rank()
        assert part is not None, "torchft lets every replica of a quorum take part"
        return part

    def train(self, try_step: Callable[[], bool]) -> None:
        """Trains to the last step, in whatever company there is; `try_step` returns False behind it.

        A step is tried again after the next meeting if a replica has died in it.
        """
        while not self._is_over():
            if self.meet() and not try_step():
                self._conclude()
        self.leave()

    def meet(self) -> bool:
        """Meets the replicas that live, and takes their state if it is newer; False before all have come."""
        self._begin = time.perf_counter()
        self._manager.start_quorum()
        # No replica that lives is behind this step any more, so nobody does it again.
        self._write()
        if self._taken and 0 < self._committed == self._taken["step"] - 1:
            # The others had committed a step when a death kept this replica from it.
            self._unwritten = self._line(self._taken)
            self._write()
        self._taken = {}
        self._committed = self.step
        if self.step or self.participants == self._replicas:
            return True
        # Replicas that do not start together would train apart until they meet.
        self._manager.report_error(RuntimeError("not all replicas have started"))
        self._manager.should_commit()
        time.sleep(0.1)
        return False

    def average(self, gradients: list[torch.Tensor], loss: float) -> float:
        """Means over the replicas, of the gradients in their place and of the loss; nothing of use after a
        death.
        """
        joined = torch.cat([*(each.flatten() for each in gradients), gradients[0].new_tensor([loss])])
        self._manager.allreduce(joined).wait()
        means = joined[:-1].split([each.numel() for each in gradients])
        for gradient, mean in zip(gradients, means, strict=True):
            gradient.copy_(mean.view_as(gradient))
        return joined[-1].item()

    def may_commit(self) -> bool:
        """Tells if all ranks of the replica have the means; if not, the step is done once more."""
        return self._manager.should_commit()

    def record(self, loss: float) -> None:
        """Keeps the line of the step that was committed and updated, until no replica can be behind it."""
        mean = torch.tensor(loss, dtype=torch.float64)
        dist.all_reduce(mean)
        self._committed = self.step
        self._last = {
            "step": self.step,
            "participants": self.participants,
            "loss": mean.item() / dist.get_world_size(),
        }
        self._unwritten = self._line(self._last)

    def leave(self) -> None:
        """Writes what is left to write, and ends the manager."""
        self._write()
        self._manager.shutdown(wait=False)

    def _is_over(self) -> bool:
        # All ranks of the replica get the same answer.
        over = torch.tensor(int(self._finished.exists()))
        dist.broadcast(over, 0)
        return bool(over.item())

    def _conclude(self) -> None:
        """Ends the run, once all that live have met behind its last step."""
        self._manager.allreduce(torch.zeros(1)).wait()
        if self._manager.should_commit():
            self._finished.touch()

    def _load_state_dict(self, state: dict[str, Any]) -> None:
        self._trained.load_state_dict(state["trained"])
        self._last = self._taken = state["last"]

    def _line(self, facts: dict[str, Any]) -> dict[str, Any]:
        times = {"seconds": time.perf_counter() - self._begin, "time": time.time()}
        return facts | self._who | times | {"digest": self._trained.digest()}

    def _write(self) -> None:
        if self._unwritten:
            _append(self._folder / METRICS, self._unwritten)
        self._unwritten = {}


def _append(file: Path, line: dict[str, Any]) -> None:
    # Ranks of a replica share a file: one write a line.
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(descriptor, f"{json.dumps(line)}\n".encode())
    finally:
        os.close(descriptor)
