"""The settings choose the device of a rank's tensors; these tests need no GPU."""

from pathlib import Path

import pytest
import torch

from trainer.fsdp import __main__ as entry
from trainer.fsdp.arguments import SettingsError, parse
from trainer.fsdp.device import device_of
from trainer.fsdp.tests.runs import on_ranks


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


def test_without_a_gpu_the_run_ends_with_status_2_and_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    log = tmp_path / "log"
    on_ranks(1, log, lambda: 0 if entry.main(["--ranks", "1", "--device", "cuda"]) == 2 else 1)
    assert log.read_text().count("\n") == 1
    assert "--device cuda: torch" in log.read_text()
