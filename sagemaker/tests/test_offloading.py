"""Tests of fccl_sagemaker.offloading."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from fccl_sagemaker import far_memory, offloading
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    CheckpointWrapper,
    checkpoint_wrapper,
)

pytestmark = pytest.mark.slow

LAYERS, BATCH, LENGTH, WIDTH = 5, 2, 3, 16


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, values: torch.Tensor, shift: torch.Tensor | None = None) -> torch.Tensor:
        return values + self.down(torch.tanh(self.up(values) + (0 if shift is None else shift)))


class Stack(nn.Module):
    def __init__(self, wrap: Callable[[nn.Module], nn.Module]) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first = nn.Linear(WIDTH, WIDTH)
        self.blocks = nn.ModuleList(wrap(Block()) for _ in range(LAYERS))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        values = self.first(values)
        shift = torch.linspace(0, 1, 2 * WIDTH)
        for block in self.blocks:
            values = block(values, shift=shift)
        return values.square().mean()


def checkpointed(implementation: CheckpointImpl = CheckpointImpl.NO_REENTRANT) -> Stack:
    return Stack(functools.partial(checkpoint_wrapper, checkpoint_impl=implementation))


def losses_and_gradients(model: nn.Module, steps: int = 3) -> list[torch.Tensor]:
    found = []
    for step in range(steps):
        torch.manual_seed(step)
        loss = model(torch.randn(BATCH, LENGTH, WIDTH))
        loss.backward()
        found += [loss.detach(), *(each.grad.clone() for each in model.parameters())]
        model.zero_grad()
    return found


@pytest.mark.parametrize("horizon", [1, 2, 4, 9])
def test_offloading_changes_no_bit_and_keeps_no_more_layers_near_than_the_horizon(horizon: int) -> None:
    plain = losses_and_gradients(checkpointed())
    offloaded = losses_and_gradients(offloading.offload_wrapper(checkpointed(), horizon))
    assert all(torch.equal(one, other) for one, other in zip(plain, offloaded, strict=True))
    assert offloading.measured.layers == LAYERS
    assert offloading.measured.bytes_offloaded == LAYERS * BATCH * LENGTH * WIDTH * 4
    assert 1 <= offloading.measured.most_layers_near <= horizon
    assert horizon == 1 or offloading.measured.most_layers_near > 1


def test_batches_of_all_lengths_share_their_files(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def allocate(device_type: str, size: int) -> torch.Tensor:
        sizes.append(size)
        return torch.full((size,), 0xAB, dtype=torch.uint8)

    monkeypatch.setattr(far_memory, "_allocate", allocate)
    monkeypatch.setattr(far_memory, "_free", defaultdict(list))
    for length in range(33, 65):
        values = torch.arange(length * WIDTH, dtype=torch.float32).view(length, WIDTH)
        near, done = far_memory.send_away(values).fetch()
        done.result()
        assert torch.equal(near, values)
    assert sizes == [64 * WIDTH * 4 * part // 8 for part in (5, 6, 7, 8)]


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1000, 1025, 2**30 + 1])
def test_memory_is_at_most_a_quarter_larger_than_what_it_holds(size: int) -> None:
    assert size <= far_memory.size_for(size) <= size * 5 / 4


def test_layers_that_are_checkpointed_reentrantly_are_offloaded_too() -> None:
    offloaded = offloading.HorizonWrapper(Stack(functools.partial(checkpoint_wrapper)), 2)
    assert losses_and_gradients(offloaded)
    assert offloading.measured.layers == LAYERS


def test_two_forward_passes_before_their_backward_keep_their_own_inputs() -> None:
    def gradients(model: nn.Module) -> list[torch.Tensor]:
        torch.manual_seed(5)
        first, second = (model(torch.randn(BATCH, LENGTH, WIDTH)) for _ in range(2))
        second.backward()
        first.backward()
        return [each.grad for each in model.parameters()]

    for one, other in zip(
        gradients(checkpointed()), gradients(offloading.offload_wrapper(checkpointed(), 2)), strict=True
    ):
        assert torch.equal(one, other)


def test_the_wrapper_leaves_the_names_of_parameters_as_they_are() -> None:
    assert list(offloading.offload_wrapper(checkpointed(), 2).state_dict()) == list(
        Stack(lambda block: block).state_dict()
    )


def test_inputs_lie_in_a_mapped_file_between_forward_and_backward() -> None:
    def mapped() -> int:
        with open("/proc/self/maps", encoding="ascii") as maps:
            return sum("fccl-activations-" in line for line in maps)

    before = mapped()
    loss = offloading.offload_wrapper(checkpointed(), 2)(torch.randn(7, LENGTH, WIDTH))
    assert mapped() - before == LAYERS
    loss.backward()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: offloading.offload_wrapper(Stack(lambda block: block), 2), "apply_activation_checkpointing"),
        (lambda: offloading.HorizonWrapper(checkpointed(), 0)(torch.ones(1, 1, WIDTH)), "horizon of 0"),
    ],
)
def test_what_cannot_be_offloaded_is_refused_with_a_sentence(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


def test_memory_that_cannot_be_had_is_an_error_that_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(RuntimeError, match="No space left on device; let TMPDIR name a folder"):
        offloading.offload_wrapper(checkpointed(), 2)(torch.randn(11, LENGTH, WIDTH))
    assert isinstance(checkpointed().blocks[0], CheckpointWrapper)
