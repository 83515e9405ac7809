"""The models that the ranks of these tests train, the steps, and what one process makes of them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817  every script names it so
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PretrainedConfig
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXLayer
from transformers.models.llama.modeling_llama import LlamaDecoderLayer
from transformers.models.mistral.modeling_mistral import MistralDecoderLayer

BATCH, LENGTH, WORDS, WIDTH, LAYERS = 8, 8, 64, 32, 4
HIGHEST_NORM = 0.7
BLOCKS = {LlamaDecoderLayer, MistralDecoderLayer, GPTNeoXLayer}
SHAPES = {
    "llama": {"num_key_value_heads": 4},
    "mistral": {"num_key_value_heads": 2, "sliding_window": 4},
    "gpt_neox": {},
    "tied": {"num_key_value_heads": 4, "tie_word_embeddings": True},
}

Clip = Callable[[nn.Module, float], Any]


def config(kind: str = "llama", **more: Any) -> PretrainedConfig:
    return CONFIG_MAPPING["llama" if kind == "tied" else kind](
        vocab_size=WORDS,
        hidden_size=WIDTH,
        intermediate_size=64,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        max_position_embeddings=32,
        use_cache=False,
        **SHAPES[kind],
        **more,
    )


def make(kind: str = "llama", **more: Any) -> nn.Module:
    torch.manual_seed(1)
    return AutoModelForCausalLM.from_config(config(kind, **more)).double()


def shard(model: nn.Module, **options: Any) -> FSDP:
    policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls=BLOCKS)
    return FSDP(model, auto_wrap_policy=policy, use_orig_params=True, sync_module_states=True, **options)


def step_loss(model: nn.Module, step: int, part: int, parts: int) -> torch.Tensor:
    """The loss of a part of a step's batch, behind its backward pass."""
    batch = torch.randint(0, WORDS, (BATCH, LENGTH + 1), generator=torch.Generator().manual_seed(step))
    mine = batch.chunk(parts)[part]
    logits = model(input_ids=mine[:, :-1]).logits
    loss = F.cross_entropy(logits.reshape(-1, WORDS), mine[:, 1:].reshape(-1))
    loss.backward()
    return loss.detach()


def train(model: nn.Module, part: int, parts: int, clip: Clip, steps: int) -> list[float]:
    """Steps on a part of every batch; the loss of the whole batch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for step in range(steps):
        mean = step_loss(model, step, part, parts).clone()
        clip(model, HIGHEST_NORM)
        optimizer.step()
        optimizer.zero_grad()
        if parts > 1:
            dist.all_reduce(mean)
            mean /= dist.get_world_size()
        losses.append(mean.item())
    return losses


def noting(norms: list[float], clip: Clip) -> Clip:
    """Clips, and notes the norm that the gradients had."""
    return lambda model, highest: norms.append(clip(model, highest).item())


def one_process(
    steps: int, kind: str = "llama", norms: list[float] | None = None
) -> tuple[list[float], dict[str, torch.Tensor]]:
    model = make(kind)
    noted: list[float] = [] if norms is None else norms
    clip = noting(noted, lambda whole, norm: nn.utils.clip_grad_norm_(whole.parameters(), norm))
    losses = train(model, 0, 1, clip, steps)
    return losses, model.state_dict()


def report(model: nn.Module, steps: int = 20) -> None:
    """For a script that torch.sagemaker's init() has split: trains, and prints the losses on rank 0."""
    from torch.sagemaker import state
    from torch.sagemaker.grad_norm import clip_grad_norm_

    tensor = state.tensor_parallel_degree
    losses = train(model, state.rank // tensor, state.world_size // tensor, clip_grad_norm_, steps)
    if state.rank == 0:
        print("RESULT " + json.dumps({"losses": losses, "backend": dist.get_backend()}), flush=True)
    dist.destroy_process_group()
