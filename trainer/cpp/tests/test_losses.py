"""Any number of ranks learns what one rank does, a resumed run goes on, AdamW learns as in trainer/fsdp."""

import json

import pytest

from trainer.cpp.tests.runs import SHORT, Run, Runs
from trainer.fsdp import __main__ as fsdp
from trainer.fsdp.tests.runs import on_ranks

PLAIN = "--optimizer sgd --lr 0.1 --warmup 5 --save-every 0 --steps 50"


def assert_same_losses(run: Run, other: Run, tolerance: float) -> None:
    expected = other.losses
    assert len(expected) == 50 and expected[50] < expected[1] - 1
    differences = {step: abs(loss - expected[step]) for step, loss in run.losses.items()}
    assert max(differences) == 50
    assert max(differences.values()) < tolerance, differences


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-4)])
def test_plain_descent_matches_one_rank(runs: Runs, ranks: int, dtype: str, tolerance: float) -> None:
    one = runs.of(1, f"{PLAIN} --dtype {dtype}")
    many = runs.of(ranks, f"{PLAIN} --dtype {dtype}")
    assert list(many.losses) == list(range(1, 51))
    assert_same_losses(many, one, tolerance)


def test_a_width_that_no_number_of_ranks_divides_matches_one_rank(runs: Runs) -> None:
    arguments = f"{PLAIN} --dtype float64 --hidden 56 --layers 1 --global-batch 6"
    assert_same_losses(runs.of(3, arguments), runs.of(1, arguments), 1e-9)


def test_four_ranks_resumed_on_two_go_on_as_if_never_stopped(runs: Runs) -> None:
    arguments = "--lr 3e-3 --steps 50 --dtype float64"
    never_stopped = runs.of(4, f"{arguments} --save-every 25")
    assert [path.name for path in sorted((never_stopped.folder / "checkpoints").iterdir())] == [
        "step-000025",
        "step-000050",
    ]
    place = never_stopped.folder / "checkpoints" / "step-000025"
    resumed = runs.of(2, f"{arguments} --save-every 0 --resume {place}")
    assert min(resumed.losses) == 26
    assert_same_losses(resumed, never_stopped, 1e-9)


def test_adamw_learns_what_the_trainer_in_python_learns(runs: Runs) -> None:
    ours = runs.of(2, "--steps 150 --save-every 0")
    words = [*SHORT, "--steps", "150", "--save-every", "0", "--validate-every", "0", "--sample-tokens", "0"]
    words += ["--runs", str(runs.folder), "--name", "python"]
    on_ranks(2, runs.folder / "python.log", lambda: fsdp.main(words))
    lines = map(json.loads, (runs.folder / "python" / "metrics.jsonl").read_text().splitlines())
    theirs = [line["loss"] for line in lines]
    last = sum(list(ours.losses.values())[-20:]) / 20
    expected = sum(theirs[-20:]) / 20
    assert expected < theirs[0] - 2
    assert abs(last - expected) < 0.02 * expected, (last, expected)
