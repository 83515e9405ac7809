"""Runs the trainer on several ranks, forked from the test's process, which has torch loaded already."""

import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.backends.backend_agg
import matplotlib.figure  # noqa: F401  (loaded before the fork, so that no rank has to)
import torch.distributed as dist
import transformers.models.llama.modeling_llama  # noqa: F401  (likewise)

from trainer.fsdp import __main__ as entry
from trainer.fsdp import training  # noqa: F401  (likewise)

BACKEND = os.environ.get("FCCL_TEST_BACKEND", "fccl")
HOSTS = int(os.environ.get("FCCL_TEST_HOSTS", "1"))
TEXT = Path(os.__file__).parent / "email"
SHORT = f"--data {TEXT} --seq-len 32 --global-batch 8 --steps 20 --validate-every 0".split()
SHORT += ["--save-every", "0", "--sample-tokens", "0"]
SMALL = ["--hidden", "64", *SHORT]
LIMIT_SECONDS = 120


@dataclass(frozen=True)
class Run:
    """The files that one run left."""

    folder: Path

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((self.folder / "summary.json").read_text())

    @property
    def losses(self) -> dict[int, float]:
        return self.of_steps("loss")

    def of_steps(self, name: str) -> dict[int, float]:
        """This number of every step's line of metrics."""
        lines = map(json.loads, (self.folder / "metrics.jsonl").read_text().splitlines())
        return {line["step"]: line[name] for line in lines if name in line}

    def calls_per_step(self, collective: str) -> float:
        return self.summary["collectives"][collective]["calls"] / self.summary["trained_steps"]


class Runs:
    """Makes runs of the small model and remembers them by their arguments; one per test session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._begun = 0
        self._done: dict[tuple[int, str, tuple[str, ...]], Run] = {}

    def of(self, ranks: int, arguments: str, base: list[str] = SMALL) -> Run:
        """The run with these arguments after `base`; fails with what the ranks printed unless all succeed."""
        key = (ranks, arguments, tuple(base))
        if key not in self._done:
            self._begun += 1
            name = f"run-{self._begun}"
            words = [
                *base,
                "--backend",
                BACKEND,
                "--runs",
                str(self.folder),
                "--name",
                name,
                *arguments.split(),
            ]
            on_ranks(ranks, self.folder / f"{name}.log", lambda: entry.main(words))
            self._done[key] = Run(self.folder / name)
        return self._done[key]


def on_ranks(ranks: int, log: Path, body: Callable[[], int], limit: float = LIMIT_SECONDS) -> None:
    """Forks `ranks` processes that call `body`, and raises unless each returns 0 within the limit."""
    port = _free_port()
    children = [_fork(rank, ranks, port, log, body) for rank in range(ranks)]
    statuses = _wait(children, limit)
    if any(statuses):
        raise AssertionError(f"exit statuses by rank: {statuses}\n{log.read_text()[-6000:]}")


def forbid_gloo() -> None:
    """Makes any attempt to build a Gloo process group in this process raise."""

    def refuse(*_arguments: Any, **_options: Any) -> None:
        raise RuntimeError("a Gloo process group was asked for")

    dist.ProcessGroupGloo.__init__ = refuse


def _fork(rank: int, ranks: int, port: int, log: Path, body: Callable[[], int]) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        sys.stdout = sys.stderr = log.open("a", buffering=1)
        os.dup2(sys.stdout.fileno(), 1)
        os.dup2(sys.stdout.fileno(), 2)
        os.environ.update(
            RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(ranks)
        )
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        if HOSTS > 1:
            os.environ["FCCL_HOST_ID"] = str(rank * HOSTS // ranks)
        if BACKEND != "gloo":
            forbid_gloo()
        status = body()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _wait(children: list[int], limit: float) -> list[int]:
    statuses: dict[int, int] = {}
    deadline = time.monotonic() + limit
    while len(statuses) < len(children):
        for child in set(children) - set(statuses):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                statuses[child] = os.waitstatus_to_exitcode(status)
        failed = any(statuses.values())
        if failed or time.monotonic() > deadline:
            # The others may wait for a peer that is gone; a moment lets them say so first.
            time.sleep(2 if failed else 0)
            for child in set(children) - set(statuses):
                os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    return [statuses[child] for child in children]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
