"""Where a rank's tensors are; no GPU is needed to ask."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from trainer.fsdp.arguments import SettingsError, parse
from trainer.fsdp.device import device_of

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> list[torch.device]:
    """Makes torch say that it has two GPUs; the devices that became current are the list."""
    current: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    return current


def test_tensors_are_the_processors_unless_told_otherwise(two_gpus: list[torch.device]) -> None:
    assert device_of(parse([])) == torch.device("cpu")
    assert two_gpus == []


@pytest.mark.parametrize(("local_rank", "gpu"), [("0", 0), ("1", 1), ("3", 1)])
def test_ranks_of_a_host_share_its_gpus(
    monkeypatch: pytest.MonkeyPatch, two_gpus: list[torch.device], local_rank: str, gpu: int
) -> None:
    monkeypatch.setenv("LOCAL_RANK", local_rank)
    device = device_of(parse(["--device", "cuda"]))
    assert device == torch.device("cuda", gpu)
    assert two_gpus == [device]


def test_without_a_gpu_the_trainer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SettingsError, match=r"--device cuda: torch .*leave --device out"):
        device_of(parse(["--device", "cuda"]))


def test_without_a_gpu_the_run_ends_with_status_2_and_one_sentence() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "trainer.fsdp", "--ranks", "1", "--device", "cuda"],
        cwd=REPOSITORY,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "--device cuda: torch" in ended.stderr
