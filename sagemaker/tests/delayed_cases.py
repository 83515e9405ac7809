"""Delayed parameters, as a rank of smp_ranks.py sees them."""

from __future__ import annotations

from typing import Any

import fccl_sagemaker
import torch
import torch.distributed as dist
import torch.sagemaker as tsm
from small_llama import config, make, shard, step_loss, train
from smp_cases import STEPS, differs, farthest, full_state
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817  every script names it so
from torch.sagemaker.delayed_param import DelayedParamIniter
from torch.sagemaker.grad_norm import clip_grad_norm_
from torch.sagemaker.utils.module_utils import empty_module_params, move_buffers_to_device
from transformers import AutoModelForCausalLM


def on_meta(**more: Any) -> nn.Module:
    with torch.device("meta"):
        return make(**more)


def delayed(model: nn.Module, **options: Any) -> FSDP:
    """As AWS's sample shards a model on meta."""
    initer = DelayedParamIniter(model, **options)
    with initer.validate_params_and_buffers_inited():
        return shard(
            model,
            param_init_fn=initer.get_param_init_fn(),
            post_param_init_fn=initer.get_post_param_init_fn(),
        )


def drawn() -> dict[str, Any]:
    """Gives what is drawn in shards, in split tensors, in one process, and by another seed."""
    found: dict[str, Any] = {}
    for name, keys in (
        ("shards", {"hybrid_shard_degree": 4}),
        ("split", {"tensor_parallel_degree": 2}),
        ("another seed", {"hybrid_shard_degree": 4, "random_seed": 7}),
    ):
        tsm.init(keys)
        found[name] = full_state(sharded := delayed(tsm.transform(on_meta())))
        buffers = dict(sharded.named_buffers())
        if name == "shards":
            alone = on_meta()
            alone.apply(DelayedParamIniter(alone).get_param_init_fn())
        fccl_sagemaker.restore()
    ours = {key.replace("_fsdp_wrapped_module.", ""): each for key, each in buffers.items()}
    wanted = dict(make().named_buffers())
    whole = alone.state_dict()
    return {
        "shards": farthest(found["shards"], whole),
        "split": farthest(found["split"], whole),
        "another seed": farthest(found["another seed"], whole),
        "spread": whole["lm_head.weight"].std().item(),
        "buffers": [farthest(ours, wanted), sorted(ours) == sorted(wanted), len(ours)],
        "count": [DelayedParamIniter(alone).count_num_params(alone), alone.num_parameters()],
        "refused": refusal_of_rest(),
    }


def refusal_of_rest() -> str:
    model = on_meta()
    try:
        with DelayedParamIniter(model).validate_params_and_buffers_inited():
            pass
    except RuntimeError as refusal:
        return str(refusal)
    return ""


def tied() -> dict[str, Any]:
    """A head and an embedding that share their weights do so when they are made, and after a step."""
    tsm.init({"hybrid_shard_degree": 2})
    model = delayed(on_meta(tie_word_embeddings=True))
    before = full_state(model)
    step_loss(model, 0, dist.get_rank(), dist.get_world_size())
    torch.optim.SGD(model.parameters(), lr=0.5).step()
    after = full_state(model)
    names = ("lm_head.weight", "model.embed_tokens.weight")
    apart = [(state[names[0]] - state[names[1]]).abs().max().item() for state in (before, after) if state]
    return {"apart": apart, "moved": farthest(after, before), "rank": dist.get_rank()}


class Scaled(nn.Module):
    """Has a buffer that is not a parameter's, with values that nothing can draw again."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Linear(3, 5)
        self.register_buffer("scale", torch.tensor([1.5, 2.5, 3.5], device="cpu"))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.inside(values * self.scale)


def custom() -> dict[str, Any]:
    """A function like that of AWS's page makes the parameters of a model without any of its own."""
    tsm.init({"hybrid_shard_degree": 4})
    with torch.device("meta"):
        model = Scaled()

    def make_parameters(module: nn.Module) -> None:
        empty_module_params(module, device="cpu")
        if isinstance(module, nn.Linear):
            module.weight.data.fill_(0.25)
            module.bias.data.zero_()
        move_buffers_to_device(module, device="cpu")

    made = delayed(model, init_method_using_config=make_parameters)
    return {"scale": made.scale.tolist(), "made": made(torch.ones(1, 3)).tolist()}


def from_folder(folder: str, losses: list[float]) -> float:
    """As AWS's sample fine-tunes: rank 0 reads the folder, and the other ranks' parameters are delayed."""
    tsm.init({"hybrid_shard_degree": 2})
    if dist.get_rank() == 0:
        make().save_pretrained(folder)
        model = shard(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64))
    else:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config(), dtype=torch.float64)
        model = delayed(model)
    found = train(model, dist.get_rank(), dist.get_world_size(), clip_grad_norm_, STEPS)
    return differs(found, losses)
