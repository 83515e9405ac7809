"""Two ranks of trainer.ddp train, or end with one sentence, under the argument lines of AWS's DDP jobs."""

from pathlib import Path

import pytest
import torch
from table import CLASSIFIER_LINES, CLASSIFIER_REFUSALS, Row

pytest.importorskip("torchvision")

from trainer.ddp.tests.images import four_colours
from trainer.ddp.tests.ranks import train_on

pytestmark = pytest.mark.slow

IMAGES = 64
"""A step of two ranks with the default of 32 images each."""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return four_colours(tmp_path_factory.mktemp("images"), IMAGES // 4)


def train(row: Row, images: Path, folder: Path) -> Path:
    """The checkpoint of one step."""
    checkpoint = folder / "checkpoint.pth.tar"
    small = ["--image-size=32", "--steps=1", f"--checkpoint-file={checkpoint}"]
    train_on(2, folder, [*row.words, str(images), *small])
    return checkpoint


@pytest.mark.parametrize("row", CLASSIFIER_LINES, ids=lambda row: row.name)
def test_two_ranks_train_with(row: Row, images: Path, tmp_path: Path) -> None:
    checkpoint = torch.load(train(row, images, tmp_path), weights_only=False)
    assert checkpoint["step"] == 1
    assert {"epoch", "best_acc1", "arch", "state_dict", "optimizer"} <= set(checkpoint)


@pytest.mark.parametrize("row", CLASSIFIER_REFUSALS, ids=lambda row: row.name)
def test_two_ranks_end_with_one_sentence_given(row: Row, images: Path, tmp_path: Path) -> None:
    if row.name == "nccl" and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    # The first rank speaks; the other is ended then, as by torchrun.
    with pytest.raises(AssertionError, match=r"exit statuses by rank: \[2, (2|-9)\]"):
        train(row, images, tmp_path)
    said = (tmp_path / "printed").read_text()
    sentences = {line for line in said.splitlines() if line.startswith("trainer.ddp: ")}
    assert len(sentences) == 1 and row.words[0].split("=")[0] in sentences.pop(), said
    assert "Traceback" not in said
