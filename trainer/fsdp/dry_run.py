"""Says what a run would take, from a model of shapes alone: parameters, memory and collectives per rank."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.tensor import DTensor
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedModel

from trainer.fsdp.arguments import Settings, SettingsError
from trainer.fsdp.blocks import blocks_of
from trainer.fsdp.collectives import Tallies, Tally, none
from trainer.fsdp.model import empty_model, kept_dtype, model_config
from trainer.fsdp.sharding import USED
from trainer.fsdp.tensors import collectives_of_tensors, split_without_ranks, widths_of_a_rank

UNITS = ((30, "GiB"), (20, "MiB"), (10, "KiB"))


@dataclass(frozen=True)
class Group:
    """Parameters that are gathered and reduced together: a block, or the root with all the rest."""

    shapes: tuple[torch.Size, ...]

    @classmethod
    def of(cls, parameters: list[nn.Parameter]) -> "Group":
        local = (
            parameter.to_local() if isinstance(parameter, DTensor) else parameter for parameter in parameters
        )
        return cls(tuple(parameter.shape for parameter in local))

    def elements(self, shards: int) -> int:
        """Elements in one collective: every parameter padded until its rows divide among the shards."""
        return sum(-(-shape[0] // shards) * shards * shape[1:].numel() for shape in self.shapes)

    def kept(self, shards: int) -> int:
        """Elements that the fullest rank keeps."""
        return self.elements(shards) // shards


def describe(settings: Settings) -> str:
    """The whole answer, as text."""
    model = empty_model(settings)
    whole = groups_of(model)
    plan = split_without_ranks(model, settings)
    groups = groups_of(model)
    tensors = sum(len(group.shapes) for group in groups)
    parameters = sum(group.elements(1) for group in whole)
    split = f" of {settings.tensor_parallel} ranks that share tensors" if settings.tensor_parallel > 1 else ""
    lines = [
        f"{settings.model}: {parameters:,} parameters, {tensors} tensors, {len(groups) - 1} blocks, a root",
        f"{settings.strategy}: {settings.ranks} ranks, {settings.data_ranks // settings.shards} copies of "
        f"{settings.shards} shards{split}; {settings.precision}; {settings.global_batch} sequences of "
        f"{settings.seq_len} tokens per step, {settings.micro_batch} per rank and pass",
        "",
        "memory per rank",
    ]
    memory = memory_per_rank(settings, groups, saved_activations(settings))
    lines += [f"  {name:<52}{_readable(size)}" for name, size in memory.items()]
    lines += [f"  {'peak of a step':<52}{_readable(sum(memory.values()))}"]
    filling = (sum(group.kept(settings.shards) for group in groups) + _largest_two(whole)) * _kept_width(
        settings
    )
    lines += [f"  {'while it is filled: shards, a block and the root':<52}{_readable(filling)}"]
    lines += ["", "collectives per step and rank"]
    tallies = collectives_per_step(settings, groups)
    for name, tally in tallies.items():
        lines.append(f"  {name:<16}{tally.calls:>6} calls{_readable(tally.bytes)}")
    if settings.tensor_parallel > 1:
        lines += ["", "collectives for split tensors per step and rank, beside these"]
        for name, tally in collectives_of_tensors(model, settings, plan, _used_width(settings)).items():
            lines.append(f"  {name:<16}{tally.calls:>6} calls{_readable(tally.bytes)}")
    return "\n".join(lines)


def shapes_only(settings: Settings) -> PreTrainedModel:
    """The model on the meta device: every shape that a rank has of it, no memory."""
    model = empty_model(settings)
    split_without_ranks(model, settings)
    return model


def groups_of(model: nn.Module) -> list[Group]:
    """The root's group, then one per block, as sharding.py makes them."""
    blocks = [list(block.parameters()) for block in blocks_of(model)]
    inside = {id(parameter) for block in blocks for parameter in block}
    root = [parameter for parameter in model.parameters() if id(parameter) not in inside]
    return [Group.of(root), *map(Group.of, blocks)]


