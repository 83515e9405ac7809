"""The calls that were counted while training are those that the strategy implies."""

import pytest

from trainer.fsdp.arguments import parse
from trainer.fsdp.collectives import added
from trainer.fsdp.dry_run import collectives_per_step, groups_of, shapes_only
from trainer.fsdp.model import empty_model
from trainer.fsdp.tensors import collectives_of_tensors, split_without_ranks
from trainer.fsdp.tests.runs import BACKEND, SMALL, Runs, forbid_gloo, on_ranks
from trainer.fsdp.tests.test_matches_one_process import EVERY_STRATEGY
from trainer.fsdp.tests.test_precision import EXACT


def test_full_shard_takes_nine_all_gathers_and_five_reduce_scatters_per_step(runs: Runs) -> None:
    run = runs.of(2, "--strategy full_shard")
    assert run.summary["backend"] == BACKEND
    assert run.summary["trained_steps"] == 20
    assert run.calls_per_step("all_gather") == 9
    assert run.calls_per_step("reduce_scatter") == 5


@pytest.mark.parametrize(("ranks", "strategy"), EVERY_STRATEGY)
def test_counts_are_those_of_the_dry_run(runs: Runs, ranks: int, strategy: str) -> None:
    settings = parse([*SMALL, "--strategy", strategy, "--ranks", str(ranks)])
    planned = collectives_per_step(settings, groups_of(shapes_only(settings)))
    summary = runs.of(ranks, f"--strategy {strategy}").summary
    for name, tally in planned.items():
        counted = summary["collectives"][name]
        assert (name, counted["calls"], counted["bytes"]) == (name, tally.calls * 20, tally.bytes * 20)


@pytest.mark.parametrize(
    ("ranks", "arguments"),
    [
        (4, ""),
        pytest.param(2, "", marks=pytest.mark.slow),
        pytest.param(4, "--selective-checkpointing 3 --grad-accum 2", marks=pytest.mark.slow),
        pytest.param(8, "--strategy hybrid_shard", marks=pytest.mark.slow),
    ],
)
def test_counts_of_split_tensors_are_those_of_the_dry_run(runs: Runs, ranks: int, arguments: str) -> None:
    words = [*EXACT, "--tensor-parallel", "2", *arguments.split()]
    settings = parse([*SMALL, *words, "--ranks", str(ranks)])
    model = empty_model(settings)
    plan = split_without_ranks(model, settings)
    planned = added(
        collectives_per_step(settings, groups_of(model)), collectives_of_tensors(model, settings, plan, 8)
    )
    words = ["--tensor-parallel", "2", *arguments.split(), *EXACT]
    summary = runs.of(ranks, " ".join(words)).summary
    for name, tally in planned.items():
        counted = summary["collectives"][name]
        assert (name, counted["calls"], counted["bytes"]) == (name, tally.calls * 20, tally.bytes * 20)


def test_counts_leave_out_validation_and_saving(runs: Runs) -> None:
    run = runs.of(2, "--strategy full_shard --validate-every 7 --save-every 5")
    assert run.calls_per_step("all_gather") == 9
    assert run.calls_per_step("reduce_scatter") == 5


def test_without_gloo_means_that_gloo_cannot_start(runs: Runs) -> None:
    def start_gloo() -> int:
        forbid_gloo()
        import torch.distributed as dist

        try:
            dist.init_process_group("gloo")
        except RuntimeError as error:
            return 0 if "was asked for" in str(error) else 1
        return 1

    on_ranks(1, runs.folder / "forbidden.log", start_gloo)
