"""The files of a run, the messages for wrong arguments and failures, and the same draws as numpy's."""

import os
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from trainer.cpp.tests.runs import PROGRAMS, SHORT, Runs, mpirun


def test_a_run_leaves_losses_and_their_curve_and_ends_with_a_summary(runs: Runs) -> None:
    run = runs.of(2, "--steps 5 --save-every 0")
    assert "step 5 of 5: loss " in run.printed
    assert sorted(path.name for path in run.folder.iterdir()) == ["loss.svg", "losses.csv"]
    assert list(run.losses) == [1, 2, 3, 4, 5]
    assert run.summary["loss"] == run.losses[5]
    (curve,) = ElementTree.parse(run.folder / "loss.svg").iter("{http://www.w3.org/2000/svg}polyline")
    assert len(curve.attrib["points"].split()) == 5


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--global-batch 7", "--global-batch 7 does not divide among 2 ranks: choose a multiple of 2"),
        ("--steps x", "--steps wants a number of at least 1, but got 'x'"),
        ("--optimizer lion", "--optimizer knows adamw sgd, but got 'lion'"),
        ("--device cuda", "--device knows cpu, but got 'cuda'"),
        ("--epochs 3", "--epochs: no such argument; --help lists them"),
        ("--steps", "--steps wants a value"),
        ("--resume gone --runs no", "--resume gone: no finished checkpoint there, nor under no/gone"),
        ("--name usr --runs /", "--name usr: /usr is there already; choose another name"),
        ("--data /nowhere", "--data /nowhere: no such file or folder"),
    ],
)
def test_wrong_arguments_are_one_sentence_and_status_two(words: str, sentence: str) -> None:
    ended = mpirun("-np", "2", "trainer", *SHORT, *words.split())
    assert ended.returncode == 2
    said = [line for line in ended.stderr.splitlines() if line.startswith("fccl_trainer: ")]
    assert said == [f"fccl_trainer: {sentence}"]


def test_a_checkpoint_of_another_model_is_refused(runs: Runs) -> None:
    saved = runs.of(2, "--steps 2")
    ended = mpirun("-np", "2", "trainer", *SHORT, "--layers", "3", "--resume", str(saved.folder))
    assert ended.returncode == 2
    assert "holds another model (float32 adamw 4 64 " in ended.stderr


def test_a_checkpoint_that_has_made_its_steps_is_refused(runs: Runs) -> None:
    saved = runs.of(2, "--steps 2")
    ended = mpirun("-np", "2", "trainer", *SHORT, "--steps", "2", "--resume", str(saved.folder))
    assert ended.returncode == 2
    assert "has made 2 steps already: choose more --steps" in ended.stderr


def test_a_checkpoint_with_a_negative_step_is_refused(tmp_path: Path) -> None:
    (tmp_path / "complete").write_text("-5 float32 adamw 4 64 176 4 257\n")
    ended = mpirun("-np", "2", "trainer", *SHORT, "--resume", str(tmp_path))
    assert ended.returncode == 2
    assert "says that it has made -5 steps: its file 'complete' is damaged" in ended.stderr


@pytest.mark.parametrize("kind", ["an empty file", "a fifo"])
def test_a_save_whose_mark_is_damaged_is_passed_over_for_the_one_before(tmp_path: Path, kind: str) -> None:
    for step, mark in ((3, "-3 another model\n"), (6, "")):
        folder = tmp_path / "checkpoints" / f"step-{step:06}"
        folder.mkdir(parents=True)
        if mark or kind == "an empty file":
            (folder / "complete").write_text(mark)
        else:
            os.mkfifo(folder / "complete")
    ended = mpirun("-np", "2", "trainer", *SHORT, "--resume", str(tmp_path))
    assert ended.returncode == 2
    assert "step-000003 says that it has made -3 steps" in ended.stderr


def test_ranks_that_differ_print_what_fccl_says_and_fail(tmp_path: Path) -> None:
    program = ["-np", "1", "trainer", *SHORT, "--runs", str(tmp_path), "--hidden"]
    ended = mpirun(*program, "64", ":", *program, "128")
    assert ended.returncode != 0
    assert re.search(
        r"^rank \d: the ranks' calls differ: .* called AllGather of \d+ float32", ended.stderr, re.M
    )


SEEDS = [(0, 1, 1000), (7, 350, 2_000_000_011), (2**40 + 3, 2, 3_000_000_000)]


@pytest.mark.parametrize(("seed", "step", "end"), SEEDS)
def test_draws_are_those_of_numpy(seed: int, step: int, end: int) -> None:
    words = [str(PROGRAMS / "draws"), str(seed), str(step), str(end), "1000"]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    expected = np.random.default_rng((seed, step)).integers(0, end, size=1000)
    assert [int(line) for line in printed.split()] == expected.tolist()
