"""Lets FullyShardedDataParallel follow the degrees of init() where a script names no group and no mesh."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import OffloadWrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, _init_utils

from fccl_sagemaker import full_state, replicas
from fccl_sagemaker.offloading import has_checkpointed_layers, offloading

if TYPE_CHECKING:
    from fccl_sagemaker.session import State

HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
CHECK = "_check_module_states_for_sync_module_states"

_originals: dict[str, Any] = {}


def install(state: State) -> None:
    """Changes the classes in place, so that a script may have imported them before."""
    if _originals:
        return
    _originals.update(construct=FullyShardedDataParallel.__init__, offload=OffloadWrapper.forward)
    FullyShardedDataParallel.__init__ = _constructor(state, _originals["construct"])
    FullyShardedDataParallel.state_dict = full_state.state_dict
    OffloadWrapper.forward = _offloader(state, _originals["offload"])


def remove() -> None:
    """Gives the classes their own methods back."""
    if not _originals:
        return
    FullyShardedDataParallel.__init__ = _originals["construct"]
    OffloadWrapper.forward = _originals["offload"]
    # torch's class inherits this one.
    del FullyShardedDataParallel.state_dict
    _originals.clear()


def _constructor(state: State, construct: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(construct)

    @functools.wraps(construct)
    def build(
        self: FullyShardedDataParallel,
        *others: Any,
        post_param_init_fn: Callable[[nn.Module], None] | None = None,
        **named: Any,
    ) -> None:
        asked = signature.bind(self, *others, **named).arguments
        if asked.get("process_group") is None and asked.get("device_mesh") is None:
            group, mesh, strategy = chosen(state, asked.get("sharding_strategy"))
            asked.update(process_group=group, device_mesh=mesh, sharding_strategy=strategy)
            unsharded = state.degrees.tensor > 1 and strategy == ShardingStrategy.NO_SHARD
        else:
            unsharded = False
        if asked.get("device_id") is None and not torch.cuda.is_available():
            asked["device_id"] = torch.device("cpu")
        if post_param_init_fn is not None and asked.get("param_init_fn") is not None:
            asked["param_init_fn"] = _one_after_another(asked["param_init_fn"], post_param_init_fn)
        if unsharded:
            replicas.prepare(self, asked, state.replicas_process_group)
        del asked["self"]
        with _synchronizing_cpu_memory():
            construct(self, **asked)
        if state.config.fsdp_cache_flush_warnings and torch.cuda.is_available():
            self.register_forward_pre_hook(_CacheFlushes())

    return build


def chosen(state: State, strategy: ShardingStrategy | None) -> tuple[Any, Any, ShardingStrategy | None]:
    """The group, or the mesh, and the strategy that the degrees mean."""
    degree, degrees = state.config.hybrid_shard_degree, state.degrees
    if degrees.tensor > 1:
        # A mesh that is part of one with tensor-parallel ranks is what tells FSDP of split tensors.
        if degrees.shard == 1:
            return None, state.mesh["shard"], ShardingStrategy.NO_SHARD
        if degrees.replicas == 1:
            return None, state.mesh["shard"], ShardingStrategy.FULL_SHARD if strategy in HYBRID else strategy
        return None, state.mesh["replicas", "shard"], _hybrid(strategy)
    if degree == 1:
        return None, None, ShardingStrategy.NO_SHARD
    if degree > 1:
        return (state.shard_process_group, state.replicas_process_group), None, _hybrid(strategy)
    if strategy in HYBRID and not torch.cuda.is_available():
        return _by_host(strategy)
    return None, None, strategy


def _hybrid(strategy: ShardingStrategy | None) -> ShardingStrategy:
    return strategy if strategy == ShardingStrategy._HYBRID_SHARD_ZERO2 else ShardingStrategy.HYBRID_SHARD


def _by_host(strategy: ShardingStrategy) -> tuple[Any, Any, ShardingStrategy]:
    """Shards within a host, whose ranks torch counts by its GPUs, and so takes for one on a CPU."""
    world, local = dist.get_world_size(), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if local == 1 or world % local:
        return None, None, ShardingStrategy.NO_SHARD if local == 1 else ShardingStrategy.FULL_SHARD
    return _groups_of_hosts(world, local), None, strategy


@functools.lru_cache(maxsize=1)
def _groups_of_hosts(world: int, local: int) -> tuple[dist.ProcessGroup, dist.ProcessGroup]:
    mesh = init_device_mesh("cpu", (world // local, local), mesh_dim_names=("hosts", "ranks"))
    return mesh.get_group("ranks"), mesh.get_group("hosts")


def _one_after_another(first: Callable, second: Callable) -> Callable[[nn.Module], None]:
    def both(module: nn.Module) -> None:
        first(module)
        second(module)

    return both


@contextlib.contextmanager
def _synchronizing_cpu_memory() -> Iterator[None]:
    """torch refuses to send parameters in CPU memory, which NCCL could not; fccl can."""
    refuse = getattr(_init_utils, CHECK, None)
    if refuse is None or torch.cuda.is_available():
        yield
        return
    setattr(_init_utils, CHECK, lambda states: None)
    try:
        yield
    finally:
        setattr(_init_utils, CHECK, refuse)


class _CacheFlushes:
    """Warns when the allocator of a GPU had to give its cache back, which stalls every stream."""

    def __init__(self) -> None:
        self._seen = 0

    def __call__(self, module: nn.Module, inputs: Any) -> None:
        flushes = torch.cuda.memory_stats().get("num_alloc_retries", 0)
        if flushes > self._seen:
            warnings.warn(
                f"torch's allocator has flushed its cache {flushes} times on this GPU, which makes "
                f"steps slow; use less "
                "memory, or set fsdp_cache_flush_warnings to false",
                stacklevel=2,
            )
        self._seen = flushes


def _offloader(state: State, forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def offload(self: OffloadWrapper, *inputs: Any, **named: Any) -> Any:
        # Without checkpointed layers torch's own way is the only one.
        if not state.sm_activation_offloading or not has_checkpointed_layers(self):
            return forward(self, *inputs, **named)
        with offloading(state.activation_loading_horizon):
            return self._checkpoint_wrapped_module(*inputs, **named)

    return offload
