"""Losses of sharded runs against a plain loop on the same samples, in doubles."""

import pytest

from trainer.finetune.tests.plain_loop import BATCH, plain_losses, plain_model, samples_of, with_adapter
from trainer.finetune.tests.runs import Runs

pytestmark = pytest.mark.slow

WHOLE = "--num_epochs 2 --max_train_step 40"
ADAPTER = "--use_peft --lora_dropout 0 --num_epochs 1"


def assert_as_plain(runs: Runs, ranks: int, arguments: str, padding: bool = False) -> None:
    run = runs.of(ranks, arguments)
    losses = [line["loss"] for line in run.lines]
    assert len(losses) >= 20 and losses[0] != losses[-1]
    assert losses == pytest.approx(
        plain_losses(runs, plain_model(runs), run.lines, max(1, ranks), padding), abs=1e-9
    )


def test_two_ranks_that_accumulate_two_batches_lose_what_one_process_does(runs: Runs) -> None:
    assert_as_plain(runs, 2, f"{WHOLE} --gradient_accumulation_steps 2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "arguments"),
    [
        (0, "--max_train_step 20"),
        (1, "--max_train_step 20"),
        (1, "--max_train_step 40 --gradient_accumulation_steps 2"),
        (2, "--max_train_step 20 --nofsdp_config.fsdp_activation_checkpointing"),
        (4, "--num_epochs 3 --max_train_step 24"),
        (4, "--num_epochs 4 --gradient_accumulation_steps 2"),
        (4, "--num_epochs 4 --max_train_step 20 --sharding_strategy SHARD_GRAD_OP"),
        (4, "--num_epochs 4 --max_train_step 20 --sharding_strategy NO_SHARD"),
        (
            4,
            "--num_epochs 4 --max_train_step 20 --hsdp --sharding_strategy HYBRID_SHARD "
            "--sharding_group_size 2",
        ),
    ],
)
def test_every_number_of_ranks_and_strategy_loses_what_one_process_does(
    runs: Runs, ranks: int, arguments: str
) -> None:
    assert_as_plain(runs, ranks, arguments)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [0, 2])
def test_half_precision_is_used_and_stays_near(runs: Runs, ranks: int) -> None:
    few = "--max_train_step 3 --norun_validation --nosave_model --nosave_hf"
    whole, half = (runs.of(ranks, f"{few} --precision {kind}").lines for kind in ("fp32", "bf16"))
    whole, half = ([line["loss"] for line in lines] for lines in (whole, half))
    assert half != whole and half == pytest.approx(whole, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [0, 2])
def test_padded_batches_lose_what_one_process_does(runs: Runs, ranks: int) -> None:
    assert_as_plain(
        runs, ranks, "--batching_strategy padding --num_epochs 3 --max_train_step 24", padding=True
    )


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_an_adapter_loses_what_pefts_does_in_one_process(runs: Runs, ranks: int) -> None:
    first = runs.of(2, f"{ADAPTER} --lr 0 --max_train_step 1")
    run = runs.of(ranks, f"{ADAPTER} --num_epochs 3 --max_train_step 20")
    losses = plain_losses(runs, with_adapter(plain_model(runs), first), run.lines, ranks)
    assert len(losses) == 20
    assert [line["loss"] for line in run.lines] == pytest.approx(losses, abs=1e-9)


@pytest.mark.parametrize(
    ("ranks", "arguments"),
    [
        pytest.param(1, "--num_epochs 1", marks=pytest.mark.slow),
        (2, f"{WHOLE} --gradient_accumulation_steps 2"),
        pytest.param(4, "--num_epochs 4 --gradient_accumulation_steps 2", marks=pytest.mark.slow),
    ],
)
def test_an_epoch_takes_no_sample_twice_and_all_but_a_rest(runs: Runs, ranks: int, arguments: str) -> None:
    lines = runs.of(ranks, arguments).lines
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
    first = [number for line in lines if line["epoch"] == 1 for number in line["samples"]]
    chunks, together = len(samples_of(runs, training=True)), ranks * BATCH
    assert chunks % together, "there would be no rest"
    assert len(first) == len(set(first)) == chunks // together * together
    assert min(first) >= 0 and max(first) < chunks
