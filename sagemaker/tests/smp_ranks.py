"""The ranks of test_smp.py: many cases in one process group; each rank writes what it found as JSON."""

import torch.sagemaker as tsm  # noqa: I001  the lines of a script for SMP v2, which import nothing before

import functools
import json
import os
import sys
from pathlib import Path
from typing import Any

import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401
import torch
import torch.distributed as dist
import fccl
import fccl_sagemaker
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)
from torch.distributed.fsdp import FullStateDictConfig, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817  every script names it so
from torch.sagemaker.delayed_param import DelayedParamIniter
from torch.sagemaker.distributed.checkpoint.state_dict_loader import load
from torch.sagemaker.distributed.checkpoint.state_dict_saver import async_save, maybe_finalize_async_calls
from torch.sagemaker.grad_norm import clip_grad_norm_
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer
from small_llama import config, make, one_process, shard, train

STEPS = 5 if sys.argv[2] == "quick" else 20
CASES = {
    "native": {},
    "degree 1": {"hybrid_shard_degree": 1},
    "degree 2": {"hybrid_shard_degree": 2},
    "degree 4": {"hybrid_shard_degree": 4},
    "tensor 2": {"tensor_parallel_degree": 2, "tensor_parallel_seed": 0},
    "tensor 2, replicas 2": {"tensor_parallel_degree": 2, "hybrid_shard_degree": 1},
    "tensor 4": {"tensor_parallel_degree": 4},
}
EIGHT = {"tensor 2, shard 2, replicas 2": {"tensor_parallel_degree": 2, "hybrid_shard_degree": 2}}
WRONG = [
    {"hybrid_shard_degre": 2},
    {"hybrid_shard_degree": 3},
    {"hybrid_shard_degree": -1},
    {"tensor_parallel_degree": 3},
    {"tensor_parallel_degree": 0},
    {"sm_activation_offloading": 1},
    {"activation_loading_horizon": 0},
    {"context_parallel_degree": 2},
    {"expert_parallel_degree": 2},
    {"random_seed": "x"},
]


def full_state(model: FSDP) -> dict[str, torch.Tensor]:
    settings = FullStateDictConfig(rank0_only=True, offload_to_cpu=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, settings):
        return model.state_dict()


def farthest(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    return max(((one[name] - other[name]).abs().max().item() for name in one), default=0.0)


def differs(losses: list[float], wanted: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(losses, wanted, strict=True))


def degrees_case(
    keys: dict[str, Any], losses: list[float], states: dict[str, torch.Tensor]
) -> dict[str, Any]:
    tsm.init(keys)
    tsm.init(keys)
    degrees = tsm.state.degrees
    model = shard(tsm.transform(make()))
    before = fccl.counters()
    part, parts = dist.get_rank() // degrees.tensor, degrees.shard * degrees.replicas
    found = train(model, part, parts, clip_grad_norm_, STEPS)
    after = fccl.counters()
    calls = {name: after[name]["calls"] - before.get(name, {"calls": 0})["calls"] for name in after}
    moved = {name: after[name]["bytes"] - before.get(name, {"bytes": 0})["bytes"] for name in after}
    return {
        "losses": differs(found, losses),
        "states": farthest(full_state(model), states),
        "calls": calls,
        "bytes": moved,
        "tp_rank": tsm.state.tp_rank,
        "rep_rank": tsm.state.ranker.get_rep_rank(dist.get_rank()),
        "strategy": model.sharding_strategy.name,
    }


def offloading_case(keys: dict[str, Any] | None) -> dict[str, Any]:
    tsm.init({"sm_activation_offloading": False} if keys is None else keys)
    model = shard(make())
    wrapper = functools.partial(checkpoint_wrapper, checkpoint_impl=CheckpointImpl.NO_REENTRANT)
    apply_activation_checkpointing(
        model, checkpoint_wrapper_fn=wrapper, check_fn=lambda module: isinstance(module, LlamaDecoderLayer)
    )
    if keys is not None:
        model = offload_wrapper(model)
    losses = train(model, dist.get_rank(), dist.get_world_size(), clip_grad_norm_, STEPS)
    return {"losses": losses, **vars(tsm.state.offloading)}


def checkpoint_case(folder: str) -> dict[str, Any]:
    tsm.init({"hybrid_shard_degree": 2})
    model = shard(make())
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        states = {"model": model.state_dict()}
        async_save(states, checkpoint_id=folder)
        finished = maybe_finalize_async_calls(blocking=True)
        saved = full_state(model)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(-7)
        states = {"model": model.state_dict()}
        load(states, checkpoint_id=folder)
        model.load_state_dict(states["model"])
    return {"finished": finished, "states": farthest(saved, full_state(model))}


def delayed_case() -> dict[str, Any]:
    tsm.init({"hybrid_shard_degree": 4})
    with torch.device("meta"):
        model = make()
    delayed = DelayedParamIniter(model)
    with delayed.validate_params_and_buffers_inited():
        made = shard(
            model,
            param_init_fn=delayed.get_param_init_fn(),
            post_param_init_fn=delayed.get_post_param_init_fn(),
        )
    state = full_state(made)
    return {
        "spread": state["lm_head.weight"].std().item() if state else 0.02,
        "count": delayed.count_num_params(model),
    }


def folder_case(folder: str, losses: list[float]) -> dict[str, Any]:
    """As AWS's sample fine-tunes: rank 0 reads the folder, and the other ranks' parameters are delayed."""
    tsm.init({"hybrid_shard_degree": 2})
    if dist.get_rank() == 0:
        make().save_pretrained(folder)
        model = shard(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64))
    else:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config(), dtype=torch.float64)
        delayed = DelayedParamIniter(model)
        with delayed.validate_params_and_buffers_inited():
            model = shard(
                model,
                param_init_fn=delayed.get_param_init_fn(),
                post_param_init_fn=delayed.get_post_param_init_fn(),
            )
    found = train(model, dist.get_rank(), dist.get_world_size(), clip_grad_norm_, STEPS)
    return {"losses": differs(found, losses)}


