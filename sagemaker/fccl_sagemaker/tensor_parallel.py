"""Splits the tensors of a Transformers model among neighbouring ranks, by the model's own plan."""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor

from fccl_sagemaker.config import Config, ConfigError
from fccl_sagemaker.session import TENSOR, device_type, state

COMMUNICATIONS = ("p2p", "all_gather")


def transform(
    model: nn.Module,
    device: Any = None,
    dtype: torch.dtype | None = None,
    config: Any = None,
    load_state_dict_from_rank0: bool = False,
    cp_comm_type: str = "p2p",
) -> nn.Module:
    """Gives the model back with its tensors split by init()'s tensor_parallel_degree.

    With `load_state_dict_from_rank0` rank 0 has the weights, and the model of every other rank is on meta.
    """
    _refuse(config, cp_comm_type)
    # Rank 0 alone has weights, so they stay where they are until they are sent.
    weights = _weights_of_rank0(model) if load_state_dict_from_rank0 else None
    if weights is None and dtype is not None:
        model = model.to(dtype)
    if state.degrees.tensor > 1:
        _split(model)
    if weights is not None:
        _fill(model, weights, torch.device(device or device_type()), dtype)
    elif device is not None and not _is_on_meta(model):
        model = model.to(device)
    if state.degrees.tensor > 1 and not _is_on_meta(model):
        _agree(model)
    return model


def _refuse(config: Any, cp_comm_type: str) -> None:
    if cp_comm_type not in COMMUNICATIONS:
        raise ConfigError(
            f"torch.sagemaker.transform() has cp_comm_type={cp_comm_type!r}; allowed is "
            f"{' or '.join(map(repr, COMMUNICATIONS))}"
        )
    if config is not None:
        raise ConfigError(
            f"torch.sagemaker.transform() is given a config of type {type(config).__name__}, which SMP "
            f"uses to split experts "
            "(MoEConfig); init() does not split experts: leave it out, or train with trainer/fsdp and "
            "its --expert-parallel"
        )
    assert isinstance(state.config, Config)


def _split(model: nn.Module) -> None:
    from transformers.distributed.tensor_parallel import apply_tensor_parallelism

    degree, name = state.degrees.tensor, type(model).__name__
    plan = getattr(model, "tp_plan", None)
    if not plan:
        raise ConfigError(
            f"torch.sagemaker.transform() cannot split {name} among {degree} ranks, since the model "
            f"brings no plan for tensor "
            "parallelism (tp_plan); take a model of Transformers that does, or set "
            "tensor_parallel_degree to 1"
        )
    sizes = _divided(model)
    for what, size in sizes.items():
        if size % degree:
            allowed = [
                each for each in range(1, size + 1) if all(other % each == 0 for other in sizes.values())
            ]
            raise ConfigError(
                f"key 'tensor_parallel_degree' is {degree}, but {name} has {what}={size}, which "
                f"{degree} does not divide; "
                f"allowed for this model is one of {', '.join(map(str, allowed))}"
            )
    whole = _shared(model)
    plan = {name: style for name, style in model._expand_parallel_plan(plan).items() if name not in whole}
    apply_tensor_parallelism(model, state.mesh[TENSOR], plan)


def _shared(model: nn.Module) -> set[str]:
    """Tied parameters and their modules, which stay whole: a head that is split would lose its embedding."""
    tied = getattr(model, "all_tied_weights_keys", None) or {}
    names = {*tied, *tied.values()}
    return names | {name.rpartition(".")[0] for name in names}


def _divided(model: nn.Module) -> dict[str, int]:
    """The sizes that the degree must divide, as the model's configuration names them."""
    text = model.config.get_text_config()
    names = ("num_attention_heads", "num_key_value_heads", "intermediate_size")
    return {name: size for name in names if isinstance(size := getattr(text, name, None), int)}


def _is_on_meta(model: nn.Module) -> bool:
    return any(each.is_meta for each in model.parameters())


def _tensors(model: nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*model.named_parameters(), *model.named_buffers()]


def _weights_of_rank0(model: nn.Module) -> dict[str, torch.Tensor]:
    """The weights that rank 0 sends; this turns rank 0's model, too, into one of meta tensors."""
    if dist.get_rank() != 0:
        return {}
    weights = {name: tensor.detach() for name, tensor in _tensors(model)}
    if missing := [name for name, tensor in weights.items() if tensor.is_meta]:
        raise ConfigError(
            f"torch.sagemaker.transform(load_state_dict_from_rank0=True) takes the weights from rank 0, "
            f"but there {missing[0]!r} "
            "is on meta; load the model on rank 0"
        )
    model.to("meta")
    return weights


def _fill(
    model: nn.Module, weights: dict[str, torch.Tensor], device: torch.device, dtype: torch.dtype | None
) -> None:
    """Sends one whole tensor after another, and each rank keeps its part."""
    from transformers.distributed.sharding_utils import DtensorShardOperation

    shapes = [{name: (tensor.shape, tensor.dtype) for name, tensor in weights.items()}]
    dist.broadcast_object_list(shapes, src=0)
    parts: dict[str, torch.Tensor] = {}
    own = dict(_tensors(model))
    for name, (shape, kind) in shapes[0].items():
        whole = (
            weights[name].to(device).contiguous()
            if name in weights
            else torch.empty(shape, dtype=kind, device=device)
        )
        dist.broadcast(whole, src=0)
        if dtype is not None and whole.is_floating_point():
            whole = whole.to(dtype)
        tensor = own[name]
        parts[name] = (
            DtensorShardOperation(tensor).shard_tensor(whole).clone()
            if isinstance(tensor, DTensor)
            else whole
        )
    for module_name, module in model.named_modules():
        _put(module, f"{module_name}." if module_name else "", parts, own)
    model.tie_weights()


def _put(
    module: nn.Module, prefix: str, parts: dict[str, torch.Tensor], own: dict[str, torch.Tensor]
) -> None:
    for name, tensor in list(
        itertools.chain(module.named_parameters(recurse=False), module.named_buffers(recurse=False))
    ):
        part = parts.get(prefix + name)
        # A tied tensor has the name of its first place alone, and is tied anew.
        if part is None:
            continue
        if isinstance(tensor, DTensor):
            part = DTensor.from_local(
                part,
                tensor.device_mesh,
                tensor.placements,
                shape=tensor.shape,
                stride=tensor.stride(),
                run_check=False,
            )
        if isinstance(tensor, nn.Parameter):
            setattr(module, name, nn.Parameter(part, requires_grad=tensor.requires_grad))
        else:
            module._buffers[name] = part


def _agree(model: nn.Module) -> None:
    """Tensors that are not split are those of the first rank: each rank may have drawn its own."""
    group = state.tp_process_group
    for _, tensor in _tensors(model):
        if not isinstance(tensor, DTensor):
            dist.broadcast(tensor.detach(), group=group, group_src=0)
