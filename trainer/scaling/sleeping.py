"""Puts a sleep in the place of each block's work; FSDP gathers and reduces as for the work itself."""

import time
from typing import Any

import torch
from torch import nn

from trainer.fsdp.blocks import blocks_of

FORWARD_PART = 1 / 3
"""Of a step's seconds; the backward pass has the rest."""


class _Sleep(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, forward: float, backward: float, hidden: torch.Tensor, *parameters: nn.Parameter
    ) -> torch.Tensor:
        time.sleep(forward)
        context.seconds = backward
        context.alike = [(each.shape, each.dtype) for each in parameters]
        return hidden.clone()

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        time.sleep(context.seconds)
        # FSDP reduces the gradients that it gets, so each parameter needs one.
        return None, None, gradient, *(torch.zeros(shape, dtype=dtype) for shape, dtype in context.alike)


def let_blocks_sleep(model: nn.Module, seconds: float) -> None:
    """Makes one step of the model take these seconds in its blocks, whatever else the processors do."""
    blocks = blocks_of(model)
    share = seconds / len(blocks)
    for block in blocks:
        block.forward = _sleeping(block, FORWARD_PART * share, (1 - FORWARD_PART) * share)


def _sleeping(block: nn.Module, forward: float, backward: float) -> Any:
    def sleep(hidden_states: torch.Tensor, *_arguments: Any, **_options: Any) -> torch.Tensor:
        return _Sleep.apply(forward, backward, hidden_states, *block.parameters())

    return sleep
