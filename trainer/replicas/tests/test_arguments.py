"""The command line of replicas: its meaning, and what it refuses."""

import pytest

from trainer.fsdp.arguments import SettingsError
from trainer.replicas.arguments import among, parse, trainer_settings

TWO = ["--replicas", "2", "--nproc-per-node", "2", "-m", "trainer.fsdp"]


def test_the_batch_is_divided_among_those_who_take_part() -> None:
    settings = trainer_settings(parse([*TWO, "--global-batch", "8"]))
    assert [among(settings, replicas).micro_batch for replicas in (1, 2)] == [4, 2]


def test_a_batch_that_does_not_divide_among_fewer_replicas_is_refused() -> None:
    words = ["--replicas", "3", "-m", "trainer.fsdp", "--global-batch", "9"]
    with pytest.raises(SettingsError, match="choose a multiple of 6"):
        trainer_settings(parse(words))


@pytest.mark.parametrize("words", [["--fsdp1"], ["--strategy", "no_shard"], ["--resume", "run"]])
def test_what_replicas_cannot_do_is_refused(words: list[str]) -> None:
    with pytest.raises(SettingsError, match=words[0]):
        trainer_settings(parse([*TWO, *words]))


def test_another_trainer_is_refused(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--replicas", "2", "-m", "trainer.cpp"])
    assert ended.value.code == 2 and "-m trainer.fsdp" in capsys.readouterr().err
