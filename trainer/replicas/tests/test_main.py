"""These end the command before a replica starts."""

from pathlib import Path

import pytest

from trainer.ddp.tests.images import four_colours
from trainer.replicas.__main__ import main


def test_a_name_that_is_taken_ends_with_status_2(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "taken").mkdir()
    words = ["--replicas", "2", "--runs", str(tmp_path), "--name", "taken", "-m", "trainer.fsdp"]
    assert main(words) == 2
    assert "--name taken" in capsys.readouterr().err


def test_images_that_are_not_there_end_with_status_2(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    pytest.importorskip("torchvision")
    images = tmp_path / "images"
    assert main(["--replicas", "2", "--runs", str(tmp_path), "-m", "trainer.ddp", str(images)]) == 2
    assert str(images) in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    pytest.importorskip("torchvision")
    images = four_colours(tmp_path / "images", 2)
    (tmp_path / "file").touch()
    words = ["--replicas", "2", "--runs", str(tmp_path / "runs"), "-m", "trainer.ddp", str(images)]
    words += ["--global-batch", "4", "--checkpoint-file", str(tmp_path / "file" / "checkpoint")]
    assert main(words) == 2
    assert "--checkpoint-file" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
