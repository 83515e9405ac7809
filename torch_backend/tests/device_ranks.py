"""Runs a function as ranks that have a device in CUDA's place, each its own."""

import functools
from collections.abc import Callable

import pytest
import stand_in
import torch
from ranks import run_ranks

DEVICE = torch.device("privateuseone", 0)

served = pytest.mark.skipif(bool(stand_in.why_not()), reason=stand_in.why_not())


def run_device_ranks(
    size: int,
    function: Callable,
    *arguments,
    group: dict | None = None,
    settings: dict | None = None,
    **limits,
) -> None:
    """As run_ranks; `group` is how the group is made, `settings` are those of stand_in.start."""
    # Here, where one process does it.
    stand_in.library()
    prepare = functools.partial(_prepare, group or {}, settings or {})
    run_ranks(size, function, *arguments, prepare=prepare, **limits)


def _prepare(group: dict, settings: dict, rank: int) -> dict:
    # Torch makes events all the time, which waits for nothing on a GPU.
    stand_in.start(**{"seed": rank, "delay_us": 200, "set_up_waits": 0, **settings})
    return group


def on_device(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(DEVICE)


def hold() -> None:
    """Keeps all that comes on the current stream from beginning until let_go()."""
    torch.ops.stand_in.hold()


def let_go() -> None:
    torch.ops.stand_in.let_go()
