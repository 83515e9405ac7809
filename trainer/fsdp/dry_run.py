"""Says what a run would take, from a model of shapes alone: parameters, memory and collectives per rank."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import AutoModelForCausalLM, LlamaForCausalLM

from trainer.fsdp.arguments import Settings
from trainer.fsdp.collectives import Tallies, Tally, none
from trainer.fsdp.model import model_config

MASTER_BYTES = 4
"""Parameters, gradients, and each of Adam's two moments are kept in fp32."""


UNITS = ((30, "GiB"), (20, "MiB"), (10, "KiB"))


@dataclass(frozen=True)
class Group:
    """Parameters that are gathered and reduced together: a block, or the root with all the rest."""

    shapes: tuple[torch.Size, ...]

    @classmethod
    def of(cls, parameters: list[nn.Parameter]) -> "Group":
        return cls(tuple(parameter.shape for parameter in parameters))

    def elements(self, shards: int) -> int:
        """Elements in one collective: every parameter padded until its rows divide among the shards."""
        return sum(-(-shape[0] // shards) * shards * shape[1:].numel() for shape in self.shapes)

    def kept(self, shards: int) -> int:
        """Elements that the fullest rank keeps."""
        return self.elements(shards) // shards


def describe(settings: Settings) -> str:
    """The whole answer, as text."""
    model = shapes_only(settings)
    groups = groups_of(model)
    tensors = sum(len(group.shapes) for group in groups)
    parameters = sum(group.elements(1) for group in groups)
    lines = [
        f"{settings.model}: {parameters:,} parameters, {tensors} tensors, {len(groups) - 1} blocks, a root",
        f"{settings.strategy}: {settings.ranks} ranks, {settings.ranks // settings.shards} copies of "
        f"{settings.shards} shards; {settings.precision}; {settings.global_batch} sequences of "
        f"{settings.seq_len} tokens per step, {settings.micro_batch} per rank and pass",
        "",
        "memory per rank",
    ]
    memory = memory_per_rank(settings, groups, saved_activations(settings))
    lines += [f"  {name:<52}{_readable(size)}" for name, size in memory.items()]
    lines += [f"  {'peak of a step':<52}{_readable(sum(memory.values()))}"]
    lines += [f"  {'before sharding, the whole model':<52}{_readable(parameters * MASTER_BYTES)}"]
    lines += ["", "collectives per step and rank"]
    for name, tally in collectives_per_step(settings, groups).items():
        lines.append(f"  {name:<16}{tally.calls:>6} calls{_readable(tally.bytes)}")
    return "\n".join(lines)


def shapes_only(settings: Settings) -> nn.Module:
    """The model on the meta device: every shape, no memory."""
    with torch.device("meta"):
        return LlamaForCausalLM(model_config(settings))


def groups_of(model: nn.Module) -> list[Group]:
    """The root's group, then one per block, as sharding.py makes them."""
    blocks = [list(block.parameters()) for block in model.model.layers]
    inside = {id(parameter) for block in blocks for parameter in block}
    root = [parameter for parameter in model.parameters() if id(parameter) not in inside]
    return [Group.of(root), *map(Group.of, blocks)]


def memory_per_rank(settings: Settings, groups: list[Group], activations: int) -> dict[str, int]:
    """Bytes by purpose at the fullest moment, the backward pass of a block while the next is gathered."""
    width = _gathered_width(settings)
    kept = sum(group.kept(settings.shards) for group in groups) * MASTER_BYTES
    whole = sorted((group.elements(settings.shards) for group in groups[1:]), reverse=True)
    gathered = sum(whole) if settings.strategy == "shard_grad_op" else sum(whole[:2])
    gathered += groups[0].elements(settings.shards)
    largest = max(group.elements(settings.shards) for group in groups)
    return {
        "parameters, fp32": kept,
        "gradients, fp32": kept,
        "Adam's two moments, fp32": 2 * kept,
        f"parameters gathered, {settings.precision}": gathered * width,
        "one group's gradient, and its reduction in fp32": largest * (width + MASTER_BYTES),
        "activations kept for one backward pass": activations,
    }


def collectives_per_step(settings: Settings, groups: list[Group]) -> Tallies:
    """Calls and bytes of one step, before they are timed."""
    shards, total = settings.shards, none()
    for group in groups:
        whole = group.elements(shards)
        # Blocks are given back after the forward pass, except by shard_grad_op; the root never is.
        gathers = 1 if group is groups[0] or settings.strategy == "shard_grad_op" else 2
        if shards > 1:
            total["all_gather"] += _calls(gathers, whole * _gathered_width(settings))
            total["reduce_scatter"] += _calls(1, whole * MASTER_BYTES)
        if settings.strategy in ("hybrid_shard", "no_shard"):
            total["all_reduce"] += _calls(1, whole // shards * MASTER_BYTES)
    passes = settings.grad_accum
    total = {name: Tally(tally.calls * passes, tally.bytes * passes) for name, tally in total.items()}
    if shards > 1:
        # Clipping adds up the norms of all parameters' shards.
        total["all_reduce"] += _calls(1, 4 * sum(len(group.shapes) for group in groups))
    return total


def _calls(calls: int, size: int) -> Tally:
    return Tally(calls, calls * size)


def saved_activations(settings: Settings) -> int:
    """Bytes that the forward pass of one micro-batch keeps for the backward pass."""
    dtype = torch.bfloat16 if settings.precision == "bf16" else torch.float32
    config = model_config(settings)
    blocks, config.num_hidden_layers = config.num_hidden_layers, 1
    # Fake tensors are shapes without memory that pass for CPU tensors, so that attention takes the CPU's way.
    with FakeTensorMode():
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
        tokens = torch.zeros((settings.micro_batch, settings.seq_len), dtype=torch.long)
        hidden = model.model.embed_tokens(tokens)
        positions = model.model.rotary_emb(hidden, torch.arange(settings.seq_len)[None])
        block = _saved_bytes(model, lambda: model.model.layers[0](hidden, position_embeddings=positions))
        tail = _saved_bytes(model, lambda: _loss_of(model, hidden, tokens))
    if settings.activation_checkpointing:
        return blocks * hidden.untyped_storage().nbytes() + block + tail
    return blocks * block + tail


def _loss_of(model: nn.Module, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    logits = model.lm_head(model.model.norm(hidden))
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


def _gathered_width(settings: Settings) -> int:
    return 2 if settings.precision == "bf16" else MASTER_BYTES
