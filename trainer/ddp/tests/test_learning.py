"""Learning over fccl gives the weights that Gloo gives, and a good model."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torchvision")

from trainer.ddp.tests.images import four_colours
from trainer.ddp.tests.ranks import train_on

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def summary_of(folder: Path, data: Path, words: str) -> dict:
    folder.mkdir(exist_ok=True)
    train_on(2, folder, [str(data), *words.split(), "--checkpoint-file", str(folder / "c")])
    return json.loads((folder / "c.json").read_text())


@pytest.mark.parametrize("arch", ["resnet50", "efficientnet_b7"])
def test_three_steps_lose_what_they_lose_over_gloo(tmp_path: Path, arch: str) -> None:
    images = four_colours(tmp_path / "images", 4)
    words = f"--arch {arch} --image-size 64 --steps 3 -b 2 --precision fp64 --lr 0.01"
    ours, theirs = (
        summary_of(tmp_path / backend, images, f"{words} --dist-backend {backend}")
        for backend in ("fccl", "gloo")
    )
    assert ours["steps"] == theirs["steps"] == 3
    assert ours["epochs"][0]["train_loss"] == pytest.approx(theirs["epochs"][0]["train_loss"], abs=1e-9)
    # A sum of two numbers does not depend on their order.
    assert ours["weights_sha256"] == theirs["weights_sha256"]


def test_resnet18_learns_four_colours(tmp_path: Path, data: Path) -> None:
    words = "--image-size 32 --global-batch 12 --epochs 16 --lr 0.005 --print-freq 1000"
    summary = summary_of(tmp_path, data, words)
    # With so few images an epoch may be worse than the one before, and processors differ in their sums.
    assert max(epoch["acc1"] for epoch in summary["epochs"]) > 90
    assert sum(summary["share"].values()) == pytest.approx(1)
    assert all(epoch["images"] == 48 and epoch["seconds"] > 0 for epoch in summary["epochs"])
