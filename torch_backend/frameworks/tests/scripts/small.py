"""The model and data that the scripts of this folder train with, and how they report their results."""

import json
import os

import torch
import torch.distributed as dist

STEPS = 6
FEATURES = 8
PER_RANK = 4


def model(dtype: torch.dtype = torch.float64) -> torch.nn.Sequential:
    """The same parameters on every rank."""
    torch.manual_seed(0)
    layers = (torch.nn.Linear(FEATURES, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    return torch.nn.Sequential(*layers).to(dtype)


def samples(dtype: torch.dtype = torch.float64) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The samples of all ranks and steps, in the order of a loader that gives each rank its own."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(2 * PER_RANK * STEPS, FEATURES, generator=generator, dtype=torch.float64)
    wanted = inputs.sum(1, keepdim=True).tanh()
    return list(zip(inputs.to(dtype), wanted.to(dtype), strict=True))


def batch(step: int, rank: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    first = (2 * step + rank) * PER_RANK
    inputs, wanted = zip(*samples(dtype)[first : first + PER_RANK], strict=True)
    return torch.stack(inputs), torch.stack(wanted)


def backend() -> str:
    return os.environ["BACKEND"]


def result(losses: list[float]) -> dict:
    """The losses of this rank, and which of fccl's collectives its process has called."""
    import fccl

    calls = {name: each["calls"] for name, each in fccl.counters().items() if each["calls"]}
    known = dist.is_initialized()
    return {
        "losses": losses,
        "calls": calls,
        "active": fccl.is_active() if known else None,
        "backend": dist.get_backend() if known else None,
    }


def report(losses: list[float]) -> None:
    """On rank 0, in one line."""
    said = result(losses)
    if int(os.environ["RANK"]) == 0:
        print("RESULT " + json.dumps(said), flush=True)
