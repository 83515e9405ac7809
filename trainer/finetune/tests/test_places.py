"""The places from which a run goes on stay whole when a rank dies while it saves the next one."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import nn

from trainer.finetune.checkpoint import Places, Progress


def places_in(folder: Path) -> Places:
    train = SimpleNamespace(output_dir=str(folder), enable_fsdp=True, auto_resume=True, save_every=1)
    return Places(SimpleNamespace(train=train))


def made(value: float) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Linear(3, 2)
    nn.init.constant_(model.weight, value)
    return model, torch.optim.AdamW(model.parameters())


def die_while_writing(_: dict[str, Any], storage_writer: dcp.FileSystemWriter) -> None:
    for file in Path(storage_writer.path).glob("*"):
        file.write_bytes(b"")
    raise KeyboardInterrupt


def test_a_death_while_an_epochs_end_is_saved_leaves_the_place_of_its_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = places_in(tmp_path)
    places.save(*made(5), Progress(step=34, used=68))
    with monkeypatch.context() as dying:
        dying.setattr("trainer.finetune.checkpoint.dcp.save", die_while_writing)
        with pytest.raises(KeyboardInterrupt):
            places.save(*made(6), Progress(step=34, epoch=1))
    model, optimizer = made(-7)
    progress = places.load(places.latest(), model, optimizer)
    assert (progress.step, progress.epoch, progress.used) == (34, 0, 68)
    assert torch.equal(model.weight, torch.full((2, 3), 5.0))


def test_the_end_of_an_epoch_is_later_than_its_last_step_and_alone_stays(tmp_path: Path) -> None:
    places = places_in(tmp_path)
    places.save(*made(5), Progress(step=34, used=68))
    places.save(*made(6), Progress(step=34, epoch=1))
    model, optimizer = made(-7)
    assert places.load(places.latest(), model, optimizer).epoch == 1
    assert torch.equal(model.weight, torch.full((2, 3), 6.0))
    assert len(list((tmp_path / "resume").iterdir())) == 1