def memory_per_rank(settings: Settings, groups: list[Group], activations: int) -> dict[str, int]:
    """Bytes by purpose at the fullest moment, the backward pass of a block while the next is gathered."""
    width, kept_width = _used_width(settings), _kept_width(settings)
    kept = sum(group.kept(settings.shards) for group in groups) * kept_width
    whole = sorted((group.elements(settings.shards) for group in groups[1:]), reverse=True)
    gathered = sum(whole) if settings.strategy == "shard_grad_op" else sum(whole[:2])
    gathered += groups[0].elements(settings.shards)
    largest = max(group.elements(settings.shards) for group in groups)
    name = settings.precision if settings.precision not in USED else "fp32"
    moments = {f"Adam's two moments, {name}": 2 * kept} if settings.optimizer == "adamw" else {}
    return {
        f"parameters, {name}": kept,
        f"gradients, {name}": kept,
        **moments,
        f"parameters gathered, {settings.precision}": gathered * width,
        f"one group's gradient, and its reduction in {name}": largest * (width + kept_width),
        "activations kept for one backward pass": activations,
    }


def _largest_two(groups: list[Group]) -> int:
    return groups[0].elements(1) + max(group.elements(1) for group in groups[1:])


def collectives_per_step(settings: Settings, groups: list[Group]) -> Tallies:
    """Calls and bytes of one step, before they are timed."""
    shards, total = settings.shards, none()
    for group in groups:
        whole = group.elements(shards)
        # Blocks are given back after the forward pass, except by shard_grad_op; the root never is.
        gathers = 1 if group is groups[0] or settings.strategy == "shard_grad_op" else 2
        if shards > 1:
            total["all_gather"] += _calls(gathers, whole * _used_width(settings))
            total["reduce_scatter"] += _calls(1, whole * _kept_width(settings))
        if settings.strategy in ("hybrid_shard", "no_shard"):
            total["all_reduce"] += _calls(1, whole // shards * _kept_width(settings))
    passes = settings.grad_accum
    total = {name: Tally(tally.calls * passes, tally.bytes * passes) for name, tally in total.items()}
    if shards > 1:
        # Clipping adds up the norms of all parameters' shards.
        total["all_reduce"] += _calls(1, _kept_width(settings) * sum(len(group.shapes) for group in groups))
    return total


def _calls(calls: int, size: int) -> Tally:
    return Tally(calls, calls * size)


def saved_activations(settings: Settings) -> int:
    """Bytes that the forward pass of one micro-batch keeps for the backward pass."""
    config = widths_of_a_rank(model_config(settings), settings.tensor_parallel)
    if getattr(config, "num_local_experts", None):
        raise SettingsError(
            "--dry-run: what a mixture of experts keeps depends on the tokens that each expert gets; train a "
            "few steps instead, summary.json has peak_bytes_per_rank"
        )
    blocks = config.num_hidden_layers
    one, two = (_kept_by(config, layers, settings) for layers in (1, 2))
    block, rest = two - one, 2 * one - two
    every = settings.checkpointed_every
    if not every:
        return blocks * block + rest
    checkpointed = -(-blocks // every)
    inputs = (
        checkpointed * settings.micro_batch * settings.seq_len * config.hidden_size * _used_width(settings)
    )
    return inputs + (blocks - checkpointed) * block + block + rest


def _kept_by(config: PretrainedConfig, layers: int, settings: Settings) -> int:
    short = copy.deepcopy(config)
    short.num_hidden_layers = layers
    if getattr(short, "layer_types", None):
        short.layer_types = short.layer_types[:layers]
    # Fake tensors are shapes without memory that pass for CPU tensors, so that attention takes the CPU's way.
    with FakeTensorMode():
        model = AutoModelForCausalLM.from_config(short, dtype=_used_dtype(settings))
        tokens = torch.zeros((settings.micro_batch, settings.seq_len), dtype=torch.long)
        return _saved_bytes(model, lambda: _loss_of(model, tokens))


def _loss_of(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    logits = model(input_ids=tokens, use_cache=False).logits
    return F.cross_entropy(logits.float().flatten(0, 1), tokens.flatten())


def _saved_bytes(model: nn.Module, forward: Callable[[], torch.Tensor]) -> int:
    weights = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in weights:
            kept[storage._cdata] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        outcome = forward()
    del outcome
    return sum(storage.nbytes() for storage in kept.values())


def _readable(size: int) -> str:
    unit, name = next(((2**power, name) for power, name in UNITS if size >= 2**power), (1, "B"))
    return f"{size / unit:>10,.2f} {name}"


def _used_dtype(settings: Settings) -> torch.dtype:
    return USED.get(settings.precision, kept_dtype(settings))


def _used_width(settings: Settings) -> int:
    return _used_dtype(settings).itemsize


def _kept_width(settings: Settings) -> int:
    return kept_dtype(settings).itemsize
