"""A run leaves checkpoints, also where hosts have no disk in common, the summary, and the samples."""

import hashlib
import io
import json
import os
import time
from pathlib import Path
from typing import Any

import fccl
import pytest
import torch

pytest.importorskip("torchvision")

from trainer.ddp import __main__ as entry
from trainer.ddp import checkpoint, training
from trainer.ddp.arguments import SettingsError
from trainer.ddp.record import SampleLines
from trainer.ddp.tests.jobs import SMALL, Job
from trainer.ddp.tests.ranks import train_on
from trainer.fsdp.tests.runs import on_ranks

RANKS = 2


def of_host(folder: Path, rank: int) -> Path:
    return folder / f"host-{rank}" / "checkpoint"


def train_on_hosts(folder: Path, data: Path, steps: int, *words: str) -> None:
    """One rank on each of two hosts, whose checkpoints lie on disks of their own."""

    def body() -> int:
        torch.set_num_threads(1)
        os.environ["LOCAL_RANK"] = "0"
        own = str(of_host(folder, int(os.environ["RANK"])))
        own_words = ["--steps", str(steps), "--checkpoint-file", own]
        return entry.main([str(data), *SMALL, *own_words, *words])

    on_ranks(RANKS, folder / "printed", body)


@pytest.mark.slow
def test_the_newest_checkpoint_of_any_host_is_that_of_all(tmp_path: Path, data: Path) -> None:
    train_on_hosts(tmp_path, data, steps=1)
    older = of_host(tmp_path, 0).read_bytes()
    train_on_hosts(tmp_path, data, steps=3)
    of_host(tmp_path, 0).write_bytes(older)
    train_on_hosts(tmp_path, data, steps=4)
    attempts = [
        [attempt["step"] for attempt in torch.load(of_host(tmp_path, rank))["history"]["attempts"]]
        for rank in range(RANKS)
    ]
    assert attempts == [[0, 1, 3]] * RANKS
    straight = tmp_path / "straight"
    straight.mkdir()
    train_on_hosts(straight, data, steps=4)
    hashes = [
        json.loads(of_host(folder, 0).with_name("checkpoint.json").read_text())["weights_sha256"]
        for folder in (tmp_path, straight)
    ]
    assert hashes[0] == hashes[1]


@pytest.mark.slow
def test_the_hosts_write_the_same_weights_in_every_checkpoint(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = checkpoint.save

    def noted_save(path: Path, state: dict[str, Any]) -> None:
        save(path, state)
        digest = hashlib.sha256()
        for tensor in state["state_dict"].values():
            digest.update(tensor.numpy().tobytes())
        with path.with_name("saves").open("a") as file:
            file.write(f"{state['step']} {digest.hexdigest()}\n")

    monkeypatch.setattr(checkpoint, "save", noted_save)
    train_on_hosts(tmp_path, data, 3, "--checkpoint-every", "1")
    one, other = (of_host(tmp_path, rank).with_name("saves").read_text() for rank in range(RANKS))
    assert [line.split()[0] for line in one.splitlines()] == ["0", "1", "2", "3", "3"]
    assert one == other


@pytest.mark.slow
def test_a_checkpoint_and_a_summary_hold_what_the_page_lists(undisturbed: Job) -> None:
    state = torch.load(undisturbed.folder / "checkpoint")
    of_elastic = {"epoch", "best_acc1", "arch", "state_dict", "optimizer"}
    assert set(state) == of_elastic | {"step", "used", "seed", "history"}
    assert (state["step"], state["seed"], state["arch"]) == (8, 5, "resnet18")
    summary = undisturbed.summary
    told = ["status", "attempts", "steps", "worlds", "epochs", "weights_sha256", "share"]
    assert list(summary) == told
    assert (summary["attempts"], summary["steps"], summary["worlds"]) == (1, 8, [RANKS])
    assert [list(epoch) for epoch in summary["epochs"]] == 2 * [
        ["epoch", "images", "seconds", "train_loss", "acc1", "acc5"]
    ]
    assert list(summary["share"]) == ["data", "compute", "collectives"]


def test_a_save_that_fails_leaves_the_older_checkpoint_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "checkpoint"
    checkpoint.save(path, {"step": 1})

    def fill_the_disk(_state, file) -> None:
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", fill_the_disk)
    with pytest.raises(SettingsError, match="No space left"):
        checkpoint.save(path, {"step": 2})
    assert torch.load(path) == {"step": 1} and list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_named_as_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "open", lambda _path, mode: io.FileIO("/dev/full", mode))
    with pytest.raises(SettingsError, match="could not write it: No space left"):
        checkpoint.save(tmp_path / "checkpoint", {"weights": torch.ones(100_000)})


def test_what_killed_ranks_have_left_beside_a_checkpoint_is_removed_after_a_while(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    checkpoint.save(path, {"step": 1})
    old, young = (tmp_path / f".checkpoint.host.{number}.new" for number in range(2))
    for each in (old, young):
        each.write_text("half of it")
    begun = time.time() - checkpoint.REMAINS_SECONDS - 10
    for each in (old, path):
        os.utime(each, (begun, begun))
    checkpoint.remove_remains(path)
    assert sorted(tmp_path.iterdir()) == [young, path]


@pytest.mark.slow
def test_images_that_one_host_lacks_are_named_by_the_first_rank(tmp_path: Path, data: Path) -> None:
    (tmp_path / "host-0").symlink_to(data)

    def body() -> int:
        torch.set_num_threads(1)
        images = str(tmp_path / f"host-{os.environ['RANK']}")
        return entry.main([images, *SMALL, "--checkpoint-file", str(tmp_path / "checkpoint")])

    # The first rank speaks; the other is ended then, as by torchrun.
    with pytest.raises(AssertionError, match=r"exit statuses by rank: \[2, (2|-9)\]"):
        on_ranks(RANKS, tmp_path / "printed", body)
    said = (tmp_path / "printed").read_text()
    assert f"trainer.ddp: rank 1: {tmp_path}/host-1/train: found no folder" in said, said


def calls() -> int:
    return sum(each["calls"] for each in fccl.counters().values())


@pytest.mark.slow
def test_a_rank_notes_its_images_before_the_first_collective_of_the_step(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, write = training.Trainer._step, SampleLines.write
    before: list[int] = []

    def counted_step(trainer) -> None:
        before.append(calls())
        step(trainer)
        assert calls() > before[-1]

    def counted_write(lines, *facts) -> None:
        assert calls() == before[-1], "a collective came first"
        write(lines, *facts)

    monkeypatch.setattr(training.Trainer, "_step", counted_step)
    monkeypatch.setattr(SampleLines, "write", counted_write)
    words = [str(data), *SMALL, "--steps", "2", "--samples", str(tmp_path / "samples")]
    train_on(RANKS, tmp_path, [*words, "--checkpoint-file", str(tmp_path / "checkpoint")])
    lines = [file.read_text().splitlines() for file in (tmp_path / "samples").iterdir()]
    assert [len(each) for each in lines] == [2] * RANKS
