"""Makes parameters that wait on the meta device only when their layer is sharded."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor

from fccl_sagemaker.notes import get_logger
from fccl_sagemaker.session import device_type, state


class DelayedParamIniter:
    """Serves FullyShardedDataParallel's param_init_fn for a model on meta."""

    def __init__(
        self,
        model: nn.Module,
        init_method_using_config: Callable[[nn.Module], None] | None = None,
        verbose: bool = False,
    ) -> None:
        self._model = model
        self._init_method = init_method_using_config or getattr(model, "_init_weights", None)
        self._verbose = verbose
        self._names = {id(module): name for name, module in model.named_modules()}
        self._ties = _ties_of(model)

    def get_param_init_fn(self) -> Callable[[nn.Module], None]:
        """Makes one module's own parameters and buffers, of the same numbers for any number of ranks."""
        return self._make

    def get_post_param_init_fn(self) -> Callable[[nn.Module], None]:
        """Ties again the parameters that the model shares among modules."""
        return self._tie

    def count_num_params(self, module: nn.Module, *args: Any) -> int:
        """How many parameters a module has, whole tensors counted."""
        return sum(each.numel() for each in module.parameters())

    @contextlib.contextmanager
    def validate_params_and_buffers_inited(self, enabled: bool = True) -> Iterator[None]:
        """Refuses what is still on meta when the block ends."""
        yield
        left = [
            name
            for name, tensor in [*self._model.named_parameters(), *self._model.named_buffers()]
            if tensor.is_meta
        ]
        if enabled and left:
            raise RuntimeError(
                f"{len(left)} tensors of {type(self._model).__name__} are still on meta, {left[0]!r} "
                f"first; give "
                "FullyShardedDataParallel param_init_fn=get_param_init_fn() and a policy that reaches them"
            )

    def _make(self, module: nn.Module) -> None:
        # A tensor that is not on meta has its values already.
        if not any(each.is_meta for each in [*module.parameters(False), *module.buffers(False)]):
            return
        name = self._names.get(id(module), type(module).__name__)
        split = {
            key: each for key, each in module.named_parameters(recurse=False) if isinstance(each, DTensor)
        }
        for key, parameter in split.items():
            whole = torch.empty(parameter.shape, dtype=parameter.dtype, device="meta")
            module._parameters[key] = nn.Parameter(whole, requires_grad=parameter.requires_grad)
        for tensors in (module._parameters, module._buffers):
            _materialize(tensors, torch.device(device_type()))
        with torch.no_grad(), torch.random.fork_rng():
            torch.manual_seed(state.config.random_seed + zlib.crc32(name.encode()))
            self._initialize(module)
        for key, parameter in split.items():
            module._parameters[key] = _part_of(module._parameters[key], parameter)
        if self._verbose:
            get_logger().info("The parameters of %s are made.", name or type(module).__name__)

    def _initialize(self, module: nn.Module) -> None:
        if self._init_method is not None:
            self._init_method(module)
        elif hasattr(module, "reset_parameters"):
            module.reset_parameters()
        elif list(module.parameters(recurse=False)):
            raise RuntimeError(
                f"DelayedParamIniter cannot fill {type(module).__name__}, which has no "
                f"reset_parameters(), in a model "
                "without _init_weights(); give init_method_using_config"
            )

    def _tie(self, module: nn.Module) -> None:
        modules = dict(self._model.named_modules())
        for first, *others in self._ties:
            owner, _, key = first.rpartition(".")
            tensor = modules[owner]._parameters.get(key)
            if tensor is None or tensor.is_meta:
                continue
            for other in others:
                place, _, name = other.rpartition(".")
                modules[place]._parameters[name] = tensor


def _ties_of(model: nn.Module) -> list[list[str]]:
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return [each for each in names.values() if len(each) > 1]


def _part_of(whole: nn.Parameter, split: DTensor) -> nn.Parameter:
    from transformers.distributed.sharding_utils import DtensorShardOperation

    part = DtensorShardOperation(split).shard_tensor(whole.detach()).clone()
    layout = {"shape": split.shape, "stride": split.stride(), "run_check": False}
    tensor = DTensor.from_local(part, split.device_mesh, split.placements, **layout)
    return nn.Parameter(tensor, requires_grad=split.requires_grad)


def empty_module_params(module: nn.Module, device: Any = None, recurse: bool = False) -> nn.Module:
    """Gives a module parameters that hold nothing yet; its buffers stay."""
    for each in module.modules() if recurse else [module]:
        for name, parameter in each.named_parameters(recurse=False):
            each._parameters[name] = _empty(parameter, torch.device(device or device_type()))
    return module


def move_buffers_to_device(module: nn.Module, device: Any, recurse: bool = False) -> nn.Module:
    """Moves a module's buffers, and leaves its parameters where they are."""
    for each in module.modules() if recurse else [module]:
        for name, buffer in each.named_buffers(recurse=False):
            each._buffers[name] = buffer.to(device)
    return module


def _materialize(tensors: dict[str, torch.Tensor | None], device: torch.device) -> None:
    for name, tensor in tensors.items():
        if tensor is not None and tensor.is_meta:
            tensors[name] = _empty(tensor, device)


def _empty(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    empty = torch.empty_like(tensor, device=device)
    if not isinstance(tensor, nn.Parameter):
        return empty
    return nn.Parameter(empty, requires_grad=tensor.requires_grad)