def from_rank0_case() -> dict[str, Any]:
    tsm.init({"tensor_parallel_degree": 4})
    if dist.get_rank() == 0:
        model = make()
    else:
        with torch.device("meta"):
            model = make()
    model = shard(tsm.transform(model, load_state_dict_from_rank0=True))
    return {"states": farthest(full_state(model), make().state_dict())}


def wrong_case() -> list[str]:
    sentences = []
    for keys in WRONG:
        try:
            tsm.init(keys)
        except ValueError as refusal:
            sentences.append(str(refusal))
    tsm.init({"tensor_parallel_degree": 4})
    few = LlamaConfig(
        hidden_size=6, num_attention_heads=2, num_key_value_heads=2, intermediate_size=8, vocab_size=9
    )
    for refused in (
        lambda: tsm.transform(AutoModelForCausalLM.from_config(few)),
        lambda: tsm.init({"random_seed": 5}),
    ):
        try:
            refused()
        except ValueError as refusal:
            sentences.append(str(refusal))
    total = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(total)
    return [*sentences, total.item()]


def run(case: Any, *inputs: Any) -> Any:
    found = case(*inputs)
    fccl_sagemaker.restore()
    return found


def main(out: Path, quick: bool) -> None:
    dist.init_process_group("smddp")
    found: dict[str, Any] = {"backend": dist.get_backend(), "active": fccl.is_active()}
    losses, states = one_process(STEPS)
    cases = EIGHT if dist.get_world_size() == 8 else CASES
    for name, keys in cases.items():
        if not quick or name in ("native", "degree 2", "tensor 2", "tensor 4"):
            found[name] = run(degrees_case, keys, losses, states)
    if dist.get_world_size() == 4:
        found["wrong"] = run(wrong_case)
        found["plain"] = run(offloading_case, None)
        for horizon in (2,) if quick else (1, 2, 4):
            keys = {"sm_activation_offloading": True, "activation_loading_horizon": horizon}
            found[f"horizon {horizon}"] = run(offloading_case, keys)
        found["rank 0's weights"] = run(from_rank0_case)
        found["delayed"] = run(delayed_case)
        found["folder"] = run(folder_case, os.fspath(out / "folder"), losses)
        found["checkpoint"] = run(checkpoint_case, os.fspath(out / "checkpoint"))
    (out / f"{os.environ['RANK']}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "quick")
