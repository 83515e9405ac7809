"""Checkpoints, as a rank of smp_ranks.py sees them."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.sagemaker as tsm
from small_llama import make, shard, step_loss
from smp_cases import farthest, full_state
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817  every script names it so
from torch.distributed.fsdp import StateDictType
from torch.sagemaker import state
from torch.sagemaker.distributed.checkpoint.filesystem import DistributedFileSystemReader
from torch.sagemaker.distributed.checkpoint.state_dict_loader import load
from torch.sagemaker.distributed.checkpoint.state_dict_saver import (
    async_save,
    maybe_finalize_async_calls,
    save,
)
from torch.sagemaker.distributed.fsdp import checkpoint as tsm_fsdp_checkpoint
from torch.sagemaker.utils.process_group_utils import get_global_ranks


def step(model: nn.Module, optimizer: torch.optim.Optimizer, number: int) -> None:
    parts = dist.get_world_size() // state.tensor_parallel_degree
    step_loss(model, number, dist.get_rank() // state.tensor_parallel_degree, parts)
    optimizer.step()
    optimizer.zero_grad()


def poison(model: nn.Module) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(-7)


def as_aws_documents(save_dir: str) -> dict[str, Any]:
    """The lines of AWS's page on checkpoints: the ranks of the first replica save over its group."""
    tsm.init({"hybrid_shard_degree": 2})
    model = shard(make())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    step(model, optimizer, 0)
    checkpoint_id = os.path.join(save_dir, f"tp{state.tp_rank}_ep{state.ep_rank}")
    action_rank = state.ranker.get_rep_rank(dist.get_rank()) == 0
    process_group = model.process_group
    coordinator_rank = min(get_global_ranks(process_group))
    finished = maybe_finalize_async_calls(blocking=True, process_group=process_group)
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        states = {"model": model.state_dict(), "optimizer": FSDP.optim_state_dict(model, optimizer)}
    if action_rank:
        async_save(
            states,
            checkpoint_id=checkpoint_id,
            process_group=process_group,
            coordinator_rank=coordinator_rank,
        )
    finished += maybe_finalize_async_calls(blocking=True, process_group=process_group)
    saved = full_state(model)
    step(model, optimizer, 1)
    wanted = full_state(model)
    poison(model)
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        states = {"model": model.state_dict(), "optimizer": FSDP.optim_state_dict(model, optimizer)}
        load(
            states,
            storage_reader=DistributedFileSystemReader(checkpoint_id),
            process_group=process_group,
            coordinator_rank=coordinator_rank,
        )
        model.load_state_dict(states["model"])
        optimizer.load_state_dict(FSDP.optim_state_dict_to_load(model, optimizer, states["optimizer"]))
    loaded = full_state(model)
    step(model, optimizer, 1)
    return {
        "finished": len(finished),
        "saved here": action_rank,
        "loaded": farthest(loaded, saved),
        "goes on": farthest(full_state(model), wanted),
    }


def asynchronous(folder: str) -> dict[str, Any]:
    """Split tensors are set aside, so training goes on while they are written."""
    tsm.init({"tensor_parallel_degree": 2})
    model = shard(tsm.transform(make()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    saved = full_state(model)
    first = None
    for number in range(2):
        with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            call = async_save({"model": model.state_dict()}, checkpoint_id=f"{folder}-{number}")
        first = first or call
        step(model, optimizer, number)
    finished = maybe_finalize_async_calls(blocking=True)
    trained = full_state(model)
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        states = {"model": model.state_dict()}
        try:
            save(states, checkpoint_id=f"{folder}-group", process_group=model.process_group)
            refused = ""
        except ValueError as refusal:
            refused = str(refusal)
        load(states, checkpoint_id=f"{folder}-0")
        model.load_state_dict(states["model"])
    whole = {name: torch.full_like(tensor, -7) for name, tensor in make().state_dict().items()}
    dcp.load({"model": whole}, checkpoint_id=f"{folder}-0", no_dist=True)
    return {
        "finished": [len(finished), first.done()],
        "trained on": farthest(trained, saved),
        "loaded": farthest(full_state(model), saved),
        "whole": farthest(saved, whole),
        "refused": refused,
    }


def of_model(folder: str) -> dict[str, Any]:
    """The calls of AWS's sample that save and load a model with its optimizer and its scheduler."""
    tsm.init({"hybrid_shard_degree": 2})
    model = shard(make())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    step(model, optimizer, 0)
    scheduler.step()
    saved, kind = full_state(model), StateDictType.SHARDED_STATE_DICT
    metadata = (model.process_group, min(get_global_ranks(model.process_group)), True)
    beside = {"total_steps": 3, "start_train_path_index": 4}
    tsm_fsdp_checkpoint.save_model_checkpoint(
        model,
        kind,
        folder,
        model.sharding_strategy,
        metadata,
        log=dist.get_rank() == 0,
        optimizer=optimizer,
        scheduler=scheduler,
        extra_exports=beside,
    )
    step(model, optimizer, 1)
    wanted = full_state(model)
    poison(model)
    scheduler.step()
    loaded = tsm_fsdp_checkpoint.load_model_checkpoint(
        model,
        kind,
        folder,
        model.sharding_strategy,
        metadata,
        log=dist.get_rank() == 0,
        optimizer=optimizer,
        scheduler=scheduler,
        extra_imports=dict.fromkeys(beside, 0),
    )
    model = loaded[tsm_fsdp_checkpoint.EXPORT_KEY_MODEL]
    found = farthest(full_state(model), saved)
    rate = loaded[tsm_fsdp_checkpoint.EXPORT_KEY_SCHEDULER].get_last_lr()
    step(model, loaded[tsm_fsdp_checkpoint.EXPORT_KEY_OPTIMIZER], 1)
    return {
        "loaded": found,
        "goes on": farthest(full_state(model), wanted),
        "rate": rate,
        "beside": loaded[tsm_fsdp_checkpoint.EXPORT_KEY_IDENTITY],
    }


def other_keys(folder: str) -> list[str]:
    """One rank asks for a key that the others do not ask for."""
    tsm.init()
    save({"one": torch.ones(2)}, checkpoint_id=folder)
    sentences = []
    for options in ({}, {"coordinator_rank": 3}):
        states = {"one": torch.zeros(2)}
        if dist.get_rank() == 2 and not options:
            states["two"] = torch.zeros(2)
        try:
            load(states, checkpoint_id=folder, **options)
        except ValueError as refusal:
            sentences.append(str(refusal))
    return sentences


def empty_shards(folder: str, allowed: bool) -> float:
    """A model of fewer rows than ranks comes back, too."""
    tsm.init({"allow_empty_shards": allowed})
    torch.manual_seed(4)
    model = FSDP(nn.Linear(2, 1, bias=False), use_orig_params=True)
    saved = full_state(model)
    for call in (save, load):
        with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            states = {"model": model.state_dict()}
            call(states, checkpoint_id=folder)
            if call is save:
                poison(model)
            else:
                model.load_state_dict(states["model"])
    return farthest(full_state(model), saved)
