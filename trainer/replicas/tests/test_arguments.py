"""The command line of replicas: its meaning, and what it refuses."""

from pathlib import Path

import pytest

from trainer.fsdp.arguments import SettingsError
from trainer.replicas.arguments import Place, among, ddp_settings, fsdp_settings, parse, place_of

TWO = ["--replicas", "2", "--nproc-per-node", "2", "-m", "trainer.fsdp"]
CLASSIFIERS = ["--replicas", "2", "-m", "trainer.ddp", "images"]


def test_the_batch_is_divided_among_those_who_take_part() -> None:
    settings = fsdp_settings(parse([*TWO, "--global-batch", "8"]))
    assert [among(settings, replicas).micro_batch for replicas in (1, 2)] == [4, 2]


def test_a_batch_that_does_not_divide_among_fewer_replicas_is_refused() -> None:
    words = ["--replicas", "3", "-m", "trainer.fsdp", "--global-batch", "9"]
    with pytest.raises(SettingsError, match="choose a multiple of 6"):
        fsdp_settings(parse(words))


@pytest.mark.parametrize("words", [["--fsdp1"], ["--strategy", "no_shard"], ["--resume", "run"]])
def test_what_replicas_cannot_do_is_refused(words: list[str]) -> None:
    with pytest.raises(SettingsError, match=words[0]):
        place_of(parse([*TWO, *words]))


@pytest.mark.parametrize("words", [["--samples", "folder"], ["--dist-backend", "gloo"]])
def test_what_replicas_of_classifiers_cannot_do_is_refused(words: list[str]) -> None:
    with pytest.raises(SettingsError, match=words[0]):
        place_of(parse([*CLASSIFIERS, *words]))


def test_the_batch_of_classifiers_is_that_of_all_replicas() -> None:
    assert ddp_settings(parse([*CLASSIFIERS, "--batch-size", "4"])).batch_of_a_rank(1) == 8


def test_the_run_has_the_folder_that_is_named_before_the_trainer_or_behind_it() -> None:
    named = ["--runs", "here", "--name", "this"]
    place = Place(Path("here"), "this", "tiny-replicas-2x2")
    assert place_of(parse([*named, *TWO])) == place_of(parse([*TWO, *named])) == place


def test_another_trainer_is_refused(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--replicas", "2", "-m", "trainer.cpp"])
    assert ended.value.code == 2 and "-m trainer.fsdp" in capsys.readouterr().err
