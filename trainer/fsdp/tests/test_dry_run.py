"""The flag --dry-run prints a plan without starting a process group."""

from pathlib import Path

import pytest
from transformers import MixtralConfig

from trainer.fsdp.arguments import SettingsError, parse
from trainer.fsdp.dry_run import describe, groups_of, memory_per_rank, shapes_only


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("llama2-7b", 6_738_415_616), ("llama2-13b", 13_015_864_320), ("llama2-70b", 68_976_648_192)],
)
def test_preset_has_the_published_number_of_parameters(model: str, parameters: int) -> None:
    groups = groups_of(shapes_only(parse(["--model", model])))
    assert sum(group.elements(1) for group in groups) == parameters


def test_text_names_parameters_memory_and_collectives() -> None:
    text = describe(parse(["--ranks", "2", "--dry-run"]))
    assert "1,869,888 parameters" in text
    assert "peak of a step" in text
    assert "all_gather           9 calls" in text
    assert "reduce_scatter       5 calls" in text


def test_sharding_divides_what_a_rank_keeps() -> None:
    kept = {}
    for ranks in (1, 4):
        settings = parse(["--model", "125m", "--ranks", str(ranks)])
        kept[ranks] = memory_per_rank(settings, groups_of(shapes_only(settings)), 0)["parameters, fp32"]
    assert kept[4] * 4 == kept[1]


def test_activation_checkpointing_keeps_less() -> None:
    def activations(*more: str) -> int:
        from trainer.fsdp.dry_run import saved_activations

        return saved_activations(parse(["--model", "125m", *more]))

    assert activations("--activation-checkpointing") < activations() / 3


def test_split_tensors_are_in_the_table_of_a_13b_model() -> None:
    words = "--model llama2-13b --ranks 8 --tensor-parallel 2 --precision bf16 --global-batch 8 --dry-run"
    text = describe(parse(words.split()))
    assert "13,015,864,320 parameters" in text
    assert "4 shards of 2 ranks that share tensors" in text
    # A quarter of half of each tensor, in fp32: 13,015,864,320 x 4 / 8 bytes are 6.06 GiB.
    assert "parameters, fp32                                          6.06 GiB" in text
    # 2 sums forward and 5 backward for each block, 1 for the embedding, 1 for the head, 1 for the norm.
    assert "all_reduce         283 calls" in text


def test_mixture_of_experts_is_refused_with_what_to_do(tmp_path: Path) -> None:
    MixtralConfig(num_hidden_layers=2, hidden_size=64, intermediate_size=128).save_pretrained(tmp_path)
    with pytest.raises(SettingsError, match="has peak_bytes_per_rank"):
        describe(parse(["--model", str(tmp_path), "--dry-run"]))
