"""Small names of torch.sagemaker: a logger, a clock, and the ranks of a group."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator

import torch.distributed as dist


def get_logger(name: str = "torch.sagemaker") -> logging.Logger:
    """A logger of Python's logging."""
    return logging.getLogger(name)


@contextlib.contextmanager
def timeit(enabled: bool = True, text: str = "", rank: int | None = None) -> Iterator[None]:
    """Logs the seconds that a block takes, on one rank or on all."""
    begin = time.perf_counter()
    yield
    here = rank is None or not dist.is_initialized() or dist.get_rank() == rank
    if enabled and here:
        get_logger().warning("%s took %.3f s", text, time.perf_counter() - begin)


def get_global_ranks(group: dist.ProcessGroup | None = None) -> list[int]:
    """The ranks of a group as the world counts them."""
    return dist.get_process_group_ranks(group)
