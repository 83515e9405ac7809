"""Settings that cannot work are refused with what to try."""

import pytest

from trainer.fsdp.arguments import SettingsError, parse


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--ranks 3", "choose a multiple of 3"),
        ("--ranks 4 --global-batch 12 --grad-accum 2", "choose a multiple of 8"),
        ("--ranks 4 --strategy hybrid_shard --shard-degree 3", "choose a divisor"),
        ("--ranks 4 --strategy hybrid_shard --shard-degree 1 --fsdp1", "use --strategy no_shard"),
        ("--ranks 4 --strategy no_shard --fsdp1", "--save-every: .* leave --fsdp1 out"),
        ("--ranks 1 --fsdp1 --save-every 0 --save-hf", "--save-hf: .* of what it does not shard"),
        ("--ranks 4 --tensor-parallel 3", "choose a divisor"),
        ("--ranks 4 --tensor-parallel 2 --fsdp1", "leave --fsdp1 out"),
        ("--ranks 4 --tensor-parallel 2 --global-batch 5", "2 groups of --tensor-parallel ranks"),
        ("--ranks 8 --tensor-parallel 2 --strategy hybrid_shard --shard-degree 3", "choose a divisor"),
        ("--ranks 4 --expert-parallel 4", "only 2 is known"),
        ("--ranks 4 --expert-parallel 2 --strategy no_shard", "goes with FSDP2's full_shard"),
        ("--offload-activations 2", "give --activation-checkpointing"),
        ("--auto-resume", "needs a --name"),
        ("--model nowhere", "nor a folder with a config.json"),
        ("--step 3 --plot x", "unrecognized arguments: --plot x; did you mean --"),
        ("--global-bach=8", "unrecognized arguments: --global-bach=8; did you mean --global-batch"),
        ("--strategy none", "invalid choice: 'none'"),
    ],
)
def test_impossible_settings_are_refused(line: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse(line.split())


def test_the_older_class_trains_without_shards_where_nothing_is_saved() -> None:
    assert parse(["--strategy", "no_shard", "--fsdp1", "--save-every", "0"]).shards == 1


def test_ranks_that_torchrun_contradicts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SettingsError, match="torchrun started 2"):
        parse(["--ranks", "4"])


def test_short_run_is_the_beginning_of_a_long_one() -> None:
    assert parse(["--steps", "20"]).decay_steps == parse([]).decay_steps
