"""Saves what llama-recipes saves, and the places from which a restarted run goes on."""

import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import yaml
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.optim import Optimizer

from trainer.finetune.flags import Settings
from trainer.fsdp.attempt import launch_of

COMPLETE = "progress.json"
"""Written last, so that a folder without it is a save that did not finish."""

TRAINED = StateDictOptions(ignore_frozen_params=True, strict=False)


@dataclass
class Progress:
    """How far a run has come, apart from its weights; the same on every rank."""

    step: int = 0
    epoch: int = 0
    """Epochs that are done."""

    used: int = 0
    """Batches of all ranks that the epoch in hand has used."""

    loss: float = 0.0
    batches: int = 0
    """The sum of the losses of the epoch in hand, and how many they are."""

    rounds: int = 0
    """Batches of each rank in all epochs."""

    train_loss: list[float] = field(default_factory=list)
    eval_loss: list[float] = field(default_factory=list)


def writes() -> bool:
    """Tells if this rank writes the files that only one rank writes."""
    return not dist.is_initialized() or dist.get_rank() == 0


def recipes_folder(settings: Settings) -> Path:
    """The folder where llama-recipes leaves a sharded model."""
    train = settings.train
    return Path(f"{train.dist_checkpoint_root_folder}/{train.dist_checkpoint_folder}-{train.model_name}")


def save_for_recipes(settings: Settings, model: nn.Module, optimizer: Optimizer, epoch: int) -> Path:
    """Saves model, and optimizer where asked, as llama-recipes does; every rank calls it."""
    train, whole = settings.train, StateDictOptions(full_state_dict=True, cpu_offload=True)
    if not train.enable_fsdp:
        file = Path(train.output_dir) / "model.pt"
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), file)
        return file
    folder = recipes_folder(settings)
    if settings.fsdp.checkpoint_type == "SHARDED_STATE_DICT":
        state: dict[str, Any] = {"model": get_model_state_dict(model)}
        if train.save_optimizer:
            state["optim"] = get_optimizer_state_dict(model, optimizer)
        dcp.save(state, storage_writer=dcp.FileSystemWriter(folder, overwrite=True))
        return folder
    saved = {f"{_flat(train.model_name)}-{epoch}.pt": get_model_state_dict(model, options=whole)}
    if train.save_optimizer:
        name = f"optimizer-{_flat(train.model_name)}-{epoch}.pt"
        saved[name] = get_optimizer_state_dict(model, optimizer, options=whole)
    if writes():
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in saved.items():
            torch.save(content, folder / name)
    return folder


def write_parameters(settings: Settings) -> None:
    """Leaves train_params.yaml beside the model, by which llama-recipes' converter finds the model's name."""
    folder = recipes_folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    values = {key: str(value) for key, value in {**asdict(settings.train), **asdict(settings.fsdp)}.items()}
    (folder / "train_params.yaml").write_text(yaml.dump(values, indent=4))


class Places:
    """The folder of a run's own checkpoints, of which the last complete one is kept."""

    def __init__(self, settings: Settings) -> None:
        self._folder = Path(settings.train.output_dir) / "resume"
        restarts = int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0"))
        self._goes_on_always = settings.train.auto_resume
        self.used = settings.train.enable_fsdp and (
            restarts > 0 or self._goes_on_always or settings.train.save_every > 0
        )

    def latest(self) -> Path | None:
        """The last complete checkpoint of this launch, or of any launch under --auto_resume; rank 0 asks."""
        complete = sorted(self._folder.glob(f"step-*/{COMPLETE}"))
        if not complete:
            return None
        ours = json.loads(complete[-1].read_text())["launch"] == _launch()
        return complete[-1].parent if ours or self._goes_on_always else None

    def save(self, model: nn.Module, optimizer: Optimizer, progress: Progress) -> None:
        """Saves what the run needs to go on; every rank calls it."""
        # The last step of an epoch may be saved before validation and behind it.
        place = self._folder / f"step-{progress.step:08d}-{progress.epoch:04d}"
        dcp.save(_state(model, optimizer), storage_writer=dcp.FileSystemWriter(place, overwrite=True))
        if writes():
            content = {"launch": _launch(), "progress": asdict(progress)}
            (place / f"{COMPLETE}.new").write_text(json.dumps(content) + "\n")
            (place / f"{COMPLETE}.new").rename(place / COMPLETE)
            for other in self._folder.glob("step-*"):
                if other != place:
                    shutil.rmtree(other)

    def load(self, place: Path, model: nn.Module, optimizer: Optimizer) -> Progress:
        """Fills model and optimizer from a checkpoint, on any number of ranks."""
        state = _state(model, optimizer)
        dcp.load(state, checkpoint_id=place)
        set_state_dict(
            model,
            optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
            options=TRAINED,
        )
        return Progress(**json.loads((place / COMPLETE).read_text())["progress"])

    def remove(self) -> None:
        """Removes what an ended run does not need any more, and what a run that begins anew must not find."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _state(model: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
    model_state, optimizer_state = get_state_dict(model, optimizer, options=TRAINED)
    return {"model": model_state, "optimizer": optimizer_state}


def _flat(name: str) -> str:
    return name.replace("/", "--")


def _launch() -> str | None:
    return launch_of(os.environ.get("TORCHELASTIC_RUN_ID", "none"))
