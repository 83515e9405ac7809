"""Saves model and optimizer as a distributed checkpoint, and loads it on any number of ranks."""

import json
from pathlib import Path
from typing import Any

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.optim import Optimizer

from trainer.fsdp.arguments import Settings, SettingsError

COMPLETE = "trainer.json"
"""Written last, so that a folder without it is a save that did not finish."""


def save(folder: Path, step: int, model: nn.Module, optimizer: Optimizer, shape: dict[str, Any]) -> Path:
    """Saves what a run needs to go on after `step`; all ranks call it."""
    place = folder / f"step-{step:06d}"
    dcp.save(_state(model, optimizer), checkpoint_id=place)
    if dist.get_rank() == 0:
        beside = place / f"{COMPLETE}.new"
        beside.write_text(json.dumps({"step": step, "shape": shape}, indent=2) + "\n")
        beside.rename(place / COMPLETE)
    dist.barrier()
    return place


def find(settings: Settings, shape: dict[str, Any]) -> Path:
    """The checkpoint that --resume means: the latest of a run, or the one it names."""
    named = Path(settings.resume)
    for place in (named, settings.runs / named):
        if (place / COMPLETE).is_file():
            return _of_this_shape(place, shape)
        newest = latest(place, shape)
        if newest:
            return newest
    raise SettingsError(
        f"--resume {settings.resume}: no finished checkpoint at {named} nor under {settings.runs / named}"
    )


def latest(folder: Path, shape: dict[str, Any]) -> Path | None:
    """The newest finished checkpoint of a run's folder."""
    complete = sorted(folder.glob(f"checkpoints/step-*/{COMPLETE}"))
    return _of_this_shape(complete[-1].parent, shape) if complete else None


def load(place: Path, model: nn.Module, optimizer: Optimizer) -> int:
    """Fills model and optimizer from a checkpoint; returns the step after which it was saved."""
    state = _state(model, optimizer)
    dcp.load(state, checkpoint_id=place)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    return json.loads((place / COMPLETE).read_text())["step"]


def _state(model: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
    model_state, optimizer_state = get_state_dict(model, optimizer)
    return {"model": model_state, "optimizer": optimizer_state}


def _of_this_shape(place: Path, shape: dict[str, Any]) -> Path:
    saved = json.loads((place / COMPLETE).read_text())["shape"]
    different = [
        f"{key}: {saved.get(key)} there, {value} here"
        for key, value in shape.items()
        if saved.get(key) != value
    ]
    if different:
        raise SettingsError(f"{place} holds another model ({'; '.join(different)}): give its --model")
    return place
