"""These end the command before a replica starts."""

from pathlib import Path

import pytest

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
