"""The checkpoints of the samples: a model, its optimizer and its scheduler in one folder."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

EXPORT_KEY_IDENTITY = "identity"
EXPORT_KEY_MODEL = "model"
EXPORT_KEY_OPTIMIZER = "optimizer"
EXPORT_KEY_SCHEDULER = "scheduler"


def save_model_checkpoint(
    model: nn.Module,
    folder: str,
    optimizer: torch.optim.Optimizer,
    scheduler: Any = None,
    extra_exports: Any = None,
) -> None:
    """Every rank writes its shards into the folder."""
    dcp.save(_states(model, optimizer, scheduler, extra_exports), checkpoint_id=os.fspath(folder))


def load_model_checkpoint(
    model: nn.Module,
    folder: str,
    optimizer: torch.optim.Optimizer,
    scheduler: Any = None,
    extra_imports: Any = None,
) -> Any:
    """Every rank reads its shards; gives back what was saved beside them."""
    states = _states(model, optimizer, scheduler, extra_imports)
    dcp.load(states, checkpoint_id=os.fspath(folder))
    set_state_dict(
        model,
        optimizer,
        model_state_dict=states[EXPORT_KEY_MODEL],
        optim_state_dict=states[EXPORT_KEY_OPTIMIZER],
    )
    if scheduler is not None:
        scheduler.load_state_dict(states[EXPORT_KEY_SCHEDULER])
    return states.get(EXPORT_KEY_IDENTITY)


def _states(model: nn.Module, optimizer: torch.optim.Optimizer, scheduler: Any, extra: Any) -> dict[str, Any]:
    of_model, of_optimizer = get_state_dict(model, optimizer)
    states = {EXPORT_KEY_MODEL: of_model, EXPORT_KEY_OPTIMIZER: of_optimizer}
    if scheduler is not None:
        states[EXPORT_KEY_SCHEDULER] = scheduler.state_dict()
    if extra is not None:
        states[EXPORT_KEY_IDENTITY] = extra
    return states
