"""The checkpoints of the samples: a model, its optimizer and its scheduler in one folder."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.fsdp import StateDictType

from fccl_sagemaker.notes import get_logger

EXPORT_KEY_IDENTITY = "identity"
EXPORT_KEY_MODEL = "model"
EXPORT_KEY_OPTIMIZER = "optimizer"
EXPORT_KEY_SCHEDULER = "scheduler"


def save_model_checkpoint(
    model: nn.Module,
    state_dict_type: StateDictType,
    save_dir: str,
    sharding_strategy: Any = None,
    checkpointing_pg_metadata: Any = None,
    log: bool = False,
    optimizer: torch.optim.Optimizer | None = None,
    scheduler: Any = None,
    extra_exports: dict[str, Any] | None = None,
) -> None:
    """Every rank writes its shards into the folder; torch writes each shard of replicas once."""
    _refuse(state_dict_type)
    dcp.save(_states(model, optimizer, scheduler, extra_exports), checkpoint_id=os.fspath(save_dir))
    if log:
        get_logger().info("The checkpoint is saved in %s.", save_dir)


def load_model_checkpoint(
    model: nn.Module,
    state_dict_type: StateDictType,
    checkpoint_dir: str,
    sharding_strategy: Any = None,
    checkpointing_pg_metadata: Any = None,
    log: bool = False,
    optimizer: torch.optim.Optimizer | None = None,
    scheduler: Any = None,
    extra_imports: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Every rank reads its shards; gives all three back, and what was saved beside them."""
    _refuse(state_dict_type)
    states = _states(model, optimizer, scheduler, extra_imports)
    dcp.load(states, checkpoint_id=os.fspath(checkpoint_dir))
    if optimizer is None:
        set_model_state_dict(model, states[EXPORT_KEY_MODEL])
    else:
        set_state_dict(
            model,
            optimizer,
            model_state_dict=states[EXPORT_KEY_MODEL],
            optim_state_dict=states[EXPORT_KEY_OPTIMIZER],
        )
    if scheduler is not None:
        scheduler.load_state_dict(states[EXPORT_KEY_SCHEDULER])
    if log:
        get_logger().info("The checkpoint is loaded from %s.", checkpoint_dir)
    return {
        EXPORT_KEY_MODEL: model,
        EXPORT_KEY_OPTIMIZER: optimizer,
        EXPORT_KEY_SCHEDULER: scheduler,
        EXPORT_KEY_IDENTITY: states.get(EXPORT_KEY_IDENTITY),
    }


def _states(
    model: nn.Module, optimizer: torch.optim.Optimizer | None, scheduler: Any, extra: dict[str, Any] | None
) -> dict[str, Any]:
    if optimizer is None:
        states: dict[str, Any] = {EXPORT_KEY_MODEL: get_model_state_dict(model)}
    else:
        of_model, of_optimizer = get_state_dict(model, optimizer)
        states = {EXPORT_KEY_MODEL: of_model, EXPORT_KEY_OPTIMIZER: of_optimizer}
    if scheduler is not None:
        states[EXPORT_KEY_SCHEDULER] = scheduler.state_dict()
    if extra is not None:
        states[EXPORT_KEY_IDENTITY] = dict(extra)
    return states


def _refuse(kind: StateDictType) -> None:
    if kind != StateDictType.SHARDED_STATE_DICT:
        raise ValueError(
            f"torch.sagemaker.distributed.fsdp.checkpoint is given {kind}; allowed is "
            f"StateDictType.SHARDED_STATE_DICT"
        )
