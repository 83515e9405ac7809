"""Runs trainer.ddp on ranks forked from the test's process, which has torch loaded already."""

from pathlib import Path

import torch
import torch.distributed as dist

from trainer.ddp import __main__ as entry
from trainer.ddp import training  # noqa: F401  (loaded before the fork)
from trainer.fsdp.tests.runs import on_ranks

LIMIT_SECONDS = 280
GLOO = dist.ProcessGroupGloo.__init__


def train_on(ranks: int, folder: Path, words: list[str]) -> None:
    """Fails with what the ranks printed unless all succeed."""

    def body() -> int:
        torch.set_num_threads(1)
        if "gloo" in words:
            # A forked rank refuses it otherwise, so that nothing but fccl is tested by mistake.
            dist.ProcessGroupGloo.__init__ = GLOO
        return entry.main(words)

    on_ranks(ranks, folder / "printed", body, LIMIT_SECONDS)
