"""The command line: TorchElastic's flags with its defaults, and what is refused."""

from pathlib import Path

import pytest

from trainer.ddp.arguments import SettingsError, parse


def test_the_defaults_are_those_of_the_program_that_is_followed() -> None:
    settings = parse(["/images"])
    assert (settings.arch, settings.workers, settings.epochs, settings.batch_size) == ("resnet18", 0, 90, 32)
    assert (settings.lr, settings.momentum, settings.weight_decay, settings.print_freq) == (
        0.1,
        0.9,
        1e-4,
        10,
    )
    assert settings.checkpoint_file == Path("/tmp/checkpoint.pth.tar")
    assert settings.dist_backend == "fccl" and settings.recovery == "restart"


def test_a_line_of_aws_is_understood() -> None:
    words = "--arch=resnet50 --epochs=20 --batch-size=32 --workers=0 --checkpoint-file=/c /workspace/data"
    settings = parse(words.split())
    assert (settings.arch, settings.epochs, settings.data) == ("resnet50", 20, Path("/workspace/data"))
    assert settings.summary_file == Path("/c.json")


def test_short_flags_are_those_of_the_program_that_is_followed() -> None:
    settings = parse(["-a", "efficientnet_b7", "-j", "2", "-b", "8", "--wd", "0.5", "-p", "3", "/images"])
    assert (settings.arch, settings.workers, settings.batch_size) == ("efficientnet_b7", 2, 8)
    assert (settings.weight_decay, settings.print_freq) == (0.5, 3)


def test_a_global_batch_is_shared_equally_or_refused() -> None:
    settings = parse(["--global-batch", "12", "/images"])
    assert [settings.batch_of_a_rank(ranks) for ranks in (1, 2, 3)] == [12, 6, 4]
    with pytest.raises(SettingsError, match="does not divide among 5 ranks"):
        settings.batch_of_a_rank(5)


@pytest.mark.parametrize(
    "words", ["--steps 0", "--epochs x", "--dist-backend mpi", "--precision bf8", "--dropout 2"]
)
def test_a_value_that_cannot_work_ends_with_status_two(words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        parse([*words.split(), "/images"])
    assert ended.value.code == 2
