"""The optimizer, the highest gradient norm, and the scale of losses in fp16."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from torch.distributed.tensor import DTensor
from torch.optim import SGD, AdamW, Optimizer

from trainer.fsdp.arguments import Settings

BETAS = (0.9, 0.95)


def make_optimizer(settings: Settings, parameters: list[nn.Parameter]) -> Optimizer:
    """AdamW or plain SGD over the parameters that are trained."""
    if settings.optimizer == "sgd":
        return SGD(parameters, lr=settings.lr, weight_decay=settings.weight_decay, foreach=False)
    # One call for many tensors wants them on one mesh, which they are not under tensor parallelism.
    one_mesh = len(_by_mesh(parameters)) == 1
    return AdamW(
        parameters,
        lr=settings.lr,
        betas=BETAS,
        weight_decay=settings.weight_decay,
        fused=one_mesh and settings.precision != "fp16",  # a fused step cannot be left out by the scaler
        foreach=None if one_mesh else False,
    )


def make_scaler(settings: Settings, device: torch.device) -> ShardedGradScaler:
    """A scaler that keeps gradients in the range of fp16, and skips a step if any rank skips it."""
    return ShardedGradScaler(device.type, enabled=settings.precision == "fp16")


def clip_gradients(model: nn.Module, highest_norm: float) -> float:
    """Scales the gradients to at most this norm over all ranks; returns the norm they had."""
    # The model itself may be a wrapper, which offloads activations.
    for module in model.modules():
        if isinstance(module, FullyShardedDataParallel):
            return _clip_older_class(module, highest_norm)
    parameters = [parameter for parameter in model.parameters() if parameter.grad is not None]
    norms = [_norm_of(alike) for alike in _by_mesh(parameters).values()]
    norm = norms[0] if len(norms) == 1 else torch.linalg.vector_norm(torch.stack(norms))
    for alike in _by_mesh(parameters).values():
        nn.utils.clip_grads_with_norm_(alike, highest_norm, norm)
    return norm.item()


def _norm_of(parameters: list[nn.Parameter]) -> torch.Tensor:
    norm = nn.utils.get_total_norm([parameter.grad for parameter in parameters])
    return norm.full_tensor() if isinstance(norm, DTensor) else norm


def _by_mesh(parameters: list[nn.Parameter]) -> dict[object, list[nn.Parameter]]:
    groups: dict[object, list[nn.Parameter]] = {}
    for parameter in parameters:
        mesh = parameter.device_mesh if isinstance(parameter, DTensor) else None
        groups.setdefault(mesh, []).append(parameter)
    return groups


def _clip_older_class(model: FullyShardedDataParallel, highest_norm: float) -> float:
    parameters = [parameter for parameter in model.parameters() if parameter.grad is not None]
    if all(parameter.grad.dtype != torch.float64 for parameter in parameters):
        return model.clip_grad_norm_(highest_norm).item()
    # FullyShardedDataParallel itself refuses doubles.
    squares = sum(
        (parameter.grad.square().sum() for parameter in parameters), torch.zeros((), dtype=torch.float64)
    )
    if model.sharding_strategy != ShardingStrategy.NO_SHARD:
        dist.all_reduce(squares, group=model.process_group)
    norm = squares.sqrt()
    nn.utils.clip_grads_with_norm_(parameters, highest_norm, norm)
    return norm.item()
