"""Doubles and plain SGD make sharded runs comparable to one process; half precision learns."""

import hashlib

import pytest
import torch

from trainer.fsdp.arguments import parse
from trainer.fsdp.optimizer import make_optimizer
from trainer.fsdp.tests.plain_loop import write_plain_losses
from trainer.fsdp.tests.runs import SMALL, Run, Runs, on_ranks

EXACT = ["--precision", "fp64", "--optimizer", "sgd", "--lr", "0.1"]
"""Arguments under which losses may differ by rounding of doubles alone."""


def plain_losses_of(runs: Runs, words: list[str]) -> dict[int, float]:
    """The losses of one process with these arguments, by step."""
    path = runs.folder / f"plain-{hashlib.sha256(repr(words).encode()).hexdigest()[:16]}"
    if not path.exists():
        on_ranks(1, path.with_suffix(".log"), lambda: write_plain_losses(path, words))
    return dict(enumerate(map(float, path.read_text().splitlines()), start=1))


def largest_difference(run: Run, plain: dict[int, float]) -> float:
    assert run.losses.keys() == plain.keys() and len(plain) == 20
    return max(abs(loss - plain[step]) for step, loss in run.losses.items())


@pytest.mark.parametrize(
    ("ranks", "more"),
    [
        pytest.param(4, "", marks=pytest.mark.slow),
        (2, "--fsdp1"),
        pytest.param(4, "--fsdp1 --strategy hybrid_shard", marks=pytest.mark.slow),
        (4, "--tensor-parallel 2"),
        pytest.param(4, "--tensor-parallel 4", marks=pytest.mark.slow),
        pytest.param(4, "--tensor-parallel 2 --strategy no_shard", marks=pytest.mark.slow),
        pytest.param(8, "--tensor-parallel 2 --strategy hybrid_shard", marks=pytest.mark.slow),
        pytest.param(2, "--selective-checkpointing 2", marks=pytest.mark.slow),
        pytest.param(2, "--fsdp1 --selective-checkpointing 3", marks=pytest.mark.slow),
        pytest.param(4, "--fsdp1 --strategy no_shard", marks=pytest.mark.slow),
    ],
)
def test_doubles_with_sgd_match_one_process_to_a_billionth(runs: Runs, ranks: int, more: str) -> None:
    plain = plain_losses_of(runs, [*SMALL, *EXACT])
    assert plain[20] < plain[1] - 0.2
    assert largest_difference(runs.of(ranks, f"{more} {' '.join(EXACT)}".strip()), plain) < 1e-9


@pytest.mark.parametrize(
    ("words", "decay"),
    [
        ("", 0.1),
        ("--optimizer sgd", 0.0),
        ("--optimizer sgd --weight-decay 0.2", 0.2),
        ("--weight-decay 0", 0.0),
    ],
)
def test_weights_decay_by_the_optimizers_default_unless_it_is_given(words: str, decay: float) -> None:
    optimizer = make_optimizer(parse(words.split()), [torch.nn.Parameter(torch.ones(2))])
    assert [group["weight_decay"] for group in optimizer.param_groups] == [decay]


@pytest.mark.slow
def test_tensor_parallel_adamw_matches_one_process(runs: Runs) -> None:
    words = ["--precision", "fp64", "--tensor-parallel", "2"]
    plain = plain_losses_of(runs, [*SMALL, "--precision", "fp64"])
    run = runs.of(4, " ".join(words))
    assert run.summary["tensor_parallel"] == 2
    assert run.summary["peak_bytes_per_rank"] > 1 << 20
    assert largest_difference(run, plain) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp16", "pure_bf16"])
def test_half_precision_learns(runs: Runs, precision: str) -> None:
    run = runs.of(2, f"--precision {precision}")
    assert run.summary["last_loss"] < run.summary["first_loss"] - 1
    assert run.losses[20] < run.losses[1] - 1
