"""The state that a rank gives to the same rank of a returning replica: shards of parameters and optimizer."""

import hashlib
from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer


def local(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's shard of a tensor, sharing its memory."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def state_of(model: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
    """Copies, so that they may be read while training goes on."""
    parameters = list(model.parameters())
    return {
        "parameters": [local(each).detach().clone() for each in parameters],
        "optimizer": [
            {key: local(value).detach().clone() for key, value in optimizer.state[each].items()}
            for each in parameters
        ],
    }


@torch.no_grad()
def load(state: dict[str, Any], model: nn.Module, optimizer: Optimizer) -> None:
    """Makes this rank's shards those of the state."""
    for parameter, shard, kept in zip(
        model.parameters(), state["parameters"], state["optimizer"], strict=True
    ):
        local(parameter).copy_(shard)
        for key, value in kept.items():
            is_sharded = value.shape == shard.shape and key != "step"
            mine = optimizer.state[parameter].setdefault(
                key, torch.zeros_like(parameter) if is_sharded else value.clone()
            )
            local(mine).copy_(value)


def digest(model: nn.Module) -> str:
    """A hash of this rank's shards, bit by bit."""
    whole = hashlib.sha256()
    for parameter in model.parameters():
        whole.update(local(parameter).detach().contiguous().view(torch.uint8).numpy())
    return whole.hexdigest()
