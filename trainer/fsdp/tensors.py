"""The ways to split tensors over ranks, from shapes alone."""

import copy

import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from transformers import PretrainedConfig, PreTrainedModel

from trainer.fsdp.arguments import Settings, SettingsError
from trainer.fsdp.blocks import blocks_of, plain_name
from trainer.fsdp.collectives import Tallies, Tally, none
from trainer.fsdp.model import kept_dtype
from trainer.fsdp.sharding import split_tensors

FORWARD_SUMS = ("rowwise", "rowwise_split_input", "embedding_rowwise")
"""Styles of modules whose output is summed over the ranks in the forward pass."""

BACKWARD_SUMS = ("colwise", "colwise_gather_output", "colwise_rep")
"""Styles of modules whose input's gradient is summed over the ranks in the backward pass."""

GATHERED = ("colwise_gather_output", "colwise_rep")
"""Styles of modules whose output is gathered."""

DIVIDED = ("num_attention_heads", "num_key_value_heads", "intermediate_size")
"""Numbers of a configuration of which a rank computes its part."""


def split_without_ranks(model: PreTrainedModel, settings: Settings) -> dict[str, str]:
    """Leaves of every tensor what rank 0 would have, without other ranks; returns the plan for it."""
    if settings.tensor_parallel == 1:
        return {}
    from torch.testing._internal.distributed.fake_pg import FakeStore

    plan = model._expand_parallel_plan(model.tp_plan)
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=settings.tensor_parallel)
    try:
        split_tensors(model, init_device_mesh("cpu", (settings.tensor_parallel,)))
    finally:
        dist.destroy_process_group()
    return plan


def widths_of_a_rank(config: PretrainedConfig, degree: int) -> PretrainedConfig:
    """The configuration of a model whose blocks are as wide inside as a rank's part of them."""
    if degree == 1:
        return config
    missing = [name for name in (*DIVIDED, "head_dim") if getattr(config, name, None) is None]
    if missing:
        raise SettingsError(
            f"--dry-run --tensor-parallel {degree}: the configuration of a {config.model_type} has no "
            f"{missing[0]}; train a few steps instead, summary.json has peak_bytes_per_rank"
        )
    narrow = copy.deepcopy(config)
    for name in DIVIDED:
        setattr(narrow, name, getattr(config, name) // degree)
    return narrow


def collectives_of_tensors(
    model: PreTrainedModel, settings: Settings, plan: dict[str, str], width: int
) -> Tallies:
    """Calls and bytes of one step for tensors that ranks share, beside those of shards."""
    computed_again = _sums_computed_again(model, settings, plan)
    tokens = settings.micro_batch * settings.seq_len * width
    total = none()
    for name, module in model.named_modules():
        style = plan.get(name)
        if style in FORWARD_SUMS:
            wide = module.embedding_dim if style == "embedding_rowwise" else module.out_features
            total["all_reduce"] += _calls(2 if name in computed_again else 1, tokens * wide)
        if style in BACKWARD_SUMS:
            total["all_reduce"] += _calls(1, tokens * module.in_features)
        if style in GATHERED:
            part = -(-module.out_features // settings.tensor_parallel)
            total["all_gather"] += _calls(1, tokens * part * settings.tensor_parallel)
    passes = settings.grad_accum
    total = {name: Tally(tally.calls * passes, tally.bytes * passes) for name, tally in total.items()}
    # The norms of split tensors are added up by a call of their own, over shards and parts at once.
    split = sum(isinstance(parameter, DTensor) for parameter in model.parameters())
    total["all_reduce"] += Tally(1, split * kept_dtype(settings).itemsize if settings.shards == 1 else 0)
    return total


def _sums_computed_again(model: PreTrainedModel, settings: Settings, plan: dict[str, str]) -> set[str]:
    """Modules in checkpointed blocks whose output is summed once more in the backward pass."""
    blocks = blocks_of(model)
    path = next(plain_name(name) for name, module in model.named_modules() if module is blocks)
    again: set[str] = set()
    for index, block in enumerate(blocks):
        if settings.checkpointed_every and index % settings.checkpointed_every == 0:
            names = [f"{path}.{index}.{name}" for name, _ in block.named_modules()]
            # torch stops at the last tensor that backward needs, which lies before the last sum.
            again.update([name for name in names if plan.get(name) in FORWARD_SUMS][:-1])
    return again


def _calls(calls: int, size: int) -> Tally:
    return Tally(calls, calls * size)
