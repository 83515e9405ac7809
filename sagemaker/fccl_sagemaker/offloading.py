"""Keeps the inputs of checkpointed layers far away until backward needs them."""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import ActivationWrapper, CheckpointWrapper
from torch.multiprocessing.reductions import StorageWeakRef

from fccl_sagemaker.far_memory import FarTensor, send_away


@dataclasses.dataclass
class Measured:
    """Counts of what this process offloaded in its last step."""

    layers: int = 0
    most_layers_near: int = 0
    bytes_offloaded: int = 0


measured = Measured()


class _Layer:
    """The input of one checkpointed layer, between forward and backward."""

    def __init__(self, place: int, far: FarTensor) -> None:
        self.place = place
        self.far = far
        self.coming: Future[torch.Tensor] | None = None


class _Step:
    """The layers of one forward pass, which backward asks for in reverse order."""

    def __init__(self, horizon: int) -> None:
        self._horizon = horizon
        self._layers: list[weakref.ref[_Layer]] = []
        self._near: list[StorageWeakRef] = []
        self._entered: torch.Tensor | None = None

    def enter(self, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        """Remembers what a checkpointed layer is about to save."""
        if isinstance(module, CheckpointWrapper):
            self._entered = next((each for each in inputs if isinstance(each, torch.Tensor)), None)

    def pack(self, tensor: torch.Tensor) -> torch.Tensor | _Layer:
        """Sends the input of a layer away, and leaves every other tensor where it is."""
        if not self._is_entered(tensor):
            return tensor
        self._entered = None
        layer = _Layer(len(self._layers), send_away(tensor.detach()))
        self._layers.append(weakref.ref(layer))
        measured.layers += 1
        measured.bytes_offloaded += tensor.numel() * tensor.element_size()
        return layer

    def _is_entered(self, tensor: torch.Tensor) -> bool:
        entered = self._entered
        if entered is None or isinstance(tensor, torch.distributed.tensor.DTensor):
            return False
        return tensor.data_ptr() == entered.data_ptr() and tensor.shape == entered.shape

    def unpack(self, kept: torch.Tensor | _Layer) -> torch.Tensor:
        """Gives a layer's input, and calls for those that backward needs next."""
        if isinstance(kept, torch.Tensor):
            return kept
        if kept.coming is None:
            self._call_for(kept)
        tensor = kept.coming.result()
        kept.coming = None
        for place in range(kept.place - 1, max(kept.place - self._horizon, -1), -1):
            layer = self._layers[place]()
            if layer is not None and layer.coming is None and self._count_near() < self._horizon:
                self._call_for(layer)
        return tensor

    def _call_for(self, layer: _Layer) -> None:
        near, layer.coming = layer.far.fetch()
        self._near.append(StorageWeakRef(near.untyped_storage()))
        measured.most_layers_near = max(measured.most_layers_near, self._count_near())

    def _count_near(self) -> int:
        self._near = [each for each in self._near if not each.expired()]
        return len(self._near)


@contextlib.contextmanager
def offloading(horizon: int) -> Iterator[None]:
    """For a forward pass over layers that checkpoint_wrapper has wrapped; its backward may run outside.

    In backward at most `horizon` layers' inputs are near at once.
    """
    if horizon < 1:
        raise ValueError(
            f"activations cannot be offloaded with a horizon of {horizon}; allowed is an integer of at "
            f"least 1"
        )
    step = _Step(horizon)
    measured.layers = measured.most_layers_near = measured.bytes_offloaded = 0
    hook = nn.modules.module.register_module_forward_pre_hook(step.enter)
    try:
        with torch.autograd.graph.saved_tensors_hooks(step.pack, step.unpack):
            yield
    finally:
        hook.remove()


def has_checkpointed_layers(module: nn.Module) -> bool:
    """Tells if the module has anything to offload."""
    return any(isinstance(each, CheckpointWrapper) for each in module.modules())


class HorizonWrapper(ActivationWrapper):
    """Like torch's OffloadWrapper, around the root of a model, with a horizon."""

    def __init__(self, module: nn.Module, horizon: int) -> None:
        super().__init__(module)
        self.horizon = horizon

    def forward(self, *inputs: Any, **named: Any) -> Any:
        with offloading(self.horizon):
            return self._checkpoint_wrapped_module(*inputs, **named)


def offload_wrapper(module: nn.Module, horizon: int) -> HorizonWrapper:
    """Wraps the root of a model whose layers are checkpointed."""
    if not has_checkpointed_layers(module):
        raise ValueError(
            f"offload_wrapper finds no checkpointed layer in {type(module).__name__}, so there is "
            f"nothing to offload; "
            "wrap its layers by apply_activation_checkpointing before"
        )
    return HorizonWrapper(module, horizon)
