"""Every strategy, on 2 and 4 ranks, learns what one process learns from the same batches."""

import pytest

from trainer.fsdp.tests.plain_loop import write_plain_losses
from trainer.fsdp.tests.runs import Run, Runs, on_ranks

# Four ranks are what makes two groups of shards; the other strategies are slow tests there.
EVERY_STRATEGY = [
    pytest.param(
        ranks, strategy, marks=[] if (ranks == 4) == (strategy == "hybrid_shard") else pytest.mark.slow
    )
    for strategy in ("full_shard", "shard_grad_op", "hybrid_shard", "no_shard")
    for ranks in (2, 4)
]


@pytest.fixture(scope="module")
def plain_losses(runs: Runs) -> list[float]:
    path = runs.folder / "plain-losses"
    on_ranks(1, runs.folder / "plain.log", lambda: write_plain_losses(path))
    return [float(line) for line in path.read_text().splitlines()]


def assert_same_losses(run: Run, plain_losses: list[float], tolerance: float = 1e-4) -> None:
    expected = dict(enumerate(plain_losses, start=1))
    assert len(expected) == 20 and expected[20] < expected[1] - 1
    differences = {step: abs(loss - expected[step]) for step, loss in run.losses.items()}
    assert max(differences) == 20
    assert max(differences.values()) < tolerance, differences


@pytest.mark.parametrize(("ranks", "strategy"), EVERY_STRATEGY)
def test_strategy_matches_one_process(
    runs: Runs, plain_losses: list[float], ranks: int, strategy: str
) -> None:
    assert_same_losses(runs.of(ranks, f"--strategy {strategy}"), plain_losses)


@pytest.mark.parametrize(
    ("ranks", "strategy"),
    [
        (2, "full_shard"),
        (4, "hybrid_shard"),
        *(
            pytest.param(4, each, marks=pytest.mark.slow)
            for each in ("full_shard", "shard_grad_op", "no_shard")
        ),
    ],
)
def test_older_class_matches_one_process(
    runs: Runs, plain_losses: list[float], ranks: int, strategy: str
) -> None:
    assert_same_losses(runs.of(ranks, f"--fsdp1 --strategy {strategy}"), plain_losses)


def test_accumulated_passes_match_one_process(runs: Runs, plain_losses: list[float]) -> None:
    assert_same_losses(runs.of(2, "--strategy full_shard --grad-accum 2"), plain_losses)


def test_activation_checkpointing_changes_nothing(runs: Runs, plain_losses: list[float]) -> None:
    assert_same_losses(runs.of(2, "--strategy full_shard --activation-checkpointing"), plain_losses)


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_bf16_stays_near_fp32_of_one_process(runs: Runs, plain_losses: list[float], ranks: int) -> None:
    assert_same_losses(runs.of(ranks, "--strategy full_shard --precision bf16"), plain_losses, 0.02)


@pytest.mark.parametrize("older_class", ["", pytest.param(" --fsdp1", marks=pytest.mark.slow)])
def test_resumed_on_two_ranks_goes_on_as_if_never_stopped(
    runs: Runs, plain_losses: list[float], older_class: str
) -> None:
    saved = runs.of(4, f"--strategy full_shard --save-every 10{older_class}")
    place = saved.folder / "checkpoints" / "step-000010"
    resumed = runs.of(2, f"--strategy full_shard --resume {place}{older_class}")
    assert min(resumed.losses) == 11
    assert_same_losses(saved, plain_losses)
    assert_same_losses(resumed, plain_losses)
